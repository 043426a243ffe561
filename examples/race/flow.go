package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Question is the input of a racer.
type Question struct {
	Text     string
	Provider string // who is to answer
	Tokens   int    // length of the answer, 1..maxTokens
}

// Answer is its result.
type Answer struct {
	Provider string
	Text     string
	Tokens   int
}

// Headline is the input of the node that publishes.
type Headline struct{ Text string }

// Article is its result.
type Article struct{ Headline, Text, By string }

// What producers and workers share: the definitions, and the names under which publish is given the answers.
var (
	Ask     = handler.Define[Question, Answer]("ask", handler.Retry(3, 500*time.Millisecond, 5*time.Second))
	Publish = handler.Define[Headline, Article]("publish")

	answers = inputs()
)

func inputs() map[string]flow.Input[Answer] {
	named := map[string]flow.Input[Answer]{}
	for _, p := range providers {
		named[p.Name] = flow.Input[Answer]{Name: p.Name}
	}
	return named
}

// race is one flow: a node per provider, and one that runs as soon as any of them has answered. The others are
// cancelled then.
func race(question string, tokens int) (f *flow.Flow, racers []*flow.Node[Answer], publish *flow.Node[Article]) {
	f = flow.New("race")
	rules := []flow.NodeOption{flow.AnyOf(), flow.CancelRemaining()}
	for _, p := range providers {
		racer := flow.Add(f, p.Name, Ask, Question{question, p.Name, tokens})
		racers = append(racers, racer)
		rules = append(rules, answers[p.Name].From(racer))
	}
	publish = flow.Add(f, "publish", Publish, Headline{question}, rules...)
	return f, racers, publish
}

// Racer handles Ask.
type Racer struct {
	pace    time.Duration
	stopped Stopped
}

// Stopped is called for every answer that was not finished: after how many tokens, and why. It must be safe for
// concurrent use.
type Stopped func(id flowfabric.ExecutionID, tokens int, cause error)

// NewRacer is the constructor given to runtime.Provide: fx injects its dependencies.
func NewRacer(o options, stopped Stopped) *Racer { return &Racer{pace: o.pace, stopped: stopped} }

const frameToken = "token"

// Handle streams the answer as frames. Who has lost is in the middle of it: the context ends, and its cause says that
// the execution was cancelled. A handler that calls something which takes a context needs no code for that.
func (r *Racer) Handle(ctx context.Context, t *handler.Task, in Question) (Answer, error) {
	p, err := providerNamed(in.Provider)
	if err != nil {
		return Answer{}, handler.Permanent(err)
	}
	answer := Answer{Provider: p.Name}
	err = p.Stream(ctx, in, r.pace, func(token string) error {
		answer.Text += token
		answer.Tokens++
		return t.Frame(ctx, frameToken, token)
	})
	if err != nil {
		r.stopped(t.ID(), answer.Tokens, cmp.Or(context.Cause(ctx), err))
	}
	return answer, err
}

// first handles Publish. Of an any-of, exactly one input is there: the result that decided it.
func first(_ context.Context, t *handler.Task, in Headline) (Article, error) {
	for _, p := range providers {
		answer, ok, err := handler.Given(t, answers[p.Name])
		if err != nil {
			return Article{}, fmt.Errorf("answer of %s: %w", p.Name, err)
		}
		if ok {
			return Article{Headline: in.Text, Text: answer.Text, By: answer.Provider}, nil
		}
	}
	return Article{}, handler.Permanent(errors.New("nobody has answered"))
}
