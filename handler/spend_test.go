package handler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/mint"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

var _ tasks.Spender = (*engine.Engine)(nil)

// purse is a gate in memory, which answers as the server does.
type purse struct {
	admission.Gate
	used     map[string]int64
	left     time.Duration
	sequence uint64
	reply    admission.Reported
	last     map[string]int64 // what UndoUsage takes back
	soft     bool             // crossed
}

// till is a fake store of gates. mishap, if it is set, is asked before a report: an error keeps the report from
// being counted, or with after, its answer from being heard.
type till struct {
	purses map[string]*purse
	mishap func(call int) (err error, after bool)
	calls  []string
}

func newTill(specs ...admission.Gate) *till {
	b := &till{purses: map[string]*purse{}}
	for _, s := range specs {
		b.purses[s.Name] = &purse{Gate: s, used: map[string]int64{}}
	}
	return b
}

func (b *till) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	if u.Gate == "rate" { // it counts no amounts
		return admission.Reported{Verdict: codes.WithinBudget}, nil
	}
	b.calls = append(b.calls, call(u))
	if ctx.Err() != nil {
		return admission.Reported{}, ctx.Err()
	}
	var err error
	if b.mishap != nil {
		var after bool
		if err, after = b.mishap(len(b.calls)); err != nil && !after {
			return admission.Reported{}, err
		}
	}
	r, refused := b.count(u)
	return r, errors.Join(refused, err)
}

// call is a report as the calls of a till have it.
func call(u admission.Usage) string {
	return strings.TrimSpace(fmt.Sprintf("%s#%d %s", u.Gate, u.Sequence, u.Key))
}

func (b *till) count(u admission.Usage) (r admission.Reported, err error) {
	p := b.purses[u.Gate]
	if p == nil {
		return r, denied.New("fake", "gate_not_found", u.Gate)
	}
	if u.Sequence == p.sequence {
		return p.reply, nil
	}
	if u.Sequence < p.sequence || u.Epoch != 7 {
		return r, fmt.Errorf("sequence %d after %d, epoch %d", u.Sequence, p.sequence, u.Epoch)
	}
	var strange []string
	for dim := range u.Amounts {
		if _, ok := p.Limits[dim]; p.StrictDimensions && !ok {
			strange = append(strange, dim)
		}
	}
	if strange != nil {
		return r, denied.New("fake", "unknown_dimension", strange...)
	}
	r = admission.Reported{Verdict: codes.WithinBudget, Applied: true, Action: p.OnHard,
		Left: flowfabric.Millis(p.left)}
	for dim, n := range u.Amounts {
		if hard := p.Limits[dim].Hard; hard > 0 && p.used[dim]+n > hard {
			r.Verdict, r.Applied = codes.HardBreach, p.Warn
			used := p.used[dim]
			if p.Warn {
				used += n
			}
			r.Breaches = append(r.Breaches, admission.Breach{Dimension: dim, Hard: true, Used: used, Limit: hard})
		}
		if soft := p.Limits[dim].Soft; soft > 0 && p.used[dim]+n > soft {
			r.Breaches = append(r.Breaches,
				admission.Breach{Dimension: dim, Used: p.used[dim] + n, Limit: soft, Crossed: !p.soft})
			p.soft = true
		}
	}
	p.sequence, p.reply, p.last = u.Sequence, r, nil
	if r.Applied {
		p.last = u.Amounts
		for dim, n := range u.Amounts {
			p.used[dim] += n
		}
	}
	return r, nil
}

func (b *till) UndoUsage(_ context.Context, u admission.Usage) (bool, []engine.Waiter, error) {
	b.calls = append(b.calls, "undo "+call(u))
	p := b.purses[u.Gate]
	if p.sequence != u.Sequence || p.last == nil {
		return false, nil, nil
	}
	for dim, n := range p.last {
		p.used[dim] -= n
	}
	p.last = nil
	return true, nil, nil
}

