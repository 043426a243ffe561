package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var tailVerb = verb{
	use: "tail [ID]", short: "Follow the output of an execution until it ends, or the changes of all that match",
	long: `tail prints the frames of an execution as its handler writes them. It begins with the stored ones,
covers all attempts, and ends with the execution. It reconnects when the connection is lost. The exit code
is 0 after any end of the execution and after an interrupt; the last line says how it ended, with category
and reason of a failure.

When a handler runs again in the same attempt (its worker drained, it was delayed or suspended), it
repeats the frames of the step that was not recorded. A line "resumed" comes before them, with the reason
and the sequence of the last recorded frame: drop the frames after that one. The end of an attempt names
it, too.

An event is one line, so line breaks and control characters of a frame are quoted. --raw prints only the
contents of durable frames, one after the other: no summaries and no best-effort frames. The end of a
failed execution and notes about repeated frames then go to stderr. --json prints one event per line; pass
its "position" to --from to go on behind it.

Children that the handler shows have their lines among these, with their names in front. --raw and --own
leave them out.

Without ID, tail --follow prints a line for each change of the executions that --kind, --lane and --tag choose,
from now on until it is interrupted: attempts that begin, retries, waits, signals and ends. --state shows only
changes to these states. After a lost connection a line may come twice. The store records such changes while
somebody follows, and for a day after.`,
	example: `  flowfabric tail 3-0197f3a0-… --raw
  flowfabric tail -f --kind ship --tag team.region=eu --state failed,suspended
  flowfabric tail 3-0197f3a0-… --json | jq -r 'select(.frame.type=="token").frame.text'`,
	route: "GET /v1/executions/{ID}/events", lasting: true,
	flags: []member{
		whole("?attempt", "attempt", "only this attempt, `1` is the first (default all)"),
		text("?after", "from", "go on behind the event that had this `position`"),
		yes("?from_now", "from-now", "leave out what is stored"),
		yes("?durable", "durable", "leave out frames that were not meant to last"),
		yes("?own", "own", "leave out what children put out"),
		{flag: "follow", letter: "f", usage: "without ID: follow all executions that match", kind: yesKind},
		text("", "lane", "with --follow: only this `lane`"),
		text("", "kind", "with --follow: only this `kind`"),
		tagged("", "tag", "with --follow: only with this `key=value`; may be repeated"),
		list("", "state", "with --follow: only changes to these `states`, or ended"),
		yes("", "raw", "print the contents of the frames that are kept and nothing else"),
	},
	exclusive: [][]string{{"from-now", "from"}},
	namespace: "?namespace", all: true,
	run: func(ctx context.Context, q *request) error {
		if len(q.args) == 0 {
			return q.tailAll(ctx)
		}
		q.query.Del("namespace") // the id says it
		for _, flag := range feedFlags {
			if q.cmd.Flags().Changed(flag) {
				return usage("--%s goes with --follow, without ID", flag)
			}
		}
		id, err := executionID(q.args[0])
		if err != nil {
			return err
		}
		if q.cmd.Flags().Changed("attempt") && q.number("attempt") < 1 {
			return usage("--attempt is %s, want 1 or more", q.text("attempt"))
		}
		if _, err := stream.ParsePosition(q.text("from")); err != nil {
			return usage("--from: %v", err)
		}
		_, err = q.app.tail(q.follow(ctx, id), id, q.said("raw"))
		return q.named(err)
	},
}

// follow are the events of an execution that the query of a request asks for.
func (q *request) follow(ctx context.Context, id flowfabric.ExecutionID) iter.Seq2[stream.TailEvent, error] {
	if q.door.client == nil {
		return q.door.events(ctx, at("/v1/executions/*/events", id.String()), q.query)
	}
	var opts []client.TailOption
	if n, err := strconv.ParseUint(q.query.Get("attempt"), 10, 32); err == nil {
		opts = append(opts, client.OnlyAttempt(uint32(n)))
	}
	if from := q.query.Get("after"); from != "" {
		opts = append(opts, client.From(stream.Position(from)))
	}
	if q.query.Get("from_now") == "true" {
		opts = append(opts, client.FromNow())
	}
	if q.query.Get("durable") == "true" {
		opts = append(opts, client.WithoutBestEffort())
	}
	if q.query.Get("own") == "true" {
		opts = append(opts, client.WithoutChildren())
	}
	return q.door.client.Execution(id).Tail(ctx, opts...)
}

