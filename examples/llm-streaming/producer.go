package main

import (
	"context"
	"fmt"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
)

// result is how one prompt ended.
type result struct {
	answer   Answer
	attempts int
	err      error
}

// producer submits prompts and follows their answers.
type producer struct {
	client  *client.Client
	view    View
	onToken func(ctx context.Context, exec *client.Execution[Answer], i, tokens int) // after every token of prompt i
}

// ask submits all prompts, tails them at once and returns how each one ended.
func (p *producer) ask(ctx context.Context, prompts []Prompt) ([]result, error) {
	execs := make([]*client.Execution[Answer], len(prompts))
	for i, prompt := range prompts {
		// one by one: what is submitted quickly goes to another partition each, so workers share it
		exec, err := client.Submit(ctx, p.client, Generate, prompt)
		if err != nil {
			return nil, fmt.Errorf("submit prompt %d: %w", i+1, err)
		}
		execs[i] = exec
	}
	results := make([]result, len(prompts))
	var tails conc.WaitGroup
	for i, exec := range execs {
		tails.Go(func() {
			results[i] = p.follow(ctx, i, exec)
			p.view.Done(i, results[i].answer, results[i].attempts, results[i].err)
		})
	}
	tails.Wait()
	return results, nil
}

// follow tails one execution over all its attempts, then takes its typed result. What a worker had not recorded when
// it stopped is said again by the next one, so the transcript drops the tokens after the last recorded one.
func (p *producer) follow(ctx context.Context, i int, exec *client.Execution[Answer]) (r result) {
	r.attempts = 1
	said := 0
	var shown stream.Transcript
	for event, err := range exec.Tail(ctx) {
		if err != nil {
			r.err = err
			return r
		}
		shown.Add(event)
		switch event.Kind {
		case stream.TailAttempt:
			if r.attempts = int(event.Attempt); event.Attempt > 1 {
				p.resumed(ctx, i, exec, event, kept(&shown))
			}
		case stream.TailResumed:
			p.resumed(ctx, i, exec, event, kept(&shown))
		case stream.TailFrame:
			said++
			text := string(event.Frame.Payload)
			p.view.Token(i, text)
			if p.onToken != nil {
				p.onToken(ctx, exec, i, said)
			}
		case stream.TailAttemptEnd:
			if what := lost(event); what != "" {
				p.view.Lost(i, what)
			}
		case stream.TailGap:
			p.view.Lost(i, plural(int(event.Trimmed), "frame")+" were trimmed before they could be read")
		case stream.TailEnd:
		}
	}
	r.answer, r.err = exec.Result(ctx)
	return r
}
