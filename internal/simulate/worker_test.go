package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
)

const (
	leaseTTL = 20 * time.Second
	most     = 3 // executions that a worker holds at once
)

// worker claims work and holds it. One behind a gateway has a session for each execution, others one for each
// partition.
type worker struct {
	party
	gateway bool
	routes  [partitions]serving
	seats   [partitions]*seat // for the next claim
	jobs    []*job
	until   time.Time // it does nothing before; its leases may run out meanwhile
	life    int
}

// serving is what a worker knows of a partition's routes.
type serving struct {
	table   uint64
	classes []uint64
	digest  string // of the subscription; "" when it is to be declared
}

// seat is a session.
type seat struct {
	partition uint16
	session   string
	number    uint64 // of the next claim
	renewed   time.Time
	processed uint64
}

// job is an execution that the worker believes to hold.
type job struct {
	engine.Claim
	seat    *seat
	frames  uint64
	calls   uint64 // to the service that have ended
	calling bool
}

func newWorker(w *world, name string, gateway bool) *worker {
	k := &worker{party: party{world: w, name: name}, gateway: gateway}
	k.crash()
	return k
}

// crash forgets everything; another process with the same name begins.
func (k *worker) crash() {
	k.life++
	k.jobs, k.pending, k.until, k.routes = nil, nil, time.Time{}, [partitions]serving{}
	for p := range k.seats {
		k.sit(uint16(p))
	}
}

// sit takes a new session.
func (k *worker) sit(p uint16) {
	k.seats[p] = &seat{partition: p, session: k.fresh(fmt.Sprintf("%s~%d-", k.name, k.life)), number: 1, renewed: k.now}
}

func (k *worker) turn() {
	switch n := k.r.IntN(100); {
	case k.now.Before(k.until):
	case !k.until.IsZero(): // it goes on where it was, and knows nothing of the time between
		if k.until = (time.Time{}); len(k.jobs) > 0 {
			k.work(k.jobs[0])
		}
	case n < 3:
		k.log("%s crashes", k.name)
		k.crash()
	case n < 6:
		d := k.between(time.Second, 3*leaseTTL)
		k.log("%s stalls for %s", k.name, d)
		k.until = k.now.Add(d)
	case k.again():
	case n < 85 && k.renew():
	case k.askers != nil && len(k.jobs) > 0 && k.chance(30):
		k.visit(k.jobs[k.r.IntN(len(k.jobs))])
	case len(k.jobs) > 0 && (len(k.jobs) == most || n < 70):
		k.work(k.jobs[k.r.IntN(len(k.jobs))])
	default:
		k.claim(k.partition())
	}
}

// renew extends one session that has not been for a while, if there is one.
func (k *worker) renew() bool {
	for _, j := range k.jobs {
		if s := j.seat; k.now.Sub(s.renewed) >= leaseTTL/3 {
			_ = k.try(func() error { return k.extend(s) })
			return true
		}
	}
	return false
}

func (k *worker) extend(s *seat) error {
	out, err := k.world.renew(k.name, s.partition, s.session, leaseTTL, s.processed)
	switch {
	case errors.Is(err, errLost):
	case err != nil:
		k.leave(s)
	default:
		s.renewed, s.processed = k.now, out.Generation
		for _, lost := range out.Lost {
			k.jobs = slices.DeleteFunc(k.jobs, func(j *job) bool {
				return j.Fence.Execution == lost.Execution && j.Fence.Epoch == lost.Epoch
			})
		}
	}
	return err
}

// leave gives a session up, with all that it has.
func (k *worker) leave(s *seat) {
	k.jobs = slices.DeleteFunc(k.jobs, func(j *job) bool { return j.seat == s })
	if k.seats[s.partition] == s {
		k.sit(s.partition)
	}
}

