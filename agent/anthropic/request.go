package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

const (
	longestID = 64
	opening   = "Begin." // before a conversation that the model began: the service demands a message of the user
)

// params is a request in the service's terms.
func (m *Model) params(req agent.Request) (sdk.MessageNewParams, error) {
	turns, err := wire.Turns(req.Messages, func(id string) bool { return wire.Words(id, longestID) })
	if err != nil {
		return sdk.MessageNewParams{}, err
	}
	params := sdk.MessageNewParams{
		Model:     m.cfg.Model,
		MaxTokens: cmp.Or(max(0, req.MaxTokens), m.cfg.MaxTokens, defaultMaxTokens),
		Messages:  messages(turns, wire.Marked(turns, req.Cache)),
	}
	if strings.TrimSpace(req.System) != "" {
		params.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	for _, t := range req.Tools {
		tool, err := toolParam(t)
		if err != nil {
			return sdk.MessageNewParams{}, err
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	if slices.Contains(req.Cache.Marks, 0) { // of four that the service takes; messages have two
		if n := len(params.Tools); n > 0 {
			params.Tools[n-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		if len(params.System) > 0 {
			params.System[0].CacheControl = sdk.NewCacheControlEphemeralParam()
		}
	}
	if req.Schema != nil {
		schema, err := wire.Format(req.Schema)
		if err != nil {
			return sdk.MessageNewParams{}, err
		}
		params.OutputConfig.Format.Schema = schema
	}
	return params, nil
}

// TakesSchema implements [agent.Structured]: a schema whose objects have only named members.
func (m *Model) TakesSchema(schema *jsonschema.Schema) bool {
	closed, _ := wire.Strict(schema)
	return closed
}

// messages are the turns in alternating roles, the user's first. What the marked ones end with ends a prefix that the
// service keeps.
func messages(turns []wire.Turn, marked map[int]bool) (messages []sdk.MessageParam) {
	add := func(role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) {
		if len(blocks) == 0 {
			return
		}
		if n := len(messages); n > 0 && messages[n-1].Role == role {
			messages[n-1].Content = append(messages[n-1].Content, blocks...)
			return
		}
		messages = append(messages, sdk.MessageParam{Role: role, Content: blocks})
	}
	for i, t := range turns {
		if t.Answer != nil {
			blocks := answerBlocks(t.Answer)
			if len(messages) == 0 && len(blocks) > 0 {
				add(sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(opening)})
			}
			add(sdk.MessageParamRoleAssistant, blocks)
		}
		blocks := userBlocks(t)
		if n := len(blocks); n > 0 && marked[i] {
			*blocks[n-1].GetCacheControl() = sdk.NewCacheControlEphemeralParam()
		}
		add(sdk.MessageParamRoleUser, blocks)
	}
	return messages
}

// userBlocks are the results of tools and what the user said; the service demands this order.
func userBlocks(t wire.Turn) (blocks []sdk.ContentBlockParamUnion) {
	for _, r := range t.Results {
		result := &sdk.ToolResultBlockParam{ToolUseID: r.Call}
		if r.Failed {
			result.IsError = sdk.Bool(true)
		}
		for _, p := range r.Parts {
			if p.Type == agent.PartReasoning || p.Type == agent.PartText && strings.TrimSpace(p.Text) == "" {
				continue
			}
			if kind := wire.KindOf(p); r.Failed && kind == wire.Plain { // the service takes only texts of what failed
				p = agent.Part{Type: agent.PartText, Text: wire.PlainText(p)}
			} else if r.Failed {
				p = agent.Part{Type: agent.PartText, Text: wire.Left(p, wire.NotTaken)}
			}
			b := partBlock(p)
			result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: b.OfText,
				OfImage: b.OfImage, OfDocument: b.OfDocument})
		}
		blocks = append(blocks, sdk.ContentBlockParamUnion{OfToolResult: result})
	}
	for _, parts := range t.Said {
		for _, p := range parts {
			blocks = append(blocks, partBlock(p))
		}
	}
	return blocks
}

// partBlock is a text, an image or a document.
func partBlock(p agent.Part) sdk.ContentBlockParamUnion {
	var document sdk.ContentBlockParamUnion
	switch kind := wire.KindOf(p); {
	case kind == wire.Image:
		return sdk.NewImageBlockBase64(wire.Media(p), wire.Base64(p))
	case kind == wire.PDF:
		document = sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: wire.Base64(p)})
	case kind == wire.Plain && p.Type == agent.PartText:
		return sdk.NewTextBlock(p.Text)
	case kind == wire.Plain:
		document = sdk.NewDocumentBlock(sdk.PlainTextSourceParam{
			Data: strings.ToValidUTF8(string(p.Data), "\uFFFD")})
	default:
		return sdk.NewTextBlock(wire.Left(p, wire.NotTaken))
	}
	if p.Name != "" {
		document.OfDocument.Title = sdk.String(p.Name)
	}
	return document
}

