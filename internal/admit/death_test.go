package admit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// steps is work with three gates, one of which has too few slots for both executions: one completes, the other fails
// after it has reported what the gate that counts amounts then refunds.
type steps struct {
	*env
	budget, wide, narrow flowfabric.Gate
	good, bad            flowfabric.ExecutionID
}

func newSteps(w *env) *steps {
	s := &steps{env: w}
	s.budget = w.budget(admission.Gate{Name: "budget", Refund: []string{"failed"}})
	s.wide = w.gate(admission.Gate{Name: "a-wide", Concurrency: 2})
	s.narrow = w.gate(admission.Gate{Name: "b-narrow", Concurrency: 1, Rate: 100,
		Window: flowfabric.Millis(24 * time.Hour)})
	s.good = w.create(0, s.budget, s.wide, s.narrow)
	s.bad = w.create(0, s.budget, s.wide, s.narrow)
	return s
}

func (s *steps) done() bool {
	return s.code(s.good) == codes.Completed && s.code(s.bad) == codes.Failed
}

// live is the life of a process: it claims, runs, settles, ticks and delivers until all is done or it dies.
func (s *steps) live(p *process) error {
	k := s.worker(p, 0)
	again := func(call func() error) error {
		err := call()
		if err != nil && p.survives && errors.Is(err, errLost) {
			err = call()
		}
		return err
	}
	for range 30 {
		var claims []engine.Claim
		err := again(func() (err error) { claims, err = k.try(10); return err })
		if err != nil {
			return err
		}
		if len(claims) > 1 {
			return fmt.Errorf("%d run at once", len(claims))
		}
		for _, c := range claims {
			if err := again(func() error { return s.run(p, c) }); err != nil {
				return err
			}
		}
		s.tick(0)
		for n := 1; n > 0; {
			if err := again(func() (err error) { n, err = admit.Deliver(s.ctx, p, 0); return err }); err != nil {
				return err
			}
		}
		if s.done() {
			return nil
		}
		if _, err := s.e.RenewSession(s.ctx, 0, k.session, leaseTTL, 0); err != nil && !errors.Is(err,
			denied.LeaseExpired) {
			return err
		}
		s.advance(3 * time.Second)
	}
	return errors.New("it does not come to an end")
}

func (s *steps) run(p *process, c engine.Claim) error {
	if c.Fence.Execution == s.good {
		return p.complete(s.ctx, c.Fence)
	}
	u := admission.Usage{Gate: s.budget.Name(), Execution: s.bad, Epoch: c.Fence.Epoch, Sequence: 1,
		Amounts: map[string]int64{"tokens": 5}}
	if _, err := p.ReportUsage(s.ctx, u); err != nil {
		return err
	}
	return p.fail(s.ctx, c.Fence)
}

// settled checks that nothing is left of it all.
func (s *steps) settled() {
	s.Helper()
	same(s.env, "slots of the wide one", s.held(s.wide), 0)
	same(s.env, "slots of the narrow one", s.held(s.narrow), 0)
	attempts := 0
	for _, id := range []flowfabric.ExecutionID{s.good, s.bad} {
		x, err := s.e.ReadExecution(s.ctx, id)
		s.no(err)
		attempts += int(x.Attempts)
	}
	same(s.env, "starts in the window", s.started(s.narrow), attempts)
	b, err := s.e.ReadGate(s.ctx, s.budget.Name(), 0, 0, 0)
	s.no(err)
	same(s.env, "used after the refund", b.Used["tokens"], 0)
}

// A process dies at every single call it makes, before the server acts or after, or goes on without having heard of
// it: what follows is the same. All work is done, no slot is taken, every start was counted once, and the refund was
// made.
func TestDeathAtEveryStep(t *testing.T) {
	plain := &process{}
	t.Run("undisturbed", func(t *testing.T) {
		s := newSteps(newEnv(t))
		plain.Engine = s.e
		s.no(s.live(plain))
		s.settled()
	})
	for _, name := range []string{"ClaimNext", "Admit", "ClaimGranted", "ReleaseGrants",
		"CompleteExecutions", "ReportUsage", "FailExecution", "ReadOutbox", "SettleGates",
		"OpenRoutes", "TrimOutbox"} {
		if !slices.Contains(plain.names, name) {
			t.Errorf("no %s among the steps %q", name, plain.names)
		}
	}
	for i, name := range plain.names {
		for _, executed := range []bool{false, true} {
			for _, survives := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d %s executed=%t survives=%t", i+1, name, executed, survives), func(t *testing.T) {
					s := newSteps(newEnv(t))
					p := &process{Engine: s.e, at: i + 1, executed: executed, survives: survives}
					err := s.live(p)
					if p.calls < p.at || survives && err != nil {
						t.Fatalf("after %q: %v", p.names, err)
					}
					if p.dead {
						s.advance(leaseTTL + time.Second)
						s.tick(0)
						s.no(s.live(&process{Engine: s.e}))
					}
					s.advance(leaseTTL)
					s.tick(0)
					s.deliver(0)
					s.settled()
				})
			}
		}
	}
}
