package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
)

// kept is what the tokens say that are left.
func kept(shown *stream.Transcript) Kept {
	return Kept{Text: shown.Text(), Tokens: len(shown.Frames())}
}

// lost says what became of an attempt that ended without an answer; "" for one that succeeded.
func lost(event stream.TailEvent) string {
	attempt := fmt.Sprintf("attempt %d ", event.Attempt)
	switch event.Reason {
	case "attempt_success":
		return ""
	case "lease_expired":
		return "the lease of " + attempt + "ran out; waiting for another worker"
	case "attempt_failure":
		return attempt + "failed"
	}
	return attempt + "ended: " + event.Reason
}

// resumed says why an answer goes on after what is kept of it, and where.
func (p *producer) resumed(ctx context.Context, i int, exec *client.Execution[Answer], event stream.TailEvent,
	kept Kept) {
	end, where := "failed", ""
	if snapshot, err := exec.Get(ctx); err == nil {
		if log := snapshot.AttemptLog; len(log) > 0 && strings.HasPrefix(log[len(log)-1].State, "interrupted") {
			end = "died with its worker"
		}
		if holder := snapshot.Worker; holder != "" {
			where = " on " + holder
		}
	}
	what := fmt.Sprintf("attempt %d %s; attempt %d continues%s", event.Attempt-1, end, event.Attempt, where)
	if event.Kind == stream.TailResumed {
		what = fmt.Sprintf("attempt %d was %s; it continues%s", event.Attempt, event.Resumed.Reason, where)
	}
	p.view.Resume(i, fmt.Sprintf("%s, %s kept", what, plural(kept.Tokens, "token")), kept)
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