// claim asks a partition for work: for its routes, if they are not known, then to be told of work in them, then for it.
func (k *worker) claim(p uint16) {
	r := &k.routes[p]
	if len(r.classes) == 0 && k.ask(p) != nil || len(r.classes) == 0 {
		return
	}
	if r.digest == "" && k.try(func() error { return k.declare(p) }) != nil {
		return
	}
	_ = k.ask(p)
}

func (k *worker) declare(p uint16) error {
	digest, err := k.subscribe(k.name, p, k.routes[p].classes)
	if err == nil {
		k.routes[p].digest = digest
	}
	return err
}

// ask makes one claim.
func (k *worker) ask(p uint16) error {
	r, s := &k.routes[p], k.seats[p]
	q := engine.ClaimRequest{Partition: p, Session: s.session, Number: s.number, TTL: leaseTTL, Max: 1 + k.r.IntN(2),
		Subscription: r.digest, Table: r.table, Wait: k.chance(50), Rotation: k.r.Uint64N(4)}
	if k.gateway {
		q.Max = 1
	}
	return k.try(func() error { return k.answered(s, q) })
}

func (k *worker) answered(s *seat, q engine.ClaimRequest) error {
	r := &k.routes[s.partition]
	reply, err := k.world.claim(k.name, q)
	switch {
	case errors.Is(err, errLost):
		return err
	case errors.Is(err, denied.UnknownSubscription):
		r.digest = ""
		return err
	case err != nil:
		k.leave(s)
		return err
	}
	r.table = reply.Table
	for _, route := range reply.Routes {
		if !slices.Contains(r.classes, route.ID) {
			r.classes, r.digest = append(r.classes, route.ID), ""
		}
	}
	if len(reply.Claims) == 0 {
		return nil
	}
	s.number, s.renewed = q.Number+1, k.now
	for _, c := range reply.Claims {
		k.jobs = append(k.jobs, &job{Claim: c, seat: s, frames: c.LastSequence})
	}
	if k.gateway {
		k.sit(s.partition)
	}
	return nil
}

// hand makes a call of a holder. What it refuses is not held any more; nor is what it gives up.
func (k *worker) hand(j *job, gives bool, call func() error) {
	_ = k.try(func() error {
		err := call()
		if !errors.Is(err, errLost) && (gives || err != nil) {
			k.drop(j)
		}
		return err
	})
}

func (k *worker) drop(j *job) {
	k.jobs = slices.DeleteFunc(k.jobs, func(x *job) bool { return x == j })
	if k.gateway && k.chance(50) {
		_ = k.closeSession(k.name, j.seat.partition, j.seat.session)
	}
}

// work does something with an execution.
func (k *worker) work(j *job) {
	f, who := j.Fence, k.name
	switch n := k.r.IntN(100); {
	case n < 12:
		k.append(j)
	case n < 24:
		name, value := k.fresh("step"), k.fresh("value")
		k.hand(j, false, func() error { return k.step(who, f, name, value) })
	case n < 28:
		percent := k.r.IntN(100)
		k.hand(j, false, func() error { return k.progress(who, f, percent) })
	case n < 32:
		name, m := k.fresh("point"), k.minted(k.fresh("key"))
		k.hand(j, false, func() error { return k.offer(who, f, name, m) })
	case n < 36:
		name := engine.ReceiptName(mailbox, k.names+1)
		k.names++
		k.hand(j, false, func() error { return k.receive(who, f, name, mailbox) })
	case n < 42:
		k.suspend(j)
	case n < 46:
		k.hear(j)
	case n < 54:
		k.family(j)
	case n < 58:
		d := k.between(0, 20*time.Second)
		k.hand(j, true, func() error { return k.delay(who, f, d) })
	case n < 61:
		input := k.fresh("input")
		k.hand(j, true, func() error { return k.goOn(who, f, input) })
	case n < 65:
		k.hand(j, true, func() error { return k.release(who, f) })
	case n < 67:
		k.hand(j, true, func() error { return k.cancel(who, f.Execution, &f) })
	case n < 80:
		q := engine.Failure{Category: "simulated", Reason: "it failed", Permanent: k.chance(20)}
		k.hand(j, true, func() error { return k.fail(who, f, q) })
	default:
		result := k.fresh("result")
		k.hand(j, true, func() error { return k.complete(who, f, result) })
	}
}