// spent says what all budgets have counted of tokens, by name.
func (b *till) spent() string {
	var out []string
	for name, p := range b.purses {
		out = append(out, fmt.Sprint(name, " ", p.used["tokens"]))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func purseOf(name string, hard int64, action admission.HardAction) admission.Gate {
	return admission.Gate{Name: name, OnHard: action, Limits: map[string]admission.Limit{"tokens": {Hard: hard}}}
}

// task is one whose gates are the till's budgets. Its context is that of Cancel.
func (b *till) task(change func(*tasks.Config)) (*handler.Task, context.Context) {
	ctx, cancel := context.WithCancelCause(context.Background())
	logger, _ := quiet()
	cfg := tasks.Config{Spender: b, Cancel: cancel,
		Claim: &engine.Claim{Fence: flowfabric.Fence{Epoch: 7}, Input: []byte("{}")},
		Route: engine.Route{Gates: []flowfabric.Gate{flowfabric.Gate("rate")}}, Logger: logger}
	for name := range b.purses {
		cfg.Route.Gates = append(cfg.Route.Gates, flowfabric.Gate(name))
	}
	if change != nil {
		change(&cfg)
	}
	return newTask(cfg), ctx
}

// run runs fn as a handler.
func (b *till) run(t *testing.T, fn func(ctx context.Context, t *handler.Task) error) handler.Outcome {
	t.Helper()
	task, ctx := b.task(nil)
	return handler.Bind(handler.Define[struct{}, string]("k"),
		func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			return "a result", fn(ctx, t)
		}).Run(ctx, task)
}

func TestSpend(t *testing.T) {
	b := newTill(purseOf("b", 0, ""), purseOf("a", 100, admission.HardReject))
	task, ctx := b.task(nil)
	for range 2 {
		must.No(t, task.Spend(ctx, "tokens", 50))
	}
	if want := []string{"a#1", "b#1", "a#2", "b#2"}; !slices.Equal(b.calls, want) || b.spent() != "a 100, b 100" {
		t.Errorf("%v, %s", b.calls, b.spent())
	}
	for _, tc := range []struct {
		amounts map[string]int64
		want    error
	}{
		{map[string]int64{"tokens": -1}, denied.Delta}, {map[string]int64{"tokens": 1 << 53}, denied.Delta},
		{map[string]int64{"Tokens": 1}, flowfabric.ErrInvalidInput}, {nil, nil},
	} {
		if err := task.SpendUsage(ctx, admission.Usage{Amounts: tc.amounts}); !errors.Is(err, tc.want) ||
			tc.want == nil && err != nil {
			t.Errorf("%v: %v", tc.amounts, err)
		}
	}
	many := map[string]int64{}
	for i := range limits.MaxDimensions + 1 {
		many[fmt.Sprint("d", i)] = 1
	}
	if err := task.SpendUsage(ctx, admission.Usage{Amounts: many}); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if len(b.calls) != 4 {
		t.Errorf("a spend that is not valid was reported: %v", b.calls)
	}
	alone := newTask(tasks.Config{Route: engine.Route{Gates: []flowfabric.Gate{flowfabric.Gate("a")}}})
	if err := errors.Join(alone.Spend(ctx, "tokens", 1),
		newTask(tasks.Config{Spender: b}).Spend(ctx, "tokens", 1)); err != nil || len(b.calls) != 4 {
		t.Errorf("without budgets, or alone: %v, %v", err, b.calls)
	}
	if err := alone.Spend(ctx, "tokens", -1); !errors.Is(err, denied.Delta) {
		t.Errorf("alone, negative: %v", err)
	}
}

// What one budget refuses is counted by none, and the handler is told everything about it.
func TestSpendIsAllOrNothing(t *testing.T) {
	b := newTill(purseOf("a", 0, ""), purseOf("b", 10, admission.HardReject), purseOf("c", 0, ""))
	b.purses["b"].left = 90 * time.Second
	task, ctx := b.task(nil)
	must.No(t, task.Spend(ctx, "tokens", 7))
	err := task.Spend(ctx, "tokens", 4)
	over, ok := errors.AsType[*handler.OverBudgetError](err)
	if !ok || !errors.Is(err, flowfabric.ErrOverBudget) || over.Gate != "b" || over.Left != 90*time.Second ||
		over.Action != admission.HardReject ||
		!slices.Equal(over.Breaches, []admission.Breach{{Dimension: "tokens", Hard: true, Used: 7, Limit: 10}}) {
		t.Fatalf("%#v", err)
	}
	if want :=
		"spend: gate b: 4 more tokens do not fit, 7 of 10 used; the next period begins in 1m30s"; err.Error() !=
		want {
		t.Errorf("%q, want %q", err, want)
	}
	if b.spent() != "a 7, b 7, c 7" || ctx.Err() != nil {
		t.Errorf("%s, %v", b.spent(), ctx.Err())
	}
	if err := task.Spend(ctx, "tokens", 3); err != nil || b.spent() != "a 10, b 10, c 10" {
		t.Errorf("%v, %s", err, b.spent())
	}
	if want := []string{"a#2", "b#2", "undo a#2", "a#3", "b#3", "c#2"}; !slices.Equal(b.calls[3:], want) {
		t.Errorf("%v, want %v", b.calls[3:], want)
	}
}

// A spend may name one budget, and its key goes to each budget that is told.
func TestSpendUsage(t *testing.T) {
	b := newTill(purseOf("a", 0, ""), purseOf("b", 10, admission.HardReject))
	task, ctx := b.task(nil)
	use := func(budget, key string) admission.Usage {
		return admission.Usage{Gate: budget, Key: key, Amounts: map[string]int64{"tokens": 4}}
	}
	must.No(t, task.SpendUsage(ctx, use("b", "once")))
	must.No(t, task.SpendUsage(ctx, use("", strings.Repeat("k", limits.MaxSpendKey))))
	over, ok := errors.AsType[*handler.OverBudgetError](task.SpendUsage(ctx, use("", "third")))
	if !ok || over.Gate != "b" || b.spent() != "a 4, b 8" {
		t.Errorf("%v, %s", over, b.spent())
	}
	long := strings.Repeat("k", limits.MaxSpendKey)
	want := []string{"b#1 once", "a#1 " + long, "b#2 " + long, "a#2 third", "b#3 third", "undo a#2 third"}
	if !slices.Equal(b.calls, want) {
		t.Errorf("%q, want %q", b.calls, want)
	}
	for _, u := range []admission.Usage{use("c", ""), use("", long+"k"), use("", "a key"),
		{Sequence: 1, Amounts: map[string]int64{"tokens": 1}}, {Epoch: 7}, {Execution: mint.ID(1)}} {
		if err := task.SpendUsage(ctx, u); !errors.Is(err, flowfabric.ErrInvalidInput) || len(b.calls) != len(want) {
			t.Errorf("%+v: %v, %q", u, err, b.calls)
		}
	}
	must.No(t, task.SpendUsage(ctx, use("rate", ""))) // which is said in the log
}

// With fail and block the budget decides, whatever the handler returns.
func TestBudgetStopsTheHandler(t *testing.T) {
	boom := errors.New("boom")
	failed :=
		`fail result="" delay=0s category="budget_exceeded" reason="gate a: 7 more tokens do not fit, 4 of 10 used" permanent=true pause=policy cancel=""`
	delayed := func(d string) string {
		return `block result="" delay=` + d + ` category="" reason="" permanent=false pause=policy cancel=""`
	}
	returns := map[string]func(error) error{
		"nil": func(error) error { return nil }, "the error": func(err error) error { return err },
		"another": func(error) error { return boom },
		"a delay": func(error) error { return handler.Delay(time.Hour) }, "a panic": func(error) error { panic("x") },
		"cancel": func(error) error { return handler.Cancel("x") },
	}
	for name, then := range returns {
		for _, tc := range []struct {
			action admission.HardAction
			left   time.Duration
			want   string
		}{
			{admission.HardFail, 0, failed}, {admission.HardBlock, 0, delayed("28s")},
			{admission.HardBlock, 7 * time.Second, delayed("5s")},
			{admission.HardBlock, time.Hour, delayed("28s")}, {admission.HardBlock, time.Second, delayed("0s")},
		} { // the handler returns two seconds after it was refused
			synctest.Test(t, func(t *testing.T) {
				b := newTill(purseOf("a", 10, tc.action))
				b.purses["a"].left = tc.left
				var seen error
				out := b.run(t, func(ctx context.Context, task *handler.Task) error {
					if err := task.Spend(ctx, "tokens", 4); err != nil {
						t.Error(err)
					}
					err := task.Spend(ctx, "tokens", 7)
					seen = context.Cause(ctx)
					time.Sleep(2 * time.Second)
					return then(err)
				})
				if over, ok := errors.AsType[*handler.OverBudgetError](seen); !ok || over.Gate != "a" ||
					!errors.Is(seen, flowfabric.ErrOverBudget) {
					t.Errorf("the context ended with %v", seen)
				}
				if show(out) != tc.want || !errors.Is(out.Err, flowfabric.ErrOverBudget) {
					t.Errorf("%s after returning %s with %s left:\n%s, want\n%s", tc.action, name, tc.left, show(out),
						tc.want)
				}
			})
		}
	}
}

// With reject the handler decides; the error it was given is a failure of its own category, and may be retried.
func TestRejectedSpend(t *testing.T) {
	for _, tc := range []struct {
		then func(error) error
		want string
	}{
		{func(error) error { return nil }, `complete result="\"a result\""`},
		{func(err error) error { return err },
			`fail result="" delay=0s category="budget_exceeded" reason="spend: gate a: 11 more tokens do not fit, 0 of 10 used"`},
		{func(err error) error { return handler.Permanent(err) }, `fail result="" delay=0s category="budget_exceeded"`},
		{func(error) error { return handler.Cancel("enough") }, "cancel "},
	} {
		b := newTill(purseOf("a", 10, admission.HardReject))
		out := b.run(t, func(ctx context.Context, task *handler.Task) error {
			err := task.Spend(ctx, "tokens", 11)
			if ctx.Err() != nil {
				t.Error(context.Cause(ctx))
			}
			return tc.then(err)
		})
		if !strings.HasPrefix(show(out), tc.want) {
			t.Errorf("%s, want %s", show(out), tc.want)
		}
	}
}

// A stopped handler whose lease was lost meanwhile decides nothing any more; what it spent is counted all the same.
func TestSpendWithoutALease(t *testing.T) {
	b := newTill(purseOf("a", 10, admission.HardFail))
	task, ctx := b.task(func(cfg *tasks.Config) { cfg.Lease = fixedLease{flowfabric.ErrLeaseLost} })
	var first, second error
	out := handler.Bind(handler.Define[struct{}, string]("k"),
		func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(flowfabric.ErrCancelled)
			first, second = t.Spend(ctx, "tokens", 4), t.Spend(ctx, "tokens", 40)
			return "", nil
		}).Run(ctx, task)
	if first != nil || !errors.Is(second, flowfabric.ErrOverBudget) || b.spent() != "a 4" ||
		out.Kind != codes.OutcomeAbandon {
		t.Errorf("%v, %v, %s, %s", first, second, b.spent(), show(out))
	}
	if err := task.Spend(ctx, "tokens", 1); !errors.Is(err, denied.TaskConsumed) || b.spent() != "a 4" {
		t.Errorf("after the handler has returned: %v, %s", err, b.spent())
	}
}

