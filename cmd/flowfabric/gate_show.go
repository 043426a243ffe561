package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
)

// listedGates are all gates, and what they are attached to and hold back.
type listedGates struct {
	Gates []json.RawMessage `json:"gates"`
	admin.Gated
}

// listGates shows gates, and what they are attached to and hold back; what can be read is shown.
func listGates(ctx context.Context, q *request) error {
	gates, raw, err := pages[admission.GateRecord](ctx, q)
	if raw == nil {
		return err
	}
	v := listedGates{Gates: raw, Gated: admin.Gated{Attached: []admin.AttachedGates{}, Closed: []admin.ClosedRoute{}}}
	err = errors.Join(err, q.get(ctx, &v.Gated, "/v1/gated"))
	shown := q.app.show(v, func(p *page) {
		gatesTable(p, gates)
		if v.Partitions > 0 {
			gatedText(p, v.Gated)
		}
	})
	return cmp.Or(shown, err, missing(v.Missing))
}

// gatesTable writes all gates, a row for each of their meters.
func gatesTable(p *page, gates []admission.GateRecord) {
	var rows [][]any
	header := []string{"GATE", "MODE"}
	above := slices.ContainsFunc(gates, func(g admission.GateRecord) bool { return g.Parent != "" })
	if above {
		header = append(header, "PARENT")
	}
	for _, g := range gates {
		name, mode, parent := g.Name, gateMode(g.Gate), g.Parent
		meters := meterRows(g)
		if len(meters) == 0 { // it counts amounts, and has counted none
			meters = [][]any{{"", "", "", "", "", "", g.ForAmounts}}
		}
		for n, row := range meters {
			until := ""
			if n == 0 && g.CountsAmounts() {
				until = instant(g.NextReset)
			}
			first := []any{styled(bold, name), mode}
			if above {
				first = append(first, parent)
			}
			rows = append(rows, slices.Concat(first, row, []any{until}))
			name, mode, parent = "", "", ""
		}
	}
	p.table(slices.Concat(header, meterHeader, []string{"PERIOD ENDS"}), rows)
}

// meterHeader is above meterRows.
var meterHeader = []string{"METER", "USED", "RESERVED", "SOFT", "LIMIT", "LEFT", "QUEUES"}

// meterRows are what a gate measures: its dimensions, its starts, and what runs at once. The queues that wait for
// amounts are with the first dimension: they may wait for any.
func meterRows(g admission.GateRecord) (rows [][]any) {
	if g.Service != nil {
		return serviceRows(g)
	}
	if g.CountsAmounts() {
		rows = dimensionRows(g)
	}
	for n := range rows {
		rows[n] = append(rows[n], "")
	}
	if len(rows) > 0 {
		rows[0][6] = strconv.Itoa(g.ForAmounts)
	}
	if g.Rate > 0 {
		left := max(g.Rate-g.Started, 0)
		rows = append(rows, []any{"starts in " + span(time.Duration(g.Window)), fullCell(g.Started, left), "", "",
			g.Rate, left, g.ForRate})
	}
	if g.Free != nil {
		rows = append(rows, []any{"at once", fullCell(g.Held, *g.Free), "", "", g.Concurrency, *g.Free,
			g.ForSlots})
	}
	return rows
}

// fullCell is how much is used of what refills by itself.
func fullCell(used, left int) cell {
	c := styled(normal, used)
	if left == 0 {
		c.style = yellow
	}
	return c
}

// shownGate is a gate, or a limit of a key, with what it keeps from running.
type shownGate struct {
	admission.GateRecord
	Blocked []admin.ClosedRoute `json:"blocked,omitempty"`
}

// showGate shows a gate, or what a limit counts under its key.
func showGate(ctx context.Context, q *request, key string, l flowfabric.Limit) error {
	var v shownGate
	if err := q.do(ctx, &v.GateRecord); err != nil {
		return err
	}
	var err error
	v.Blocked, err = blockedBy(ctx, q, func(c admission.Closing) bool {
		return key == "" && c.Name == v.Name || key != "" && c.Key == key && c.PerKey == l.String()
	})
	v.Name = cmp.Or(key, v.Name)
	if shown := q.app.show(v, v.text); shown != nil {
		return shown
	}
	return err
}

// gateMode is what becomes of usage above a hard limit, "" for a gate without amounts.
func gateMode(g admission.Gate) string {
	switch {
	case g.Service != nil:
		return "service"
	case !g.CountsAmounts():
		return ""
	case g.Warn:
		return "warn"
	}
	return "strict"
}

func onSoft(b admission.Gate) string {
	if b.WarnSoft {
		return "warn"
	}
	return "allow"
}

