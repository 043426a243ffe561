package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

const (
	maxAmount = 1<<53 - 1
	// spendGrace is how long what was spent may still be reported after the handler's context has ended.
	spendGrace = 3 * time.Second
	// blockedAtMost is for how long the queue of an execution that a gate blocks is closed, if nobody wakes it.
	blockedAtMost = 30 * time.Second
)

// OverBudgetError is returned by [Task.Spend] when a hard limit of a gate refuses it. Nothing of the spend was
// counted. It wraps flowfabric.ErrOverBudget.
type OverBudgetError struct {
	Gate     string
	Breaches []admission.Breach   // the limits it would have passed, with what was used before
	Action   admission.HardAction // what the gate wants done about it
	Left     time.Duration        // of the period; 0 = it does not end
	Amounts  map[string]int64     // what was to be spent

	wait string // with HardAsk: that a person is to answer
}

// Error names the gate, and for each dimension what was asked, what was used before, and the limit.
func (e *OverBudgetError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gate %s: ", e.Gate)
	for i, x := range e.Breaches {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d more %s do not fit, %d of %d used", e.Amounts[x.Dimension], x.Dimension, x.Used, x.Limit)
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, "; the next period begins in %s", e.Left.Round(time.Second))
	}
	return b.String()
}

// Unwrap is flowfabric.ErrOverBudget.
func (e *OverBudgetError) Unwrap() error { return flowfabric.ErrOverBudget }

// Spend reports that the handler uses n of a dimension, for example tokens, to every gate of the
// execution. It is [Task.SpendUsage] with one dimension.
func (t *Task) Spend(ctx context.Context, dimension string, n int64) error {
	return t.SpendUsage(ctx, admission.Usage{Amounts: map[string]int64{dimension: n}})
}

// SpendUsage reports what the handler uses, u.Amounts by dimension, to u.Gate, or if that is empty, to every gate of
// the execution that counts amounts, in the order of their names, and to those above them; without one it counts
// nothing, and a warning says so once a minute and kind. All of them count it, or none: what one refuses is taken back
// from those before it. Gates with StrictDimensions are not told of dimensions that they do not limit. Report small
// amounts, before or while they are used: what was used already when it is refused is over the limit. One call to the
// server for each gate; concurrent spends of a task wait for each other.
//
// A handler that runs again reports again. There are two ways to count a cost once. Spend inside the [Step] whose cost
// it is: a step that is recalled costs nothing. Or give the spend a key: each gate counts the key of an execution
// once within 24 h, whatever run or attempt repeats it. u.Key is 1..64 bytes of printable ASCII without spaces. The
// other fields of u stay zero: the task fills them in.
//
// A refusal is a [*OverBudgetError]. The gate decides what happens next: with reject the handler decides, and an
// error it returns is a failure of category budget_exceeded like any other; with fail its context ends, with this
// error as the cause, and whatever it returns, the execution fails for good with that category; with block its
// context ends in the same way, and it goes back into its queue, which is closed until the gate has more room (its
// next period, a higher limit, something given back), at most 30 s; then it runs again, as the same attempt. What no
// period has room for fails as with fail. With ask its context ends in the same way, and the execution is suspended
// with a question to a person, as [Task.Ask] does: an approval raises the limits, once, by what is lacking, when the
// handler runs again and is refused the same; the answer "alone" does so for this execution alone; any other answer
// makes the same refusal, from the same gate and of the same amounts, the handler's to decide, in all later runs.
// What is refused after an approval is asked again. In a batch the handler decides. Frames, steps and earlier spends
// are kept. A gate that only warns refuses nothing; that, and the crossing of a soft limit, is logged.
//
// Spends are counted even if the context has ended or the lease was lost, since the resources are gone: the gate
// marks them as late then. They are counted once, however often the report must be sent.
//
// Errors, the first three of which are permanent when the handler returns them, see [Permanent]:
// flowfabric.ErrInvalidInput (an amount below 0 or above 2^53-1) and ErrInvalidInput (key, gate, name or number of
// dimensions, at most 64), before any call; ErrInvalidInput, when no gate knows one; ErrOverBudget; ErrConflict, when
// the key had other amounts; ErrNotFound, when a gate was removed; code task_consumed after the handler returned. In
// all these cases nothing was counted. ErrTransport, or another error of class retry: it is not known whether it was
// counted, and the task reports it again before its next spend and when the handler returns. So do not repeat such a
// spend without a key; it would count twice. If it is refused then, the next spend returns that, and counts nothing of
// its own.
func (t *Task) SpendUsage(ctx context.Context, u admission.Usage) (err error) {
	defer func() { err = denied.Last(err) }()
	amounts := u.Amounts
	if err := validateUsage(u); err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	if ended {
		return fmt.Errorf("spend: %w: the handler has returned", denied.TaskConsumed)
	}
	s := t.spending
	if s == nil && len(amounts) > 0 && t.cfg.Spender != nil {
		t.uncounted(ctx, amounts)
	}
	if s == nil || len(amounts) == 0 {
		return nil
	}
	gates := s.gates
	if u.Gate != "" {
		if gates = []string{u.Gate}; !slices.Contains(s.gates, u.Gate) {
			return fmt.Errorf("spend: %w: %.64q is not among the gates of the execution, they are %s",
				flowfabric.ErrInvalidInput, u.Gate, strings.Join(s.gates, ", "))
		}
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return fmt.Errorf("spend: %w: the handler has returned", denied.TaskConsumed)
	}
	ctx, cancel := outlive(ctx, spendGrace)
	defer cancel()
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("spend, an earlier one: %w", err)
	}
	s.open = &spend{gates: slices.Clone(gates), key: u.Key, amounts: maps.Clone(amounts)}
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	return nil
}

