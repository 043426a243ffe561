package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	perCall    = 10 // the most tokens that one call of the model may use
)

// Generator handles Generate. Its model comes from fx.
type Generator struct{ model Model }

// NewGenerator is the constructor given to runtime.Provide.
func NewGenerator(model Model) *Generator { return &Generator{model: model} }

// Handle makes an answer in calls of at most perCall tokens. Each call is a step, so that none is made, or paid, twice.
// It knows nothing of budgets: those of the tenant come with the namespace. The OnHard of a budget decides what happens
// when a call does not fit: with "block" this context ends, and the execution waits, whatever is returned here.
func (g *Generator) Handle(ctx context.Context, t *handler.Task, in Prompt) (Answer, error) {
	tokens, err := in.tokens()
	if err != nil {
		return Answer{}, handler.Permanent(err)
	}
	answer := Answer{}
	for part := range slices.Chunk(tokens, perCall) {
		said, err := handler.Step(ctx, t, fmt.Sprint("call at ", answer.Tokens),
			func(ctx context.Context) (Answer, error) { return g.call(ctx, t, part) })
		if err != nil {
			return answer, err
		}
		answer.Text += said.Text
		answer.Tokens += said.Tokens
	}
	return answer, nil
}

// call asks the model once: it reserves the most that the call may use, streams what the model says, and settles what
// it used. A call that does not fit is not made.
func (g *Generator) call(ctx context.Context, t *handler.Task, tokens []string) (said Answer, err error) {
	r, err := t.Reserve(ctx, map[string]int64{dimension: perCall})
	if err != nil {
		return said, err
	}
	for _, token := range tokens {
		if err = g.model.think(ctx); err != nil {
			break
		}
		said.Text += token
		said.Tokens++
		if err = t.Frame(ctx, frameToken, token); err != nil {
			break
		}
	}
	return said, errors.Join(err, r.Settle(ctx, map[string]int64{dimension: int64(said.Tokens)}))
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
