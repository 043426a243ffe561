package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// ReadGate reads a gate, or what a limit of a key counts, with at most so many of its last spenders (≤ 100), holds (≤
// 1,000) and newest audit entries (≤ 256) (lua/admission/ff_read_gate.lua). denied.NoGate.
func (e *Engine) ReadGate(ctx context.Context, name string, spenders, holds,
	entries int) (admission.GateRecord, error) {
	gate := flowfabric.Gate(name)
	r, _, err := read[wire.ReadGateReply](e.onGate(ctx, gate, false,
		wire.ReadGate{Name: name, Spenders: spenders, Holds: holds, Entries: entries}))
	if _, l, ok := gate.Limit(); ok && errors.Is(err, denied.NoGate) {
		// no key was ever used there
		g := admission.GateRecord{Gate: admission.Gate{Name: name, Rate: l.Rate, Window: flowfabric.Millis(l.Per),
			Concurrency: l.Concurrency}}
		derived(&g)
		return g, nil
	}
	if err != nil {
		return admission.GateRecord{}, err
	}
	g := admission.GateRecord{Used: usage(r.Used), ForAmounts: r.Waiting, Started: r.Started, Held: r.Held,
		Suspect: r.Suspect, ForSlots: r.ForSlots, ForRate: r.ForRate}
	g.Name = name
	gateFields(&g, r.Fields)
	g.Audit, err = gatetext.Audit(name, r.Entries)
	for _, text := range r.Spenders {
		s, wrong := spender(text)
		g.Spenders, err = append(g.Spenders, s), cmp.Or(err, wrong)
	}
	for _, text := range r.Holds {
		hold, _, _ := strings.Cut(text, " ")
		g.Holds = append(g.Holds, hold)
	}
	waits := waitsFor
	if g.Service != nil {
		waits, g.State = waitsAt, serviceState(r.Pace)
	}
	for _, text := range r.Line {
		w, wrong := waits(text)
		g.Line, err = append(g.Line, w), cmp.Or(err, wrong)
	}
	g.Hours = hours(r.Hours)
	derived(&g)
	g.EmptyAt = emptyAt(g, r.Now)
	return g, unread("ff_read_gate", err)
}

// FindGate tells whether a gate exists (lua/admission/ff_read_gate.lua): nil, or denied.NoGate. It makes one try; to
// repeat it is up to the caller.
func (e *Engine) FindGate(ctx context.Context, gate flowfabric.Gate) error {
	_, err := e.onGate(ctx, gate, false, oneTry{wire.ReadGate{Name: gate.Name()}})
	return err
}

// gateFields reads the record of a gate; what is no number in it counts as 0.
func gateFields(g *admission.GateRecord, v map[string]string) {
	f := wire.Fields{M: v, R: &reader{}}
	g.Scope, g.Warn, g.OnHard, g.WarnSoft = v["sc"], v["md"] == "warn", admission.HardAction(v["hd"]), v["sf"] == "warn"
	g.Reset, g.StrictDimensions, g.Parent = millis(f.Number("iv")), v["st"] == "1", v["pa"]
	if v["rf"] != "" {
		g.Refund = strings.Split(v["rf"], ",")
	}
	g.Rate, g.Concurrency = int(f.Number("rt")), int(f.Number("cp"))
	g.Window, g.Jitter = millis(f.Number("wn")), millis(f.Number("jt"))
	if _, ok := v["sv"]; ok {
		g.Service = service(v)
	}
	g.Limits, g.Refused = map[string]admission.Limit{}, map[string]int64{}
	for field := range v {
		if dim, ok := strings.CutPrefix(field, "v:"); ok && f.Number(field) > 0 {
			if g.Reserved == nil {
				g.Reserved = map[string]int64{}
			}
			g.Reserved[dim] = f.Number(field)
		}
		if dim, ok := strings.CutPrefix(field, "x:"); ok {
			if g.Raised == nil {
				g.Raised = map[string]int64{}
			}
			g.Raised[dim] = f.Number(field)
		}
		if dim, ok := strings.CutPrefix(field, "z:"); ok {
			g.Refused[dim] = f.Number(field)
		}
		if dim, ok := strings.CutPrefix(field, "h:"); ok {
			g.Limits[dim] = admission.Limit{Hard: f.Number(field), Soft: f.Number("s:" + dim)}
		}
	}
	g.Revision, g.CreatedAt, g.ChangedBy = uint64(f.Number("up")), f.Instant("ct"), v["by"]
	g.Period, g.PeriodBegan, g.NextReset = uint64(f.Number("rc")), f.Instant("ps"), f.Instant("nx")
	g.LastReset, g.Missed = f.Instant("lr"), uint64(f.Number("ms"))
	g.HardBreaches, g.SoftBreaches = uint64(f.Number("bc")), uint64(f.Number("bs"))
	g.LastBreach, g.BreachedDim = f.Instant("ba"), v["bd"]
}