// Budgets with StrictDimensions are told of what they know; what none of them knows is refused, and counted by none.
func TestSpendOfUnknownDimensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, cost := purseOf("a", 0, ""),
			admission.Gate{Name: "b", StrictDimensions: true, Limits: map[string]admission.Limit{"cost": {Hard: 100}}}
		tokens.StrictDimensions = true
		b := newTill(tokens, cost)
		task, ctx := b.task(nil)
		for range 2 {
			must.No(t, task.SpendUsage(ctx, admission.Usage{Amounts: map[string]int64{"tokens": 2, "cost": 3}}))
		}
		if want := []string{"a#1", "a#2", "b#1", "b#2", "a#3", "b#3"}; !slices.Equal(b.calls, want) {
			t.Errorf("%v, want %v", b.calls, want)
		}
		err := task.SpendUsage(ctx, admission.Usage{Amounts: map[string]int64{"tokens": 2, "images": 1}})
		if !errors.Is(err, denied.Dimension) || !strings.Contains(err.Error(), "images, in gate a, b") {
			t.Error(err)
		}
		if err := task.Spend(ctx, "images", 1); !errors.Is(err, denied.Dimension) {
			t.Error(err)
		}
		if b.purses["a"].used["tokens"] != 4 || b.purses["b"].used["cost"] != 6 {
			t.Errorf("%v, %v", b.purses["a"].used, b.purses["b"].used)
		}
		b.purses["b"].Limits["images"] = admission.Limit{} // which is noticed after a while
		time.Sleep(11 * time.Second)
		if err := task.Spend(ctx, "images", 1); err != nil || b.purses["b"].used["images"] != 1 {
			t.Errorf("%v, %v", err, b.purses["b"].used)
		}
	})
}

