package conformance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// drill does at random whatever can happen to work behind a gate, delivers late, twice and in any order, asks and
// tells with other steps in between, and looks after each step: what runs holds a slot, and no more slots are held
// than there are.
type drill struct {
	*gates
	r       *rand.Rand
	seed    uint64
	slots   string // the gate
	cap     int
	workers []*asker
	open    int                                         // executions that have not ended
	runs    map[flowfabric.ExecutionID]flowfabric.Fence // that nobody took away
	notices []engine.News                               // read and not delivered, or delivered before
	asked   []verdictOf
	did     map[string]int
}

// asker is a worker and what it was granted, whether or not it still has it.
type asker struct {
	*worker
	granted, admitted []counted
}

// counted is a grant and the number of the claim that brought it.
type counted struct {
	engine.Grant
	number uint64
}

// verdictOf is what a partition said of holds, not yet told.
type verdictOf struct {
	holds  []engine.Hold
	states []string
}

func newDrill(w *env) *drill {
	d := &drill{gates: newGates(w), seed: uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano())), cap: 3,
		runs: map[flowfabric.ExecutionID]flowfabric.Fence{}, did: map[string]int{}}
	d.r = rand.New(rand.NewPCG(d.seed, 1))
	d.slots = d.gates.gate(admission.Gate{Concurrency: d.cap})
	for i := range 2 {
		d.workers = append(d.workers, &asker{worker: d.asker("w" + strconv.Itoa(i))})
	}
	return d
}

func (d *drill) step() {
	d.Helper()
	k := d.workers[d.r.IntN(len(d.workers))]
	moves := []func(*asker){d.more, d.poll, d.poll, d.ask, d.ask, d.ask, d.take, d.take, d.end1, d.end1, d.end1, d.read,
		d.tell, d.tell, d.check1, d.settle1, d.settle1, d.pass, d.die, d.giveBack}
	moves[d.r.IntN(len(moves))](k)
	d.judge()
}

// judge compares the gate with what runs.
func (d *drill) judge() {
	d.Helper()
	q := d.record(d.slots)
	if q.Held > d.cap || len(d.runs) > d.cap {
		d.Fatalf("seed %d: %d slots are held and %d run, the cap is %d", d.seed, q.Held, len(d.runs), d.cap)
	}
	for id, f := range d.runs {
		hold := engine.Hold{Execution: id, Epoch: f.Epoch}.String()
		if !slices.Contains(q.Holds, hold) {
			d.Fatalf("seed %d: %s runs without a slot; held are %v", d.seed, hold, q.Holds)
		}
	}
}

func (d *drill) more(*asker) {
	if d.open < 12 {
		d.create(asking(flowfabric.Gate(d.slots)), retries(1000), reclaims(1000))
		d.open++
	}
}

func (d *drill) poll(k *asker) {
	for _, x := range k.grants(1 + d.r.IntN(3)) {
		k.granted = append(k.granted, counted{x, k.number})
	}
}

func (d *drill) ask(k *asker) {
	if len(k.granted) == 0 {
		return
	}
	i := d.r.IntN(len(k.granted))
	x := k.granted[i]
	a, err := d.e.Admit(d.ctx, d.slots, engine.Waiter{Partition: d.p, Route: x.Route}, 10*time.Second, false,
		[]engine.Hold{holdOf(x.Grant)})
	d.no(err)
	if a.Count == 1 {
		k.admitted = append(k.admitted, x)
	} else {
		d.did["refused"]++
		d.no(d.e.ReleaseGrants(d.ctx, d.p, k.session, []engine.GrantReturn{{Grant: x.Grant}},
			[]engine.RouteClosing{{Route: x.Route, For: time.Second, Why: "cap"}}))
		d.suspects(a.Suspects)
	}
	k.granted = slices.Delete(k.granted, i, i+1)
}

// take claims what was admitted, maybe long ago.
func (d *drill) take(k *asker) {
	for _, x := range k.admitted {
		answers, claims, err := k.claimGranted(x.number, []engine.Grant{x.Grant})
		if errors.Is(err, denied.LeaseExpired) {
			break
		}
		d.no(err)
		if answers[0].Err != nil {
			d.is(answers[0].Err, denied.StaleLease)
			d.did["came late"]++
			if d.r.IntN(2) == 0 {
				d.no(d.e.ReleaseGrants(d.ctx, d.p, k.session, []engine.GrantReturn{{Grant: x.Grant, Reserved: true}},
					nil))
			}
			continue
		}
		d.did["claimed"]++
		d.runs[x.Execution] = claims[0].Fence
	}
	k.admitted = nil
	d.gates.check()
}

func (d *drill) giveBack(k *asker) {
	for _, x := range append(k.granted, k.admitted...) {
		d.no(d.e.ReleaseGrants(d.ctx, d.p, k.session, []engine.GrantReturn{{Grant: x.Grant, Reserved: true}}, nil))
	}
	k.granted, k.admitted = nil, nil
	d.gates.check()
}

