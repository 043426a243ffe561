package suspend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Task is the part of a handler's task that waiting needs; *handler.Task is one.
type Task interface {
	ID() flowfabric.ExecutionID
	Waits() *Pass
}

// Opener opens pending waitpoints under a fence, and tells which waitpoints are open; *engine.Engine is one.
type Opener interface {
	CreatePendingWaitpoint(ctx context.Context, f flowfabric.Fence, name string, m engine.Minted, life time.Duration) (engine.Opened, error)
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (engine.SuspensionRecord, error)
}

// PassConfig is what a pass is made of. The zero value waits for nothing that was ever answered. With a Keyring, Development()
// for example, it opens waitpoints in memory only, which is enough for a unit test of a handler; fftest is more.
type PassConfig struct {
	Claim   engine.Claim
	Keyring *Keyring // nil: only waits without waitpoints
	Opener  Opener   // nil: pending waitpoints are not stored
	// Inside names the step that ctx belongs to, or "". Waiting inside a step is an error. May be nil.
	Inside func(ctx context.Context) string
	// Refused looks at an error of Opener and may end the handler's context. May be nil.
	Refused func(err error) error
	// Ended says that the handler has returned before the pass was made.
	Ended bool
}

// Pass is what waits know while a handler runs: what earlier passes were answered, and which waitpoints are open. Package
// handler makes one for each task; handlers use it through the functions of this package. Safe for concurrent use.
type Pass struct {
	cfg PassConfig

	mu      sync.Mutex
	answers map[string][]byte        // by name, as kept by the server
	told    map[string]engine.Resume // by name, what was answered under this hold before last
	last    *engine.Resume           // of the last suspension, with or without a name
	opened  map[string]engine.Opened // pending waitpoints by key
	closed  map[uuid.UUID]bool       // those of opened that the store says are closed
	asked   map[string]bool          // names of this pass, with the prefix of what they are
	wanted  string                   // the wait that this pass asked for
	ended   bool
}

// NewPass reads what the claim brought.
func NewPass(cfg PassConfig) *Pass {
	p := &Pass{cfg: cfg, answers: map[string][]byte{}, told: map[string]engine.Resume{}, opened: map[string]engine.Opened{}, closed: map[uuid.UUID]bool{}, asked: map[string]bool{}, last: cfg.Claim.Resume,
		ended: cfg.Ended}
	for name, value := range cfg.Claim.Steps {
		if wait, ok := strings.CutPrefix(name, engine.StepAwait); ok {
			p.answers[wait] = value
		} else if key, ok := strings.CutPrefix(name, engine.StepWaitpoint); ok {
			if w, err := engine.DecodeOpened(value); err == nil { // else Pending is refused by the server, and says so
				p.opened[key] = w
			}
		}
	}
	return p
}

// Begin opens a pass: names may be used again.
func (p *Pass) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted, p.ended = "", false
	clear(p.asked)
}

// End closes it: a goroutine that outlived its handler waits for nothing more.
func (p *Pass) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Resumed notes that a suspension was answered at once, because signals had come early: another pass follows, with what was
// answered before and with this.
func (p *Pass) Resumed(r engine.Resume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && p.last.Name != "" { // the server keeps it as a step, which only the next claim would bring
		p.told[p.last.Name] = *p.last
	}
	p.last = &r
}

// Wanted is the name of a wait that this pass asked for, "" for none: a handler that completes nevertheless has lost the
// error of its wait.
func (p *Pass) Wanted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// Unasked is the name of the answer that resumed this pass if it was not asked for; "" if it was, or there is none.
func (p *Pass) Unasked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.last.Name == "" || p.asked[waitName(p.last.Name)] {
		return ""
	}
	return p.last.Name
}

