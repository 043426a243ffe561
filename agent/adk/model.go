package adk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	ff "github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Model is llm for agents that run in a [Session]: each of its answers is recorded as a step, and the text is appended
// to the stream of the execution as it comes, as frames of type agent.FrameToken, thoughts as agent.FrameReasoning.
// Elsewhere it is llm. It may be used concurrently if llm may.
func Model(llm model.LLM) model.LLM { return recorded{llm} }

type recorded struct{ model.LLM }

// GetGoogleLLMVariant is what ADK asks a model for, to know what the service takes.
func (m recorded) GetGoogleLLMVariant() genai.Backend {
	if g, ok := m.LLM.(interface{ GetGoogleLLMVariant() genai.Backend }); ok {
		return g.GetGoogleLLMVariant()
	}
	return genai.BackendUnspecified
}

// GenerateContent implements model.LLM.
func (m recorded) GenerateContent(ctx context.Context, q *model.LLMRequest,
	streamed bool) iter.Seq2[*model.LLMResponse, error] {
	at := placeOf(ctx)
	if at.run == nil {
		return m.LLM.GenerateContent(ctx, q, streamed)
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		answers, err := m.ask(ctx, at, q, streamed)
		if err != nil {
			yield(nil, at.run.stop(err))
			return
		}
		for _, a := range answers {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func (m recorded) ask(ctx context.Context, at place, q *model.LLMRequest,
	streamed bool) ([]*model.LLMResponse, error) {
	r, name := at.run, ""
	if c, ok := ctx.(agent.InvocationContext); ok {
		name = c.Agent().Name()
	}
	name = at.of(name)
	r.mark(unasked, name, false)
	if err := r.halted(); err != nil {
		return nil, err
	}
	if r.mark(asking, name, true) {
		return nil, invalid("agent %s asks its model twice at the same time, so that answers have no order", name)
	}
	defer r.mark(asking, name, false)
	step := fmt.Sprint(name, " model ", r.next(name+" model"))
	return handler.Step(ctx, r.task, step, func(ctx context.Context) (all []*model.LLMResponse, err error) {
		shown := false
		for a, err := range m.LLM.GenerateContent(ctx, q, streamed) {
			if err != nil {
				return nil, err
			}
			if a.Partial || !shown {
				if err := show(ctx, r.task, a.Content); err != nil {
					return nil, err
				}
			}
			if shown = a.Partial; shown {
				continue
			}
			identify(r.task, step, a.Content)
			all = append(all, a)
		}
		return all, context.Cause(ctx)
	})
}

// identify gives calls an id if the service did not: one that is the same in each run, as tools may use it as a key.
// ADK takes ids that begin like this away from what is sent to Gemini.
func identify(t *handler.Task, step string, c *genai.Content) {
	if c == nil {
		return
	}
	for i, p := range c.Parts {
		if p != nil && p.FunctionCall != nil && p.FunctionCall.ID == "" {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", t.ID(), step, i))
			p.FunctionCall.ID = "adk-" + hex.EncodeToString(sum[:16])
		}
	}
}

// maxFrame is the text of one frame, in bytes.
const maxFrame = 32 << 10

// show appends text to the stream of the execution.
func show(ctx context.Context, t *handler.Task, c *genai.Content) error {
	if c == nil {
		return nil
	}
	for _, p := range c.Parts {
		if p == nil {
			continue
		}
		typ := ff.FrameToken
		if p.Thought {
			typ = ff.FrameReasoning
		}
		for text := strings.ToValidUTF8(p.Text, "\uFFFD"); text != ""; {
			piece := cut(text, maxFrame)
			if err := t.Frame(ctx, typ, piece); err != nil {
				return err
			}
			text = text[len(piece):]
		}
	}
	return nil
}

// cut is the beginning of a text, with at most so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