// uncounted warns of a spend that no gate counts.
func (t *Task) uncounted(ctx context.Context, amounts map[string]int64) {
	if tasks.IsUnasked(ctx) || !unbudgeted.now(t.Kind()) {
		return
	}
	t.Logger().WarnContext(ctx,
		"flowfabric: a handler spends, but no gate of its executions counts amounts; attach one (admin.AttachGates), or submit with flowfabric.Gates",
		"kind", t.Kind(), "namespace", t.Namespace(), "dimensions", slices.Sorted(maps.Keys(amounts)))
}

// unbudgeted remembers of which kinds it was said that they spend and nothing counts it.
var unbudgeted = seldom{every: time.Minute}

// seldom lets one of many equal warnings through in a while. The zero time of a name lets the first one through.
type seldom struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

func (s *seldom) now(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last, told := s.last[name]; told && now.Sub(last) < s.every || len(s.last) >= maxSeldom && !told {
		return false
	}
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	s.last[name] = now
	return true
}

// maxSeldom bounds the names that are remembered.
const maxSeldom = 1024

func validateUsage(u admission.Usage) error {
	amounts := u.Amounts
	if !u.Execution.IsZero() || u.Epoch != 0 || u.Sequence != 0 {
		return fmt.Errorf("%w: execution, epoch and sequence are the task's, leave them zero",
			flowfabric.ErrInvalidInput)
	}
	if err := valid.ReportKey(u.Key, limits.MaxSpendKey); err != nil {
		return err
	}
	if len(amounts) > limits.MaxDimensions {
		return fmt.Errorf("%w: %d dimensions, want at most %d", flowfabric.ErrInvalidInput, len(amounts),
			limits.MaxDimensions)
	}
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		if err := valid.Dimension("dimension", dim); err != nil {
			return err
		}
		if n := amounts[dim]; n < 0 || n > maxAmount {
			return fmt.Errorf("%w: %d %s, want 0..%d", denied.Delta, n, dim, int64(maxAmount))
		}
	}
	return nil
}

// spending is what a task knows of its gates. The holder of the turn may use it.
type spending struct {
	task    *Task
	turn    chan struct{} // capacity 1; a channel, so that time passes in a test's bubble while somebody waits
	gates   []string      // by name, sorted
	last    map[string]uint64
	strange map[counter]time.Time // dimensions that a gate refused to count, and until when that is believed
	warned  map[counter]uint64    // the period in which a breach was logged
	open    *spend                // that is being reported

	reserved reservations
	closed   bool // the run is over: what a goroutine of it spends now would stop nobody
}

// counter is a dimension of a gate.
type counter struct{ gate, dimension string }

// strangeFor is how long a gate is not asked for a dimension that it did not know: it may be told of it meanwhile.
const strangeFor = 10 * time.Second

