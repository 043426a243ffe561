package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/engine"
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
	for i, prompt := range prompts { // one by one: each goes to another partition, so workers share them
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

// follow tails one execution over all its attempts, then takes its typed result.
func (p *producer) follow(ctx context.Context, i int, exec *client.Execution[Answer]) (r result) {
	r.attempts = 1
	tokens := 0
	for event, err := range exec.Tail(ctx) {
		if err != nil {
			r.err = err
			return r
		}
		switch event.Kind {
		case stream.TailAttempt:
			r.attempts = int(event.Attempt) + 1
		case stream.TailFrame:
			switch event.Frame.Type {
			case frameToken:
				tokens++
				p.view.Token(i, string(event.Frame.Payload))
				if p.onToken != nil {
					p.onToken(ctx, exec, i, tokens)
				}
			case frameResume:
				p.resumed(ctx, i, exec, event)
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

// lost says what became of an attempt that ended without an answer; "" for one that succeeded.
func lost(event stream.TailEvent) string {
	attempt := fmt.Sprintf("attempt %d ", event.Attempt+1)
	switch event.Reason {
	case "attempt_success":
		return ""
	case "lease_expired", "reclaimed":
		return "the lease of " + attempt + "ran out; waiting for another worker"
	case "attempt_failure":
		return attempt + "failed"
	}
	return attempt + "ended: " + event.Reason
}

// resumed says what a later attempt continues from, and where.
func (p *producer) resumed(ctx context.Context, i int, exec *client.Execution[Answer], event stream.TailEvent) {
	var kept Resume
	_ = json.Unmarshal(event.Frame.Payload, &kept) // the zero value stands for a fresh start
	end, where := "failed", ""
	if snapshot, err := exec.Get(ctx); err == nil {
		if log := snapshot.AttemptLog; len(log) > 0 && strings.HasPrefix(log[len(log)-1].State, "interrupted") {
			end = "died with its worker"
		}
		if holder := engine.Instance(snapshot.Session); holder != "" {
			where = " on " + holder
		}
	}
	what := fmt.Sprintf("attempt %d %s; attempt %d continues%s, %s kept",
		event.Attempt, end, event.Attempt+1, where, plural(kept.Tokens, "token"))
	p.view.Resume(i, what, kept)
}

// summarize prints the results, with the answers when the view has not shown them in full, and reports failures.
func summarize(out io.Writer, prompts []Prompt, results []result, took time.Duration, inFull bool) error {
	tokens, failed := 0, 0
	for _, r := range results {
		tokens += r.answer.Tokens
		if r.err != nil {
			failed++
		}
	}
	fmt.Fprintf(out, "\n%s in %s: %s, %s over all.\n", plural(len(results)-failed, "answer"),
		took.Round(100*time.Millisecond), plural(tokens, "token"), perSecond(tokens, took))
	for i, r := range results {
		fmt.Fprintf(out, "\n[%d] %s\n", i+1, truncate(printable(prompts[i].Text), plainWidth-4))
		if r.err != nil {
			fmt.Fprintf(out, "    failed: %s\n", printable(r.err.Error()))
			continue
		}
		if inFull {
			for _, line := range wrap(printable(r.answer.Text), plainWidth-4) {
				fmt.Fprintf(out, "    %s\n", line)
			}
		}
		fmt.Fprintf(out, "    = %s, by %s\n", tally(r.answer, r.attempts), r.answer.Model)
	}
	if failed > 0 {
		return fmt.Errorf("%s without an answer", plural(failed, "prompt"))
	}
	return nil
}
