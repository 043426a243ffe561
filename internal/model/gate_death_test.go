package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// TestGateDeaths has a worker die after each of the calls by which an execution with three gates runs, one of amounts
// and two of starts and slots: claim, admit, admit, admit, claim what was granted, report, complete. Others recover it
// in each of four ways, every call of theirs made twice. Then the execution runs, no slot and no start is left that
// should not be, and it cost no retry.
func TestGateDeaths(t *testing.T) {
	t.Parallel()
	s := redisServer(t)
	for _, how := range []string{"its time is over", "its session is dead", "somebody wants its slot",
		"it is revoked"} {
		for after := range 8 {
			t.Run(fmt.Sprint(how, " after call ", after), func(t *testing.T) { newDeath(t, s).run(after, how) })
		}
	}
}

type death struct {
	*bounds
	id      flowfabric.ExecutionID
	checker *invariant.Checker
	n       int
	claimed bool // so that the route knows what its gates measure
}

// life is a worker on its way through the calls.
type life struct {
	x       *death
	session string
	grant   engine.Grant
	meters  map[string]string
	claim   engine.Claim
}

var deathGates = []string{gateNames["q1"], gateNames["q2"]}

func newDeath(t *testing.T, s *server) *death {
	x := &death{checker: invariant.NewChecker()}
	x.bounds = newBounds(t, s, 1, map[string]int{}, keys.GateRoot(1), keys.GateRoot(2))
	_, _, _, err := s.e.PutGate(x.ctx,
		admission.Gate{Name: gateNames["b"], Limits: map[string]admission.Limit{"tokens": {Hard: 100}}}, 0)
	x.no(err)
	var gates []flowfabric.Gate
	for _, name := range deathGates {
		_, _, _, err = s.e.PutGate(x.ctx, admission.Gate{Name: name, Concurrency: 1, Rate: 5,
			Window: flowfabric.Millis(time.Hour)}, 0)
		x.no(err)
		gates = append(gates, flowfabric.Gate(name))
	}
	x.id = x.bounds.id()
	out, err := s.e.CreateExecutions(x.ctx, partition,
		[]engine.NewExecution{{ID: x.id, Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: "default",
			Kind: "k"}, append(gates, flowfabric.Gate(gateNames["b"]))...)}})
	x.no(err)
	x.no(out[0].Err)
	return x
}

func (x *death) worker() *life {
	x.n++
	return &life{x: x, session: engine.NewSessionID(fmt.Sprint("w", x.n)), meters: map[string]string{}}
}

// calls are what a worker does.
func (l *life) calls() []func() {
	x := l.x
	admit := func(name string) func() {
		return func() {
			a, err := x.s.e.Admit(x.ctx, name, engine.Waiter{Partition: partition, Route: l.grant.Route},
				10*time.Second, false,
				[]engine.Hold{{Execution: x.id, Epoch: l.grant.Epoch}})
			x.no(err)
			x.same(a.Count, 1)
			l.meters[name] = a.Meters
		}
	}
	return []func(){
		func() {
			digest, err := x.s.e.SetSubscription(x.ctx, partition, engine.Subscription{Classes: []uint64{1}})
			x.no(err)
			out, err := x.s.e.ClaimNext(x.ctx, engine.ClaimRequest{Partition: partition, Session: l.session, Number: 1,
				TTL: lease * time.Millisecond, Max: 1,
				Subscription: digest, Gates: true})
			x.no(err)
			x.same(len(out.Grants), 1)
			l.grant = out.Grants[0]
		},
		admit(gateNames["b"]),
		admit(deathGates[0]),
		admit(deathGates[1]),
		func() {
			var measured []string
			for _, name := range slices.Sorted(maps.Keys(l.meters)) {
				measured = append(measured, name+"="+l.meters[name])
			}
			answers, claims, err := x.s.e.ClaimGranted(x.ctx, partition, l.session, 1, []engine.Grant{l.grant},
				[]wire.ClaimGrantedRoute{{Route: int(l.grant.Route), Meters: strings.Join(measured, ",")}})
			x.no(err)
			x.no(answers[0].Err)
			l.claim, x.claimed = claims[0], true
		},
		func() {
			r, err := x.s.e.ReportUsage(x.ctx,
				admission.Usage{Gate: gateNames["b"], Execution: x.id, Epoch: l.claim.Fence.Epoch, Sequence: 1,
					Amounts: map[string]int64{"tokens": 7}})
			x.no(err)
			x.same(r.Applied, true)
		},
		func() {
			out, _, err := x.s.e.CompleteExecutions(x.ctx, partition, []engine.Completion{{Fence: l.claim.Fence}}, nil)
			x.no(err)
			x.no(out[0].Err)
		},
	}
}