// Unused lists, sorted, the answers and pending waitpoints that earlier passes left and this one did not ask for.
func (p *Pass) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unused []string
	names := slices.AppendSeq(slices.Collect(maps.Keys(p.answers)), maps.Keys(p.told))
	if p.last != nil && p.last.Name != "" {
		names = append(names, p.last.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !p.asked[waitName(name)] {
			unused = append(unused, "wait "+name)
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

// ask takes a wait's name for this pass and returns what it was answered, nil if it was not.
func (p *Pass) ask(ctx context.Context, name string) (*engine.Resume, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := p.inside(ctx, "wait "+name); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, fmt.Errorf("wait %s: %w: the handler has returned", name, flowfabric.ErrTaskConsumed)
	}
	if p.asked[waitName(name)] {
		return nil, fmt.Errorf("%w: wait %s was already used in this pass; names are unique (number those of a loop)", flowfabric.ErrInvalidInput, name)
	}
	p.asked[waitName(name)] = true
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
	return &r, nil
}

// checkName accepts 1..128 bytes of printable ASCII, like the names of steps.
func checkName(name string) error {
	if name == "" || len(name) > flowfabric.MaxStepName {
		return fmt.Errorf("%w: wait name %.80q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, name, len(name), flowfabric.MaxStepName)
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return fmt.Errorf("%w: wait name %.80q has byte %#02x at %d, want printable ASCII", flowfabric.ErrInvalidInput, name, name[i], i)
		}
	}
	return nil
}

func (p *Pass) inside(ctx context.Context, what string) error {
	if p.cfg.Inside == nil {
		return nil
	}
	if step := p.cfg.Inside(ctx); step != "" {
		return fmt.Errorf("%w: %s is inside step %s; a step runs without stopping", flowfabric.ErrInvalidInput, what, step)
	}
	return nil
}

// open returns the pending waitpoint of a key, opening it the first time.
func (p *Pass) open(ctx context.Context, key string, life time.Duration) (engine.Opened, error) {
	p.mu.Lock()
	w, ok := p.opened[key]
	p.asked[pendingName(key)] = true
	ended := p.ended
	p.mu.Unlock()
	switch {
	case ended:
		return w, fmt.Errorf("%w: the handler has returned", flowfabric.ErrTaskConsumed)
	case ok:
		return w, nil
	case ctx.Err() != nil:
		return w, context.Cause(ctx)
	}
	w, err := p.create(ctx, key, life)
	if err != nil {
		return w, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened[key] = w
	return w, nil
}

// create mints and stores a waitpoint, again with the partition's own key if it says which that is, which may change meanwhile.
func (p *Pass) create(ctx context.Context, key string, life time.Duration) (engine.Opened, error) {
	fence := p.cfg.Claim.Fence
	for try := 0; ; try++ {
		m, _, err := p.cfg.Keyring.mint(fence.Execution, key)
		if err != nil {
			return engine.Opened{}, err
		}
		if p.cfg.Opener == nil {
			return engine.Opened{ID: m.ID, Key: key, Kid: m.Kid, Nonce: m.Nonce}, nil
		}
		w, err := p.cfg.Opener.CreatePendingWaitpoint(ctx, fence, key, m, life)
		if err == nil {
			return w, nil
		}
		if try < maxRemints && p.learn(fence.Execution.Partition(), err) {
			continue
		}
		if p.cfg.Refused != nil {
			err = p.cfg.Refused(err)
		}
		return w, err
	}
}

// token makes the token of a pending waitpoint. When its key was rotated out and removed, that fails only if the waitpoint still
// takes signals; the token of one that is closed is good for nothing, and is empty then. Only the store knows: neither the name
// of a wait nor the signals that it took tell which waitpoints it closed.
func (p *Pass) token(ctx context.Context, w engine.Opened) (Token, error) {
	id := p.cfg.Claim.Fence.Execution
	token, missing := p.cfg.Keyring.Token(id, w)
	if !errors.Is(missing, flowfabric.ErrNoTokenKeys) || p.cfg.Opener == nil {
		return token, missing
	}
	p.mu.Lock()
	closed := p.closed[w.ID]
	p.mu.Unlock()
	if closed {
		return Token{}, nil
	}
	r, err := p.cfg.Opener.ReadSuspension(ctx, id)
	if err != nil {
		return Token{}, fmt.Errorf("waitpoint %q: its token key %q is not configured; read whether it is still open: %w", w.Key, w.Kid, err)
	}
	open := map[uuid.UUID]bool{}
	for _, stored := range r.Waitpoints { // closed ones are forgotten at last
		open[stored.ID] = stored.State.Open()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.opened {
		p.closed[known.ID] = !open[known.ID]
	}
	if open[w.ID] {
		return Token{}, missing
	}
	return Token{}, nil
}

// learn notes the key that a refusal says is in use, and reports whether it helps to mint again.
func (p *Pass) learn(partition uint16, err error) bool {
	refusal, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || !errors.Is(err, flowfabric.ErrKidNotCurrent) || p.cfg.Keyring.find(refusal.Slot(0)) == nil {
		return false
	}
	p.cfg.Keyring.Use(partition, refusal.Slot(0))
	return true
}

// maxRemints is how often keys may be rotated while one waitpoint is made.
const maxRemints = 3

// Suspension builds the call that a handler's wait asks for. ErrNoTokenKeys when it needs waitpoints and there is no key.
func (p *Pass) Suspension(w *Wanted) (engine.Suspension, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := engine.Suspension{ID: uuid.New(), Name: w.name, Reason: string(w.opts.reason), Timeout: w.opts.within,
		Behaviour: string(w.opts.behaviour), ResumeDelay: w.opts.delay, Condition: w.text}
	for _, key := range w.keys {
		if pending, ok := p.opened[key]; ok {
			q.Bindings = append(q.Bindings, engine.Binding{Minted: engine.Minted{ID: pending.ID, Key: key}, Pending: true})
			continue
		}
		m, _, err := p.cfg.Keyring.mint(p.cfg.Claim.Fence.Execution, key)
		if err != nil {
			return engine.Suspension{}, err
		}
		q.Bindings = append(q.Bindings, engine.Binding{Minted: m})
	}
	return q, nil
}

// Remint makes the fresh waitpoints of a suspension anew after a refusal that says which key is in use. It reports false if
// that cannot help.
func (p *Pass) Remint(q *engine.Suspension, refusal error) bool {
	if !p.learn(p.cfg.Claim.Fence.Execution.Partition(), refusal) {
		return false
	}
	for i, b := range q.Bindings {
		if b.Pending {
			continue
		}
		m, _, err := p.cfg.Keyring.mint(p.cfg.Claim.Fence.Execution, b.Key)
		if err != nil {
			return false
		}
		q.Bindings[i].Minted = m
	}
	return true
}
