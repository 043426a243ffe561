package chat

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
)

// room is one conversation in this process.
type room struct {
	rooms *rooms
	id    flowfabric.ExecutionID
	end   context.CancelFunc
	ready chan struct{} // closed when what was stored is known, or cannot be

	inside int // of rooms.mu
	timer  *time.Timer

	fold *fold // of the goroutine that runs

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	tapes   []*tape
	state   state
	over    bool  // the tail has ended
	err     error // why, if the execution had not
}

// state is what a snapshot has beside messages.
type state struct {
	doing    doing
	next     bool // it answers something that was not told yet
	asks     []asking
	state    flowfabric.PublicState
	document []byte
	attempt  uint32
	at       stream.Position
}

// run follows the conversation until its end, or until the room is closed.
func (m *room) run(ctx context.Context) {
	err := m.tail(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.err = true, err
	if ctx.Err() != nil {
		m.err = io.EOF
	}
	select {
	case <-m.ready:
	default:
		close(m.ready)
	}
	m.stir()
}

// stir wakes all that wait for a change. The caller holds mu.
func (m *room) stir() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tail reads the stored events, and then follows new ones.
func (m *room) tail(ctx context.Context) error {
	if err := m.catchUp(ctx); err != nil {
		return err
	}
	close(m.ready)
	if m.fold.teller.doing == doingEnded {
		return nil
	}
	for e, err := range m.rooms.cfg.client.Execution(m.id).Tail(ctx, client.From(m.fold.at)) {
		if err != nil {
			return err
		}
		o := m.fold.add(e)
		if o.state != nil && !m.fold.lost {
			state, ok := m.fold.summary(e.Attempt, *o.state)
			if t := m.fold.teller; state.kind != 0 && t.open == "" {
				t.held = append(t.held, state) // for readers of the next message of the assistant
			} else if state.kind != 0 {
				o.told = []event{state}
			}
			m.fold.lost = !ok
		}
		if err := m.heed(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// catchUp reads what is stored, and the input of the link that it is of.
func (m *room) catchUp(ctx context.Context) error {
	x := m.rooms.cfg.client.Execution(m.id)
	for {
		s, err := x.Get(ctx)
		if err != nil {
			return err
		}
		m.fold = newFold()
		reread := false
		for e, err := range x.Tail(ctx, client.Stored()) {
			if err != nil {
				return err
			}
			o := m.fold.add(e)
			reread = (reread || o.reread) && !o.relink
			m.fold.lost = m.fold.lost || o.state != nil
		}
		b, err := m.rooms.cfg.begin(ctx, m.id)
		if err != nil {
			return err
		}
		if b.continues != s.Continues { // another link began meanwhile
			continue
		}
		m.fold.link = s.Continues
		m.fold.enter(b)
		return m.heed(ctx, outcome{anew: true, reread: reread || m.fold.trimmed})
	}
}

// heed applies the outcome of an event of the tail.
func (m *room) heed(ctx context.Context, o outcome) error {
	cfg := m.rooms.cfg
	if o.relink {
		b, err := cfg.begin(ctx, m.id)
		if err != nil {
			return err
		}
		m.fold.enter(b)
	}
	if o.reread {
		r, err := agent.ReadTranscript(ctx, cfg.client, m.id, cfg.transcript)
		if err != nil {
			return err
		}
		m.fold.read(r.Messages)
		o.anew, o.loose = true, true
	}
	var from string
	if o.anew {
		o.told, from = beyond(m.events(), m.fold.again(), o.loose)
	}
	if m.fold.lost {
		m.fold.lost = false
		s, err := cfg.client.Execution(m.id).Summary(ctx)
		if err != nil && !errors.Is(err, flowfabric.ErrNotFound) {
			return err
		}
		if err == nil && !s.Encrypted {
			o.told = append(o.told, m.fold.whole(s))
		}
	}
	m.put(o.told, from)
	return nil
}

// glance is what a room does now, without what was said.
type glance struct {
	state
	messages int
	changed  <-chan struct{} // closed when something is told after it
	over     bool            // nothing will be
}

func (m *room) glance() glance {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := glance{state: m.state, changed: m.changed, over: m.over}
	for _, t := range m.tapes {
		if t.role != "" {
			g.messages++
		}
	}
	return g
}

// settled waits until the room has heard of an attempt, and that questions of these ids or keys are over, or until it
// hears of nothing any more.
func (m *room) settled(ctx context.Context, attempt uint32, asks ...string) error {
	for {
		s := m.glance()
		open := slices.ContainsFunc(s.asks, func(a asking) bool {
			return slices.Contains(asks, a.ID) || slices.Contains(asks, a.Key)
		})
		if s.attempt >= attempt && !open || s.over {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// retold does something with a conversation. If that fails while what was dropped is not told again yet, it is done
// again when it is: another tab has edited, or wants another answer.
func (m *room) retold(ctx context.Context, do func(snapshot) error) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		before := m.glance()
		err := do(m.snapshot())
		if err == nil || !before.next || before.over {
			return err
		}
		select {
		case <-before.changed:
		case <-ctx.Done():
			return err
		}
	}
}