func (x *death) run(after int, how string) {
	first := x.worker()
	for _, call := range first.calls()[:after] {
		call() // made twice, as after a lost reply
		call()
		x.sound()
	}
	claimed, ended := after >= 5, after >= 7
	held := min(max(0, after-2), 2) // gates that know of it
	x.slots(held, held)
	x.recover(first, after, how)
	starts := bool01(claimed)
	x.slots(0, starts)
	used := int64(7 * bool01(after >= 6))
	if !ended {
		for _, call := range x.worker().calls() {
			call()
			x.sound()
		}
		starts, used = starts+1, used+7
	}
	x.deliver()
	x.slots(0, starts)
	b, err := x.s.e.ReadGate(x.ctx, gateNames["b"], 0, 0, 0)
	x.no(err)
	x.same(b.Used["tokens"], used)
	snap, err := x.s.e.ReadExecution(x.ctx, x.id)
	x.no(err)
	x.same(fmt.Sprint(snap.Code, snap.Attempts, snap.Reclaims, snap.Retries),
		fmt.Sprint("T1", 1+bool01(claimed && !ended), bool01(claimed && !ended), 0))
}

// recover is what others do about it.
func (x *death) recover(first *life, after int, how string) {
	switch how {
	case "its session is dead":
		if after > 0 {
			for range 2 {
				_, err := x.s.e.MarkSessionDead(trail.As(x.ctx, "", "test"), partition, first.session)
				x.no(err)
			}
		}
	case "somebody wants its slot":
		x.pass(11_000)
		for _, name := range deathGates {
			x.want(name)
		}
		x.pass(lease)
	default:
		if how == "it is revoked" && (after == 5 || after == 6) {
			_, err := x.s.e.RevokeLease(x.ctx, x.id, "")
			x.no(err)
			x.slots(2, 1)
			x.tick()
			x.deliver()
			return
		}
		x.pass(5000)
		x.tick()
		x.pass(lease)
	}
	x.tick()
	x.deliver()
}

// want asks for a slot for somebody else, who gives it back at once, and has suspects looked after.
func (x *death) want(name string) {
	other := []engine.Hold{{Execution: x.bounds.id(), Epoch: 1}}
	for again := range 2 {
		a, err := x.s.e.Admit(x.ctx, name, engine.Waiter{Partition: partition, Route: 9}, 10*time.Second, false, other)
		x.no(err)
		if again == 0 && a.Count == 0 {
			x.same(len(a.Suspects), 1)
		}
		if a.Count == 1 {
			_, _, err = x.s.e.SettleGates(x.ctx, []engine.News{{Gate: name, Execution: other[0].Execution,
				Epoch: other[0].Epoch, What: engine.NewsNever}})
			x.no(err)
			return
		}
		for _, text := range a.Suspects {
			hold, err := engine.ParseHold(text)
			x.no(err)
			for range 2 {
				states, err := x.s.e.CheckHolds(x.ctx, partition, []engine.Hold{hold})
				x.no(err)
				_, _, err = x.s.e.SettleGates(x.ctx, []engine.News{{Gate: name, Execution: hold.Execution,
					Epoch: hold.Epoch, What: states[0]}})
				x.no(err)
			}
		}
		x.sound()
	}
}

func (x *death) tick() {
	for range 2 {
		_, err := x.s.e.Tick(x.ctx, partition, "ticker", false)
		x.no(err)
	}
	x.sound()
}

