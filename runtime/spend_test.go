package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// treasury is an embedded server with budgets, and workers whose handlers spend from them.
type treasury struct {
	*testing.T
	ctx    context.Context
	url    string
	engine *engine.Engine
	reg    *prometheus.Registry
}

func newTreasury(t *testing.T, gates ...admission.Gate) *treasury {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	t.Cleanup(server.Close)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 2, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.Close)
	for _, b := range gates {
		if _, _, _, err := e.PutGate(ctx, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	return &treasury{T: t, ctx: ctx, url: server.URL(), engine: e, reg: prometheus.NewRegistry()}
}

// tokens is a budget of so many tokens.
func tokens(name string, limit int64, action admission.HardAction) admission.Gate {
	return admission.Gate{Name: name, OnHard: action, Limits: map[string]admission.Limit{"tokens": {Hard: limit}}}
}

// work runs a worker of two namespaces until the test ends, which reaches the server through wrap.
func (y *treasury) work(wrap func(store) store, log io.Writer,
	handle func(ctx context.Context, t *handler.Task, in string) (string, error)) {
	y.Helper()
	w, err := New(Config{URL: y.url, Logger: slog.New(slog.NewTextHandler(log, nil)), LeaseTTL: time.Hour,
		Namespaces: []string{"acme", "globex"}, Registerer: y.reg, TokenKeys: "a:" + strings.Repeat("61", 32)},
		handler.Bind(handler.Define[string, string]("k"), handle))
	if err != nil {
		y.Fatal(err)
	}
	if wrap != nil {
		w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
			s, release, err := open(ctx, cfg)
			if err != nil {
				return nil, nil, err
			}
			return wrap(s), release, nil
		}
	}
	ctx, stop := context.WithCancel(y.ctx)
	var running conc.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			y.Error(err)
		}
	})
	y.Cleanup(func() { stop(); running.Wait() })
}

// submit creates an execution that may be retried and has gates.
func (y *treasury) submit(namespace, in string, gates ...string) flowfabric.ExecutionID {
	y.Helper()
	x := engine.NewExecution{ID: mint.ID(1), Start: flowfabric.Start{Namespace: namespace,
		Lane: "default", Kind: "k"},
		Payload: []byte(`"` + in + `"`)}
	x.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: 3, Fixed: true, Initial: time.Millisecond, Max: time.Second}
	x.Names = append(x.Names, gates...)
	if created, err := y.engine.CreateExecutions(y.ctx, 1, []engine.NewExecution{x}); err != nil ||
		created[0].Err != nil {
		y.Fatal(err, created)
	}
	return x.ID
}

// reach waits until an execution has a code.
func (y *treasury) reach(id flowfabric.ExecutionID, code codes.Code) engine.Snapshot {
	y.Helper()
	var s engine.Snapshot
	testwait.Progress(y.T, "it is "+string(code), func() (bool, any) {
		var err error
		if s, err = y.engine.ReadExecution(y.ctx, id); err != nil {
			y.Fatal(err)
		}
		if s.Code != code && s.State.Terminal() && code[0] == 'T' {
			y.Fatalf("%s (%s: %s), want %s", s.Code, s.Failure.Category, s.Failure.Message, code)
		}
		return s.Code == code, s.Code
	})
	return s
}

func (y *treasury) budget(name string) admission.GateRecord {
	y.Helper()
	b, err := y.engine.ReadGate(y.ctx, name, 100, 0, 100)
	if err != nil {
		y.Fatal(err)
	}
	return b
}

func (y *treasury) used(name string, want int64) {
	y.Helper()
	if got := y.budget(name).Used["tokens"]; got != want {
		y.Errorf("gate %s: %d tokens used, want %d", name, got, want)
	}
}

// reports demands that so many spends had a verdict, and that much came of it.
func (y *treasury) reports(want float64, verdict, action string) {
	y.Helper()
	if got := y.counted("flowfabric_spends_total", action, verdict); got != want {
		y.Errorf("%v reports %s %s, want %v", got, verdict, action, want)
	}
}