// emptyAt is when the first limit is reached if the use of this period goes on as it was so far; zero: not before the
// period ends, or nothing is used, or the period began less than a minute ago, which tells too little.
func emptyAt(g admission.GateRecord, now time.Time) (at time.Time) {
	spent := now.Sub(g.PeriodBegan)
	for dim, left := range g.Headroom {
		used := g.Used[dim]
		if used <= 0 || spent < time.Minute || g.Warn {
			continue
		}
		ahead := float64(spent) * float64(left) / float64(used)
		if ahead > float64(limits.MaxDelay) {
			continue
		}
		if t := now.Add(time.Duration(ahead)).Truncate(time.Millisecond); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if !g.NextReset.IsZero() && !at.Before(g.NextReset) {
		return time.Time{}
	}
	return at
}

// derived sets what follows from the rest of a record. A hold that is none is shown as it is.
func derived(g *admission.GateRecord) {
	g.Waiting = g.ForAmounts + g.ForSlots + g.ForRate
	g.Headroom = map[string]int64{}
	for _, dim := range slices.Sorted(maps.Keys(g.Limits)) {
		if hard := g.Limits[dim].Hard; hard > 0 {
			if g.Headroom[dim] = max(0, hard+g.Raised[dim]-g.Used[dim]); g.Headroom[dim] == 0 {
				g.Exhausted = append(g.Exhausted, dim)
			}
		}
	}
	if g.Concurrency > 0 {
		free := max(0, g.Concurrency-g.Held)
		g.Free = &free
	}
	for _, text := range g.Holds {
		slot := admission.Hold{Execution: text}
		if g.Service != nil { // it is a call: its number under the lease is behind a dot
			text = text[:max(0, strings.LastIndexByte(text, '.'))]
		}
		if h, err := ParseHold(text); err == nil {
			slot = admission.Hold{Execution: h.Execution.String(), Epoch: h.Epoch}
		}
		g.Slots = append(g.Slots, slot)
	}
}

// millis is a number of milliseconds.
func millis(n int64) flowfabric.Millis { return flowfabric.Millis(time.Duration(n) * time.Millisecond) }

func spender(text string) (admission.Spender, error) {
	h := header{rest: text}
	id, err := gatetext.ParseSpender(h.next())
	s := admission.Spender{Execution: id, At: time.UnixMilli(int64(h.unsigned())).UTC(), Period: h.unsigned(),
		Late: h.unsigned(), Used: map[string]int64{}}
	if err = errors.Join(err, h.err); err != nil {
		return s, fmt.Errorf("spender: %w", err)
	}
	used, reserved, _ := strings.Cut(h.rest, " ")
	s.Used = amountsOf(used)
	if reserved != "" {
		s.Reserved = amountsOf(reserved)
	}
	return s, nil
}

// amountsOf reads amounts by dimension; what is no number counts as 0.
func amountsOf(text string) map[string]int64 {
	out := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		if dim, text, ok := strings.Cut(part, "="); ok {
			out[dim], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	return out
}

// waits reads who waits in line, and for what.
func waitsFor(text string) (admission.Spender, error) {
	h := header{rest: text}
	id, err := gatetext.ParseSpender(h.next())
	w := admission.Spender{Execution: id, Refusals: int(h.unsigned()), At: time.UnixMilli(int64(h.unsigned())).UTC(),
		Waits: amountsOf(h.rest)}
	if err = errors.Join(err, h.err); err != nil {
		return w, fmt.Errorf("waits: %w", err)
	}
	return w, nil
}

// hours reads what was used by the hour, nil if nothing was.
func hours(rows []string) map[string][]int64 {
	var out map[string][]int64
	for _, text := range rows {
		words := strings.Split(text, " ")
		at, err := strconv.Atoi(words[0])
		if err != nil || len(words) != 3 || at < 0 || at >= hoursKept {
			continue
		}
		if out == nil {
			out = map[string][]int64{}
		}
		if out[words[1]] == nil {
			out[words[1]] = make([]int64, hoursKept)
		}
		out[words[1]][at], _ = strconv.ParseInt(words[2], 10, 64)
	}
	return out
}

// hoursKept is how many hours of use a gate tells: 24 that are over, and this one.
const hoursKept = 25

// GateNames lists all gates by name (lua/admission/ff_list_gates.lua).
func (e *Engine) GateNames(ctx context.Context) ([]string, error) {
	var out []string
	commands := make(rueidis.Commands, len(e.gates))
	for i, root := range e.gates {
		commands[i] = e.client.B().Exists().Key(root).Build()
	}
	for i, resp := range e.client.DoMulti(ctx, commands...) {
		n, err := resp.AsInt64()
		if err != nil {
			return nil, CallError("ff_list_gates", err)
		}
		q := wire.ListGates{Limit: 500}
		for more := n > 0; more; {
			r, _, err := read[wire.ListGatesReply](e.sendTo(ctx, e.gates[i], q))
			if err != nil {
				return nil, err
			}
			if more = r.More; len(r.Names) > 0 {
				q.After = r.Names[len(r.Names)-1]
			}
			out = append(out, r.Names...)
		}
	}
	slices.Sort(out)
	return out, nil
}
