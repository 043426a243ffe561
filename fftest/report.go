package fftest

import (
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Frame is one frame of an execution and the attempt, 1 for the first, that appended it.
type Frame struct {
	Attempt uint32
	stream.Frame
	// Repeated says that no recorded step covers it and that the handler began again after it, in this attempt or
	// another one: readers of the stream drop it, see stream.Resumption.
	Repeated bool
}

// Step is one recorded step; Value is as the definition's codec wrote it.
type Step struct {
	Name  string
	Value []byte
}

// Report is the outcome of one execution. It is plain data and outlives the bubble; WantResult and Want complain to
// the test that asked for it, and let it go on.
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
	// Spent is what the execution has spent, by gate and dimension, in the last period of each in which it spent.
	Spent map[string]map[string]int64
	// Used is what all executions have used of the same gates in their present periods, children among them.
	Used map[string]map[string]int64
	// Reservations are how many the runs of the handler were granted (made) and denied (refused) by the gates, and how
	// those that were made ended: settled, released, or forgotten, when the handler returned without either. Those that
	// a killed worker held are only made. nil: none was asked for.
	Reservations map[string]int
	// Crash is where [Crashes] let the worker die, "died before call 3 of ff_record_step"; "" if it did not.
	Crash string

	t     testing.TB
	found findings // of all runs of a Crashes
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

// begun marks the frames that an attempt which begins does not reuse, because it repeats them or a rewind dropped them.
func (r *Report[Out]) begun(e stream.TailEvent) {
	for i := range r.Frames {
		f := &r.Frames[i]
		f.Repeated = f.Repeated || !slices.ContainsFunc(e.Reused, func(c stream.Covered) bool {
			return c.Attempt == f.Attempt && f.Sequence <= c.Recorded
		})
	}
}

// repeated marks the frames of an attempt that a run which begins now repeats.
func (r *Report[Out]) repeated(attempt uint32, recorded uint64) {
	for i := range r.Frames {
		if f := &r.Frames[i]; f.Attempt == attempt && f.Sequence > recorded {
			f.Repeated = true
		}
	}
}