// spend is one call of SpendUsage on its way.
type spend struct {
	gates   []string // that are told of it
	key     string
	amounts map[string]int64
	at      int               // the gate whose turn it is
	sent    *admission.Usage  // the report to it that has not been answered
	counted []admission.Usage // by the gates before it
	ignored int               // gates that count no amounts
}

// named reports whether a gate may count amounts: a limit of a key does not.
func named(g flowfabric.Gate) bool {
	_, _, limit := g.Limit()
	return !limit
}

func newSpending(t *Task, gates []flowfabric.Gate) *spending {
	if t.cfg.Spender == nil || !slices.ContainsFunc(gates, named) {
		return nil
	}
	s := &spending{task: t, turn: make(chan struct{}, 1), last: map[string]uint64{}, strange: map[counter]time.Time{},
		warned: map[counter]uint64{}}
	for _, g := range gates {
		if named(g) {
			s.gates = append(s.gates, g.Name())
		}
	}
	slices.Sort(s.gates)
	return s
}

// settle reports the open spend to all gates that have not answered yet. When it returns, the spend is counted by
// all or by none, unless the error is of a kind that leaves it open.
func (s *spending) settle(ctx context.Context) error {
	o := s.open
	if o == nil {
		return nil
	}
	for o.at < len(o.gates) {
		again, err := s.report(ctx, o)
		if err != nil {
			if o.sent == nil {
				s.open = nil
			}
			return err
		}
		if !again {
			o.at++
		}
	}
	s.open = nil
	return s.known(ctx, o)
}

// report tells the gate whose turn it is. again: it does not know all dimensions, and is to be told of the others; or a
// person has granted more.
func (s *spending) report(ctx context.Context, o *spend) (again bool, err error) {
	name := o.gates[o.at]
	if o.sent == nil {
		part := maps.Clone(o.amounts)
		maps.DeleteFunc(part, func(dim string, _ int64) bool {
			return time.Now().Before(s.strange[counter{name, dim}])
		})
		if len(part) == 0 {
			return false, nil
		}
		s.last[name]++
		fence := s.task.Fence()
		o.sent = &admission.Usage{Gate: name, Execution: fence.Execution, Epoch: fence.Epoch, Sequence: s.last[name],
			Key: o.key, Amounts: part}
	}
	sent := *o.sent
	r, err := s.task.cfg.Spender.ReportUsage(ctx, sent)
	if r.Parent != "" && !slices.Contains(o.gates, r.Parent) { // what counts here counts there, too
		o.gates = append(o.gates, r.Parent)
	}
	switch {
	case err == nil && !r.Applied && r.Verdict == codes.WithinBudget: // it counts no amounts
		o.sent, o.ignored = nil, o.ignored+1
		return false, nil
	case err == nil && r.Applied:
		o.counted, o.sent = append(o.counted, sent), nil
		s.notice(ctx, name, r)
		return false, nil
	case err == nil:
		o.sent = nil
		s.undo(ctx, o)
		again, err := s.task.over(ctx, &OverBudgetError{Gate: name, Breaches: hard(r.Breaches), Action: r.Action,
			Left: time.Duration(r.Left), Amounts: sent.Amounts})
		if again {
			o.at, o.ignored = 0, 0 // those before it have taken it back
		}
		return again, err
	case errors.Is(err, denied.Dimension):
		o.sent = nil
		for _, dim := range strangers(err, sent.Amounts) {
			s.strange[counter{name, dim}] = time.Now().Add(strangeFor)
		}
		return true, nil
	case decided(err):
		o.sent = nil
		s.undo(ctx, o)
	}
	return false, err
}

// decided reports an error that says that a report was not counted, and why it never will be.
func decided(err error) bool {
	class := denied.ClassOf(err)
	return class != 0 && class != fault.Retry
}

// strangers are the dimensions that a gate says it does not know: all that it was told of, if it names none of them.
func strangers(err error, told map[string]int64) []string {
	var out []string
	if e, ok := errors.AsType[*flowfabric.Error](err); ok {
		for _, dim := range e.Detail {
			if _, ok := told[dim]; ok {
				out = append(out, dim)
			}
		}
	}
	if out == nil {
		return slices.Collect(maps.Keys(told))
	}
	return out
}

