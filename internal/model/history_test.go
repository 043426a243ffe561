package model_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/model"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Calls of a history that are not functions: the clock is moved, and an execution is read.
const (
	clock = "clock"
	read  = "read"
)

// outcome is what a client saw; nil stands for a reply that was lost.
type outcome struct {
	reply model.Reply
	view  model.View
	code  string // of a read
}

// sequential is the model as porcupine asks it: may this call answer that in this state? A lost reply may have been
// anything. Sessions, clock and tick are shared by all executions, so a history is checked whole: that is stricter
// than execution by execution.
func sequential(initial *model.Partition) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, output any) (bool, any) {
			p, c, seen := state.(*model.Partition), input.(call), output.(*outcome)
			if c.Kind == read {
				view, code := p.View(c.ID)
				view.Streams = nil // they take more than one call to read
				return seen.code == code && reflect.DeepEqual(seen.view, view), p
			}
			p = p.Clone()
			if c.Kind == clock {
				p.Advance(p.Now + c.Number)
				return true, p
			}
			want := c.apply(p)
			return seen == nil || reflect.DeepEqual(seen.reply, want), p
		},
		Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	}
}

// history is several clients at work on one partition at the same time.
type history struct {
	s    *server
	ctx  context.Context
	ids  []string
	zero time.Time

	mu     sync.Mutex
	ops    []porcupine.Operation
	served []span        // of the same calls
	fences []model.Claim // of all workers, so that some use what is not theirs
	err    error
}

// span is when the server made a call, in numbers of calls: exactly the one that is counted with it, or after one and
// before another.
type span struct{ first, last int64 }

// asServed is the history in the order in which the server made the calls, which is one of those that the clients
// could have seen. To check it takes no search.
func (h *history) asServed() []porcupine.Operation {
	ops := slices.Clone(h.ops)
	for i, s := range h.served {
		ops[i].Call, ops[i].Return = s.first, s.last
	}
	return ops
}

// astray is the first call, in that order, whose answer the model does not give, with both; "" without one. A read is
// made wherever its interval begins.
func (h *history) astray() string {
	ops := h.asServed()
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	m := sequential(model.New(begin))
	for state, i := m.Init(), 0; i < len(ops); i++ {
		legal, next := m.Step(state, ops[i].Input, ops[i].Output)
		if !legal {
			p, c := state.(*model.Partition), ops[i].Input.(call)
			if c.Kind == read {
				view, code := p.View(c.ID)
				return fmt.Sprintf("%+v\nserver %+v\nmodel  %s %+v", c, ops[i].Output, code, view)
			}
			return fmt.Sprintf("%+v\nserver %+v\nmodel  %+v", c, show(ops[i].Output.(*outcome).reply),
				show(c.apply(p.Clone())))
		}
		state = next
	}
	return ""
}

// counter is the key in which the server counts the calls of a history.
const counter = "calls"

// never is the return of a call that may take effect until the end.
const never = math.MaxInt64

// record makes a call and keeps when and what. Of some the client does not learn the answer and repeats them: either
// the reply was thrown away, or the call is still on its way, on another connection, while its repeat is made.
func (h *history) record(c *client, x call) (r model.Reply) {
	moves := x.Kind != clock && x.Kind != read
	switch n := c.r.IntN(24); {
	case n == 0 && moves:
		h.once(c, c.raw, x, true)
	case n == 1 && moves:
		var twin sync.WaitGroup
		twin.Go(func() { h.once(c, c.other, x, false) })
		defer twin.Wait()
	}
	return h.once(c, c.raw, x, false)
}

