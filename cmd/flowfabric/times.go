package main

import (
	"context"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

var timesVerb = verb{
	use: "times [KIND]", short: "Show how long attempts waited and ran, by kind or by time",
	long: `times shows how many executions completed and failed in the last hour, how many attempts were tried
again, how many runs ended otherwise (OTHER: suspended, delayed, continued, released, or cancelled by the
handler), and percentiles of how long executions waited for their first attempt and how long attempts ran:
of each kind, or of one kind over time. Workers report these figures at the end of each minute; they are kept
for a day. A percentile is at most 5 % off.`,
	example: "  flowfabric times\n  flowfabric times send-mail --since 24h --step 1h",
	route:   "GET /v1/times", namespace: "?namespace", all: true,
	args: map[string]member{"KIND": {kind: textKind, to: "?kind"}},
	flags: []member{
		since("?since", "since",
			"from this `time` on, at most a day ago: 2026-01-31T17:00:00Z, or 2h for two hours ago").or("1h"),
		since("?until", "until", "up to this `time`").or("now"),
		millis("?step_ms", "step", "how long a `step` is, in whole minutes, with a kind").or("a 60th of the time"),
	},
	run: func(ctx context.Context, q *request) error {
		if len(q.args) == 0 {
			q.put("?by_kind", true)
		}
		var t apiv1.Times
		if err := q.do(ctx, &t); err != nil {
			return err
		}
		return q.app.show(t, func(p *page) { p.times(&t, len(q.args) == 0) })
	},
}

// times is a table of kinds or of steps, and their sum.
func (p *page) times(t *apiv1.Times, byKind bool) {
	first, rows := "AT", [][]any{}
	row := func(name any, s *apiv1.TimesSum) {
		rows = append(rows, []any{name, s.Completed, failedCell(s.Failed), s.Retried, s.Other,
			percentile(s.Waited, s.Waited.P50), percentile(s.Waited, s.Waited.P90),
			percentile(s.Waited, s.Waited.P99),
			percentile(s.Ran, s.Ran.P50), percentile(s.Ran, s.Ran.P90), percentile(s.Ran, s.Ran.P99)})
	}
	if byKind {
		first = "KIND"
		for i := range t.Kinds {
			name := t.Kinds[i].Kind
			if name == "" {
				name = "(others)"
			}
			row(name, &t.Kinds[i].TimesSum)
		}
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; !byKind && s.Completed+s.Failed+s.Retried+s.Other > 0 {
			row(instant(s.At), &s.TimesSum)
		}
	}
	row("all", &t.Total)
	p.table([]string{first, "COMPLETED", "FAILED", "RETRIED", "OTHER", "WAITED P50", "P90", "P99", "RAN P50", "P90",
		"P99"}, rows)
}

func failedCell(n uint64) any {
	if n == 0 {
		return n
	}
	return cell{strconv.FormatUint(n, 10), red}
}

// percentile is a duration; nothing when none was measured.
func percentile(of apiv1.Percentiles, d flowfabric.Millis) string {
	if of.Count == 0 {
		return ""
	}
	return span(time.Duration(d))
}