// end1 ends one run in some way.
func (d *drill) end1(*asker) {
	for id, f := range d.runs {
		if d.read1(id) != codes.Active { // taken away by a death that nobody has noticed yet
			delete(d.runs, id)
			return
		}
		done := true
		var err error
		switch d.r.IntN(5) {
		case 0:
			_, _, err = d.e.CompleteExecutions(d.ctx, d.p, []engine.Completion{{Fence: f}}, nil)
		case 1:
			_, err = d.e.CancelExecution(d.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
		case 2:
			_, err = d.e.FailExecution(d.ctx, f, engine.Failure{Category: "x"})
			done = false
		case 3:
			_, err = d.e.ReleaseExecution(d.ctx, f)
			done = false
		case 4:
			_, err = d.e.RevokeLease(d.ctx, id, "")
			done = false
		}
		d.no(err)
		delete(d.runs, id)
		if done {
			d.open--
		}
		d.gates.check()
		return
	}
}

func (d *drill) read1(id flowfabric.ExecutionID) codes.Code { return d.gates.read(id).Code }

// read takes the outbox over; tell delivers one notice of it, and sometimes one that was delivered before.
func (d *drill) read(*asker) {
	entries, _, err := d.e.ReadOutbox(d.ctx, d.p, "")
	d.no(err)
	for _, x := range entries {
		d.notices = append(d.notices, x.News...)
		_, err := d.e.TrimOutbox(d.ctx, d.p, []string{x.ID})
		d.no(err)
	}
}

func (d *drill) tell(*asker) {
	if len(d.notices) == 0 {
		return
	}
	i := d.r.IntN(len(d.notices))
	_, wake := d.gates.tell(d.notices[i])
	d.wake(wake)
	if d.r.IntN(4) > 0 {
		d.notices = slices.Delete(d.notices, i, i+1)
	} else {
		d.did["told twice"]++
	}
}

// check1 asks about all holds, as an audit would; settle1 tells it, when other things have happened.
func (d *drill) check1(*asker) { d.suspects(d.record(d.slots).Holds) }

func (d *drill) suspects(list []string) {
	if len(list) == 0 {
		return
	}
	holds := make([]engine.Hold, len(list))
	for i, text := range list {
		h, err := engine.ParseHold(text)
		d.no(err)
		holds[i] = h
	}
	states, err := d.e.CheckHolds(d.ctx, d.p, holds)
	d.no(err)
	d.asked = append(d.asked, verdictOf{holds: holds, states: states})
	d.did["killed"] += len(slices.DeleteFunc(slices.Clone(states), func(s string) bool {
		return s != engine.NewsNever
	}))
	d.gates.check()
}

func (d *drill) settle1(*asker) {
	if len(d.asked) == 0 {
		return
	}
	i := d.r.IntN(len(d.asked))
	var all []engine.News
	for n, h := range d.asked[i].holds {
		all = append(all, news(d.slots, h, d.asked[i].states[n]))
	}
	_, wake, err := d.e.SettleGates(d.ctx, all)
	d.no(err)
	d.wake(wake)
	d.did["audited"]++
	d.asked = slices.Delete(d.asked, i, i+1)
}

// pass lets time go by; who is alive renews.
func (d *drill) pass(*asker) {
	d.advance(time.Duration(1+d.r.IntN(6)) * time.Second)
	for _, k := range d.workers {
		if _, err := d.e.RenewSession(d.ctx, d.p, k.session, k.ttl, 0); err != nil && k.number > 0 && !errors.Is(err,
			denied.LeaseExpired) {
			d.no(err)
		}
	}
	if d.r.IntN(2) == 0 {
		d.settleTime()
	}
}

// die kills a session; its instance begins another.
func (d *drill) die(k *asker) {
	if k.number == 0 || d.r.IntN(4) > 0 {
		return
	}
	_, err := d.e.MarkSessionDead(trail.As(d.ctx, "", "drill"), d.p, k.session)
	d.no(err)
	for id, f := range d.runs {
		if f.Session == k.session {
			delete(d.runs, id)
		}
	}
	d.did["session died"]++
	k.worker, k.granted, k.admitted = d.asker(k.instance), nil, nil
}

// end ends everybody, and nothing may be left.
func (d *drill) end() {
	d.Helper()
	for _, k := range d.workers {
		if k.number > 0 {
			_, err := d.e.MarkSessionDead(trail.As(d.ctx, "", "drill"), d.p, k.session)
			d.no(err)
		}
	}
	d.settleTime()
	for len(d.notices) > 0 {
		d.tell(nil)
	}
	for len(d.asked) > 0 {
		d.settle1(nil)
	}
	d.deliver()
	d.advance(time.Minute)
	d.settleTime()
	d.check1(nil)
	for len(d.asked) > 0 {
		d.settle1(nil)
	}
	if n := d.held(d.slots); n != 0 {
		d.Fatalf("seed %d: %d slots are held in the end", d.seed, n)
	}
}
