package model_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// TestFlowFaults are the faults that random flows have found, each by itself.
func TestFlowFaults(t *testing.T) {
	t.Parallel()
	s := redisServer(t)
	for _, f := range []struct {
		name string
		run  func(*shaped)
	}{
		{"a delayed member that is cancelled before it may run keeps no delay", func(x *shaped) {
			x.node("a").Delay = flowfabric.Millis(time.Minute)
			x.staged()
			x.cancel("a")
			x.sound()
		}},
		{"a member that one end makes claimable and cancels is in no queue", func(x *shaped) {
			x.node("a")
			x.node("m", "a")
			e := x.node("k", "m", "a")
			e.Policy, e.CancelRest = codes.AnyOf, true
			x.release()
			x.complete("a")
			x.sound()
			x.are("T3n", "m")
		}},
		{"a root that is replayed before the release waits for it", func(x *shaped) {
			x.node("a")
			x.staged()
			x.cancel("a")
			x.replay("a")
			x.sound()
			x.are("R3p", "a")
			_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealClosed, 1, 0)
			x.no(err)
			x.sound()
			x.are("R1p", "a")
		}},
		{"a wait without children, by an execution without a flow, leaves nothing behind", func(x *shaped) {
			x.lone()
			x.take()
			out, err := childtest.Wait(x.ctx, x.s.e, x.claims[""].Fence,
				engine.ChildWait{Name: "w", Mode: engine.WaitAll})
			if !errors.Is(err, denied.Condition) {
				x.fatal("%+v, %v", out, err)
			}
			x.sound()
		}},
		{"a cancelled flow skips nobody, even who could not run as it came", func(x *shaped) {
			x.node("a")
			x.staged()
			_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealOpen, 1, 0)
			x.no(err)
			x.take()
			x.fail("a")
			x.members = nil
			x.many("b", 100, "a")
			_, err = x.s.e.StageFlow(x.ctx, x.id, nil, x.members)
			x.no(err)
			x.sound()
			skipped := x.count("T5n")
			x.o.now++
			x.no(x.s.setClock(x.ctx, x.s.raw, x.o.now))
			_, err = x.s.e.CancelFlow(x.ctx, x.id, flowfabric.CancelAll)
			x.no(err)
			for more := true; more; {
				more, err = x.s.e.DrainFlows(x.ctx, partition)
				x.no(err)
			}
			x.sound()
			if skipped == 100 || x.count("T5n") != skipped || x.count("T3n") != 100-skipped {
				x.fatal("%d were skipped before, %d are, and %d cancelled", skipped, x.count("T5n"), x.count("T3n"))
			}
		}},
		{"a member that somebody else made is no child", func(x *shaped) {
			x.node("a")
			x.node("b")
			x.staged()
			_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealGrowing, 2, 0)
			x.no(err)
			x.take()
			for _, node := range []string{"a", "b"} {
				e := engine.NewExecution{ID: x.id.Member(node), Start: flowfabric.Start{Namespace: "default",
					Lane: "default", Kind: "k"}}
				q := engine.ChildWait{Name: "w", Mode: engine.WaitAll,
					Children: []engine.FlowMember{{NewExecution: e, Node: node}}}
				if _, err = childtest.Wait(x.ctx, x.s.e, x.claims["a"].Fence, q); !errors.Is(err, denied.Idempotency) {
					x.fatal("a waits for %s: %v", node, err)
				}
			}
			x.sound()
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			x := &shaped{flows: newFlows(t, s, 1), claims: map[string]engine.Claim{}}
			x.id = flowfabric.FlowID(mint.Join(partition, x.uuid()))
			f.run(x)
		})
	}
}

func (x *shaped) cancel(node string) {
	x.t.Helper()
	_, err := x.s.e.CancelExecution(x.ctx, x.id.Member(node), engine.Cancellation{Source: engine.CancelOperator})
	x.no(err)
}

func (x *shaped) replay(node string) {
	x.t.Helper()
	_, err := x.s.e.ReplayExecution(x.ctx, x.id.Member(node), engine.Replay{})
	x.no(err)
}

// are fails unless the members have this code.
func (x *shaped) are(code string, nodes ...string) {
	x.t.Helper()
	for _, node := range nodes {
		if got := x.dump.Hashes[":x:"+ids.UUID(x.id.Member(node)).String()]["s"]; got != code {
			x.fatal("%s is %s, want %s", node, got, code)
		}
	}
}

// count is how many members have a code.
func (x *shaped) count(code string) (n int) {
	for i := range 100 {
		n += bool01(x.dump.Hashes[":x:"+ids.UUID(x.id.Member(fmt.Sprint("b", i))).String()]["s"] == code)
	}
	return n
}