// A budget that was removed refuses, too.
func TestSpendFromNoBudget(t *testing.T) {
	b := newTill(purseOf("a", 0, ""), purseOf("b", 0, ""))
	task, ctx := b.task(nil)
	delete(b.purses, "b")
	if err := task.Spend(ctx, "tokens", 1); !errors.Is(err, denied.NoGate) || b.spent() != "a 0" {
		t.Errorf("%v, %s", err, b.spent())
	}
}

// A report whose answer is lost is sent again with its number, before the next one, and counts once, whether it had
// arrived or not.
func TestUnansweredSpend(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		b := newTill(purseOf("a", 0, ""), purseOf("b", 10, admission.HardReject), purseOf("c", 0, ""))
		b.mishap = func(call int) (error, bool) {
			if call == 2 || call == 3 {
				return flowfabric.ErrTransport, arrived
			}
			return nil, false
		}
		task, ctx := b.task(nil)
		if err := task.Spend(ctx, "tokens", 6); !errors.Is(err, flowfabric.ErrTransport) {
			t.Fatal(err)
		}
		if err := task.Spend(ctx, "tokens", 1); !errors.Is(err, flowfabric.ErrTransport) ||
			!strings.Contains(err.Error(), "an earlier one") {
			t.Fatal(err)
		}
		if err := task.Spend(ctx, "tokens", 2); err != nil || b.spent() != "a 8, b 8, c 8" {
			t.Errorf("arrived %t: %v, %s", arrived, err, b.spent())
		}
		if want := []string{"a#1", "b#1", "b#1", "b#1", "c#1", "a#2", "b#2", "c#2"}; !slices.Equal(b.calls, want) {
			t.Errorf("%v, want %v", b.calls, want)
		}
	}
}