func (h *history) once(c *client, raw rueidis.Client, x call, lose bool) model.Reply {
	called := time.Since(h.zero).Nanoseconds()
	seen, served, err := h.perform(raw, x)
	op := porcupine.Operation{ClientId: c.id, Input: x, Call: called, Output: &seen,
		Return: time.Since(h.zero).Nanoseconds()}
	if lose { // it took effect by now, but the client knows neither that nor the answer
		op.Output = (*outcome)(nil)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops, h.served = append(h.ops, op), append(h.served, served)
	h.err = cmp.Or(h.err, err)
	return seen.reply
}

func (h *history) perform(raw rueidis.Client, c call) (seen outcome, served span, err error) {
	if c.Kind == read {
		before, err := h.count(raw)
		if err != nil {
			return seen, served, err
		}
		if seen.view, seen.code, err = h.s.snapshot(h.ctx, c.ID); err != nil {
			return seen, served, err
		}
		after, err := h.count(raw)
		return seen, span{4*before + 2, 4*after + 3}, err
	}
	command := raw.B().Hincrby().Key(root).Field("clock_pin").Increment(c.Number).Build()
	if c.Kind != clock {
		command = h.s.command(raw, root, c)
	}
	replies := raw.DoMulti(h.ctx, raw.B().Multi().Build(), raw.B().Incr().Key(counter).Build(), command,
		raw.B().Exec().Build())
	done, err := replies[len(replies)-1].ToArray()
	if err != nil {
		return seen, served, err
	}
	n, err := done[0].AsInt64()
	if err == nil && c.Kind != clock {
		seen.reply, err = h.s.answer(c, done[1])
	}
	return seen, span{4 * n, 4*n + 1}, err
}

// count is how many calls the server has made.
func (h *history) count(raw rueidis.Client) (int64, error) {
	n, err := raw.Do(h.ctx, raw.B().Get().Key(counter).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return n, err
}

// claimed shares the fences of a claim.
func (h *history) claimed(claims []model.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fences = append(h.fences, claims...)
}

// anybody picks the fence of some claim so far.
func (h *history) anybody(r *rand.Rand) (model.Claim, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fences) == 0 {
		return model.Claim{}, false
	}
	return h.fences[r.IntN(len(h.fences))], true
}

// client is one goroutine with connections of its own.
type client struct {
	id         int
	r          *rand.Rand
	raw, other rueidis.Client
}

const (
	lease   = 30_000 // ms
	advance = 31_000 // past every lease
)

// leaps are how far the clock moves: past a lease, exactly to its end, or to the end of a delay and just before.
var leaps = []int64{advance, lease, 20_000, 1, lease - 1}

// submit fills the partition with executions of different policies. One more is submitted later, when its route may
// be gone.
func (h *history) submit(c *client) {
	h.record(c, call{Kind: "subscription", Name: "aa", Routes: every})
	for i := range 3 {
		s := model.Submission{ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.r.Uint32(), i),
			Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Priority: c.r.IntN(3), Digest: "d",
			Policy: flowfabric.Policy{MaxReclaims: 1 + c.r.IntN(3), MaxReplays: c.r.IntN(4),
				Retention: valid.RetainAll([]time.Duration{0, 15 * time.Second, 30 * time.Second,
					48 * time.Hour}[c.r.IntN(4)])}}
		if i == 1 {
			s.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: 2, Initial: 20 * time.Second, Max: time.Minute,
				Multiplier: 2}
			s.Delay = int64(c.r.IntN(2)) * 20_000
		}
		if i == 2 {
			s.Policy.AttemptTimeout, s.Deadline = flowfabric.Millis(25*time.Second), 120_000
		}
		h.ids = append(h.ids, s.ID)
		h.record(c, call{Kind: "create", Submit: s})
	}
	h.ids = append(h.ids, fmt.Sprintf("%08x-0000-4000-8000-%012x", c.r.Uint32(), 3))
}

// again submits what was not submitted at the beginning, or again what may have been purged since.
func (h *history) again(c *client) {
	id := h.ids[len(h.ids)-1-c.r.IntN(2)]
	h.record(c, call{Kind: "create",
		Submit: model.Submission{ID: id, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Digest: "d",
			Policy: flowfabric.Policy{Retention: valid.RetainAll(20 * time.Second)}}})
}

// lane closes the lane, or opens it again.
func (h *history) lane(c *client) {
	h.record(c, call{Kind: "set lane", Lane: model.LaneChange{LaneName: usual,
		State: []string{"active", "active", "active", "", "paused", "draining", "disabled"}[c.r.IntN(7)],
		Keep:  []int64{-1, 0, 20, 90_000}[c.r.IntN(4)], By: "op"}})
}

