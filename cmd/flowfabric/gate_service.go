package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
)

// service puts what the flags of a gate say of a service into a request; before is how that is, nil: it is none.
func (q *request) service(before *admission.Service) error {
	flags := q.cmd.Flags()
	changed := flags.Lookup("drop") != nil && flags.Changed("drop") && before != nil
	for _, flag := range []string{"per-minute", "burst", "calls", "patience", "weight"} {
		changed = changed || flags.Changed(flag)
	}
	if !changed {
		return nil
	}
	s := admission.Service{}
	if before != nil {
		s = *before
	}
	into := func(flag string, have map[string]int64) (map[string]int64, error) {
		said, err := amounts("--"+flag, said(flags, flag))
		out := maps.Clone(have)
		if out == nil {
			out = map[string]int64{}
		}
		maps.Copy(out, said)
		return out, err
	}
	var err error
	if s.PerMinute, err = into("per-minute", s.PerMinute); err != nil {
		return err
	}
	for dim, n := range s.PerMinute { // a burst that nobody chose goes with the rate
		if before != nil && n != before.PerMinute[dim] && s.Burst[dim] == max(1, before.PerMinute[dim]/40) {
			s.Burst = maps.Clone(s.Burst)
			delete(s.Burst, dim)
		}
	}
	if s.Burst, err = into("burst", s.Burst); err != nil {
		return err
	}
	weights := weightsOf(s)
	if weights, err = into("weight", weights); err != nil {
		return err
	}
	s.Weights = map[string]int{}
	for namespace, n := range weights {
		if n != 1 {
			s.Weights[namespace] = int(n)
		}
	}
	if flags.Lookup("drop") != nil {
		for _, dim := range said(flags, "drop") {
			delete(s.PerMinute, dim)
			delete(s.Burst, dim)
		}
	}
	if flags.Changed("calls") {
		s.Calls = q.number("calls")
	}
	if flags.Changed("patience") {
		d, err := spanKind.read(q.app, flags, "patience")
		if err != nil {
			return err
		}
		s.Patience = flowfabric.Millis(time.Duration(d.(int64)) * time.Millisecond)
	}
	q.body["service"] = s
	return nil
}

func weightsOf(s admission.Service) map[string]int64 {
	out := map[string]int64{}
	for namespace, n := range s.Weights {
		out[namespace] = int64(n)
	}
	return out
}

// serviceText is what a service allows, for people.
func serviceText(s admission.Service) string {
	rates, calls, weights := "", "", ""
	if len(s.PerMinute) > 0 {
		rates = amountsText(s.PerMinute) + " in 1m"
	}
	if s.Calls > 0 {
		calls = count(s.Calls, "call") + " at once"
	}
	if len(s.Weights) > 0 {
		weights = "weights " + amountsText(weightsOf(s))
	}
	return join(", ", rates, calls, weights)
}

// serviceRows are what calls to a service may use.
func serviceRows(g admission.GateRecord) (rows [][]any) {
	for _, dim := range slices.Sorted(maps.Keys(g.Service.PerMinute)) {
		room := int64(0)
		if g.State != nil {
			room = g.State.Room[dim]
		}
		left := styled(normal, room)
		if room <= 0 {
			left.style = yellow
		}
		rows = append(rows, []any{dim + " in 1m", "", "", "", g.Service.PerMinute[dim], left, ""})
	}
	if g.Service.Calls > 0 && g.State != nil {
		left := max(0, g.State.AtOnce-g.State.UnderWay)
		rows = append(rows, []any{"calls at once", fullCell(g.State.UnderWay, left), "", "", g.Service.Calls, left, ""})
	}
	if len(rows) > 0 && g.State != nil {
		rows[0][6] = strconv.Itoa(g.State.Waiting)
	}
	return rows
}

// serviceFacts are what there is to say about a service.
func (v shownGate) serviceFacts() []any {
	s, now := v.Service, v.State
	if s == nil || now == nil {
		return nil
	}
	share, refused, calls := "", "", count(now.UnderWay, "call")
	if now.Share < 1000 {
		share = fmt.Sprintf("%d%% for now: it refused calls", now.Share/10)
	}
	if now.Refused > 0 {
		refused = fmt.Sprintf("%d, the last %s", now.Refused, instant(now.LastRefused))
	}
	if now.AtOnce > 0 {
		calls = fmt.Sprintf("%d of %d", now.UnderWay, now.AtOnce)
	}
	return []any{"burst", amountsText(s.Burst), "patience", span(s.Waits()), "weights", amountsText(weightsOf(*s)),
		"rates", share, "closed until", instant(now.ClosedUntil), "refused calls", refused, "under way", calls,
		"a call takes", span(time.Duration(now.CallTime)), "in line", count(now.Waiting, "execution")}
}

// lineTable writes who waits for a call to a service.
func (v shownGate) lineTable(p *page) {
	if v.Service == nil || len(v.Line) == 0 {
		return
	}
	p.say("\nin line:")
	rows := make([][]any, len(v.Line))
	for i, w := range v.Line {
		where := "in its slot"
		if w.Away {
			where = "away"
		}
		rows[i] = []any{i + 1, w.Execution, w.Namespace, amountsText(w.Waits), span(time.Duration(w.Turn)), where}
	}
	p.table([]string{"PLACE", "EXECUTION", "NAMESPACE", "WANTS", "TURN IN", "WHERE"}, rows)
	if more := v.State.Waiting - len(v.Line); more > 0 {
		p.say("and %d more", more)
	}
}
