package model_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// TestFlowsTogether lets workers, operators, tickers and drainers work on the same flows at the same time. Afterwards
// the keyspace is sound, everybody who could end has ended, and nobody waits without somebody to wait for.
// FLOWFABRIC_SOAK/5 rounds.
func TestFlowsTogether(t *testing.T) {
	t.Parallel()
	s := redisServer(t)
	seed := seedAsked()
	for round := range max(8, soak()/5) {
		now := seed
		if now == 0 {
			now = rand.Uint64()
		}
		together(t, s, now)
		if seed != 0 && round >= 3 {
			return
		}
	}
}

// tolerated are the answers that others who work on the same flows may cause.
var tolerated = []error{denied.NotActive, denied.StaleLease, denied.LeaseExpired, denied.LeaseRevoked,
	denied.NotTerminal, denied.FlowCancelled, denied.ResolutionPending, denied.ReplayNotAllowed,
	denied.ReplaysExhausted, denied.FlowTerminal,
	denied.FlowSealed, denied.UnknownSubscription}

// crowd is one round; each of its hands has numbers of its own.
type crowd struct {
	*flows
	digest string
	ids    []flowfabric.ExecutionID
	mu     sync.Mutex
	bad    []string
}

func together(t *testing.T, s *server, seed uint64) {
	t.Helper()
	x := newFlows(t, s, seed)
	for range 3 {
		x.plan("seal", "grow")
	}
	for _, f := range x.o.flows {
		for !f.released {
			x.stage(f)
		}
	}
	c := &crowd{flows: x}
	for _, m := range x.o.members {
		c.ids = append(c.ids, m.id)
	}
	var err error
	c.digest, err = s.e.SetSubscription(x.ctx, partition, engine.Subscription{Classes: []uint64{1, 2, 3, 4}})
	x.no(err)
	var all sync.WaitGroup
	for i := range 8 {
		r := rand.New(rand.NewPCG(seed, uint64(i)+1))
		all.Go(func() {
			switch i {
			case 0:
				c.operator(r, 150)
			case 1:
				c.time(r, 150)
			default:
				c.worker(r, fmt.Sprint("w", i), 150)
			}
		})
	}
	all.Wait()
	if len(c.bad) > 0 {
		x.fatal("%s", strings.Join(c.bad, "\n"))
	}
	c.sound()
	c.quiet()
}

// note keeps an answer that nobody could have caused.
func (c *crowd) note(what string, err error) {
	for _, fine := range tolerated {
		if errors.Is(err, fine) {
			return
		}
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bad = append(c.bad, fmt.Sprintf("%s: %v", what, err))
	}
}

// worker claims and settles.
func (c *crowd) worker(r *rand.Rand, name string, calls int) {
	session, number := engine.NewSessionID(name), uint64(0)
	for range calls {
		out, err := c.s.e.ClaimNext(c.ctx, engine.ClaimRequest{Partition: partition, Session: session,
			Number: number + 1, TTL: lease * time.Millisecond,
			Max: 1 + r.IntN(4), Subscription: c.digest})
		c.note("claim", err)
		if errors.Is(err, denied.LeaseExpired) {
			session, number = engine.NewSessionID(name), 0
			continue
		}
		if len(out.Claims) > 0 {
			number++
		}
		var done []engine.Completion
		for _, claim := range out.Claims {
			switch f := claim.Fence; r.IntN(10) {
			case 0, 1:
				_, err = c.s.e.FailExecution(c.ctx, f, engine.Failure{Category: "broken", Permanent: r.IntN(2) == 0})
				c.note("fail", err)
			case 2:
				_, err = c.s.e.ReleaseExecution(c.ctx, f)
				c.note("release", err)
			case 3: // it is lost
			case 4:
				q := engine.ChildWait{Name: "w", Mode: engine.WaitAll, Leave: r.IntN(2) == 0}
				for i := range 1 + r.IntN(3) {
					e := engine.NewExecution{ID: f.Execution.Child("w", fmt.Sprint(i)),
						Start: flowfabric.Start{Namespace: "default",
							Lane: "default", Kind: "k"}}
					q.Children = append(q.Children,
						engine.FlowMember{NewExecution: e, Node: claim.Node + "/" + fmt.Sprint(i)})
				}
				_, err = childtest.Wait(c.ctx, c.s.e, f, q)
				c.note("wait", err)
			default:
				done = append(done, engine.Completion{Fence: f, Result: []byte("r")})
			}
		}
		if len(done) > 0 {
			answers, _, err := c.s.e.CompleteExecutions(c.ctx, partition, done, nil)
			c.note("complete", err)
			for _, a := range answers {
				c.note("complete", a.Err)
			}
		}
	}
}