// worker claims, works and settles; a part of its calls comes too late, twice, or under the fence of another.
func (h *history) worker(c *client, calls int) {
	session, number := fmt.Sprintf("w%d~0", c.id), uint64(1)
	var held []model.Claim
	for i := range calls {
		request := model.ClaimRequest{Session: session, Number: number, TTL: lease, Max: 1 + c.r.IntN(2),
			Subscription: "aa", Table: 1}
		claimed := func(r model.Reply) {
			switch {
			case r.Code == "lease_expired":
				session, number, held = fmt.Sprintf("w%d~%d", c.id, i+1), 1, nil
			case len(r.Claims) > 0:
				number++
				held = append(held, r.Claims...)
				h.claimed(r.Claims)
			}
		}
		switch n := c.r.IntN(20); {
		case n == 0:
			h.record(c, call{Kind: "renew", Session: session, Number: lease, Number2: 0})
			continue
		case n == 1:
			h.record(c, call{Kind: "held", Session: session})
			continue
		case n == 2:
			h.record(c, call{Kind: "close", Session: session})
			continue
		case len(held) == 0 || n < 6:
			claimed(h.record(c, call{Kind: "claim", Claim: request}))
			continue
		}
		mine := held[len(held)-1-c.r.IntN(min(2, len(held)))]
		if other, ok := h.anybody(c.r); ok && c.r.IntN(8) == 0 {
			mine = other
		}
		switch c.r.IntN(30) {
		case 0:
			mine.Fence.Epoch--
		case 1:
			mine.Fence.Attempt++
		}
		work := h.settle(c, mine)
		if work.Kind == "complete and claim" {
			work.Claim = request
		}
		if r := h.record(c, work); r.Next != nil {
			claimed(*r.Next)
		}
	}
}

// settle is something that a holder does.
func (h *history) settle(c *client, mine model.Claim) call {
	all := []string{"complete", "complete", "complete and claim", "fail", "fail", "delay", "continue", "release",
		"step", "progress", "append", "cancel", "suspend", "suspend", "suspend", "pend", "unpend", "receive", "receive"}
	kind := all[c.r.IntN(len(all))]
	value := text(int64(c.r.IntN(2)))
	if kind == "receive" {
		value = []string{"", "looked"}[c.r.IntN(2)]
	}
	return call{Wait: h.wait(c, mine), Point: pointOf(mine), Kind: kind, ID: mine.ID, Fence: mine.Fence, Name: "s",
		Message: model.Message{Mailbox: "a"}, Value: value, Number: int64(c.r.IntN(2)) * 20_000 % 101,
		Number2: uint64(1 + c.r.IntN(2)), Count: 1,
		Failure: model.Failure{Category: "c", Permanent: c.r.IntN(5) == 0, After: int64(c.r.IntN(3)) - 1},
		Cancel:  model.Cancellation{Source: "owner", Reason: "r"}}
}

// pointOf is the waitpoint that a holder may open; who knows the claim can name it.
func pointOf(claim model.Claim) model.Point { return point(int(claim.Fence.Epoch % 1_000_000_000)) }

// wait is a suspension on it, for at most 20 s or for ever.
func (h *history) wait(c *client, mine model.Claim) model.Wait {
	if c.r.IntN(4) == 0 {
		return model.Wait{ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.r.Uint32(), c.id), Name: "s",
			Reason: "waiting_for_signal", Timeout: int64(c.r.IntN(2)) * 20_000, Behaviour: "auto_resume",
			Only: "M\x1fa"}
	}
	return model.Wait{ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.r.Uint32(), c.id), Name: "it",
		Reason: "waiting_for_signal", Timeout: int64(c.r.IntN(2)) * 20_000, Behaviour: []string{"fail", "cancel",
			"auto_resume_with_timeout_signal", "auto_resume_open", "escalate"}[c.r.IntN(5)],
		Delay: int64(c.r.IntN(3)/2) * 20_000, Point: pointOf(mine), Pending: c.r.IntN(3) == 0, Need: 1 + c.r.IntN(2),
		Names: []string{"go", ""}}
}

// signals is what others say to what somebody waits for.
func (h *history) signals(c *client, i int) {
	claim, ok := h.anybody(c.r)
	if !ok {
		return
	}
	id := fmt.Sprintf("%08x-0000-4000-9000-%012x", c.id, i)
	if c.r.IntN(4) == 0 {
		h.record(c, call{Kind: "resume", ID: claim.ID,
			Resume: model.Resumption{Request: id, Trigger: "operator", By: "op", Delay: int64(c.r.IntN(2)) * 20_000}})
		return
	}
	if c.r.IntN(3) == 0 {
		h.record(c, call{Kind: "send", ID: claim.ID, Message: model.Message{ID: id,
			Mailbox: []string{"a", "a", "b"}[c.r.IntN(3)], Key: []string{"", "k"}[c.r.IntN(2)], Payload: "1"}})
		return
	}
	h.record(c, call{Kind: "signal", ID: claim.ID, Point: pointOf(claim),
		Signal: model.Signal{ID: id, Name: "go", Key: []string{"", "k"}[c.r.IntN(2)], TTL: 1000}})
}

