package fftest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const (
	// maxCrashes bounds the runs of one [Crashes].
	maxCrashes = 2000
	// crashLease is short, because waiting for a dead worker's lease to run out is most of what a run does.
	crashLease = 2 * time.Second
)

// Effects is told what a handler does to the world outside the store: charges, mails, rows. [Crashes] gives one to
// each run and finds out what was done again although it was known to be done. Safe for concurrent use.
type Effects struct{ journal *journal }

// Did notes that the effect called name happens now; fakes of what a handler depends on are the place to call it from.
// An effect that belongs to a step should be named like the step, and different effects differently: the name is what
// must not be done twice.
func (e *Effects) Did(name string) { e.journal.effect(name) }

// Count is how often an effect has happened so far in this run.
func (e *Effects) Count(name string) (n int) {
	for _, event := range e.journal.history() {
		if event.kind == effectDone && event.name == name {
			n++
		}
	}
	return n
}

// Crashes shows that a handler survives the death of its worker at any point. It runs one input first undisturbed and
// then again and again, each time in a fresh store: in the first run the worker process dies before its first write
// to the store, in the next one right after that write was carried out, then before its second, and so on until a run
// comes to its end undisturbed. Another worker takes over when the lease, of two seconds, has run out. Writes are claims,
// appended frames, recorded steps, and whatever ends a pass of the handler.
//
// Every run must agree with the first one:
//
//   - the execution ends in the same state, with the same failure category and a deeply equal result;
//   - the same steps are recorded, with the same values;
//   - no frame is missing and their order is kept; more are fine, since what was not recorded is repeated;
//   - no effect was done again after it was recorded: by the step of its name or, if there is none, by any step that
//     was recorded, or pass that was settled, after it was done.
//
// What disagrees fails the test, with the place of the crash. setup makes the handler for one run, and the fakes it
// needs, which report to fx. check, if not nil, looks at every report, the undisturbed one included, and replaces the
// comparison of results: some handlers put the attempt or a time into theirs. t is as with [Run].
//
// It returns how many runs were disturbed by a crash.
func Crashes[In, Out any](t testing.TB, def *handler.Definition[In, Out],
	setup func(fx *Effects) func(context.Context, *handler.Task, In) (Out, error), in In,
	check func(r *Report[Out]), opts ...client.SubmitOption) (crashes int) {
	t.Helper()
	run := func(plan crash) (*Report[Out], *journal) {
		t.Helper()
		j := newJournal(plan)
		r := runWith(t, runtime.Config{LeaseTTL: crashLease}, j, def, setup(&Effects{j}), in, opts)
		if r == nil {
			return nil, nil
		}
		if check != nil {
			check(r)
		}
		reportRepeats(r, j.history())
		return r, j
	}
	base, _ := run(crash{})
	if base == nil {
		return 0
	}
	for crashes < maxCrashes {
		plan := crash{call: crashes/2 + 1, after: crashes%2 == 1}
		r, j := run(plan)
		if r == nil || j.crashedAt() == "" {
			return crashes
		}
		crashes++
		compare(base, r, check == nil)
	}
	t.Errorf("fftest: still a further write after %d crashes", crashes)
	return crashes
}

// compare holds a disturbed run against the undisturbed one.
func compare[Out any](base, r *Report[Out], results bool) {
	r.t.Helper()
	if r.State != base.State || category(r.Err) != category(base.Err) {
		r.errorf("the execution ended: %s; undisturbed: %s", r.end(), base.end())
		return
	}
	if results && !reflect.DeepEqual(r.Result, base.Result) {
		r.errorf("result %+v; undisturbed %+v", r.Result, base.Result)
	}
	same := func(a, b Step) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
	sorted := func(steps []Step) []Step { // concurrent steps are recorded in any order
		return slices.SortedFunc(slices.Values(steps), func(a, b Step) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	}
	if !slices.EqualFunc(sorted(r.Steps), sorted(base.Steps), same) {
		r.errorf("steps %q; undisturbed %q", r.Steps, base.Steps)
	}
	rest := r.Frames
	for _, want := range base.Frames {
		at := slices.IndexFunc(rest, func(f Frame) bool { return f.Type == want.Type && bytes.Equal(f.Payload, want.Payload) })
		if at < 0 {
			r.errorf("%s frame %q is missing or came too early in %d frames", want.Type, want.Payload, len(r.Frames))
			return
		}
		rest = rest[at+1:]
	}
}

func category(err error) string {
	if outcome, ok := errors.AsType[*client.OutcomeError](err); ok {
		return outcome.Category
	}
	return ""
}

// reportRepeats finds effects that were done again after a record of them existed.
func reportRepeats[Out any](r *Report[Out], events []event) {
	r.t.Helper()
	steps := map[string]bool{}
	for _, e := range events {
		if e.kind == stepRecorded {
			steps[e.name] = true
		}
	}
	done, recorded := map[string]bool{}, map[string]string{}
	for _, e := range events {
		switch {
		case e.kind == effectDone && recorded[e.name] != "":
			r.errorf("effect %q was done again after %s had been recorded; it belongs into a handler.Step", e.name, recorded[e.name])
			delete(recorded, e.name) // once is enough
		case e.kind == effectDone:
			done[e.name] = true
		case e.kind == stepRecorded && steps[e.name] && done[e.name]:
			recorded[e.name] = "its step"
		}
		if e.kind == effectDone {
			continue
		}
		what := "the end of a pass"
		if e.kind == stepRecorded {
			what = "step " + e.name
		}
		for name := range done {
			if !steps[name] && recorded[name] == "" {
				recorded[name] = what
			}
		}
	}
}