// tail shows the events of an execution; an interrupt is how a person ends it. The end is nil for a success, and when
// it was not seen.
func (a *app) tail(events iter.Seq2[stream.TailEvent, error], id flowfabric.ExecutionID,
	raw bool) (end *client.OutcomeError, err error) {
	for e, err := range events {
		if errors.Is(err, context.Canceled) {
			return nil, nil
		}
		if err == nil {
			if e.Child == nil && e.Kind == stream.TailEnd && e.State != flowfabric.Completed {
				end = &client.OutcomeError{ID: id, State: e.State, Category: e.Category, Reason: e.Message, By: e.By,
					Source: e.Source, Attempts: e.Attempt}
			}
			err = a.tailed(e, end, raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return end, nil
}

func (a *app) tailed(e stream.TailEvent, end *client.OutcomeError, raw bool) error {
	if raw && e.Child != nil {
		return nil
	}
	if raw {
		if e.Kind == stream.TailFrame && e.Frame.Mode == stream.ModeDurable {
			return a.write(sealed.Text(e.Frame.Payload))
		}
		if e.Kind == stream.TailResumed {
			fmt.Fprintln(a.err, again(e.Resumed))
		}
		if end != nil {
			fmt.Fprintln(a.err, indented(end.Error(), hanging))
		}
		return nil
	}
	return a.show(e, func(p *page) {
		if e.Child != nil {
			p.put(styled(faint, strings.Join(e.Child.Path, "/")))
			p.WriteString(" ")
		}
		switch e.Kind {
		case stream.TailFrame:
			p.put(styled(faint, e.Attempt))
			p.WriteString(" ")
			p.put(styled(bold, e.Frame.Type))
			if e.Frame.Mode != stream.ModeDurable {
				p.put(styled(faint, " ("+e.Frame.Mode.String()+")"))
			}
			p.say("  %s", printable(sealed.Text(e.Frame.Payload)))
		case stream.TailGap:
			if e.Reason != "" {
				p.say("%d -- gone: %s", e.Attempt, e.Reason)
			} else {
				p.say("%d -- %d frames dropped, %d missed", e.Attempt, e.Trimmed, e.Missed)
			}
		case stream.TailResumed:
			p.say("%d -- %s", e.Attempt, again(e.Resumed))
		case stream.TailAttempt:
			p.say("%d -- attempt begins (%s)", e.Attempt, e.Type)
		case stream.TailSuspended:
			p.say("%d -- suspended: waits for %s", e.Attempt, waited(e.Suspension))
		case stream.TailRetry:
			p.say("%d -- %s %s, after %s", e.Attempt, e.Type, soon(e.At), join(": ", string(e.Category), e.Message))
		case stream.TailAttemptEnd:
			if e.Reason == "attempt_success" || e.Recorded == 0 {
				p.say("%d -- attempt ends: %s", e.Attempt, e.Reason)
			} else { // another one may follow
				p.say("%d -- attempt ends: %s; recorded up to frame %d", e.Attempt, e.Reason, e.Recorded)
			}
		case stream.TailEnd:
			first := "--" // without a number if no attempt began
			if e.Attempt > 0 {
				first = fmt.Sprintf("%d --", e.Attempt)
			}
			p.say("%s execution %s", first,
				join(": ", join(" ", string(e.State), bracketed(cmp.Or(canceller(e.By, e.Source), string(e.Category)))),
					e.Message))
		}
	})
}

// again says what the frames of a run that begins stand for.
func again(r stream.Resumption) string {
	text := "resumed"
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	if r.Recorded == 0 {
		return text + ": no frame was recorded, all of this attempt are repeated"
	}
	return fmt.Sprintf("%s: frames after %d, if there were any, are repeated", text, r.Recorded)
}

// waited says what a suspended execution waits for.
func waited(w *suspend.Record) string {
	var open []string
	for _, p := range w.Waitpoints {
		if p.Open() {
			open = append(open, p.Key)
		}
	}
	text := join(" ", w.Name, bracketed(strings.Join(open, ", ")))
	if !w.TimeoutAt.IsZero() {
		text += " until " + instant(w.TimeoutAt)
	}
	return text
}

// soon says when an attempt begins.
func soon(at time.Time) string {
	if at.IsZero() {
		return "as soon as a worker is free"
	}
	return "at " + instant(at)
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}