// operator cancels and replays.
func (c *crowd) operator(r *rand.Rand, calls int) {
	for range calls {
		id, flow := c.ids[r.IntN(len(c.ids))], c.o.flows[r.IntN(len(c.o.flows))].id
		switch r.IntN(12) {
		case 0, 1:
			_, err := c.s.e.CancelExecution(c.ctx, id,
				engine.Cancellation{Source: engine.CancelOperator})
			c.note("cancel", err)
		case 2:
			if r.IntN(6) == 0 {
				policy := []flowfabric.CancellationPolicy{flowfabric.CancelAll, flowfabric.CancelPending,
					flowfabric.CancelFlow}[r.IntN(3)]
				_, err := c.s.e.CancelFlow(c.ctx, flow, policy)
				c.note("cancel flow", err)
			}
		case 3:
			out, err := c.s.e.ReplayFlow(c.ctx, flow, engine.Replay{Force: r.IntN(3) == 0},
				[]flowfabric.ExecutionID{id})
			c.note("replay flow", err)
			for _, a := range out {
				if !errors.Is(a.Err, denied.NotInFlow) {
					c.note("replay flow", a.Err)
				}
			}
		case 4:
			_, err := c.s.e.RevokeLease(c.ctx, id, "")
			c.note("revoke", err)
		case 5:
			_, err := c.s.e.DrainFlows(c.ctx, partition)
			c.note("drain", err)
		default:
			_, err := c.s.e.ReplayExecution(c.ctx, id, engine.Replay{Force: r.IntN(3) == 0})
			c.note("replay", err)
		}
	}
}

// time ticks, and moves the clock past whole leases now and then.
func (c *crowd) time(r *rand.Rand, calls int) {
	for range calls {
		if r.IntN(4) == 0 {
			c.o.now += int64(r.IntN(20_000))
			c.note("clock", c.s.setClock(c.ctx, c.s.raw, c.o.now))
		}
		_, err := c.s.e.Tick(c.ctx, partition, "ticker", false)
		c.note("tick", err)
	}
}

func (c *crowd) sound() {
	c.t.Helper()
	c.look()
	if bad := c.checker.Violations(c.dump); len(bad) > 0 {
		c.fatal("not sound: %q", bad[:min(3, len(bad))])
	}
}

// quiet lets one worker complete all that is left, and looks for anybody who waits in vain.
func (c *crowd) quiet() {
	c.t.Helper()
	idle := 0
	for n := 0; idle < 3; n++ {
		if n > 2000 {
			c.fatal("it never ends")
		}
		c.o.now += 31_000
		c.no(c.s.setClock(c.ctx, c.s.raw, c.o.now))
		out, err := c.s.e.Tick(c.ctx, partition, "ticker", false)
		c.no(err)
		claimed, err := c.s.e.ClaimNext(c.ctx,
			engine.ClaimRequest{Partition: partition, Session: engine.NewSessionID("last"), Number: 1,
				TTL: lease * time.Millisecond, Max: 100, Subscription: c.digest})
		c.no(err)
		var done []engine.Completion
		for _, claim := range claimed.Claims {
			done = append(done, engine.Completion{Fence: claim.Fence})
		}
		idle++
		if len(done) > 0 {
			_, _, err = c.s.e.CompleteExecutions(c.ctx, partition, done, nil)
			c.no(err)
		}
		if len(done) > 0 || out.More {
			idle = 0
		}
	}
	c.sound()
	for key, core := range c.dump.Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok && core["s"][0] != 'T' && !c.awaits(id) {
			c.fatal("%s of %s (%s) is stuck: group %q, edges %v, wait %q", core["nd"], core["fl"], core["s"],
				c.dump.Texts[":m:"+id], c.dump.Hashes[":fi:"+id], core["wt"])
		}
	}
}

// awaits tells whether somebody whom a member waits for may still end: one that has not ended, or that ended before
// the member was replayed, and may be replayed too.
func (c *crowd) awaits(id string) bool {
	core := c.dump.Hashes[":x:"+id]
	for _, hash := range []string{":fi:", ":fc:"} {
		for other, edge := range c.dump.Hashes[hash+id] {
			open := len(other) == 36 && (edge[0] == '.' || edge[0] == '~')
			if open && (core["s"] == "R3p" && core["pc"] != "" || c.dump.Hashes[":x:"+other]["s"][0] != 'T') {
				return true
			}
		}
	}
	return false
}