// counted is what a counter with these labels says, in the order of their names.
func (y *treasury) counted(name string, labels ...string) (got float64) {
	y.Helper()
	families, err := y.reg.Gather()
	if err != nil {
		y.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	for _, m := range families[i].GetMetric() {
		if slices.EqualFunc(m.GetLabel(), labels, func(l *dto.LabelPair, want string) bool {
			return l.GetValue() == want
		}) {
			got += m.GetCounter().GetValue()
		}
	}
	return got
}

// spree appends a frame and spends 10 tokens, ten times, and returns nil whatever it is told, as a careless handler
// does.
func spree(ctx context.Context, t *handler.Task, _ string) (string, error) {
	for i := range 10 {
		if err := t.Frame(ctx, "token", fmt.Sprint(i)); err != nil {
			break
		}
		if err := t.Spend(ctx, "tokens", 10); err != nil {
			break
		}
	}
	return "done", nil
}

// A hard limit with fail stops the handler and fails the execution for good; its frames, and what it has spent, stay.
func TestHardBreachFailsTheExecution(t *testing.T) {
	y := newTreasury(t, tokens("b", 45, admission.HardFail))
	y.work(nil, io.Discard, spree)
	id := y.submit("acme", "", "b")
	s := y.reach(id, codes.Failed)
	if s.Failure.Category != causes.OverBudget || s.Attempts != 1 || s.Retries != 0 ||
		!strings.Contains(s.Failure.Message, "gate b: 10 more tokens do not fit, 40 of 45 used") {
		t.Errorf("%s after %d attempts, %d retries: %s", s.Failure.Category, s.Attempts, s.Retries, s.Failure.Message)
	}
	frames, err := y.engine.ReadFrames(y.ctx, id, 1, stream.Cursor{}, 100)
	if err != nil || len(frames) != 5 {
		t.Errorf("%d frames, %v", len(frames), err)
	}
	y.used("b", 40)
	y.reports(4, "ok", "")
	y.reports(1, "hard", "fail")
	if b := y.budget("b"); b.HardBreaches != 1 || b.BreachedDim != "tokens" || len(b.Spenders) != 1 ||
		b.Spenders[0].Used["tokens"] != 40 {
		t.Errorf("%+v", b)
	}
}

// With reject the handler decides.
func TestHardBreachIsRejected(t *testing.T) {
	y := newTreasury(t, tokens("b", 45, admission.HardReject))
	var over atomic.Pointer[handler.OverBudgetError]
	y.work(nil, io.Discard, func(ctx context.Context, t *handler.Task, _ string) (string, error) {
		if err := t.Spend(ctx, "tokens", 40); err != nil {
			return "", err
		}
		e, _ := errors.AsType[*handler.OverBudgetError](t.Spend(ctx, "tokens", 10))
		over.Store(e)
		return "short", ctx.Err()
	})
	y.reach(y.submit("acme", "", "b"), codes.Completed)
	if e := over.Load(); e == nil || e.Gate != "b" || len(e.Breaches) != 1 || e.Breaches[0].Used != 40 ||
		e.Breaches[0].Limit != 45 {
		t.Errorf("%+v", e)
	}
	y.used("b", 40)
}

// With block the execution goes back into its queue, which is closed until there is more room, and goes on as the
// same attempt.
func TestHardBreachBlocks(t *testing.T) {
	y := newTreasury(t, tokens("b", 45, admission.HardBlock))
	y.work(nil, io.Discard, spree)
	id := y.submit("acme", "", "b")
	s := y.reach(id, codes.WaitingInterrupted)
	if s.Attempts != 1 || s.Retries != 0 {
		t.Errorf("%d attempts, %d retries", s.Attempts, s.Retries)
	}
	y.used("b", 40)
	closed := func() (why string) {
		for _, p := range y.engine.Gates(y.ctx) {
			for _, c := range p.Closed {
				why = c.Why
			}
		}
		return why
	}
	testwait.Progress(t, "the route is closed", func() (bool, any) {
		why := closed()
		return why == "gate b amount tokens 40 45 10", why
	})
	// The worker has the route woken only after it has closed it, and then looks whether there is room meanwhile.
	testwait.Progress(t, "the route waits for room", func() (bool, any) {
		b := y.budget("b")
		return b.Waiting == 1, b.Waiting
	})
	b := tokens("b", 1000, admission.HardBlock)
	_, _, wake, err := y.engine.PutGate(y.ctx, b, 1)
	if err != nil || len(wake) != 1 {
		t.Fatalf("%v, %v", wake, err)
	}
	if _, err := y.engine.OpenRoutes(y.ctx, wake[0].Partition, []uint64{wake[0].Route}); err != nil {
		t.Fatal(err)
	}
	if s := y.reach(id, codes.Completed); s.Attempts != 1 {
		t.Errorf("%d attempts", s.Attempts)
	}
}

// What no period of the budget has room for does not wait for one.
func TestHardBreachForEver(t *testing.T) {
	y := newTreasury(t, tokens("b", 45, admission.HardBlock))
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		return "", task.Spend(ctx, "tokens", 46)
	})
	if s := y.reach(y.submit("acme", "", "b"), codes.Failed); s.Failure.Category != causes.OverBudget {
		t.Errorf("it failed of %q", s.Failure.Category)
	}
}

