// Package waits is what waits know while a handler runs: what earlier runs were answered, and which waitpoints are
// open.
package waits

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
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Opener opens pending waitpoints and takes messages under a fence, and tells which waitpoints are open;
// *engine.Engine is one.
type Opener interface {
	CreatePendingWaitpoint(ctx context.Context, f flowfabric.Fence, name string, m engine.Minted,
		life time.Duration) (engine.Opened, error)
	ExpectEvent(ctx context.Context, x engine.Expectation) error
	CloseWaitpoint(ctx context.Context, f flowfabric.Fence, id flowfabric.UUID) (already bool, err error)
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error)
	ReceiveMessages(ctx context.Context, f flowfabric.Fence,
		q engine.Receiving) (r engine.Receipt, recorded bool, err error)
}

// Config is what a run is made of. The zero value waits for nothing that was ever answered. With a Keyring,
// Development() for example, it opens waitpoints in memory only, which is enough for a unit test of a handler; fftest
// is more.
type Config struct {
	Claim   engine.Claim
	Keyring *tokenkeys.Keyring // nil: only waits without waitpoints
	Box     *sealed.Box        // opens what was answered; nil: nothing is encrypted
	Opener  Opener             // nil: pending waitpoints are not stored, and no message ever comes
	// Inside names the step that ctx belongs to, or "". Waiting inside a step is an error. May be nil.
	Inside func(ctx context.Context) string
	// Barred is why the run may not wait at all, nil if it may. May be nil.
	Barred func() error
	// Refused looks at an error of Opener and may end the handler's context. May be nil.
	Refused func(err error) error
	// Flush stores the frames of the run so far, before messages are taken. May be nil.
	Flush func(ctx context.Context) error
	// Ended says that the handler has returned before the run was made.
	Ended bool
}

// Run is what waits know while a handler runs: what earlier runs were answered, and which waitpoints are open. Package
// handler makes one for each task; handlers use it through the functions of this package. Safe for concurrent use.
type Run struct {
	cfg Config

	mu      sync.Mutex
	answers map[string][]byte         // by name, as kept by the server
	told    map[string]suspend.Result // by name, what was answered under this hold before last
	last    *suspend.Result           // of the last suspension, with or without a name
	opened  map[string]engine.Opened  // pending waitpoints by key
	closed  map[flowfabric.UUID]bool  // those of opened that the store says are closed
	asked   map[string]bool           // names of this run, with the prefix of what they are
	took    map[string]receipt        // by name
	counts  map[string]int            // receipts that this run asked for, by mailbox
	wanted  string                    // the wait that this run asked for
	ended   bool
}

// New reads what the claim brought.
func New(cfg Config) *Run {
	p := &Run{cfg: cfg, last: cfg.Claim.Resume, ended: cfg.Ended}
	for name, value := range cfg.Claim.Steps {
		if wait, ok := strings.CutPrefix(name, engine.StepAwait); ok {
			put(&p.answers, wait, value)
		} else if receipt, ok := strings.CutPrefix(name, engine.StepReceipt); ok {
			put(&p.took, receipt, keptReceipt(cfg.Box, value))
		} else if key, ok := strings.CutPrefix(name, engine.StepWaitpoint); ok {
			if w, err := engine.DecodeOpened(value); err == nil { // else Pending is refused by the server, and says so
				put(&p.opened, key, w)
			}
		}
	}
	return p
}

// put makes an entry of a map that is made with the first: a run has few of them.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Begin opens a run: names may be used again.
func (p *Run) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted, p.ended = "", false
	clear(p.asked)
	clear(p.counts)
}

// End closes it: a goroutine that outlived its handler waits for nothing more.
func (p *Run) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Resumed notes that a suspension was answered at once, because signals had come early: another run follows, with
// what was answered before and with this.
func (p *Run) Resumed(r suspend.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && p.last.Name != "" { // the server keeps it as a step, which only the next claim would bring
		put(&p.told, p.last.Name, *p.last)
	}
	p.last = &r
}

// Wanted is the name of a wait that this run asked for, "" for none: a handler that completes nevertheless has lost the
// error of its wait.
func (p *Run) Wanted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// Unasked is the name of the answer that resumed this run if it was not asked for; "" if it was, or there is none.
func (p *Run) Unasked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.last.Name == "" || p.asked[waitName(p.last.Name)] || ofGate(p.last.Name) {
		return ""
	}
	return p.last.Name
}