// private is what Message.Private has, under a name that no other adapter uses: the blocks of an answer in their
// order. A tool_use block is only an id there, the rest of it is in Message.Calls.
type private struct {
	Blocks []json.RawMessage `json:"anthropic_blocks"`
}

// answerBlocks are the blocks of an answer: those that were kept, or else its text and calls.
func answerBlocks(answer *agent.Message) (blocks []sdk.ContentBlockParamUnion) {
	var kept private
	if json.Unmarshal(answer.Private, &kept) != nil || len(kept.Blocks) == 0 {
		kept.Blocks = nil
		text := answer.Text()
		for _, p := range answer.Parts {
			if p.Type == agent.PartImage || p.Type == agent.PartFile {
				text += wire.Left(p, wire.NotTaken) // the service takes them of the user only
			}
		}
		if strings.TrimSpace(text) != "" {
			blocks = append(blocks, sdk.NewTextBlock(text))
		}
	}
	calls := append([]agent.ToolCall(nil), answer.Calls...)
	thoughts := 0 // at the end, where the service refuses them
	for _, raw := range kept.Blocks {
		block, kind, ok := keptBlock(raw, &calls)
		if !ok {
			continue
		}
		blocks = append(blocks, block)
		thoughts++
		if kind != kindThinking && kind != kindRedacted {
			thoughts = 0
		}
	}
	if len(calls) == 0 {
		return blocks[:len(blocks)-thoughts]
	}
	for _, c := range calls {
		blocks = append(blocks, toolUse(c))
	}
	return blocks
}

// keptBlock is a block of an answer as it goes back. It takes the call of a tool_use block out of calls. A block that
// the service would refuse is not ok.
func keptBlock(raw json.RawMessage, calls *[]agent.ToolCall) (block sdk.ContentBlockParamUnion, kind string, ok bool) {
	var b struct{ Type, ID, Text, Signature string }
	if json.Unmarshal(raw, &b) != nil {
		return block, "", false
	}
	switch b.Type {
	case kindToolUse:
		for i, c := range *calls {
			if c.ID == b.ID {
				*calls = append((*calls)[:i:i], (*calls)[i+1:]...)
				return toolUse(c), b.Type, true
			}
		}
		return block, b.Type, false
	case kindText:
		ok = strings.TrimSpace(b.Text) != ""
	case kindThinking:
		ok = b.Signature != "" // an answer that was cut in mid-thought has none
	default:
		ok = b.Type != ""
	}
	return param.Override[sdk.ContentBlockParamUnion](raw), b.Type, ok
}

func toolUse(c agent.ToolCall) sdk.ContentBlockParamUnion {
	return sdk.NewToolUseBlock(c.ID, c.Arguments, c.Name)
}

// toolParam is what the service is told of a tool.
func toolParam(t agent.ToolSpec) (*sdk.ToolParam, error) {
	tool := &sdk.ToolParam{Name: t.Name}
	if t.Description != "" {
		tool.Description = sdk.String(t.Description)
	}
	schema, err := wire.Schema(t)
	if err != nil {
		return nil, err
	}
	tool.InputSchema = param.Override[sdk.ToolInputSchemaParam](encode(schema))
	return tool, nil
}