// operator does what people do to executions.
func (h *history) operator(c *client, calls int) {
	for i := range calls {
		id := h.ids[c.r.IntN(len(h.ids))]
		switch c.r.IntN(24) {
		case 0, 1:
			h.record(c, call{Kind: "cancel", ID: id, Cancel: model.Cancellation{Source: "operator_override"}})
		case 2, 3, 4:
			request := fmt.Sprintf("%08x-0000-4000-8000-%012x", c.id, i)
			h.record(c, call{Kind: "replay", ID: id,
				Replay: model.Replay{Request: request, Force: c.r.IntN(2) == 0, Drop: true}})
		case 5, 6:
			h.record(c, call{Kind: "revoke", ID: id, Name: "op", Number2: uint64(c.r.Uint32())})
		case 7:
			h.record(c, call{Kind: "priority", ID: id, Number: int64(c.r.IntN(4)), Name: "op"})
		case 11:
			h.record(c, call{Kind: "set delay", ID: id, Number: int64(c.r.IntN(2)) * 1500,
				Number2: uint64(c.r.Uint32()), Name: "op"})
		case 8:
			if other, ok := h.anybody(c.r); ok {
				h.record(c, call{Kind: "mark dead", Session: other.Fence.Session})
			}
		case 9:
			h.record(c, call{Kind: "tags", ID: id, Set: map[string]string{"a.b": text(int64(c.r.IntN(2)))}})
		case 10:
			h.record(c, call{Kind: "purge", ID: id, Number: 86_400_000})
		case 12, 13, 14, 15, 16:
			h.signals(c, i)
		case 17, 18:
			h.again(c)
		case 19, 20:
			h.lane(c)
		case 22:
			h.record(c, call{Kind: "rewind", ID: id, Rewind: model.Rewind{Step: "s",
				Request: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.id, i), Attempt: c.r.IntN(3)}})
		case 21:
			h.record(c, call{Kind: "lanes"})
			h.record(c, call{Kind: "messages", ID: id})
		default:
			h.record(c, call{Kind: read, ID: id})
		}
	}
}

// time ticks, and moves the clock past whole leases now and then. Two do, as two replicas of an engine would: one is
// the owner, and the other takes over whenever the clock has made that one late.
func (h *history) time(c *client, calls int) {
	for range calls {
		switch c.r.IntN(6) {
		case 0:
			h.record(c, call{Kind: clock, Number: leaps[c.r.IntN(len(leaps))]})
		case 1:
			h.record(c, call{Kind: read, ID: h.ids[c.r.IntN(len(h.ids))]})
		default:
			h.record(c, call{Kind: "tick", Name: "t" + strconv.Itoa(c.id)})
		}
	}
}

// run lets the clients work at the same time and reads every execution at the end.
func (h *history) run(clients []*client) {
	h.submit(clients[0])
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			switch i {
			case 0:
				h.operator(c, 18)
			case 1, 2:
				h.time(c, 12)
			default:
				h.worker(c, 14)
			}
		})
	}
	all.Wait()
	for _, id := range h.ids {
		h.record(clients[0], call{Kind: read, ID: id})
	}
}

// tell writes a history in the order of its calls.
func tell(ops []porcupine.Operation) string {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, op := range ops {
		seen, until := "lost", "end"
		if o := op.Output.(*outcome); o != nil {
			seen, until = fmt.Sprintf("%+v", show(o.reply)), fmt.Sprint(op.Return/1000)
			if op.Input.(call).Kind == read {
				seen = fmt.Sprintf("%s %s", o.code, o.view.Code)
			}
		}
		fmt.Fprintf(&b, "client %d %d…%s µs %v\n    %s\n", op.ClientId, op.Call/1000, until, op.Input, seen)
	}
	return b.String()
}
