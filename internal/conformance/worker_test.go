package conformance

import (
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/stream"
)

// worker is one instance with its session in the partition.
type worker struct {
	w            *env
	instance     string
	session      string
	number       uint64 // last claim number that was used up
	ttl          time.Duration
	table        uint64
	routes       map[uint64]engine.Route
	subscription string
	can          func(engine.Route) bool
	namespaces   []string // none: all
	gates        bool     // takes work that asks gates
	turns        bool     // its claims have a rotation that grows
	weights      map[string]int
}

func (w *env) worker(instance string) *worker {
	return &worker{w: w, instance: instance, session: engine.NewSessionID(instance), ttl: ttl,
		routes: map[uint64]engine.Route{},
		can:    func(engine.Route) bool { return true }}
}

func (k *worker) request(max int) engine.ClaimRequest {
	q := engine.ClaimRequest{Partition: k.w.p, Session: k.session, Number: k.number + 1, TTL: k.ttl, Max: max,
		Subscription: k.subscription, Table: k.table, Wait: true, Gates: k.gates}
	if k.turns {
		q.Rotation = k.number
	}
	return q
}

// learn stores the subscription that follows from the routes of a reply; it reports whether there was anything new.
func (k *worker) learn(r engine.ClaimReply) bool {
	k.w.Helper()
	k.table = r.Table
	var mine []uint64
	for _, route := range r.Routes {
		k.routes[route.ID] = route
	}
	for id, route := range k.routes {
		if id < 1_000_000_000 && k.can(route) { // a class, not one of its other routes

			mine = append(mine, id)
		}
	}
	if len(r.Routes) == 0 && k.subscription != "" {
		return false
	}
	digest, err := k.w.e.SetSubscription(k.w.ctx, k.w.p,
		engine.Subscription{Classes: mine, Namespaces: k.namespaces, Weights: k.weights})
	k.w.no(err)
	k.subscription = digest
	return true
}

// knows remembers the routes of claims and grants that are not their classes' own.
func (k *worker) knows(r engine.ClaimReply) {
	for _, route := range r.Others {
		k.routes[route.ID] = route
	}
}

// poll makes one claim call after the subscription is up to date.
func (k *worker) poll(max int) engine.ClaimReply {
	k.w.Helper()
	for {
		r, err := k.w.e.ClaimNext(k.w.ctx, k.request(max))
		k.w.no(err)
		k.knows(r)
		if len(r.Claims)+len(r.Grants) > 0 {
			k.number++
			k.w.check()
			return r
		}
		if !k.learn(r) {
			k.w.check()
			return r
		}
	}
}

// claim claims up to max, whatever gates would say.
func (k *worker) claim(max int) []engine.Claim {
	k.w.Helper()
	r := k.poll(max)
	if len(r.Grants) > 0 {
		return k.granted(r.Grants...)
	}
	return r.Claims
}

// one claims exactly the wanted execution.
func (k *worker) one(want flowfabric.ExecutionID) engine.Claim {
	k.w.Helper()
	c := k.claim(1)
	if len(c) != 1 || c[0].Fence.Execution != want {
		k.w.Fatalf("claimed %v, want %s", c, want)
	}
	return c[0]
}

// nothing fails if there is anything to claim.
func (k *worker) nothing() engine.ClaimReply {
	k.w.Helper()
	r := k.poll(100)
	if len(r.Claims) != 0 {
		k.w.Fatalf("claimed %d executions, want none", len(r.Claims))
	}
	return r
}

func (w *env) complete(f flowfabric.Fence, result string) engine.Settled {
	w.Helper()
	s, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f, Result: []byte(result)}}, nil)
	w.no(err)
	w.check()
	return s[0]
}

func (w *env) fail(f flowfabric.Fence, category string) engine.FailOutcome {
	w.Helper()
	o, err := w.e.FailExecution(w.ctx, f, engine.Failure{Category: flowfabric.Category(category), Reason: "because"})
	w.no(err)
	w.check()
	return o
}

