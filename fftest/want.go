package fftest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
)

// Want is what [Report.Want] demands of an execution. A zero field demands nothing; a list that is empty and not nil
// demands that there is nothing to list. Each list names everything that happened, in order.
type Want struct {
	State flowfabric.PublicState // in which the execution ended
	// Failure is the category with which it failed or expired, one of the constants or of handler.Category.
	Failure  flowfabric.Category
	Attempts []flowfabric.AttemptType // why each attempt began
	Steps    []string                 // names of the recorded steps
	// Waits are the names of its waits. "name: cause" also demands what ended the wait, see [Wait.Cause].
	Waits  []string
	Frames map[string][]string // payloads of all frames of the types that are keys, of all attempts
	// Least and Most bound the virtual time that it took, from creation to end.
	Least, Most time.Duration
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

// Want demands that the execution went as described. A Want that demands nothing at all fails the test.
func (r *Report[Out]) Want(want Want) {
	r.t.Helper()
	if reflect.ValueOf(want).IsZero() || want.Frames != nil && len(want.Frames) == 0 {
		r.errorf("want", "Want demands nothing: fill in a field, an empty list is []string{}, not nil")
	}
	if want.State != "" && r.State != want.State {
		r.errorf("state", "state %s (%s), want %s", r.State, r.end(), want.State)
	}
	if want.Failure != "" {
		r.wantFailure(want.Failure)
	}
	var attempts []flowfabric.AttemptType
	for _, a := range r.Attempts {
		attempts = append(attempts, a.Type)
	}
	if want.Attempts != nil && !slices.Equal(attempts, want.Attempts) {
		r.errorf("attempts", "attempts %v, want %v", attempts, want.Attempts)
	}
	r.wantList("steps", r.stepNames(), want.Steps)
	r.wantList("waits", r.waitNames(want.Waits), want.Waits)
	for typ, payloads := range want.Frames {
		r.wantList(typ+" frames", r.Payloads(typ), append([]string{}, payloads...))
	}
	if r.Elapsed < want.Least {
		r.errorf("elapsed", "took %s, want at least %s", r.Elapsed, want.Least)
	}
	if want.Most != 0 && r.Elapsed > want.Most {
		r.errorf("elapsed", "took %s, want at most %s", r.Elapsed, want.Most)
	}
}

func (r *Report[Out]) wantFailure(category flowfabric.Category) {
	r.t.Helper()
	outcome, _ := errors.AsType[*client.OutcomeError](r.Err)
	switch {
	case outcome == nil || outcome.State != flowfabric.Failed && outcome.State != flowfabric.Expired:
		r.errorf("failure", "%s, want a failure of category %s", r.end(), category)
	case outcome.Category != category:
		r.errorf("failure", "failure of category %s (%s), want %s", outcome.Category, outcome.Reason, category)
	}
}

// wantList demands that two lists are equal, unless the wanted one is nil.
func (r *Report[Out]) wantList(what string, got, want []string) {
	r.t.Helper()
	if want != nil && !slices.Equal(got, want) {
		are, wanted := differList(got, want)
		r.errorf(what, "%s %s, want %s", what, are, wanted)
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

// waitNames are the waits by name, those that are wanted with a cause, or not wanted, with their cause.
func (r *Report[Out]) waitNames(want []string) []string {
	var names []string
	for i, w := range r.Waits {
		name := w.Name
		if i >= len(want) || want[i] != name {
			name += ": " + string(w.Cause)
		}
		names = append(names, name)
	}
	return names
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