// A budget that warns counts everything, and says so in the log and in its audit log.
func TestWarnings(t *testing.T) {
	y := newTreasury(t, admission.Gate{Name: "b", Warn: true, WarnSoft: true, OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 55, Soft: 25}}})
	log := &lines{}
	y.work(nil, log, spree)
	id := y.submit("acme", "", "b")
	y.reach(id, codes.Completed)
	y.used("b", 100)
	y.reports(2, "ok", "")
	y.reports(3, "soft", "")
	y.reports(5, "hard", "warn")
	b := y.budget("b")
	if b.HardBreaches != 5 || b.SoftBreaches != 8 {
		t.Errorf("%d hard breaches, %d soft ones", b.HardBreaches, b.SoftBreaches)
	}
	soft := slices.DeleteFunc(b.Audit, func(x admission.AuditEntry) bool { return x.What != "soft_limit" })
	if len(soft) != 1 || soft[0].By != id.String() || soft[0].Detail != "tokens 30 25" {
		t.Errorf("%+v", b.Audit)
	}
	for _, part := range []string{"above the soft limit of a gate\"", "which only warns\""} {
		if n := log.count("WARN", part); n != 1 {
			t.Errorf("told %d times: %s", n, part)
		}
	}
	for _, part := range []string{"soft limit of a gate\" .* used=30 limit=25", "only warns\" .* used=60 limit=55"} {
		if !regexp.MustCompile(part).MatchString(log.all.String()) {
			t.Errorf("no %q", part)
		}
	}
}

// Who crosses a soft limit is told in the log, also by a budget whose audit log keeps nothing of it; and so is who
// spends without a budget.
func TestSpendsThatWouldGoUnnoticed(t *testing.T) {
	y := newTreasury(t, admission.Gate{Name: "b", Limits: map[string]admission.Limit{"tokens": {Soft: 25}}})
	log := &lines{}
	y.work(nil, log, spree)
	y.reach(y.submit("acme", "", "b"), codes.Completed)
	if n := log.count("WARN", "above the soft limit of a gate"); n != 1 {
		t.Errorf("the soft limit: told %d times", n)
	}
	for range 2 { // of 10 spends each
		y.reach(y.submit("acme", ""), codes.Completed)
	}
	if n := log.count("WARN", "no gate of its executions counts amounts"); n != 1 {
		t.Errorf("without a budget: told %d times", n)
	}
	y.used("b", 100)
}

