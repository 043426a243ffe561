package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// longestID is how long an id of a call may be at OpenAI; those of other services are longer.
const longestID = 40

// params is a request in the service's terms.
func (m *Model) params(req agent.Request) (sdk.ChatCompletionNewParams, error) {
	turns, err := wire.Turns(req.Messages, func(id string) bool { return id != "" && len(id) <= longestID })
	if err != nil {
		return sdk.ChatCompletionNewParams{}, err
	}
	params := sdk.ChatCompletionNewParams{
		Model:         m.cfg.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if most := cmp.Or(req.MaxTokens, m.cfg.MaxTokens); most > 0 {
		if m.cfg.LegacyMaxTokens {
			params.MaxTokens = sdk.Int(most)
		} else {
			params.MaxCompletionTokens = sdk.Int(most)
		}
	}
	if strings.TrimSpace(req.System) != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(req.System))
	}
	for _, t := range turns {
		params.Messages = append(params.Messages, m.turn(t)...)
	}
	for _, t := range req.Tools {
		tool, err := toolParam(t)
		if err != nil {
			return sdk.ChatCompletionNewParams{}, err
		}
		params.Tools = append(params.Tools, tool)
	}
	// The service keeps prefixes by itself, and finds them better so.
	if req.Cache.Key != "" && !m.cfg.LegacyMaxTokens {
		params.PromptCacheKey = sdk.String(req.Cache.Key)
	}
	if req.Schema != nil {
		schema, err := wire.Format(req.Schema)
		if err != nil {
			return sdk.ChatCompletionNewParams{}, err
		}
		format := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schema}
		if closed, required := wire.Strict(req.Schema); closed && required {
			format.Strict = sdk.Bool(true)
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: format}
	}
	return params, nil
}

// TakesSchema implements [agent.Structured]: every schema, but for an older service.
func (m *Model) TakesSchema(*jsonschema.Schema) bool { return !m.cfg.LegacyMaxTokens }

// turn is an answer, the results of its calls, and what the user said.
func (m *Model) turn(t wire.Turn) (messages []sdk.ChatCompletionMessageParamUnion) {
	if t.Answer != nil {
		if text := answered(t.Answer); strings.TrimSpace(text) != "" || len(t.Answer.Calls) > 0 {
			messages = append(messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: m.assistant(t.Answer, text)})
		}
	}
	var shown []agent.Part // by tools: only the user can show what is no text
	for _, r := range t.Results {
		text, more := result(r)
		if r.Failed {
			text = "Error: " + text // this API has no other mark
		}
		messages = append(messages, sdk.ToolMessage(text, r.Call))
		shown = append(shown, more...)
	}
	if len(shown) > 0 {
		messages = append(messages, said(shown))
	}
	for _, parts := range t.Said {
		messages = append(messages, said(parts))
	}
	return messages
}

// answered is the text of an answer. The service takes nothing else back.
func answered(answer *agent.Message) string {
	text := answer.Text()
	for _, p := range answer.Parts {
		if p.Type == agent.PartImage || p.Type == agent.PartFile {
			text += wire.Left(p, wire.NotTaken)
		}
	}
	return text
}

// result is the text of a tool's result, and the images and files that go into a message of the user behind it.
func result(r agent.Message) (text string, shown []agent.Part) {
	var texts []string
	for _, p := range r.Parts {
		switch wire.KindOf(p) {
		case wire.Plain:
			texts = append(texts, wire.PlainText(p))
		case wire.Image, wire.PDF:
			texts = append(texts, wire.Left(p, "shown in the message after the results"))
			if len(shown) == 0 {
				shown = agent.Text("Shown by the tool " + r.Tool + ":")
			}
			shown = append(shown, p)
		default:
			texts = append(texts, wire.Left(p, wire.NotTaken))
		}
	}
	return strings.Join(texts, "\n"), shown
}

// said is a message of the user: a string if it is all text, which all services take.
func said(parts []agent.Part) sdk.ChatCompletionMessageParamUnion {
	var texts []string
	var content []sdk.ChatCompletionContentPartUnionParam
	for _, p := range parts {
		switch wire.KindOf(p) {
		case wire.Image:
			content = append(content,
				sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL(p)}))
			continue
		case wire.PDF:
			content = append(content, sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
				FileData: sdk.String(dataURL(p)), Filename: sdk.String(cmp.Or(p.Name, "file.pdf"))}))
			continue
		case wire.Plain:
			texts = append(texts, wire.PlainText(p))
		default:
			texts = append(texts, wire.Left(p, wire.NotTaken))
		}
		content = append(content, sdk.TextContentPart(texts[len(texts)-1]))
	}
	if len(texts) == len(content) {
		return sdk.UserMessage(strings.Join(texts, "\n"))
	}
	return sdk.UserMessage(content)
}

// dataURL has the bytes of a part in it.
func dataURL(p agent.Part) string { return "data:" + wire.Media(p) + ";base64," + wire.Base64(p) }

// assistant is an answer of the model.
func (m *Model) assistant(answer *agent.Message, text string) *sdk.ChatCompletionAssistantMessageParam {
	var param sdk.ChatCompletionAssistantMessageParam
	extra := map[string]any{}
	if text != "" {
		param.Content.OfString = sdk.String(text)
	} else {
		extra["content"] = nil // some services demand the field
	}
	for _, c := range answer.Calls {
		param.ToolCalls = append(param.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name,
					Arguments: string(c.Arguments)},
			},
		})
	}
	if thought, ok := thoughtOf(answer.Private); ok && m.cfg.ReturnReasoning {
		extra[thought.Field] = thought.Text
	}
	if len(extra) > 0 {
		param.SetExtraFields(extra)
	}
	return &param
}

// thought is the reasoning of an answer, and the field that the service has for it.
type thought struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// private is what Message.Private has, under a name that no other adapter uses.
type private struct {
	Reasoning *thought `json:"openai_reasoning"`
}

// thoughtOf reads the reasoning of an answer. That of another adapter is not there.
func thoughtOf(raw json.RawMessage) (thought, bool) {
	var p private
	if json.Unmarshal(raw, &p) != nil || p.Reasoning == nil ||
		p.Reasoning.Field != fieldReasoning && p.Reasoning.Field != fieldReasoningContent {
		return thought{}, false
	}
	return *p.Reasoning, true
}

// toolParam is what the service is told of a tool.
func toolParam(t agent.ToolSpec) (sdk.ChatCompletionToolUnionParam, error) {
	function := shared.FunctionDefinitionParam{Name: t.Name, Parameters: shared.FunctionParameters{}}
	if t.Description != "" {
		function.Description = sdk.String(t.Description)
	}
	schema, err := wire.Schema(t)
	if err != nil {
		return sdk.ChatCompletionToolUnionParam{}, err
	}
	for name, value := range schema {
		function.Parameters[name] = value
	}
	return sdk.ChatCompletionFunctionTool(function), nil
}
