package handler

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waits"
)

// Task is everything durable that a handler can reach while it runs: who it is, what it got, its frames and its
// steps. It is valid until the handler returns. Safe for concurrent use.
type Task struct {
	cfg      tasks.Config
	logging  sync.Once // makes the logger of a task that was given none
	logger   *slog.Logger
	spending *spending // nil without gates
	calls    calls

	mu    sync.Mutex
	codec Codec          // of the definition
	takes func(any) bool // tells whether a value is of the definition's input type; nil: any is
	// recorded values, of this run and those before; nil before the first, as most handlers have none
	steps   map[string][]byte
	asked   map[string]struct{} // names this run has used
	ended   bool                // the handler has returned
	stopped *stop               // by a gate
	refused error               // the server says that another process holds the execution
	waits   *waits.Run          // nil until it is needed: most handlers never wait
	asks    *waiting            // what this run waits for, by its outcome; nil: nothing
	kids    children
	policy  *flowfabric.RetryPolicy // of the execution, once it was asked for
	turn    turning
	barred  error // why this run has no steps, waits and children; nil: it has
}

// NewTask makes the task of one claimed execution, for the packages of this module: others get theirs from a worker, or
// run a handler without one ([Binding.Run]). It starts nothing and needs no closing.
func NewTask(cfg tasks.Config) (*Task, tasks.Waits) {
	t := newTask(cfg)
	return t, (*taskWaits)(t)
}

func newTask(cfg tasks.Config) *Task {
	if cfg.Claim == nil {
		cfg.Claim = &engine.Claim{}
	}
	t := &Task{cfg: cfg, codec: JSON, logger: cfg.Logger}
	if len(cfg.Claim.Steps) > 0 {
		t.steps = make(map[string][]byte, len(cfg.Claim.Steps))
	}
	t.kids.t = t
	t.spending = newSpending(t, cfg.Route.Gates)
	waited := cfg.Claim.Resume != nil
	for name, value := range cfg.Claim.Steps {
		if wait, ok := strings.CutPrefix(name, engine.StepChildren); ok {
			t.kids.recorded(wait, value)
		} else if strings.HasPrefix(name, engine.StepAwait) || strings.HasPrefix(name, engine.StepWaitpoint) ||
			strings.HasPrefix(name, engine.StepReceipt) {
			waited = true
		} else {
			t.steps[name] = value
		}
	}
	if waited {
		t.ownWaits()
	}
	return t
}

// ID names the execution. It is the same for every attempt.
func (t *Task) ID() flowfabric.ExecutionID { return t.cfg.Claim.Fence.Execution }

// Attempt is the number of the attempt, 1 for the first. It grows with every retry, reclaim, replay and [Continue], as
// flowfabric.Snapshot.Attempts does.
func (t *Task) Attempt() uint32 { return t.cfg.Claim.Fence.Attempt }

// AttemptType says why this run runs: initial, retry, reclaim, replay, continue, or resumed for one that was put aside.
func (t *Task) AttemptType() flowfabric.AttemptType { return t.cfg.Claim.Type }

// Fence is the proof of ownership of this run. Its Epoch grows with every claim of the execution, so an external
// system can use it to refuse what an older run still sends.
func (t *Task) Fence() flowfabric.Fence { return t.cfg.Claim.Fence }

// Namespace is the namespace the execution was submitted to.
func (t *Task) Namespace() string { return t.cfg.Route.Namespace }

// Lane is the lane the execution waited in.
func (t *Task) Lane() string { return t.cfg.Route.Lane }

// Kind is the name of its definition.
func (t *Task) Kind() string { return t.cfg.Route.Kind }

// Tags are the execution's tags, without those that the library keeps for itself: those that carry a trace (keys that
// begin with "otel."), and flowfabric.depth of what an agent made. The caller gets its own copy.
func (t *Task) Tags() map[string]string {
	tags := maps.Clone(t.cfg.Claim.Tags)
	maps.DeleteFunc(tags, func(k, _ string) bool { return inherited(k) })
	return tags
}

// Input is the payload as submitted, or as the handler went on with it ([Continue]), encoded. It must not be changed.
func (t *Task) Input() []byte { return t.cfg.Claim.Input }

// decodeInput decodes it. A claim brings it decrypted, unless that failed: then this tells why.
func (t *Task) decodeInput(codec Codec, v any) error {
	plain, err := t.cfg.Box.Open(t.Input())
	if err != nil {
		return err
	}
	return codec.Decode(plain, v)
}