// known takes a spend back if it has a dimension that no gate has counted.
func (s *spending) known(ctx context.Context, o *spend) error {
	if o.ignored == len(o.gates) {
		s.task.uncounted(ctx, o.amounts)
		return nil
	}
	for _, dim := range slices.Sorted(maps.Keys(o.amounts)) {
		if !slices.ContainsFunc(o.counted, func(u admission.Usage) bool { _, ok := u.Amounts[dim]; return ok }) {
			s.undo(ctx, o)
			return fmt.Errorf("%w: %s, in gate %s", denied.Dimension, dim, strings.Join(o.gates, ", "))
		}
	}
	return nil
}

// undo takes back what gates have counted of a spend that is refused.
func (s *spending) undo(ctx context.Context, o *spend) {
	for _, u := range o.counted {
		if undone, _, err := s.task.cfg.Spender.UndoUsage(ctx, u); err != nil || !undone {
			// not undone: the lease was lost
			s.task.Logger().WarnContext(ctx,
				"flowfabric: a gate keeps the amount of a refused spend", "gate", u.Gate, "error", err)
		}
	}
	o.counted = nil
}

// notice logs the limits that a spend has passed.
func (s *spending) notice(ctx context.Context, name string, r admission.Reported) {
	for _, x := range r.Breaches {
		c, message := counter{name, x.Dimension}, "flowfabric: the usage is above the soft limit of a gate"
		if x.Hard {
			message = "flowfabric: above the hard limit of a gate, which only warns"
		}
		if period, told := s.warned[c]; x.Hard && told && period == r.Period || !x.Hard && !x.Crossed {
			continue
		}
		if x.Hard {
			s.warned[c] = r.Period
		}
		s.task.Logger().WarnContext(ctx, message, "gate", name, "dimension", x.Dimension, "used", x.Used, "limit",
			x.Limit)
	}
}

func hard(breaches []admission.Breach) []admission.Breach {
	return slices.DeleteFunc(slices.Clone(breaches), func(b admission.Breach) bool { return !b.Hard })
}

// stop is what a gate has decided about a run.
type stop struct {
	err *OverBudgetError
	at  time.Time
}

// over does what the gate wants: it ends the handler's context, unless the handler is to decide. again: a person has
// granted more, so the gate has room now. Its caller has the turn.
func (t *Task) over(ctx context.Context, e *OverBudgetError) (again bool, err error) {
	switch e.Action {
	case admission.HardFail, admission.HardBlock:
	case admission.HardAsk:
		if answered, err := t.granted(ctx, e); answered {
			return err == nil, err
		}
	default:
		return false, e
	}
	t.mu.Lock()
	first := t.stopped == nil
	if first || t.stopped.err.Action == admission.HardBlock {
		t.stopped = &stop{e, time.Now()}
	}
	t.mu.Unlock()
	if !first {
		return false, e
	}
	t.Logger().WarnContext(ctx, "flowfabric: the execution is over budget; its handler is stopped", "gate",
		e.Gate, "action", string(e.Action), "error", e.Error())
	if t.cfg.Cancel != nil {
		t.cfg.Cancel(e)
	}
	return false, e
}

// charged makes sure that what the handler has spent is reported, and replaces the outcome if a gate has stopped it.
func (t *Task) charged(ctx context.Context, out Outcome) Outcome {
	if s := t.spending; s != nil {
		s.turn <- struct{}{}
		if s.open != nil || len(s.reserved.open) > 0 {
			ctx, cancel := outlive(ctx, spendGrace)
			if err := errors.Join(s.settle(ctx), s.settled(ctx)); err != nil {
				t.Logger().WarnContext(ctx, "flowfabric: the last spend was refused, or its answer was lost",
					"error", err)
			}
			cancel()
		}
		s.closed = true
		<-s.turn
	}
	t.calls.ended(ctx, t)
	t.mu.Lock()
	stopped := t.stopped
	t.mu.Unlock()
	if stopped == nil || out.Kind == codes.OutcomeAbandon {
		return out
	}
	switch stopped.err.Action {
	case admission.HardFail:
		return failed(causes.OverBudget, Permanent(stopped.err))
	case admission.HardAsk:
		return t.asksForMore(stopped.err)
	}
	pause := blockedAtMost
	if left := stopped.err.Left; left > 0 {
		pause = min(pause, left)
	}
	return Outcome{Kind: codes.OutcomeBlock, Delay: wholeMillis(pause-time.Since(stopped.at), blockedAtMost),
		Err: stopped.err}
}
