package tasks

import (
	"context"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// ResultReader reads the result of an attempt, what those that a member of a flow depends on came to, and the execution
// itself; *engine.Engine is one.
type ResultReader interface {
	ReadResult(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (result []byte, ok bool, err error)
	Upstreams(ctx context.Context, id flowfabric.ExecutionID) ([]engine.UpstreamOutcome, error)
	CheckOthers(ctx context.Context, waiter flowfabric.ExecutionID,
		ids []flowfabric.ExecutionID) ([]engine.ChildOutcome, error)
	ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error)
}

// ProgressRecorder stores how far an attempt got, under a fence; *engine.Engine is one.
type ProgressRecorder interface {
	UpdateProgress(ctx context.Context, fence flowfabric.Fence, percent int, message string) error
}

// Spender counts what was used of gates; *engine.Engine is one.
type Spender interface {
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	// UndoUsage takes back the last report of the execution to a gate. Routes that there is room for again are in
	// wake.
	UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error)
}

// Services asks the gates of services for turns; *engine.Engine is one.
type Services interface {
	Acquire(ctx context.Context, x engine.ServiceCall) (engine.Turn, error)
	EndCall(ctx context.Context, x engine.ServiceCall, how engine.CallEnd) (already bool, err error)
}

// StepRecorder stores the value of a step under a fence; *engine.Engine is one.
type StepRecorder interface {
	RecordTurn(ctx context.Context, fence flowfabric.Fence, s engine.Step) (engine.Recorded, error)
}

// FrameWriter takes the frames of one attempt; *framelog.Writer is one. Append copies the payload, and neither changes
// nor keeps the one it is given. Who made it closes it, after the handler and before the settling call.
type FrameWriter interface {
	Append(ctx context.Context, f stream.Frame) error
	Flush(ctx context.Context) error
	LastAcknowledged() uint64 // producer sequence of the last stored frame
}

// FrameReader reads stored frames in order; *engine.Engine is one.
type FrameReader interface {
	ReadFrames(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
		limit int) ([]stream.Frame, error)
}

// Lease tells whether the execution may still be acted on; *keeper.Held is one.
type Lease interface {
	Check() error  // nil while this process is the holder, else the cause
	Healthy() bool // trusted, and fewer than three renewals failed in a row
	// Listen has f told of every notice that takes nothing away (engine.Lost.Told), those that came before included,
	// until it is called again; nil ends it. f must not block.
	Listen(f func(cause string))
}

// Config is what a task is made of. The zero value is a task that works alone: frames are discarded, steps are
// memoised in memory, and the lease is always healthy; it is enough for a unit test of a handler.
type Config struct {
	Claim  *engine.Claim // what the server handed out; neither changed nor copied. nil: an empty one
	Route  engine.Route  // namespace, lane and kind
	Frames FrameWriter   // nil: frames are discarded
	Reader FrameReader   // nil: Task.Stream yields nothing
	Steps  StepRecorder  // nil: steps last as long as the task
	Lease  Lease         // nil: always held and healthy
	// Progress takes what [handler.Task.Progress] is told. nil: it is only checked.
	Progress ProgressRecorder

	// Spender counts what [handler.Task.Spend] is told, in the gates of Route. nil: spends are only
	// checked.
	Spender Spender
	// Ledger sets aside what [handler.Task.Reserve] is told. nil: it is only checked.
	Ledger ledger.Store
	// OnReservation is told what becomes of each reservation that gates were asked for, once made and once ended. It
	// must not block. nil: nobody is told.
	OnReservation func(Reservation)
	// Services gives the turns of [handler.Task.Acquire]. nil: every call may be made.
	Services Services
	// OnCall is told what becomes of each call to a service. It must not block. nil: nobody is told.
	OnCall func(Call)

	// Keyring signs the tokens of waitpoints; tokenkeys.Development() will do in a test. nil: only waits without
	// waitpoints.
	Keyring *tokenkeys.Keyring
	// Waitpoints opens those that are handed out before the handler waits. nil: they last as long as the task.
	Waitpoints waits.Opener

	// Results reads what children left, and what upstreams came to. nil: only that children ended.
	Results ResultReader

	// Box seals what the handler stores and opens what it reads. nil: nothing is encrypted.
	Box *sealed.Box

	// Worker is the worker that runs the task: a batch has executions of one worker only. nil: none.
	Worker *Worker

	// Cancel ends the handler's context with a cause that wraps flowfabric.ErrLeaseLost, after the server refused
	// a step or progress because another process holds the execution, or with an [*handler.OverBudgetError]. May be
	// nil.
	Cancel func(cause error)
	// Logger is what Task.Logger returns. It should carry the attributes execution, attempt, kind, lane and worker.
	// Default: slog.Default() with the first four.
	Logger *slog.Logger
}

// Reservation is what became of a reservation.
type Reservation string

// What becomes of reservations: Forgotten ones were neither settled nor released when the handler returned.
const (
	ReservationMade      Reservation = "made"
	ReservationRefused   Reservation = "refused"
	ReservationSettled   Reservation = "settled"
	ReservationReleased  Reservation = "released"
	ReservationForgotten Reservation = "forgotten"
)

// ReservationWatch is the key of a context under which a run is told what becomes of its reservations, as
// Config.OnReservation is: a func(Reservation), which is found when something is reserved.
type ReservationWatch struct{}

// Call is what became of a call to a service.
type Call string

// What becomes of calls: of one that is away the execution has given its slot up until its turn is near. Forgotten ones
// had not been said to have ended when the handler returned.
const (
	CallAdmitted  Call = "admitted"
	CallAway      Call = "away"
	CallSettled   Call = "settled"
	CallReleased  Call = "released"
	CallRefused   Call = "refused"
	CallForgotten Call = "forgotten"
)

// Worker is what a worker has for batch handlers.
type Worker struct {
	// Draining is closed when the worker takes no more work.
	Draining <-chan struct{}
	// Batch is told that a call begins with items whose contexts are of, the first of which came waited ago. It
	// returns the context of the call and what is to be told of its end. nil: nobody is told.
	Batch func(ctx context.Context, route engine.Route, of []context.Context,
		waited time.Duration) (context.Context, func(err error))
}
