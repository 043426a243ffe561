package gemini

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"

	"google.golang.org/genai"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

const (
	roleUser  = "user"
	roleModel = "model"
	// unsigned is the signature that the service takes for calls that it did not make.
	unsigned = "skip_thought_signature_validator"
)

// params is a request in the service's terms.
func (m *Model) params(req agent.Request) ([]*genai.Content, *genai.GenerateContentConfig, error) {
	turns, err := wire.Turns(req.Messages, func(id string) bool { return id != "" && len(id) <= 256 })
	if err != nil {
		return nil, nil, err
	}
	config := &genai.GenerateContentConfig{
		MaxOutputTokens: int32(min(max(0, cmp.Or(req.MaxTokens, m.cfg.MaxTokens)), math.MaxInt32))}
	if strings.TrimSpace(req.System) != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	tools := &genai.Tool{}
	for _, t := range req.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, nil, err
		}
		tools.FunctionDeclarations = append(tools.FunctionDeclarations, &genai.FunctionDeclaration{Name: t.Name,
			Description: t.Description, ParametersJsonSchema: schema})
	}
	if len(req.Tools) > 0 {
		config.Tools = []*genai.Tool{tools}
	}
	if m.cfg.Configure != nil {
		m.cfg.Configure(config)
	}
	options := genai.HTTPOptions{}
	if config.HTTPOptions != nil {
		options = *config.HTTPOptions
	}
	options.Timeout, options.RetryOptions = nil, &genai.HTTPRetryOptions{Attempts: genai.Ptr(int32(1))}
	config.HTTPOptions, config.AutomaticContinuation = &options, genai.Ptr(false)
	return m.contents(turns), config, nil
}

// contents are the turns in alternating roles.
func (m *Model) contents(turns []wire.Turn) (contents []*genai.Content) {
	add := func(role string, parts []*genai.Part) {
		if n := len(contents); n > 0 && contents[n-1].Role == role {
			contents[n-1].Parts = append(contents[n-1].Parts, parts...)
		} else if len(parts) > 0 {
			contents = append(contents, &genai.Content{Role: role, Parts: parts})
		}
	}
	for _, t := range turns {
		if t.Answer != nil {
			if len(contents) == 0 {
				add(roleUser, []*genai.Part{{Text: "Begin."}}) // the service demands that the user begins
			}
			add(roleModel, m.answerParts(t.Answer))
		}
		var shown []*genai.Part
		for _, r := range t.Results {
			result, more := m.result(r)
			add(roleUser, []*genai.Part{result})
			shown = append(shown, more...)
		}
		add(roleUser, shown)
		for _, parts := range t.Said {
			for _, p := range parts {
				add(roleUser, []*genai.Part{inputPart(p)})
			}
		}
	}
	return contents
}

// before3 says that a model is older than Gemini 3, which takes images in results and demands signatures.
func (m *Model) before3() bool {
	return strings.Contains(m.cfg.Model, "gemini-1") || strings.Contains(m.cfg.Model, "gemini-2")
}

// inputPart is a part as the user shows it.
func inputPart(p agent.Part) *genai.Part {
	kind, media := wire.KindOf(p), wire.Media(p)
	switch {
	case kind == wire.Plain:
		return &genai.Part{Text: wire.PlainText(p)}
	case kind == wire.PDF, kind == wire.Image && media != "image/gif", len(p.Data) > 0 &&
		(strings.HasPrefix(media, "audio/") || strings.HasPrefix(media, "video/")):
		return &genai.Part{InlineData: &genai.Blob{Data: p.Data, MIMEType: media}}
	}
	return &genai.Part{Text: wire.Left(p, wire.NotTaken)}
}

// result is the result of a tool, and what goes behind the results.
func (m *Model) result(r agent.Message) (result *genai.Part, shown []*genai.Part) {
	response := &genai.FunctionResponse{ID: r.Call, Name: wire.Name(r.Tool)}
	var texts []string
	for _, p := range r.Parts {
		if p.Type == agent.PartReasoning {
			continue
		}
		given := inputPart(p)
		kind := wire.KindOf(p)
		switch {
		case given.InlineData == nil:
			texts = append(texts, given.Text)
		case !m.before3() && (kind == wire.Image || kind == wire.PDF):
			response.Parts = append(response.Parts, &genai.FunctionResponsePart{InlineData: &genai.FunctionResponseBlob{
				MIMEType: given.InlineData.MIMEType, Data: given.InlineData.Data}})
		default:
			texts = append(texts, wire.Left(p, "shown behind the results"))
			if len(shown) == 0 {
				shown = append(shown, &genai.Part{Text: "Shown by the tool " + r.Tool + ":"})
			}
			shown = append(shown, given)
		}
	}
	name := "output"
	if r.Failed {
		name = "error"
	}
	response.Response = map[string]any{name: strings.Join(texts, "\n")}
	return &genai.Part{FunctionResponse: response}, shown
}

// private is what Message.Private has, under a name that no other adapter uses.
type private struct {
	Parts []keptPart `json:"gemini_parts"`
}

// answerParts are the parts of an answer: those that were kept, or else its text and calls.
func (m *Model) answerParts(answer *agent.Message) (parts []*genai.Part) {
	var kept private
	_ = json.Unmarshal(answer.Private, &kept) // that of another adapter is not there
	if len(kept.Parts) == 0 {
		text := answer.Text()
		for _, p := range answer.Parts {
			if p.Type == agent.PartImage || p.Type == agent.PartFile {
				text += wire.Left(p, wire.NotTaken) // the service takes them of the user only
			}
		}
		if strings.TrimSpace(text) != "" {
			parts = append(parts, &genai.Part{Text: text})
		}
	}
	calls := append([]agent.ToolCall(nil), answer.Calls...)
	for _, k := range kept.Parts {
		signature, _ := base64.StdEncoding.DecodeString(k.Signature)
		part := &genai.Part{Text: k.Text, Thought: k.Thought, ThoughtSignature: signature}
		switch {
		case k.Call != "":
			i := indexOfCall(calls, k.Call)
			if i < 0 {
				continue
			}
			part = callPart(calls[i], signature)
			calls = append(calls[:i], calls[i+1:]...)
		case len(k.Other) > 0:
			if json.Unmarshal(k.Other, part) != nil {
				continue
			}
		case k.Text == "":
			continue
		}
		parts = append(parts, part)
	}
	for i, c := range calls {
		var signature []byte
		if i == 0 && len(kept.Parts) == 0 && !m.before3() {
			signature = []byte(unsigned)
		}
		parts = append(parts, callPart(c, signature))
	}
	return parts
}

func indexOfCall(calls []agent.ToolCall, id string) int {
	for i, c := range calls {
		if c.ID == id {
			return i
		}
	}
	return -1
}

func callPart(c agent.ToolCall, signature []byte) *genai.Part {
	args := map[string]any{}
	_ = json.Unmarshal(c.Arguments, &args) // an object, as wire.Turns makes it
	return &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: args},
		ThoughtSignature: signature}
}