// dimensionRows are the dimensions, one a row.
func dimensionRows(b admission.GateRecord) [][]any {
	var rows [][]any
	dims := append(slices.Collect(maps.Keys(b.Limits)), slices.Collect(maps.Keys(b.Used))...)
	slices.Sort(dims)
	for _, dim := range slices.Compact(dims) {
		l, used, text := b.Limits[dim], styled(normal, b.Used[dim]), ""
		left, limited := b.Headroom[dim]
		if limited {
			text = strconv.FormatInt(left, 10)
		}
		switch {
		case limited && left == 0:
			used.style = red
		case l.Soft > 0 && b.Used[dim] > l.Soft:
			used.style = yellow
		}
		rows = append(rows, []any{dim, used, limitCell(b.Reserved[dim], ""), limitCell(l.Soft, ""),
			limitCell(l.Hard, unlimited), text})
	}
	return rows
}

// unlimited is what a dimension without a hard limit is.
const unlimited = "unlimited"

// limitCell is a limit, or what there is to say when it is 0, which is none.
func limitCell(n int64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

// amountFacts are what there is to say about the amounts of a gate.
func (v shownGate) amountFacts() []any {
	if !v.CountsAmounts() {
		return nil
	}
	period := fmt.Sprintf("%d, since %s", v.Period, instant(v.PeriodBegan))
	if v.Missed > 0 {
		period += fmt.Sprintf(" (%s before it went by unused)", count(int(v.Missed), "period"))
	}
	strict := ""
	if v.StrictDimensions {
		strict = "only those with limits"
	}
	refused := maps.Clone(v.Refused)
	maps.DeleteFunc(refused, func(dim string, n int64) bool { _, limited := v.Limits[dim]; return n <= 0 || !limited })
	return []any{"mode", gateMode(v.Gate), "on hard limit", v.OnHard, "on soft limit", onSoft(v.Gate), "dimensions",
		strict, "refunds", strings.Join(v.Refund, ","), "resets every", span(time.Duration(v.Reset)), "period", period,
		"period ends", instant(v.NextReset), "breaches", fmt.Sprintf("%d hard, %d soft", v.HardBreaches,
			v.SoftBreaches),
		"refused in it", amountsText(refused), "raised in it", amountsText(v.Raised),
		"last breach", join(", ", instant(v.LastBreach), v.BreachedDim)}
}

func (v shownGate) text(p *page) {
	suspect, revision, queues, holds := "", "", count(v.Waiting, "queue"), "holds"
	if v.Service != nil {
		queues, holds = "", "calls under way"
	}
	if v.Revision > 0 {
		revision = strconv.FormatUint(v.Revision, 10)
	}
	if v.Suspect > 0 {
		suspect = fmt.Sprintf("%d have not been heard of for a while", v.Suspect)
	}
	p.facts(slices.Concat([]any{"name", v.Name, "for", v.Scope, "parent", v.Parent}, v.amountFacts(),
		v.serviceFacts(), []any{"jitter", span(time.Duration(v.Jitter)), "suspect", suspect, "waiting", queues,
			"revision", revision, "created", instant(v.CreatedAt), "changed by", v.ChangedBy})...)
	p.WriteByte('\n')
	if rows := meterRows(v.GateRecord); len(rows) == 0 {
		p.say("no limits: %s", limitsNothing)
	} else {
		p.table(meterHeader, rows)
	}
	v.hoursText(p)
	closedTable(p, "keeps from running:", v.Blocked)
	for i, h := range v.Slots {
		if i == 0 {
			p.say("\n%s:", holds)
		}
		p.say("  %s, epoch %d", h.Execution, h.Epoch)
	}
	v.lineTable(p)
	if len(v.Spenders) > 0 {
		p.say("\nlast spenders:")
		rows := make([][]any, len(v.Spenders))
		for i, s := range v.Spenders {
			late := ""
			if s.Late > 0 {
				late = count(int(s.Late), "report")
			}
			rows[i] = []any{s.Execution, instant(s.At), s.Period, amountsText(s.Used), late}
		}
		p.table([]string{"EXECUTION", "LAST REPORT", "PERIOD", "USED IN IT", "LATE"}, rows)
	}
	auditTable(p, v.Audit)
}

// hoursText shows what was used by the hour, this one last.
func (v shownGate) hoursText(p *page) {
	for i, dim := range slices.Sorted(maps.Keys(v.Hours)) {
		if i == 0 {
			p.say("\nused by the hour, the last one is this:")
		}
		list := v.Hours[dim]
		bars, most := []rune("▁▂▃▄▅▆▇█"), max(1, slices.Max(list))
		var text strings.Builder
		for _, n := range list {
			bar := '·'
			if n > 0 {
				bar = bars[int(float64(n)/float64(most)*float64(len(bars)-1))]
			}
			text.WriteRune(bar)
		}
		p.say("  %s %s, at most %d", text.String(), dim, most)
	}
}

func amountsText(by map[string]int64) string {
	var parts []string
	for _, dim := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s=%d", dim, by[dim]))
	}
	return strings.Join(parts, " ")
}
