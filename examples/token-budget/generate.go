package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/examples/corpus"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Prompt is the input of an execution.
type Prompt struct {
	Book   string // of the corpus, which stands for a model
	Skip   int    // tokens that an earlier answer had
	Tokens int    // length of the answer, 1..maxTokens
}

// Answer is its result.
type Answer struct {
	Text   string
	Tokens int
}

// Generate is what producers and workers share.
var Generate = handler.Define[Prompt, Answer]("tenant-generate", handler.Retry(3, 500*time.Millisecond, 5*time.Second))

const (
	dimension  = "tokens" // what the budgets count
	frameToken = "token"
	maxTokens  = 200
)

// Generator handles Generate. Its model comes from fx.
type Generator struct{ model Model }

// NewGenerator is the constructor given to runtime.Provide.
func NewGenerator(model Model) *Generator { return &Generator{model: model} }

// Handle streams an answer. Every token is spent before it is shown, so nobody sees one that is not paid for. It
// knows nothing of budgets: those of the tenant come with the namespace. The OnHard of a budget decides what happens
// next: with "fail" this context ends, and the execution fails, whatever is returned here.
func (g *Generator) Handle(ctx context.Context, t *handler.Task, in Prompt) (Answer, error) {
	tokens, err := in.tokens()
	if err != nil {
		return Answer{}, handler.Permanent(err)
	}
	answer := Answer{}
	for _, token := range tokens {
		if err := g.model.think(ctx); err != nil {
			return answer, err
		}
		if err := t.Spend(ctx, dimension, 1); err != nil {
			return answer, err
		}
		if err := t.Frame(ctx, frameToken, token); err != nil {
			return answer, err
		}
		answer.Text += token
		answer.Tokens++
	}
	return answer, nil
}

// Model stands for a language model.
type Model struct {
	Pace time.Duration // how long it takes for a token
}

// think takes the time that a model takes.
func (m Model) think(ctx context.Context) error {
	select {
	case <-time.After(m.Pace):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tokens are what the model will say: about two thirds of a word each.
func (p Prompt) tokens() (out []string, err error) {
	if p.Tokens < 1 || p.Tokens > maxTokens || p.Skip < 0 || p.Skip > maxTokens {
		return nil, errors.New("an answer has 1..200 tokens")
	}
	texts, err := corpus.Texts()
	if err != nil {
		return nil, fmt.Errorf("read corpus: %w", err)
	}
	for _, text := range texts {
		if text.Name != p.Book {
			continue
		}
		for word := range strings.FieldsSeq(strings.Join(text.Paragraphs, " ")) {
			out = append(out, cutUp(" "+word)...)
		}
		return out[p.Skip:][:p.Tokens], nil
	}
	return nil, fmt.Errorf("the corpus has no %q", p.Book)
}

// cutUp makes tokens of a word: long ones are two.
func cutUp(word string) []string {
	const long = 6
	runes := []rune(word)
	if len(runes) <= long {
		return []string{word}
	}
	half := (len(runes) + 1) / 2
	return []string{string(runes[:half]), string(runes[half:])}
}
