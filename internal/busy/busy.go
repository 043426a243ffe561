// Package busy tells which gates hold work back: one row for a gate by name, the gate of a service, or a limit of a
// key, whatever partitions its work is in.
package busy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

const (
	// Most is how many gates are told, those that hold back most.
	Most = 50
	// First is how many of its holders, of its line, and of those that spent are told of each.
	First = 10

	reads = 8 // at once
)

// Gate is a gate that holds work back.
type Gate struct {
	Gate      string    `json:"gate,omitempty"`
	Key       string    `json:"limit_key,omitempty" jsonschema:"of a limit of a key"`
	PerKey    string    `json:"key_limit,omitempty" jsonschema:"what that limit is"`
	Waiting   int       `json:"waiting" jsonschema:"executions that it holds back: those of closed queues, and those in line for a service"`
	Queues    int       `json:"queues" jsonschema:"queues that it keeps closed: one for each partition, lane and kind"`
	Why       string    `json:"why,omitempty" jsonschema:"for people, as the queue says it that is tried first"`
	NextAt    time.Time `json:"next_at,omitzero" jsonschema:"when the first of these queues is tried again by itself"`
	Since     time.Time `json:"since,omitzero" jsonschema:"when a hard limit was reached last in this period, or when the service refused a call last"`
	PeriodEnd time.Time `json:"period_ends_at,omitzero" jsonschema:"of a gate with amounts"`
	Held      int       `json:"held" jsonschema:"slots that are taken, or calls under way"`
	// the first ten
	Holders  []admission.Hold    `json:"holders,omitempty" jsonschema:"who has these slots, the first ten"`
	InLine   int                 `json:"in_line" jsonschema:"executions that wait in line: for amounts as far as they are read, or for a call of a service"`
	Line     []admission.Spender `json:"line,omitempty" jsonschema:"the first ten of the line, and what each waits for"`
	Spenders []admission.Spender `json:"spenders,omitempty" jsonschema:"the ten that used most in this period, of the last hundred that used something"`
}

// Closed is a queue that a gate keeps closed.
type Closed struct {
	Gate    flowfabric.Gate
	Waiting int // executions
	Until   time.Time
	Why     string
}

// Gates puts closed queues, and all gates, into a row for each gate that holds something back, the one that holds back
// most in front, and reads more of each: spenders up to 100, holders, and the line. A gate that is gone has what its
// queues say.
func Gates(ctx context.Context, closed []Closed, all []admission.GateRecord,
	read func(ctx context.Context, name string) (admission.GateRecord, error)) ([]Gate, error) {
	by := map[string]*Gate{}
	row := func(gate flowfabric.Gate) *Gate {
		g := by[gate.Name()]
		if g == nil {
			g = &Gate{Gate: gate.Name()}
			if key, limit, ok := gate.Limit(); ok {
				*g = Gate{Key: key, PerKey: limit.String()}
			}
			by[gate.Name()] = g
		}
		return g
	}
	for _, c := range closed {
		if c.Gate == "" || c.Waiting == 0 {
			continue
		}
		g := row(c.Gate)
		g.Waiting, g.Queues = g.Waiting+c.Waiting, g.Queues+1
		if g.NextAt.IsZero() || c.Until.Before(g.NextAt) {
			g.NextAt, g.Why = c.Until, c.Why
		}
	}
	for _, r := range all {
		if r.State != nil && r.State.Waiting > 0 {
			row(flowfabric.Gate(r.Name)).Waiting += r.State.Waiting
		}
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].Waiting, by[a].Waiting), strings.Compare(a, b))
	})
	names = names[:min(len(names), Most)]
	p := pool.New().WithMaxGoroutines(reads).WithErrors().WithContext(ctx)
	for _, name := range names {
		p.Go(func(ctx context.Context) error {
			r, err := read(ctx, name)
			if errors.Is(err, denied.NoGate) {
				return nil
			}
			by[name].tell(r)
			return err
		})
	}
	err := p.Wait()
	out := make([]Gate, len(names))
	for i, name := range names {
		out[i] = *by[name]
	}
	return out, err
}

// tell fills in what the record of the gate says.
func (g *Gate) tell(r admission.GateRecord) {
	g.Held, g.Holders = r.Held, r.Slots[:min(len(r.Slots), First)]
	g.InLine, g.Line = len(r.Line), r.Line[:min(len(r.Line), First)]
	g.Since, g.PeriodEnd = r.LastBreach, r.NextReset
	if r.State != nil {
		g.Held, g.InLine, g.Since = r.State.UnderWay, r.State.Waiting, r.State.LastRefused
	}
	spent := func(s admission.Spender) (n int64) { // of the dimension that is used up, or of all
		for dim, used := range s.Used {
			if len(r.Exhausted) == 0 || slices.Contains(r.Exhausted, dim) {
				n += used
			}
		}
		return n
	}
	for _, s := range r.Spenders {
		if s.Period == r.Period && spent(s) > 0 {
			g.Spenders = append(g.Spenders, s)
		}
	}
	slices.SortStableFunc(g.Spenders, func(a, b admission.Spender) int { return cmp.Compare(spent(b), spent(a)) })
	g.Spenders = g.Spenders[:min(len(g.Spenders), First)]
}