// Unused lists, sorted, the answers and pending waitpoints that earlier runs left and this one did not ask for.
func (p *Run) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unused []string
	names := slices.AppendSeq(slices.Collect(maps.Keys(p.answers)), maps.Keys(p.told))
	if p.last != nil && p.last.Name != "" {
		names = append(names, p.last.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !p.asked[waitName(name)] && !ofGate(name) {
			unused = append(unused, "wait "+name)
		}
	}
	for name := range p.took {
		if !p.asked[waitName(name)] {
			unused = append(unused, "messages "+name)
		}
	}
	for key := range p.opened {
		if !p.asked[pendingName(key)] {
			unused = append(unused, "waitpoint "+key)
		}
	}
	slices.Sort(unused)
	return unused
}

func waitName(name string) string   { return "wait\x00" + name }
func pendingName(key string) string { return "pending\x00" + key }

// Ask takes a wait's name for this run and returns what it was answered, nil if it was not.
func (p *Run) Ask(ctx context.Context, name string) (*suspend.Result, error) {
	if err := waitwords.CheckName(name); err != nil {
		return nil, err
	}
	if err := p.inside(ctx, "wait "+name); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, fmt.Errorf("wait %s: %w: the handler has returned", name, denied.TaskConsumed)
	}
	if p.asked[waitName(name)] {
		return nil, fmt.Errorf("%w: wait %s was already used in this run; names are unique (number those of a loop)",
			flowfabric.ErrInvalidInput, name)
	}
	put(&p.asked, waitName(name), true)
	return p.answer(name)
}

// Answer is what a wait was answered that a gate asked for, nil if it was not. It may be asked again, and in a step.
func (p *Run) Answer(name string) (*suspend.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer(name)
}

// ofGate tells whether a gate asked for a wait: whether it has room now decides whether the answer is of use.
func ofGate(name string) bool { return strings.HasPrefix(name, waitwords.OverBudget) }

// answer is what the wait of this name was answered, nil if it was not.
func (p *Run) answer(name string) (*suspend.Result, error) {
	if p.last != nil && p.last.Name == name {
		return p.last, nil
	}
	if earlier, ok := p.told[name]; ok {
		return &earlier, nil
	}
	kept, ok := p.answers[name]
	if !ok {
		return nil, nil
	}
	r, err := engine.DecodeResume(kept)
	if err != nil {
		return nil, fmt.Errorf("wait %s: %w", name, err)
	}
	engine.OpenResult(p.cfg.Box, &r)
	return &r, nil
}