// deliver tells everything twice, as an owner does who dies before he trims. Once a claim has told what gates measure,
// they hear only what they have to know.
func (x *death) deliver() {
	for last := range 2 {
		entries, _, err := x.s.e.ReadOutbox(x.ctx, partition, "")
		x.no(err)
		for _, entry := range entries {
			for _, r := range entry.News {
				hold := r.What == engine.NewsGone || r.What == engine.NewsNever
				if x.claimed && hold == (r.Gate == gateNames["b"]) {
					x.fatal("%s is told of %s", r.Gate, r.What)
				}
				_, wake, err := x.s.e.SettleGates(x.ctx, []engine.News{r})
				x.no(err)
				for _, w := range wake {
					_, err := x.s.e.OpenRoutes(x.ctx, w.Partition, []uint64{w.Route})
					x.no(err)
				}
			}
			if last == 1 {
				_, err := x.s.e.TrimOutbox(x.ctx, partition, []string{entry.ID})
				x.no(err)
			}
		}
	}
	x.sound()
}

// slots wants so many of the gates to hold it, and to have so many starts altogether, or one of each start if it was
// claimed.
func (x *death) slots(held, started int) {
	x.t.Helper()
	for i, name := range deathGates {
		q, err := x.s.e.ReadGate(x.ctx, name, 0, 10, 0)
		x.no(err)
		if want := bool01(i < held); q.Held != want {
			x.fatal("%s: %d held, want %d: %v", name, q.Held, want, q.Holds)
		}
		want := started
		if held > 0 {
			want = bool01(i < held)
		}
		if q.Started != want {
			x.fatal("%s: %d started, want %d", name, q.Started, want)
		}
	}
}

func (x *death) sound() {
	x.t.Helper()
	d, err := invariant.Read(x.ctx, x.s.raw, partition)
	x.no(err)
	if bad := x.checker.Violations(d); len(bad) > 0 {
		x.fatal("not sound: %q", bad)
	}
}

// TestOldGrants has grants come back late, twice, or from others: none of that touches a newer grant, and gates hear
// at once of one that comes back.
func TestOldGrants(t *testing.T) {
	t.Parallel()
	x := newDeath(t, redisServer(t))
	back := func(session string, g engine.Grant, reserved bool) {
		t.Helper()
		x.no(x.s.e.ReleaseGrants(x.ctx, partition, session, []engine.GrantReturn{{Grant: g, Reserved: reserved}}, nil))
		x.sound()
	}
	state := func(want string, epoch uint64) {
		t.Helper()
		d, err := invariant.Read(x.ctx, x.s.raw, partition)
		x.no(err)
		c := d.Hashes[":x:"+ids.UUID(x.id).String()]
		x.same(c["s"]+" "+c["ge"], fmt.Sprint(want, " ", epoch))
	}
	first, second := x.worker(), x.worker()
	calls := first.calls()
	calls[0]()
	calls[2]()
	old := first.grant
	back(second.session, old, true) // it is not his
	state("G1f", old.Epoch)
	x.slots(1, 0)
	back(first.session, old, true)
	state("R1f", old.Epoch)
	entries, _, err := x.s.e.ReadOutbox(x.ctx, partition, "")
	x.no(err)
	if len(entries) == 0 || entries[0].News[0].Epoch != old.Epoch || entries[0].News[0].What != engine.NewsNever {
		x.fatal("the gates are told %+v", entries)
	}
	back(first.session, old, true)
	state("R1f", old.Epoch)
	x.deliver()
	x.slots(0, 0)
	calls = second.calls()
	calls[0]() // within the same ms
	if second.grant.Epoch <= old.Epoch {
		x.fatal("epoch %d after %d", second.grant.Epoch, old.Epoch)
	}
	back(first.session, old, true)
	back(second.session, old, true)
	state("G1f", second.grant.Epoch)
	for _, g := range []engine.Grant{old, second.grant} {
		answers, _, err := x.s.e.ClaimGranted(x.ctx, partition, first.session, 1, []engine.Grant{g}, nil)
		if err == nil && answers[0].Err == nil {
			x.fatal("a worker claims with the grant %d, which is not his", g.Epoch)
		}
	}
	answers, _, err := x.s.e.ClaimGranted(x.ctx, partition, second.session, 1, []engine.Grant{old}, nil)
	x.no(err)
	x.same(x.code(answers[0].Err), "stale_lease")
	x.deliver()
	for _, call := range calls[1:] {
		call()
		x.sound()
	}
	x.deliver()
	x.slots(0, 1)
}
