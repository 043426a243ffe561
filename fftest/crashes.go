package fftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

const (
	// maxCrashes bounds the runs of one [Crashes].
	maxCrashes = 2000
	// crashLease is short, because waiting for a dead worker's lease to run out is most of what a run does.
	crashLease = 2 * time.Second
)

// Effects is told what a handler does to the world outside the store: charges, mails, rows. [Crashes] gives one to
// each run and finds out what was lost, and what was done again although it was known to be done. Safe for
// concurrent use.
type Effects struct {
	// Beside, if the function that makes the handler sets it, runs beside the execution in each run, from the
	// submission on: a reader who follows it, say, which deaths of the worker do not concern. c is a client of the
	// store, and what is written with it is no place to crash at, but for answers, messages and events. The run waits
	// for it before the report is checked. It may go on for a minute of virtual time after the execution has ended;
	// then the test fails and ctx ends, at which it must return. [Run] has it, too, set by the function of [Also].
	Beside func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID)

	journal *journal
}

// Did notes that the effect called name happens now; fakes of what a handler depends on are the place to call it from.
// An effect that belongs to a step should be named like the step, and different effects differently: the name is what
// must happen and must not be done twice, so it must not depend on the attempt or the time.
//
// A dead process does nothing: what the dead worker's handler still does before another worker runs the execution is
// not noted.
func (e *Effects) Did(name string) { e.journal.effect(name) }

// Count is how often an effect was noted so far in this run.
func (e *Effects) Count(name string) (n int) {
	for _, event := range e.journal.history() {
		if event.kind == effectDone && event.name == name {
			n++
		}
	}
	return n
}

// Crashes shows that a handler survives the death of its worker at any write. It runs one input first undisturbed and
// then, each time in a fresh store, twice for every write to the store that the undisturbed run made: in one run the
// worker process dies before that write, in the next one right after it was carried out. Another worker takes over when
// the lease, of two seconds, has run out. Writes are claims, also those that find no work, appended frames, recorded
// steps, noted progress, opened waitpoints, and whatever ends a run of the handler; and so are the answers that
// [Answered] and [Tell] give, which the dying worker races. They are counted by kind: a crash at the second claim. A
// run that comes to its end without that many, as a worker may look for work less often, is a further undisturbed one
// and is held to the same.
//
// Every run must agree with the first, undisturbed one:
//
//   - the execution ends in the same state, with the same failure category and a deeply equal result;
//   - the same steps are recorded, with the same values;
//   - the handler waited under the same names, in the same order, and was told the same; whether a signal came before
//     its wait or after is a matter of time;
//   - it received the same messages from mailboxes, each mailbox in its order, by whatever receipts;
//   - no durable frame is missing and their order is kept; more are fine, since what was not recorded is repeated;
//   - no effect is lost: each one of the undisturbed run happens at least once in every other.
//
// And in every run, the first one included, no effect is done again after it was recorded: by the step of its
// name or, if the run records none, by any step that was recorded, or run that completed, delayed or suspended the
// execution, after it was done. A run that failed records nothing by itself: its retry is meant to run everything
// outside of steps again, so an effect that each of several failing runs makes is as it should be, at least once,
// unless a step was recorded in between. Put an effect that a retry must not repeat in a handler.Step.
//
// What disagrees fails the test, with the place of the first crash that shows it; the runs after it are counted. Of
// long values the first difference is shown. The execution, and so its children, have the same ids in all runs; the
// token of a waitpoint is new in each. setup makes the handler for one run, and the fakes it
// needs, which report to fx. check, if not nil, looks at every report, the undisturbed one included, and replaces the
// comparison of results: some handlers put the attempt or a time into theirs. t and opts are as with [Run].
//
// With [Varying] the runs need not agree. It returns how many runs were disturbed by a crash. More than 2000 places for
// one (1000 writes) fail the test.
func Crashes[In, Out any](t testing.TB, def *handler.Definition[In, Out],
	setup func(fx *Effects) func(context.Context, *handler.Task, In) (Out, error), in In,
	check func(r *Report[Out]), opts ...client.SubmitOption) (crashes int) {
	t.Helper()
	found := findings{}
	run := func(plan crash) (*Report[Out], *journal) {
		t.Helper()
		j := newJournal(plan)
		j.found = found
		fx := &Effects{journal: j}
		r := runWith(t, stage{runtime.Config{LeaseTTL: crashLease}, fx}, def, setup(fx), in, opts)
		if r == nil {
			return nil, nil
		}
		if check != nil {
			check(r)
		}
		reportRepeats(r, j.history())
		return r, j
	}
	base, undisturbed := run(crash{})
	if base == nil {
		return 0
	}
	places := undisturbed.places()
	if len(places) > maxCrashes {
		t.Errorf("fftest: %d places to crash at, want at most %d; the others are left out", len(places), maxCrashes)
		places = places[:maxCrashes]
	}
	for _, plan := range places {
		r, j := run(plan)
		if r == nil {
			return crashes
		}
		if j.crashedAt() != "" {
			crashes++
		}
		if !slices.Contains(opts, Varying()) {
			compare(base, r, check == nil)
			reportLosses(r, undisturbed.history(), j.history())
		}
	}
	for _, about := range slices.Sorted(maps.Keys(found)) {
		if more := found[about] - 1; more > 0 {
			t.Logf("fftest: %s: %d more of %d runs differ, too", about, more, len(places)+1)
		}
	}
	return crashes
}