// An unanswered spend that turns out to be refused is taken back, and refuses the next one in its place.
func TestUnansweredSpendIsRefused(t *testing.T) {
	b := newTill(purseOf("a", 0, ""), purseOf("b", 10, admission.HardReject))
	b.mishap = func(call int) (error, bool) {
		if call == 2 {
			return flowfabric.ErrTransport, true
		}
		return nil, false
	}
	task, ctx := b.task(nil)
	if err := task.Spend(ctx, "tokens", 11); !errors.Is(err, flowfabric.ErrTransport) {
		t.Fatal(err)
	}
	if err := task.Spend(ctx, "tokens", 1); !errors.Is(err, flowfabric.ErrOverBudget) || b.spent() != "a 0, b 0" {
		t.Errorf("%v, %s", err, b.spent())
	}
	if err := task.Spend(ctx, "tokens", 1); err != nil || b.spent() != "a 1, b 1" {
		t.Errorf("%v, %s", err, b.spent())
	}
}

// What is not known when the handler returns is reported once more, and may still stop it.
func TestLastSpendIsNotForgotten(t *testing.T) {
	for n, want := range map[int64]string{4: `complete result="\"a result\""`,
		11: `fail result="" delay=0s category="budget_exceeded"`} {
		b := newTill(purseOf("a", 10, admission.HardFail))
		b.mishap = func(call int) (error, bool) {
			if call == 1 {
				return flowfabric.ErrTransport, false
			}
			return nil, false
		}
		out := b.run(t, func(ctx context.Context, task *handler.Task) error {
			if err := task.Spend(ctx, "tokens", n); !errors.Is(err, flowfabric.ErrTransport) {
				t.Error(err)
			}
			return nil
		})
		if !strings.HasPrefix(show(out), want) || !slices.Equal(b.calls, []string{"a#1", "a#1"}) {
			t.Errorf("%s, %v", show(out), b.calls)
		}
	}
}

