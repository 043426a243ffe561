package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Work of a deployment with slots asks a gate, and calls a service from its slot.
const (
	capped  = "capped"
	slots   = 3
	called  = "called"
	lines   = 2
	settles = 60 // rounds of a second, after which every slot is in use
)

// gates are what a world with slots has besides. One without has none, and its seeds draw nothing for it.
type gates struct {
	askers map[string]*admit.Admitter
	freed  int // slots and calls that were found free again
}

// withSlots defines the gates.
func (w *world) withSlots() {
	w.askers = map[string]*admit.Admitter{}
	for _, g := range []admission.Gate{{Name: capped, Concurrency: slots},
		{Name: called, Service: &admission.Service{Calls: lines, PerMinute: map[string]int64{"requests": 1_000_000}}}} {
		if _, _, _, err := w.e.PutGate(w.ctx, g, 0); err != nil {
			w.wrong("put gate %s: %v", g.Name, err)
		}
	}
}

func (w *world) asker(who string) *admit.Admitter {
	a := w.askers[who]
	if a == nil {
		a = admit.New(admit.Config{Engine: lossy{w.e, w, who}, Logger: slog.New(slog.DiscardHandler)})
		w.askers[who] = a
	}
	return a
}

// gated makes an execution one that asks the gate, if there is one. All of a partition have one route, so that one
// goroutine asks.
func (w *world) gated(x *engine.NewExecution) {
	if w.askers == nil {
		return
	}
	x.Lane, x.Kind, x.Names = "capped", "call", []string{capped}
	x.Policy.Retention = flowfabric.Retentions{Completed: time.Minute,
		Failed: time.Minute, Cancelled: time.Minute,
		Expired: time.Minute}
}