// compare holds a disturbed run against the undisturbed one.
func compare[Out any](base, r *Report[Out], results bool) {
	r.t.Helper()
	if r.State != base.State || category(r.Err) != category(base.Err) {
		got, want := differ("%s", r.end(), base.end())
		r.errorf("end", "the execution ended: %s; undisturbed: %s", got, want)
		return
	}
	if results && !reflect.DeepEqual(r.Result, base.Result) {
		got, want := differ("%+v", r.Result, base.Result)
		r.errorf("result", "result %s; undisturbed %s", got, want)
	}
	same := func(a, b Step) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
	sorted := func(steps []Step) []Step { // concurrent steps are recorded in any order
		return slices.SortedFunc(slices.Values(steps), func(a, b Step) int {
			return bytes.Compare([]byte(a.Name), []byte(b.Name))
		})
	}
	if got, want := sorted(r.Steps), sorted(base.Steps); !slices.EqualFunc(got, want, same) {
		steps, undisturbed := differList(got, want)
		r.errorf("steps", "steps %s; undisturbed %s", steps, undisturbed)
	}
	compareWaits(base, r)
	compareMessages(base, r)
	rest := r.Frames
	for _, want := range base.Frames {
		if want.Mode != stream.ModeDurable {
			continue // best-effort frames may be lost, and deltas may come as one: it is the document that counts
		}
		at := slices.IndexFunc(rest, func(f Frame) bool {
			return f.Type == want.Type && bytes.Equal(f.Payload, want.Payload)
		})
		if at < 0 {
			text, instead := fmt.Sprintf("%.200q", want.Payload), ""
			if len(rest) > 0 {
				text, instead = differ("%q", want.Payload, rest[0].Payload)
				instead = "; in its place " + instead
			}
			r.errorf("frames", "%s frame %s is missing or came too early in %d frames%s", want.Type, text,
				len(r.Frames), instead)
			return
		}
		rest = rest[at+1:]
	}
}

func category(err error) flowfabric.Category {
	if outcome, ok := errors.AsType[*client.OutcomeError](err); ok {
		return outcome.Category
	}
	return ""
}

// reportLosses finds effects that happened in the undisturbed run and not in this one.
func reportLosses[Out any](r *Report[Out], undisturbed, events []event) {
	r.t.Helper()
	happened := map[string]bool{}
	for _, e := range events {
		if e.kind == effectDone {
			happened[e.name] = true
		}
	}
	for _, e := range undisturbed {
		if e.kind == effectDone && !happened[e.name] {
			r.errorf("lost "+e.name, "effect %q never happened", e.name)
			happened[e.name] = true // once is enough
		}
	}
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
		case e.kind == runContinued: // names start over
			clear(done)
			clear(recorded)
			continue
		case e.kind == effectDone && recorded[e.name] != "":
			r.errorf("repeated "+e.name,
				"effect %q was done again after %s had been recorded; put it in a handler.Step", e.name,
				recorded[e.name])
			delete(recorded, e.name) // once is enough
		case e.kind == effectDone:
			done[e.name] = true
		case e.kind == stepRecorded && steps[e.name] && done[e.name]:
			recorded[e.name] = "its step"
		}
		if e.kind == effectDone {
			continue
		}
		what := "the end of a run"
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