// readable is why the payload of a signal or a message cannot be read, if it stayed encrypted.
func (t *Task) readable(payload []byte) error {
	if _, err := t.cfg.Box.Open(payload); err != nil {
		return undecodable(err)
	}
	return nil
}

// Flow is the flow whose member the execution is; zero for one that is in no flow. An execution that waits for
// children without a flow starts one, and is told so in the runs after that.
func (t *Task) Flow() flowfabric.FlowID { return t.cfg.Claim.Flow }

// Node is the name of the execution in its flow, "" without one.
func (t *Task) Node() string { return t.cfg.Claim.Node }

// Retries is how many retries the execution has used so far; the first attempt has 0.
func (t *Task) Retries() int { return t.cfg.Claim.Retries }

// Continues is how often the execution went on with another input, see [Continue]; the first input has 0.
func (t *Task) Continues() int { return t.cfg.Claim.Continues }

// Takes is how often the execution was replayed or rewound (admin.Admin.Replay, client.Execution.Rewind), 0 for the
// first take. What a handler names after it is new in each take, such as its children or the keys of calls outside.
func (t *Task) Takes() int { return t.cfg.Claim.Takes }

// CreatedAt is when the execution was created, by the server's clock.
func (t *Task) CreatedAt() time.Time { return t.cfg.Claim.CreatedAt }

// ownWaits is what the task knows of waits for signals, messages and operators.
func (t *Task) ownWaits() *waits.Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits == nil {
		t.waits = waits.New(waits.Config{
			Claim: *t.cfg.Claim, Keyring: t.cfg.Keyring, Opener: t.cfg.Waitpoints, Box: t.cfg.Box,
			Inside: t.insideStep, Barred: t.bars, Refused: t.refuse, Flush: t.Flush, Ended: t.ended})
	}
	return t.waits
}

// knownWaits is what the task knows of waits, nil when there is nothing to know.
func (t *Task) knownWaits() *waits.Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}

// wanted says which wait this run has asked for, "" for none.
func (t *Task) wanted() string {
	if waits := t.knownWaits(); waits != nil && waits.Wanted() != "" {
		return "wait " + waits.Wanted()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kids.wanted != "" {
		return "children " + t.kids.wanted
	}
	return ""
}

// Logger has the attributes execution, attempt, kind and lane; in a worker also worker. A worker also keeps what it is
// told with the execution, from a level on and without these attributes, see [KeepLogs]. What was logged longer than
// 200 ms before a crash is kept then, too.
func (t *Task) Logger() *slog.Logger {
	t.logging.Do(func() {
		if t.logger == nil {
			t.logger = slog.Default().With("execution", t.ID().String(), "attempt", t.Attempt(), "kind", t.Kind(),
				"lane", t.Lane())
		}
	})
	return t.logger
}

// LeaseHealthy reports whether this process still holds the execution and fewer than three renewals failed in a
// row. It reads the clock, so it is right even after the process was stopped. Ask before an effect that must not
// happen twice.
func (t *Task) LeaseHealthy() bool {
	return t.held() == nil && (t.cfg.Lease == nil || t.cfg.Lease.Healthy())
}

// held is nil while nothing says that the execution is another's, else what does.
func (t *Task) held() error {
	t.mu.Lock()
	refused := t.refused
	t.mu.Unlock()
	if refused != nil || t.cfg.Lease == nil {
		return refused
	}
	return t.cfg.Lease.Check()
}

// lost is held, and what the context knows besides.
func (t *Task) lost(ctx context.Context) error {
	if err := t.held(); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, flowfabric.ErrLeaseLost) ||
		errors.Is(cause, flowfabric.ErrCancelled) {
		return cause
	}
	return nil
}

// begin opens a run: names may be used again, values are encoded with the definition's codec.
func (t *Task) begin(codec Codec, takes func(any) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.codec, t.takes, t.ended, t.stopped, t.asks = codec, takes, false, nil, nil
	if t.spending != nil {
		t.spending.closed = false
	}
	t.turn.over, t.turn.hear = false, nil
	clear(t.asked)
	t.kids.begin()
	if t.waits != nil {
		t.waits.Begin()
	}
}

// end closes the run: a goroutine that outlived its handler records nothing more.
func (t *Task) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.waits != nil {
		t.waits.End()
	}
}