// An answer that a gate gives too late for whoever asked is one that nobody waits for: no call ends by real time.
func patient(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (l lossy) Admit(ctx context.Context, name string, at engine.Waiter, ttl time.Duration, look bool,
	holds []engine.Hold) (out engine.Admitted, err error) {
	err = l.w.call(at.Partition, l.who, fmt.Sprintf("asks %s for %d", name, len(holds)), func() (string, error) {
		r, err := l.Engine.Admit(patient(ctx), name, at, ttl, look, holds)
		out = r
		return fmt.Sprintf("%d may, %d suspects", r.Count, len(r.Suspects)), err
	})
	return out, err
}

func (l lossy) SettleGates(ctx context.Context, news []engine.News) (done []bool, wake []engine.Waiter, err error) {
	if l.w.askers == nil {
		return l.Engine.SettleGates(ctx, news)
	}
	err = l.w.call(0, l.who, fmt.Sprintf("tells gates %d news", len(news)), func() (string, error) {
		d, wk, err := l.Engine.SettleGates(patient(ctx), news)
		done, wake = d, wk
		return fmt.Sprint(d), err
	})
	return done, wake, err
}

func (l lossy) CheckHolds(ctx context.Context, p uint16, holds []engine.Hold) ([]string, error) {
	l.w.touched[p] = true
	return l.Engine.CheckHolds(patient(ctx), p, holds)
}

func (l lossy) ReleaseGrants(ctx context.Context, p uint16, session string, grants []engine.GrantReturn,
	closings []engine.RouteClosing) error {
	return l.w.call(p, l.who, fmt.Sprintf("gives %d back of %s", len(grants), session), func() (string, error) {
		return "", l.Engine.ReleaseGrants(patient(ctx), p, session, grants, closings)
	})
}

func (l lossy) ClaimGranted(ctx context.Context, p uint16, session string, number uint64, grants []engine.Grant,
	measured []wire.ClaimGrantedRoute) (answers []engine.Answer, claims []engine.Claim, err error) {
	err = l.w.call(p, l.who, fmt.Sprintf("takes %d of %s", len(grants), session), func() (string, error) {
		list, got, err := l.Engine.ClaimGranted(patient(ctx), p, session, number, grants, measured)
		if err != nil {
			return "", err
		}
		answers, claims = list, got
		for i, n := 0, 0; i < len(list); i++ {
			if list[i].Err == nil {
				l.w.claimed(got[n], list[i].Already)
				n++
			}
		}
		return fmt.Sprintf("%d claims", len(got)), nil
	})
	return answers, claims, err
}

// reckon ends the calls of leases that are over.
func (m *maintainer) reckon() {
	for _, name := range []string{capped, called} {
		p := ids.GatePartition(name, m.e.GatePartitions())
		if _, err := admit.Reckon(m.ctx, lossy{m.e, m.world, m.name}, p); err != nil {
			m.wrong("reckon %s: %v", name, err)
		}
	}
}

// visit asks for the turn of a call, or ends the call.
func (k *worker) visit(j *job) {
	x := engine.ServiceCall{Service: called, Fence: j.Fence, Number: j.calls + 1, Namespace: namespace,
		Priority: j.Priority, Since: j.CreatedAt, Estimate: map[string]int64{"requests": 1}}
	what := fmt.Sprintf("call %d of %s@%d", x.Number, short(j.Fence.Execution), j.Fence.Epoch)
	p := j.Fence.Execution.Partition()
	if !j.calling {
		_ = k.try(func() error {
			return k.call(p, k.name, "asks for "+what, func() (string, error) {
				turn, err := k.e.Acquire(k.ctx, x)
				j.calling = j.calling || err == nil && turn.Admitted && j.calls < x.Number
				return fmt.Sprintf("%t, place %d", turn.Admitted, turn.Place), err
			})
		})
		return
	}
	how := pick(k.world, engine.CallSettled, engine.CallSettled, engine.CallReleased)
	_ = k.try(func() error {
		return k.call(p, k.name, fmt.Sprintf("ends %s: %s", what, how), func() (string, error) {
			was, err := k.e.EndCall(k.ctx, x, how)
			if err == nil && j.calls < x.Number {
				j.calls, j.calling = x.Number, false
			}
			return already(was, err)
		})
	})
}

// hours lives through so many, each with faults and then without, after which every slot must be free.
func (w *world) hours(n int) {
	for hour := 0; hour < n && len(w.bad) == 0; hour++ {
		w.faults = 1 + w.r.IntN(6)
		for end := w.now.Add(time.Hour); w.now.Before(end) && len(w.bad) == 0; {
			w.move(false)
			if len(w.known) >= crowd { // producers make no more: nobody remembers what has ended
				w.forget()
			}
		}
		if len(w.bad) == 0 {
			w.drain()
		}
		if len(w.bad) == 0 {
			w.whole()
		}
		w.forget()
		w.journal = w.journal[max(0, len(w.journal)-tail):]
	}
}

// forget lets the world know only what has not ended.
func (w *world) forget() {
	open := slices.Concat(w.open[:]...)
	w.known = slices.DeleteFunc(w.known, func(id flowfabric.ExecutionID) bool { return !slices.Contains(open, id) })
	w.points = slices.DeleteFunc(w.points, func(p point) bool { return !slices.Contains(open, p.id) })
	w.flows = slices.DeleteFunc(w.flows, func(id flowfabric.FlowID) bool {
		f, err := w.e.DescribeFlow(w.ctx, id)
		return err != nil || f.State.Terminal()
	})
	for i, id := range w.known {
		w.of[id].order = i
	}
}

// whole finds every slot free: so many executions run at once as the gate lets, and never more, and so many of them
// call the service.
func (w *world) whole() {
	w.log("are all slots free?")
	m, k := w.drainers()
	k.name = "whole"
	for i := range 2 * slots {
		x := w.item(uint16(i % partitions))
		x.Delay, x.Deadline, x.Policy.AttemptTimeout = 0, 0, 0
		if err := w.create("whole", x, ""); err != nil {
			w.wrong("submit: %v", err)
			return
		}
	}
	calling := 0
	for range settles {
		for p := range uint16(partitions) {
			m.tend(p, false, false)
			k.claim(p)
			if k.holds(p) {
				_ = k.extend(k.seats[p])
			}
		}
		if len(k.jobs) > slots {
			w.wrong("%d run at once where %d may", len(k.jobs), slots)
			return
		}
		calling = 0
		for _, j := range k.jobs {
			if !j.calling {
				k.visit(j)
			}
			if j.calling {
				calling++
			}
		}
		if calling > lines {
			w.wrong("%d call the service at once where %d may", calling, lines)
		}
		w.check()
		if len(w.bad) > 0 {
			return
		}
		w.advance(time.Second)
	}
	if len(k.jobs) != slots || calling != lines {
		w.wrong("%d of %d slots are left, and %d of %d calls", len(k.jobs), slots, calling, lines)
		return
	}
	w.freed += slots + lines
	for len(k.jobs) > 0 {
		j := k.jobs[0]
		if j.calling {
			k.visit(j)
		}
		k.jobs = k.jobs[1:]
		_ = k.complete(k.name, j.Fence, "done")
	}
	for n := 0; n < rounds && len(w.bad) == 0 && !w.settle(m, k); n++ {
		w.steps++
	}
}

// holds tells whether it holds an execution of a partition.
func (k *worker) holds(p uint16) bool {
	return slices.ContainsFunc(k.jobs, func(j *job) bool { return j.seat == k.seats[p] })
}

// liveHours runs hours of a seed with slots.
func liveHours(t testing.TB, seed uint64, hours int, change func(lua string) string) *world {
	w := newWorld(t, seed, change)
	defer w.close()
	w.withSlots()
	w.hours(hours)
	return w
}

// No slot leaks, whatever crashes, stalls or is lost on its way: FLOWFABRIC_HOURS of virtual time, one without it.
func TestSlotsLast(t *testing.T) {
	hours := 1
	if text := os.Getenv("FLOWFABRIC_HOURS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("FLOWFABRIC_HOURS=%s: want a number", text)
		}
		hours = n
	}
	seed := uint64(1)
	if _, given := setting(t, "FLOWFABRIC_SEED"); given > 0 {
		seed = given
	}
	w := liveHours(t, seed, hours, nil)
	if len(w.bad) > 0 {
		t.Fatal(w.report())
	}
	if w.freed != hours*(slots+lines) {
		t.Errorf("%d slots and calls were free at the ends of %d hours", w.freed, hours)
	}
	t.Logf("seed %d: %d hours, %s of virtual time, %d steps, %d ends, %d leases taken over", seed, hours,
		w.now.Sub(time.UnixMilli(begin)).Round(time.Minute), w.steps, w.settled, w.gone)
}

// A library that leaks a slot now and then is found.
func TestLeaksAreNoticed(t *testing.T) {
	const hours = 30
	for name, bug := range map[string][2]string{
		"slot": {"redis.call('ZREM', slots, hold)",
			"(string.sub(x.execution, -2) == '00' and 0 or redis.call('ZREM', slots, hold))"},
		"call": {"redis.call('ZREM', calls, q.hold)", "if q.how ~= 'over' then redis.call('ZREM', calls, q.hold) end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(lua string) string { return strings.Replace(lua, bug[0], bug[1], 1) }
			w := liveHours(t, 1, hours, change)
			if len(w.bad) == 0 {
				t.Fatalf("%d hours find nothing", hours)
			}
			t.Logf("after %s: %s", w.now.Sub(time.UnixMilli(begin)).Round(time.Minute), w.bad[0])
		})
	}
}
