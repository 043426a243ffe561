package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// NewResponses makes a model that speaks the Responses API, in which reasoning models of OpenAI keep their reasoning
// between the calls of tools. Set Config.ReturnReasoning for these: others refuse it. It fails like [New].
//
// The service stores nothing: each request has the whole conversation. Reasoning goes along encrypted, in
// Message.Private. To be told of it, too, set option.WithJSONSet("reasoning.summary", "auto") in Config.Options.
// Tools of the service, for example web_search, need an option, too; what they find stays in Message.Private.
func NewResponses(cfg Config) (*Model, error) {
	m, err := New(cfg)
	if err != nil {
		return nil, err
	}
	m.responses = true
	return m, nil
}

// The kinds of items that are more than kept.
const (
	itemMessage      = "message"
	itemReasoning    = "reasoning"
	itemFunctionCall = "function_call"
)

// responseParams is a request in terms of the Responses API.
func (m *Model) responseParams(req agent.Request) (params responses.ResponseNewParams, err error) {
	turns, err := wire.Turns(req.Messages, func(id string) bool { return wire.Words(id, 64) })
	if err != nil {
		return params, err
	}
	params.Model, params.Store = m.cfg.Model, sdk.Bool(false)
	if m.cfg.ReturnReasoning {
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if most := cmp.Or(req.MaxTokens, m.cfg.MaxTokens); most > 0 {
		params.MaxOutputTokens = sdk.Int(most)
	}
	if strings.TrimSpace(req.System) != "" {
		params.Instructions = sdk.String(req.System)
	}
	if req.Cache.Key != "" && !m.cfg.LegacyMaxTokens {
		params.PromptCacheKey = sdk.String(req.Cache.Key)
	}
	if req.Schema != nil {
		schema, err := wire.Format(req.Schema)
		if err != nil {
			return params, err
		}
		format := &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Schema: schema}
		if closed, required := wire.Strict(req.Schema); closed && required {
			format.Strict = sdk.Bool(true)
		}
		params.Text.Format.OfJSONSchema = format
	}
	for _, t := range turns {
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, m.items(t)...)
	}
	for _, t := range req.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return params, err
		}
		tool := &responses.FunctionToolParam{Name: t.Name, Parameters: map[string]any{}, Strict: sdk.Bool(false)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		for name, value := range schema {
			tool.Parameters[name] = value
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: tool})
	}
	return params, nil
}

// items are an answer, the results of its calls, and what the user said.
func (m *Model) items(t wire.Turn) (items []responses.ResponseInputItemUnionParam) {
	if t.Answer != nil {
		items = m.answerItems(t.Answer)
	}
	for _, r := range t.Results {
		items = append(items, resultItem(r))
	}
	for _, parts := range t.Said {
		var content responses.ResponseInputMessageContentListParam
		for _, p := range parts {
			text, image, file := inputPart(p)
			content = append(content, responses.ResponseInputContentUnionParam{OfInputText: text, OfInputImage: image,
				OfInputFile: file})
		}
		items = append(items, responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
	}
	return items
}

// inputPart is a part as the user shows it: one of the three.
func inputPart(p agent.Part) (text *responses.ResponseInputTextParam, image *responses.ResponseInputImageParam,
	file *responses.ResponseInputFileParam) {
	switch wire.KindOf(p) {
	case wire.Image:
		return nil, &responses.ResponseInputImageParam{ImageURL: sdk.String(dataURL(p)),
			Detail: responses.ResponseInputImageDetailAuto}, nil
	case wire.PDF:
		return nil, nil, &responses.ResponseInputFileParam{FileData: sdk.String(dataURL(p)),
			Filename: sdk.String(cmp.Or(p.Name, "file.pdf"))}
	case wire.Plain:
		return &responses.ResponseInputTextParam{Text: wire.PlainText(p)}, nil, nil
	}
	return &responses.ResponseInputTextParam{Text: wire.Left(p, wire.NotTaken)}, nil, nil
}

// resultItem is the result of a tool: a string if it is all text.
func resultItem(r agent.Message) responses.ResponseInputItemUnionParam {
	var texts []string
	var content responses.ResponseFunctionCallOutputItemListParam
	if r.Failed { // this API has no other mark
		r.Parts = append(agent.Text("Error:"), r.Parts...)
	}
	for _, p := range r.Parts {
		if p.Type == agent.PartReasoning || p.Type == agent.PartText && strings.TrimSpace(p.Text) == "" {
			continue
		}
		text, image, file := inputPart(p)
		var item responses.ResponseFunctionCallOutputItemUnionParam
		switch {
		case text != nil:
			texts = append(texts, text.Text)
			item.OfInputText = &responses.ResponseInputTextContentParam{Text: text.Text}
		case image != nil:
			item.OfInputImage = &responses.ResponseInputImageContentParam{ImageURL: image.ImageURL}
		default:
			item.OfInputFile = &responses.ResponseInputFileContentParam{FileData: file.FileData,
				Filename: file.Filename}
		}
		content = append(content, item)
	}
	output := responses.ResponseInputItemParamOfFunctionCallOutput(content)
	if len(texts) == len(content) {
		output = responses.ResponseInputItemParamOfFunctionCallOutput(strings.Join(texts, "\n"))
	}
	output.OfFunctionCallOutput.CallID = param.NewOpt(r.Call)
	return output
}

// keptItems is what Message.Private has, under a name that no other adapter uses: the items of an answer in their
// order. A call is only an id there, the rest of it is in Message.Calls.
type keptItems struct {
	Items []json.RawMessage `json:"openai_items"`
}

// answerItems are the items of an answer: those that were kept, or else its text and calls.
func (m *Model) answerItems(answer *agent.Message) (items []responses.ResponseInputItemUnionParam) {
	var kept keptItems
	if !m.cfg.ReturnReasoning || json.Unmarshal(answer.Private, &kept) != nil || len(kept.Items) == 0 {
		kept.Items = nil
		if text := answered(answer); strings.TrimSpace(text) != "" {
			items = append(items, responses.ResponseInputItemParamOfMessage(text,
				responses.EasyInputMessageRoleAssistant))
		}
	}
	whole := 0 // items, without the reasoning at the end, which the service refuses if nothing follows
	calls := append([]agent.ToolCall(nil), answer.Calls...)
	for _, raw := range kept.Items {
		var item struct {
			Type string `json:"type"`
			Call string `json:"call_id"`
		}
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		if item.Type != itemFunctionCall {
			items = append(items, param.Override[responses.ResponseInputItemUnionParam](raw))
		} else if i := indexOfCall(calls, item.Call); i >= 0 {
			items = append(items, callItem(calls[i]))
			calls = append(calls[:i], calls[i+1:]...)
		} else {
			continue
		}
		if item.Type != itemReasoning {
			whole = len(items)
		}
	}
	if len(calls) == 0 && len(kept.Items) > 0 {
		return items[:whole]
	}
	for _, c := range calls {
		items = append(items, callItem(c))
	}
	return items
}

func indexOfCall(calls []agent.ToolCall, id string) int {
	for i, c := range calls {
		if c.ID == id {
			return i
		}
	}
	return -1
}

func callItem(c agent.ToolCall) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfFunctionCall(string(c.Arguments), c.ID, c.Name)
}