// What one budget refuses is counted by none, not even in the ledgers.
func TestSpendOfTwoBudgets(t *testing.T) {
	y := newTreasury(t, tokens("a", 1000, admission.HardFail), tokens("b", 45, admission.HardFail))
	y.work(nil, io.Discard, spree)
	y.reach(y.submit("acme", "", "a", "b"), codes.Failed)
	for _, name := range []string{"a", "b"} {
		y.used(name, 40)
		if s := y.budget(name).Spenders; len(s) != 1 || s[0].Used["tokens"] != 40 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// cutter loses the answers to reports after they have taken effect.
type cutter struct {
	store
	calls atomic.Int64
}

func (c *cutter) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	r, err := c.store.ReportUsage(ctx, u)
	if n := c.calls.Add(1); err == nil && n%3 == 2 {
		return admission.Reported{}, fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return r, err
}

// A report whose answer was lost counts once, also when it was the last one of the handler.
func TestLostRepliesOfReports(t *testing.T) {
	y := newTreasury(t, tokens("a", 0, ""), tokens("b", 0, ""))
	c := &cutter{}
	var lost atomic.Int64
	y.work(func(s store) store { c.store = s; return c }, io.Discard,
		func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			for range 13 {
				switch err := t.Spend(ctx, "tokens", 10); {
				case errors.Is(err, flowfabric.ErrTransport) && !strings.Contains(err.Error(), "an earlier one"):
					lost.Add(1)
				case err != nil: // the earlier one is still not known, and this one was not made
					if err := t.Spend(ctx, "tokens", 10); err != nil {
						return "", err
					}
				}
			}
			return "", nil
		})
	y.reach(y.submit("acme", "", "a", "b"), codes.Completed)
	y.used("a", 130)
	y.used("b", 130)
	if lost.Load() < 4 {
		t.Errorf("%d answers were lost", lost.Load())
	}
}

// What a handler spends after its lease was taken away is counted, and marked as late once another has reported.
func TestLateSpend(t *testing.T) {
	y := newTreasury(t, tokens("b", 1000, admission.HardFail))
	running, spent := make(chan struct{}), make(chan struct{})
	late := make(chan error, 1)
	y.work(nil, io.Discard, func(ctx context.Context, t *handler.Task, _ string) (string, error) {
		if t.Attempt() > 1 {
			defer close(spent)
			return "", t.Spend(ctx, "tokens", 3)
		}
		close(running)
		<-ctx.Done()
		<-spent
		late <- t.Spend(ctx, "tokens", 5)
		return "", context.Cause(ctx)
	})
	id := y.submit("acme", "", "b")
	<-running
	if _, err := y.engine.RevokeLease(y.ctx, id, y.reach(id, codes.Active).Session); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	y.reach(id, codes.Completed)
	y.used("b", 8)
	if s := y.budget("b").Spenders; len(s) != 1 || s[0].Late != 1 || s[0].Used["tokens"] != 8 {
		t.Errorf("%+v", s)
	}
}

// So is what it spends after the execution was cancelled.
func TestSpendAfterCancellation(t *testing.T) {
	y := newTreasury(t, tokens("b", 1000, admission.HardFail))
	running, late := make(chan struct{}), make(chan error, 1)
	y.work(nil, io.Discard, func(ctx context.Context, t *handler.Task, _ string) (string, error) {
		close(running)
		<-ctx.Done()
		late <- t.Spend(ctx, "tokens", 5)
		return "", context.Cause(ctx)
	})
	id := y.submit("acme", "", "b")
	<-running
	if _, err := y.engine.CancelExecution(y.ctx, id, engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	y.used("b", 5)
}

// Of two executions that share a budget one is stopped, the other goes on with what is left; what does not share it
// is not affected.
func TestSharedBudget(t *testing.T) {
	y := newTreasury(t, tokens("shared", 155, admission.HardFail), tokens("own", 100, admission.HardFail))
	half, rest := make(chan struct{}), make(chan struct{})
	y.work(nil, io.Discard, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		if in == "spree" {
			return spree(ctx, t, in)
		}
		if err := t.Spend(ctx, "tokens", 70); err != nil {
			return "", err
		}
		close(half)
		<-rest
		return in, t.Spend(ctx, "tokens", 5)
	})
	modest := y.submit("acme", "modest", "shared")
	<-half
	stopped, other := y.submit("acme", "spree", "shared"), y.submit("globex", "spree", "own")
	s := y.reach(stopped, codes.Failed)
	if s.Failure.Category != causes.OverBudget ||
		!strings.Contains(s.Failure.Message, "10 more tokens do not fit, 150 of 155 used") {
		t.Errorf("%s: %s", s.Failure.Category, s.Failure.Message)
	}
	y.reach(other, codes.Completed)
	close(rest)
	y.reach(modest, codes.Completed)
	y.used("shared", 155)
	y.used("own", 100)
}

// What a budget refused does not run, and cost, again until there is room for it: not because a slot of a key or of
// another gate is free again, and not because somebody opened its queue.
func TestRefusedSpendWaitsForRoom(t *testing.T) {
	for name, gates := range map[string][]flowfabric.Gate{"with nothing else": nil,
		"with a limit of a key": {"@2.0.0@acme"}, "with another gate": {flowfabric.Gate("two")}} {
		t.Run(name, func(t *testing.T) {
			y := newTreasury(t, tokens("b", 100, admission.HardBlock))
			if _, _, _, err := y.engine.PutGate(y.ctx, admission.Gate{Name: "two", Concurrency: 2}, 0); err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int64
			y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				return handler.Step(ctx, task, "model", func(ctx context.Context) (string, error) {
					calls.Add(1)
					return "", task.Spend(ctx, "tokens", 70)
				})
			})
			const all = 12
			for i := range all {
				x := engine.NewExecution{ID: mint.ID(uint16(i % 2)), Payload: []byte(`""`),
					Start: testgate.Asks(flowfabric.Start{Namespace: "acme",
						Lane: "default", Kind: "k"}, append([]flowfabric.Gate{flowfabric.Gate("b")},
						gates...)...)}
				if created, err := y.engine.CreateExecutions(y.ctx, uint16(i%2),
					[]engine.NewExecution{x}); err != nil || created[0].Err != nil {
					t.Fatal(err, created)
				}
			}
			first := y.quiet(all - 1)
			n := calls.Load()
			if refused := y.budget("b").Refused["tokens"]; n < 2 || n > all ||
				refused != 70*(n-1) {
				t.Errorf("%d calls of the model, %d tokens refused", n, refused)
			}
			for range 5 {
				for partition, route := range first {
					if _, err := y.engine.OpenRoutes(y.ctx, partition, []uint64{route}); err != nil {
						t.Fatal(err)
					}
				}
				y.quiet(all - 1)
			}
			if again := calls.Load(); again != n {
				t.Errorf("%d calls of the model, and %d when the queues had been opened again", n, again)
			}
			y.used("b", 70)
			_, _, wake, err := y.engine.ResetUsage(y.ctx, "b", false)
			if err != nil || len(wake) != 2 {
				t.Fatal(wake, err)
			}
			for _, w := range wake {
				if _, err := y.engine.OpenRoutes(y.ctx, w.Partition, []uint64{w.Route}); err != nil {
					t.Fatal(err)
				}
			}
			y.quiet(all - 2)
			y.used("b", 70)
		})
	}
}

// quiet waits until so many executions wait in two queues that a budget has closed, and returns those.
func (y *treasury) quiet(waiting int) map[uint16]uint64 {
	y.Helper()
	for {
		found, sum := map[uint16]uint64{}, 0
		for _, p := range y.engine.Gates(y.ctx) {
			for _, c := range p.Closed {
				if strings.HasPrefix(c.Why, "gate b amount tokens 70 100") {
					found[p.Partition], sum = c.Route.ID, sum+c.Waiting
				}
			}
		}
		if len(found) == 2 && sum == waiting {
			return found
		}
		select {
		case <-y.ctx.Done():
			y.Fatalf("%d wait in %d queues, want %d in 2", sum, len(found), waiting)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