func (k *worker) append(j *job) {
	first, list := j.frames+1, make([]stream.Frame, 1+k.r.IntN(2))
	for i := range list {
		list[i] = stream.Frame{Type: "log", Mode: stream.ModeDurable, Payload: []byte(k.fresh("frame"))}
	}
	k.hand(j, false, func() error {
		err := k.world.frames(k.name, j.Fence, first, list)
		if err == nil {
			j.frames = first + uint64(len(list)) - 1
		}
		return err
	})
}

func (k *worker) suspend(j *job) {
	q := engine.Suspension{ID: flowfabric.UUID(k.uuid()), Name: k.fresh("wait"), Reason: "waiting_for_signal",
		Behaviour: pick(k.world, "fail", "cancel", "expire"), Condition: "L\x1f1\x1f1\x1fgo",
		Bindings: []engine.Binding{{Minted: k.minted(k.fresh("key"))}}}
	k.await(j, q)
}

// await suspends, which gives the lease up unless signals that came early suffice.
func (k *worker) await(j *job, q engine.Suspension) {
	if q.Timeout == 0 && k.chance(40) {
		q.Timeout = k.between(time.Second, time.Minute)
	}
	k.hand(j, false, func() error {
		satisfied, err := k.wait(k.name, j.Fence, q)
		if err == nil && !satisfied {
			k.drop(j)
		}
		return err
	})
}

// family waits for children that it makes, or for others, in two calls; it may crash in between, or forget the second.
func (k *worker) family(j *job) {
	q := engine.ChildWait{Name: k.fresh("children"), CancelRemaining: k.chance(30), Leave: k.chance(30),
		Mode: pick(k.world, engine.WaitAll, engine.WaitFirst, engine.WaitFirstSuccess, engine.WaitFailFast)}
	over := false
	var first func() error
	if younger := k.younger(j.Fence.Execution); k.chance(50) && len(younger) > 0 {
		list := []flowfabric.ExecutionID{pick(k.world, younger...)}
		first = func() error { return k.others(k.name, j.Fence, q, list) }
	} else if len(k.known) < 40 {
		for range 1 + k.r.IntN(2) {
			q.Children = append(q.Children,
				engine.FlowMember{NewExecution: k.item(j.Fence.Execution.Partition()), Node: k.fresh("child")})
		}
		first = func() (err error) {
			over, err = k.children(k.name, j.Fence, q)
			return err
		}
	} else {
		return
	}
	k.hand(j, false, first)
	if k.pending != nil || over || !slices.Contains(k.jobs, j) || k.chance(15) {
		return
	}
	k.await(j, engine.Suspension{ID: flowfabric.UUID(k.uuid()), Name: q.Name, Request: "children " + q.Name,
		Reason: "waiting_for_children", Behaviour: "fail", Condition: waitwords.ChildrenCondition})
}

// finish ends what the worker holds and what it can get, without faults; false when there was nothing.
func (k *worker) finish() (some bool) {
	k.pending, k.until = nil, time.Time{}
	for p := range uint16(partitions) {
		k.sit(p)
		k.routes[p] = serving{}
		for range 20 { // table, subscription, and claims until nothing comes
			before, asked := len(k.jobs), k.routes[p].digest != ""
			k.claim(p)
			if asked && len(k.jobs) == before && k.routes[p].digest != "" {
				break
			}
		}
	}
	for len(k.jobs) > 0 {
		some = true
		j := k.jobs[0]
		k.jobs = k.jobs[1:]
		_ = k.complete(k.name, j.Fence, "done")
	}
	return some
}
