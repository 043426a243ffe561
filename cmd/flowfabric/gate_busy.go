package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/busy"
)

// busyGates shows the gates that hold work back, with who holds them, who waits and who spent.
func busyGates(ctx context.Context, q *request) error {
	v := struct {
		Busy    []busy.Gate `json:"busy"`
		Missing string      `json:"missing,omitempty"`
	}{Busy: []busy.Gate{}}
	query := url.Values{"busy": {"true"}}
	if err := q.named(q.door.ask(ctx, http.MethodGet, "/v1/gated", query, nil, &v)); err != nil {
		return err
	}
	shown := q.app.show(v, func(p *page) {
		if len(v.Busy) == 0 {
			p.say("no gate holds work back")
			return
		}
		rows := make([][]any, len(v.Busy))
		for i, g := range v.Busy {
			next := instant(g.NextAt)
			if !g.NextAt.IsZero() && !g.NextAt.After(time.Now()) {
				next = "due"
			}
			rows[i] = []any{styled(bold, busyName(g)), g.Waiting, g.Queues, g.InLine, g.Held, instant(g.Since),
				next, g.Why}
		}
		p.table([]string{"GATE", "WAITING", "QUEUES", "IN LINE", "HELD", "SINCE", "NEXT TRY", "WHY"}, rows)
		for _, g := range v.Busy {
			busyText(p, g)
		}
	})
	return cmp.Or(shown, missing(v.Missing))
}

// busyName is the name of a gate, or the key of a limit and what it is.
func busyName(g busy.Gate) string {
	return cmp.Or(g.Gate, g.Key+" ("+g.PerKey+")")
}

// busyText writes who has to do with a gate.
func busyText(p *page, g busy.Gate) {
	if len(g.Holders)+len(g.Line)+len(g.Spenders) == 0 {
		return
	}
	p.say("\n%s:", busyName(g))
	var rows [][]any
	for _, h := range g.Holders {
		rows = append(rows, []any{"holds", h.Execution, "", ""})
	}
	for _, w := range g.Line {
		rows = append(rows, []any{"waits", w.Execution, amountsText(w.Waits), instant(w.At)})
	}
	for _, s := range g.Spenders {
		rows = append(rows, []any{"spent", s.Execution, amountsText(s.Used), instant(s.At)})
	}
	p.table([]string{"", "EXECUTION", "AMOUNTS", "AT"}, rows)
}