func (w *env) delay(f flowfabric.Fence, d time.Duration) {
	w.Helper()
	already, err := w.e.DelayExecution(w.ctx, f, d, "")
	w.no(err)
	same(w, "delay already", already, false)
	w.check()
}

func (w *env) release(f flowfabric.Fence) {
	w.Helper()
	already, err := w.e.ReleaseExecution(w.ctx, f)
	w.no(err)
	same(w, "release already", already, false)
	w.check()
}

func (w *env) cancel(id flowfabric.ExecutionID) {
	w.Helper()
	already, err := w.e.CancelExecution(trail.As(w.ctx, "", "told to"), id,
		engine.Cancellation{Source: engine.CancelOperator})
	w.no(err)
	same(w, "cancel already", already, false)
	w.check()
}

func (w *env) renew(k *worker, processed uint64) engine.Renewal {
	w.Helper()
	r, err := w.e.RenewSession(w.ctx, w.p, k.session, k.ttl, processed)
	w.no(err)
	w.check()
	return r
}

const ticker = "ticker"

// tick makes one call as the owner.
func (w *env) tick() engine.TickReply {
	w.Helper()
	r, err := w.e.Tick(w.ctx, w.p, ticker, false)
	w.no(err)
	same(w, "owner of the tick", r.Owner, true)
	w.check()
	return r
}

// settleTime ticks until nothing due is left and returns the sums and how many calls it took.
func (w *env) settleTime() (sum engine.TickReply, calls int) {
	w.Helper()
	for calls = 1; calls <= 100; calls++ {
		r := w.tick()
		sum.Requeued += r.Requeued
		sum.Promoted += r.Promoted
		sum.TimedOut += r.TimedOut
		sum.Expired += r.Expired
		sum.Exhausted += r.Exhausted
		sum.Rung += r.Rung
		sum.Purged += r.Purged
		if !r.More {
			return sum, calls
		}
	}
	w.Fatal("the tick never finishes")
	return sum, calls
}

// frames appends n frames from sequence first.
func (w *env) frames(f flowfabric.Fence, first uint64, n int) engine.Appended {
	w.Helper()
	list := make([]stream.Frame, n)
	for i := range list {
		list[i] = stream.Frame{Type: "token", Payload: []byte(strconv.FormatUint(first+uint64(i), 10))}
	}
	a, err := w.e.AppendFrames(w.ctx, f, first, list)
	w.no(err)
	w.check()
	return a
}

// nothingYet learns the route table without claiming.
func (k *worker) nothingYet() {
	k.w.Helper()
	r, err := k.w.e.ClaimNext(k.w.ctx, k.request(1))
	k.w.no(err)
	k.learn(r)
}

// fresh is the same instance in a partition that was emptied.
func (k *worker) fresh() *worker { return k.w.worker(k.instance) }

// claimArgs is the wire form of a claim. Positions: 1 session, 2 number, 3 ttl, 4 max, 5 subscription, 6 table, 7
// wait, 8 rotation.
func claimArgs(q engine.ClaimRequest) []string {
	return []string{proto, q.Session, strconv.FormatUint(q.Number, 10), strconv.FormatInt(q.TTL.Milliseconds(), 10),
		strconv.Itoa(q.Max), q.Subscription, strconv.FormatUint(q.Table, 10), "1", strconv.FormatUint(q.Rotation, 10),
		"0"}
}

// granting are the arguments of a claim that has work with gates granted, too.
func granting(args []string) []string {
	args[len(args)-1] = "32"
	return args
}

// claimWords is how many words begin a claim in a reply.
const claimWords = 17

// fenceArgs is the wire form of a fence.
func fenceArgs(f flowfabric.Fence) []string {
	return []string{ids.UUID(f.Execution).String(), f.Session, strconv.FormatUint(f.Claim, 10),
		strconv.FormatUint(f.Epoch, 10), strconv.FormatUint(uint64(f.Attempt), 10)}
}