func (p *Run) inside(ctx context.Context, what string) error {
	if p.cfg.Barred != nil {
		if err := p.cfg.Barred(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if p.cfg.Inside == nil {
		return nil
	}
	if step := p.cfg.Inside(ctx); step != "" {
		return fmt.Errorf("%w: %s is inside step %s; a step runs without stopping", flowfabric.ErrInvalidInput, what,
			step)
	}
	return nil
}

// Want notes that this run asked for a wait that has no answer yet.
func (p *Run) Want(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = name
}

// Last is what ended the last suspension, nil if there was none.
func (p *Run) Last() *suspend.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Pending opens the waitpoint of a key, the first time, and returns its token.
func (p *Run) Pending(ctx context.Context, key string, life time.Duration) (suspend.Token, error) {
	if err := p.inside(ctx, "waitpoint "+key); err != nil {
		return suspend.Token{}, err
	}
	w, err := p.open(ctx, engine.Minted{Key: key}, life)
	if err != nil {
		if errors.Is(err, denied.NoTokenKeys) {
			return suspend.Token{}, err // it names the waitpoint
		}
		return suspend.Token{}, fmt.Errorf("waitpoint %s: %w", key, err)
	}
	return p.token(ctx, w)
}

// Close closes the waitpoint of a key that Pending opened, once.
func (p *Run) Close(ctx context.Context, key string) error {
	if err := p.inside(ctx, "closing waitpoint "+key); err != nil {
		return err
	}
	p.mu.Lock()
	w, ok := p.opened[key]
	ended := p.ended
	p.mu.Unlock()
	switch {
	case ended:
		return fmt.Errorf("close waitpoint %s: %w: the handler has returned", key, denied.TaskConsumed)
	case !ok:
		return fmt.Errorf("close waitpoint %s: %w: Pending has not opened one of this key", key,
			flowfabric.ErrInvalidInput)
	case w.Closed:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if p.cfg.Opener != nil {
		if _, err := p.cfg.Opener.CloseWaitpoint(ctx, p.cfg.Claim.Fence, w.ID); err != nil {
			if p.cfg.Refused != nil {
				err = p.cfg.Refused(err)
			}
			return fmt.Errorf("close waitpoint %s: %w", key, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Closed = true
	put(&p.opened, key, w)
	return nil
}

// open returns the pending waitpoint of the key of want, opening it the first time, with the event of want.
func (p *Run) open(ctx context.Context, want engine.Minted, life time.Duration) (engine.Opened, error) {
	key := want.Key
	p.mu.Lock()
	w, ok := p.opened[key]
	put(&p.asked, pendingName(key), true)
	ended := p.ended
	p.mu.Unlock()
	switch {
	case ended:
		return w, fmt.Errorf("%w: the handler has returned", denied.TaskConsumed)
	case ok:
		return w, nil
	case ctx.Err() != nil:
		return w, context.Cause(ctx)
	}
	w, err := p.create(ctx, want, life)
	if err != nil {
		return w, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	put(&p.opened, key, w)
	return w, nil
}

// create mints and stores a waitpoint.
func (p *Run) create(ctx context.Context, want engine.Minted, life time.Duration) (w engine.Opened, err error) {
	key := want.Key
	fence, unsigned := p.cfg.Claim.Fence, false
	err = p.cfg.Keyring.Signed(fence.Execution.Partition(), func() error {
		m, _, err := p.cfg.Keyring.Mint(fence.Execution, key)
		if unsigned = err != nil; unsigned {
			return err
		}
		m.Event = want.Event
		if p.cfg.Opener == nil {
			w = engine.Opened{ID: m.ID, Key: key, Kid: m.Kid, Nonce: m.Nonce}
			return nil
		}
		w, err = p.cfg.Opener.CreatePendingWaitpoint(ctx, fence, key, m, life)
		return err
	})
	if err != nil && !unsigned && p.cfg.Refused != nil {
		err = p.cfg.Refused(err)
	}
	return w, err
}

// token makes the token of a pending waitpoint. When its key was rotated out and removed, that fails only if the
// waitpoint still takes signals; the token of one that is closed is good for nothing, and is empty then. Only the
// store knows: neither the name of a wait nor the signals that it took tell which waitpoints it closed.
func (p *Run) token(ctx context.Context, w engine.Opened) (suspend.Token, error) {
	id := p.cfg.Claim.Fence.Execution
	token, missing := p.cfg.Keyring.Token(id, w)
	if !errors.Is(missing, denied.NoTokenKeys) || p.cfg.Opener == nil {
		return token, missing
	}
	p.mu.Lock()
	closed := p.closed[w.ID]
	p.mu.Unlock()
	if closed {
		return suspend.Token{}, nil
	}
	r, err := p.cfg.Opener.ReadSuspension(ctx, id)
	if err != nil {
		return suspend.Token{}, fmt.Errorf(
			"waitpoint %q: its token key %q is not configured; read whether it is still open: %w", w.Key, w.Kid, err)
	}
	open := map[flowfabric.UUID]bool{}
	for _, stored := range r.Waitpoints { // closed ones are forgotten at last
		open[stored.ID] = stored.Open()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.opened {
		put(&p.closed, known.ID, !open[known.ID])
	}
	if open[w.ID] {
		return suspend.Token{}, missing
	}
	return suspend.Token{}, nil
}

// Suspension builds the call that a handler's wait asks for. ErrNoTokenKeys when it needs waitpoints and there is no
// key.
func (p *Run) Suspension(w *waitwords.Wanted) (engine.Suspension, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := engine.Suspension{ID: mint.UUID(), Name: w.Name, Reason: w.Reason, Question: w.Question, Several: w.Several,
		Timeout: w.Within, Behaviour: w.Behaviour, ResumeDelay: w.ResumeDelay, Condition: w.Condition}
	for _, key := range w.Keys {
		if pending, ok := p.opened[key]; ok {
			q.Bindings = append(q.Bindings,
				engine.Binding{Minted: engine.Minted{ID: pending.ID, Key: key}, Pending: true, Within: w.Lives[key]})
			continue
		}
		m, _, err := p.cfg.Keyring.Mint(p.cfg.Claim.Fence.Execution, key)
		if err != nil {
			return engine.Suspension{}, err
		}
		q.Bindings = append(q.Bindings, engine.Binding{Minted: m, Within: w.Lives[key]})
	}
	return q, nil
}

// Remint makes the fresh waitpoints of a suspension anew, with the key that is in use now.
func (p *Run) Remint(q *engine.Suspension) error {
	for i, b := range q.Bindings {
		if b.Pending {
			continue
		}
		m, _, err := p.cfg.Keyring.Mint(p.cfg.Claim.Fence.Execution, b.Key)
		if err != nil {
			return err
		}
		q.Bindings[i].Minted = m
	}
	return nil
}
