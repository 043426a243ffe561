package busy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/busy"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func TestTheGateThatHoldsBackMostIsInFront(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
	limit := flowfabric.Gate("@2.0.0@tenant-7")
	closed := []busy.Closed{{Gate: "acme", Waiting: 3, Until: at(9), Why: "later"},
		{Gate: limit, Waiting: 7, Until: at(1)},
		{Gate: "acme", Waiting: 2, Until: at(5), Why: "first"}, {Gate: "idle"}, {Waiting: 9},
		{Gate: "gone", Waiting: 1}}
	all := []admission.GateRecord{{Gate: admission.Gate{Name: "acme"}}, {Gate: admission.Gate{Name: "model"},
		State: &admission.ServiceState{Waiting: 6}},
		{Gate: admission.Gate{Name: "calm"}, State: &admission.ServiceState{}}}
	got, err := busy.Gates(t.Context(), closed, all, func(_ context.Context, name string) (r admission.GateRecord,
		err error) {
		r.Name = name
		switch name {
		case "gone":
			return r, denied.NoGate
		case "model":
			r.State = &admission.ServiceState{UnderWay: 4, Waiting: 6, LastRefused: at(-3)}
			r.Line = make([]admission.Spender, 20)
		case "acme":
			r.Period, r.Exhausted, r.LastBreach, r.NextReset = 2, []string{"tokens"}, at(-5), at(60)
			for n := range int64(20) {
				r.Spenders = append(r.Spenders, admission.Spender{Period: uint64(1 + n%2),
					Used: map[string]int64{"tokens": n, "other": 1000 - n}})
			}
		default:
			r.Held, r.Slots = 2, make([]admission.Hold, 2)
		}
		return r, nil
	})
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	var text []string
	for _, g := range got {
		text = append(text, fmt.Sprint(g.Gate, g.Key, " ", g.Waiting, " ", g.Queues, " ", g.Held, " ",
			len(g.Holders), " ", g.InLine, " ", len(g.Line), " ", len(g.Spenders)))
	}
	want := []string{"tenant-7 7 1 2 2 0 0 0", "model 6 0 4 0 6 10 0", "acme 5 2 0 0 0 0 10", "gone 1 1 0 0 0 0 0"}
	if fmt.Sprint(text) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", text, want)
	}
	acme := got[2]
	if acme.Why != "first" || !acme.NextAt.Equal(at(5)) || !acme.Since.Equal(at(-5)) || !acme.PeriodEnd.Equal(at(60)) {
		t.Errorf("%+v", acme)
	}
	if first, last := acme.Spenders[0].Used["tokens"], acme.Spenders[9].Used["tokens"]; first != 19 || last != 1 {
		t.Errorf("spenders from %d to %d tokens, want 19 to 1", first, last)
	}
	if got[0].PerKey != "2 at once" || !got[1].Since.Equal(at(-3)) {
		t.Errorf("%+v", got[:2])
	}
	lost := errors.New("lost")
	if _, err := busy.Gates(t.Context(), closed, nil, func(context.Context, string) (admission.GateRecord, error) {
		return admission.GateRecord{}, lost
	}); !errors.Is(err, lost) {
		t.Error(err)
	}
}