// Warnings refuse nothing, and are told once.
func TestSpendWarnings(t *testing.T) {
	limits := admission.Gate{Name: "a", Warn: true, OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 10, Soft: 5}}}
	b := newTill(limits)
	logger, log := quiet()
	task, ctx := b.task(func(cfg *tasks.Config) { cfg.Logger = logger })
	for range 4 {
		must.No(t, task.Spend(ctx, "tokens", 4))
	}
	for message, want := range map[string]string{
		"above the soft limit of a gate":                   "dimension=tokens used=8 limit=5",
		"above the hard limit of a gate, which only warns": "dimension=tokens used=12 limit=10",
	} {
		if lines := grep(log.String(), message); len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("%q: %q", message, lines)
		}
	}
	if b.spent() != "a 16" || ctx.Err() != nil {
		t.Errorf("%s, %v", b.spent(), ctx.Err())
	}
}

func grep(text, part string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part+`"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Concurrent spends take turns, so that the numbers of the reports tell repetitions apart.
func TestConcurrentSpends(t *testing.T) {
	b := newTill(purseOf("a", 20, admission.HardReject), purseOf("b", 0, ""))
	task, ctx := b.task(nil)
	refused := make(chan error, 30)
	var wg conc.WaitGroup
	for range 30 {
		wg.Go(func() { refused <- task.Spend(ctx, "tokens", 1) })
	}
	wg.Wait()
	n := 0
	for range 30 {
		if errors.Is(<-refused, flowfabric.ErrOverBudget) {
			n++
		}
	}
	if n != 10 || b.spent() != "a 20, b 20" {
		t.Errorf("%d refused, %s", n, b.spent())
	}
}

// A spend whose own arguments are refused is refused in every attempt: returned by the handler, it fails for good,
// and retries do not repeat what came before it. What others decide, a budget that is full or gone, is left to the
// retry policy.
func TestRefusedArgumentsOfASpendArePermanent(t *testing.T) {
	strict := purseOf("a", 100, admission.HardReject)
	strict.StrictDimensions = true
	for name, tc := range map[string]struct {
		dimension string
		n         int64
		want      error
		permanent bool
	}{
		"a negative amount":       {"tokens", -1, denied.Delta, true},
		"too large an amount":     {"tokens", 1 << 53, denied.Delta, true},
		"no name of a dimension":  {"To kens", 1, flowfabric.ErrInvalidInput, true},
		"a dimension of nobody's": {"apples", 1, denied.Dimension, true},
		"more than is left":       {"tokens", 101, flowfabric.ErrOverBudget, false},
	} {
		out := newTill(strict).run(t, func(ctx context.Context, t *handler.Task) error {
			return fmt.Errorf("count: %w", t.Spend(ctx, tc.dimension, tc.n))
		})
		if out.Kind != codes.OutcomeFail || !errors.Is(out.Err, tc.want) || out.Failure.Permanent != tc.permanent {
			t.Errorf("%s: %+v", name, out)
		}
	}
	b := newTill(strict)
	out := b.run(t, func(ctx context.Context, t *handler.Task) error {
		delete(b.purses, "a")
		return t.Spend(ctx, "tokens", 1)
	})
	if !errors.Is(out.Err, denied.NoGate) || out.Failure.Permanent {
		t.Errorf("a budget that is gone: %+v", out)
	}
}

// Who is told to spend without having asked for it is not warned that nothing counts it; who asks is.
func TestSpendsThatNobodyAskedFor(t *testing.T) {
	var log bytes.Buffer
	task := newTask(tasks.Config{Spender: new(till), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Claim: &engine.Claim{}, Route: engine.Route{Kind: "unasked"}})
	// In this order: who is warned once is not warned again for a while.
	for _, x := range []struct {
		ctx  context.Context
		want bool
	}{{tasks.Unasked(t.Context()), false}, {t.Context(), true}} {
		log.Reset()
		must.No(t, task.Spend(x.ctx, "tokens", 1))
		if warned := strings.Contains(log.String(), "no gate of its executions counts amounts"); warned != x.want {
			t.Errorf("warned %v: %s", warned, log.String())
		}
	}
}
