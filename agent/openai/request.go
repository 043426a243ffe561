package openai

import (
	"cmp"
	"encoding/json"
	"strings"

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
	return params, nil
}

// turn is an answer, the results of its calls, and what the user said.
func (m *Model) turn(t wire.Turn) (messages []sdk.ChatCompletionMessageParamUnion) {
	if t.Answer != nil && (strings.TrimSpace(t.Answer.Text) != "" || len(t.Answer.Calls) > 0) {
		messages = append(messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: m.assistant(t.Answer)})
	}
	for _, r := range t.Results {
		text := r.Text
		if r.Failed {
			text = "Error: " + text // this API has no other mark
		}
		messages = append(messages, sdk.ToolMessage(text, r.Call))
	}
	for _, text := range t.Said {
		messages = append(messages, sdk.UserMessage(text))
	}
	return messages
}

// assistant is an answer of the model.
func (m *Model) assistant(answer *agent.Message) *sdk.ChatCompletionAssistantMessageParam {
	var param sdk.ChatCompletionAssistantMessageParam
	extra := map[string]any{}
	if answer.Text != "" {
		param.Content.OfString = sdk.String(answer.Text)
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
