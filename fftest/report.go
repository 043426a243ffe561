package fftest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Frame is one frame of an execution and the attempt, 1 for the first, that appended it.
type Frame struct {
	Attempt uint32
	stream.Frame
	// Repeated says that no recorded step covers it and that the handler began again after it, in this attempt or
	// another one: who reads the stream drops it, see stream.Resumption.
	Repeated bool
}

// Step is one recorded step; Value is as the definition's codec wrote it.
type Step struct {
	Name  string
	Value []byte
}

// Report is the outcome of one execution. It is plain data and outlives the bubble; the Want methods complain to the
// test that asked for it, and let it go on.
type Report[Out any] struct {
	ID     flowfabric.ExecutionID
	State  flowfabric.PublicState // completed, failed, cancelled or expired
	Result Out                    // zero unless completed
	// Err is nil for completed, else a [*client.OutcomeError] with category and reason. It also tells when a
	// result does not decode.
	Err error

	// of all attempts, in order; best-effort ones only as far as they have not expired
	Frames  []Frame
	Resumed []stream.TailEvent // runs that went on with an attempt and appended frames, in order
	Summary stream.Summary     // of the last attempt
	Steps   []Step             // recorded ones, in the order of their recording
	Waits   []Wait             // in the order in which they began
	// that the handler received from mailboxes, in the order in which they were sent
	Messages []suspend.Message
	// every one, in order; Type says why it began, Category and Reason why it failed
	Attempts []flowfabric.AttemptRecord
	Elapsed  time.Duration       // virtual time from creation to end
	Snapshot flowfabric.Snapshot // everything else
	// Spent is what the execution has spent, by budget and dimension, in the last period of each in which it spent.
	Spent map[string]map[string]int64
	// Crash is where [Crashes] let the worker die, "died before call 3 of ff_record_step"; "" if it did not.
	Crash string

	t     testing.TB
	found findings // of all runs of a Crashes
}

// errorf fails the test, once for each thing that it is about.
func (r *Report[Out]) errorf(about, format string, args ...any) {
	r.t.Helper()
	if !r.found.new(about) {
		return
	}
	text := fmt.Sprintf(format, args...)
	if r.Crash != "" {
		text = "worker " + r.Crash + ": " + text
	}
	r.t.Error(text)
}

// end is how the execution ended, in words.
func (r *Report[Out]) end() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return string(r.State)
}

// WantResult demands that the execution completed with a result deeply equal to want.
func (r *Report[Out]) WantResult(want Out) {
	r.t.Helper()
	switch {
	case r.Err != nil:
		r.errorf("result", "no result: %v", r.Err)
	case !reflect.DeepEqual(r.Result, want):
		got, wanted := differ("%+v", r.Result, want)
		r.errorf("result", "result %s, want %s", got, wanted)
	}
}

// WantState demands that the execution ended in a state.
func (r *Report[Out]) WantState(want flowfabric.PublicState) {
	r.t.Helper()
	if r.State != want {
		r.errorf("state", "state %s (%s), want %s", r.State, r.end(), want)
	}
}

// WantFailure demands that the execution failed or expired with a failure of a category, as the constants of package
// handler name them, or handler.Category.
func (r *Report[Out]) WantFailure(category string) {
	r.t.Helper()
	outcome, _ := errors.AsType[*client.OutcomeError](r.Err)
	switch {
	case outcome == nil || outcome.State != flowfabric.Failed && outcome.State != flowfabric.Expired:
		r.errorf("failure", "%s, want a failure of category %s", r.end(), category)
	case outcome.Category != category:
		r.errorf("failure", "failure of category %s (%s), want %s", outcome.Category, outcome.Reason, category)
	}
}

// WantAttempts demands that the attempts began for these reasons, in this order.
func (r *Report[Out]) WantAttempts(types ...flowfabric.AttemptType) {
	r.t.Helper()
	var got []flowfabric.AttemptType
	for _, a := range r.Attempts {
		got = append(got, a.Type)
	}
	if !slices.Equal(got, types) {
		r.errorf("attempts", "attempts %v, want %v", got, types)
	}
}

// stepNames are the recorded steps by name, in the order of their recording.
func (r *Report[Out]) stepNames() []string {
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	return names
}

// WantSteps demands that these steps were recorded, in this order, and no others.
func (r *Report[Out]) WantSteps(names ...string) {
	r.t.Helper()
	if got := r.stepNames(); !slices.Equal(got, names) {
		steps, want := differList(got, names)
		r.errorf("steps", "steps %s, want %s", steps, want)
	}
}

// Payloads are those of all frames of a type, of all attempts, in order.
func (r *Report[Out]) Payloads(typ string) []string {
	var payloads []string
	for _, f := range r.Frames {
		if f.Type == typ {
			payloads = append(payloads, string(f.Payload))
		}
	}
	return payloads
}

// Kept is [Report.Payloads] without the frames that are [Frame.Repeated]: what a reader shows who drops them.
func (r *Report[Out]) Kept(typ string) []string {
	var payloads []string
	for _, f := range r.Frames {
		if f.Type == typ && !f.Repeated {
			payloads = append(payloads, string(f.Payload))
		}
	}
	return payloads
}

// repeated marks the frames of an attempt that a run which begins now repeats.
func (r *Report[Out]) repeated(attempt uint32, recorded uint64) {
	for i := range r.Frames {
		if f := &r.Frames[i]; f.Attempt == attempt && f.Sequence > recorded {
			f.Repeated = true
		}
	}
}

// WantFrames demands that the frames of a type, of all attempts, carry these payloads in this order.
func (r *Report[Out]) WantFrames(typ string, payloads ...string) {
	r.t.Helper()
	if got := r.Payloads(typ); !slices.Equal(got, payloads) {
		frames, want := differList(got, payloads)
		r.errorf(typ+" frames", "%s frames %s, want %s", typ, frames, want)
	}
}

// WantElapsed demands that the execution took at least and at most so much virtual time, from creation to end.
func (r *Report[Out]) WantElapsed(least, most time.Duration) {
	r.t.Helper()
	if r.Elapsed < least || r.Elapsed > most {
		r.errorf("elapsed", "took %s, want %s..%s", r.Elapsed, least, most)
	}
}
