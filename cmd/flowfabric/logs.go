package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/stream"
)

var logsVerb = verb{
	use: "logs ID", short: "Print what the handler of an execution logged, and follow it",
	long: `logs prints the lines that a handler logged with its task's logger, the oldest first: attempt, time,
level, message and attributes. Of each attempt the last 1,000 lines and 256 KiB are kept, from the level of its
kind on. --follow waits for further lines and ends with the execution, or with the attempt of --attempt.

A line that says how many were dropped stands where a worker logged more than it could store. --json prints one
line per line. When there is nothing to print, it says why on stderr.`,
	example: `  flowfabric logs 3-0197f3a0-… --follow
  flowfabric logs 3-0197f3a0-… --level warn --json | jq -r .message`,
	route: "GET /v1/executions/{ID}/logs", lasting: true,
	flags: []member{
		whole("?attempt", "attempt", "only this attempt, `1` is the first (default all)"),
		text("?level", "level", "leave out lines below this `level`: debug, info, warn or error").or("debug").oneOf(
			joblog.Levels...),
		yes("", "follow", "wait for further lines, until the end"),
	},
	run: func(ctx context.Context, q *request) error {
		id, err := executionID(q.args[0])
		if err != nil {
			return err
		}
		if q.cmd.Flags().Changed("attempt") && q.number("attempt") < 1 {
			return usage("--attempt is %s, want 1 or more", q.text("attempt"))
		}
		lines := q.logPages(ctx)
		switch {
		case q.said("follow") && q.door.client != nil:
			lines = q.door.client.Execution(id).Logs(ctx, stream.LogRange{Attempt: uint32(q.number("attempt")),
				Level: q.query.Get("level"), Follow: true})
		case q.said("follow"):
			lines = followed(ctx, q.door, at("/v1/executions/*/logs/events", id.String()), q.query,
				func(line stream.LogLine) (string, bool) { return line.Cursor, false })
		}
		some := false
		for line, err := range lines {
			if q.said("follow") && errors.Is(err, context.Canceled) { // how a person ends it
				return nil
			}
			if err == nil {
				err = q.app.logged(line)
			}
			if err != nil {
				return q.named(err)
			}
			some = true
		}
		if some {
			return nil
		}
		return q.noLogs(ctx)
	},
}

// noLogs says on stderr why nothing was printed.
func (q *request) noLogs(ctx context.Context) error {
	var x flowfabric.Snapshot
	if err := q.get(ctx, &x, "/v1/executions/*", q.args[0]); err != nil {
		return err
	}
	text := "nothing was logged"
	if n := q.number("attempt"); n > int(x.Attempts) {
		text = fmt.Sprintf("attempt %d does not exist (%s so far)", n, count(int(x.Attempts), "attempt"))
	} else if q.cmd.Flags().Changed("level") {
		text += " from level " + q.text("level") + " on"
	}
	fmt.Fprintln(q.app.err, text)
	return nil
}

// logPages are the lines that are stored.
func (q *request) logPages(ctx context.Context) iter.Seq2[stream.LogLine, error] {
	return func(yield func(stream.LogLine, error) bool) {
		for {
			var page admin.Page[stream.LogLine]
			if err := q.do(ctx, &page); err != nil {
				yield(stream.LogLine{}, err)
				return
			}
			for _, line := range page.Items {
				if !yield(line, nil) {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			q.query.Set("cursor", page.Cursor)
		}
	}
}

var levelStyles = map[string]style{joblog.Warn: yellow, joblog.Error: red, joblog.Debug: faint}

func (a *app) logged(line stream.LogLine) error {
	return a.show(line, func(p *page) {
		p.put(styled(faint, line.Attempt))
		p.WriteString(" ")
		p.put(styled(faint, instant(line.At)))
		p.WriteString(" ")
		p.put(styled(levelStyles[line.Level], strings.ToUpper(line.Level)))
		if line.Dropped > 0 {
			p.WriteString(" -- " + count(line.Dropped, "line") + " dropped before")
		}
		p.say("%s", join("  ", " "+printable(line.Message), attributes(line.Attributes)))
	})
}

// attributes are those of a line, by name.
func attributes(object json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return ""
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := string(all[name])
		var text string
		if json.Unmarshal(all[name], &text) == nil && text != "" && !strings.ContainsAny(text, " =\"") {
			value = text
		}
		out = append(out, printable(name)+"="+printable(value))
	}
	return strings.Join(out, " ")
}
