package chat

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
)

// linger is how long a room stays open after its last user has left.
const linger = 20 * time.Second

// roomsConfig is what rooms need of a handler.
type roomsConfig struct {
	client     *client.Client
	begin      func(ctx context.Context, id flowfabric.ExecutionID) (begin, error)
	transcript agent.TranscriptOptions
}

// begin has the messages in the input of the current link of an execution, and how often it had continued.
type begin struct {
	messages  []agent.Message
	continues int
}

// rooms are the conversations that this process follows: one tail each, for all readers.
type rooms struct {
	cfg   roomsConfig
	ctx   context.Context
	end   context.CancelFunc
	group conc.WaitGroup

	mu     sync.Mutex
	closed bool
	all    map[flowfabric.ExecutionID]*room
}

func newRooms(cfg roomsConfig) *rooms {
	ctx, end := context.WithCancel(context.Background())
	return &rooms{cfg: cfg, ctx: ctx, end: end, all: map[flowfabric.ExecutionID]*room{}}
}

// close ends all rooms and returns when their goroutines have ended.
func (r *rooms) close() {
	r.mu.Lock()
	r.closed = true
	r.end()
	for _, m := range r.all {
		m.stopTimer()
	}
	r.mu.Unlock()
	r.group.Wait()
}

// enter opens the room of a conversation, or finds it open. It returns when the room knows all that was stored before
// the room was opened. The caller leaves it.
func (r *rooms) enter(ctx context.Context, id flowfabric.ExecutionID) (*room, error) {
	m, err := r.take(id)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		m.leave()
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	err = m.err
	m.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = client.ErrClosed
	}
	if err != nil {
		m.leave()
		return nil, err
	}
	return m, nil
}

// take is the room of a conversation that is not over.
func (r *rooms) take(id flowfabric.ExecutionID) (*room, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, client.ErrClosed
	}
	m := r.all[id]
	if m != nil && m.isOver() {
		m.stopTimer()
		m.end() // the execution may have been brought back since
		m = nil
	}
	if m == nil {
		ctx, end := context.WithCancel(r.ctx)
		m = &room{rooms: r, id: id, end: end, ready: make(chan struct{}), changed: make(chan struct{}),
			fold: newFold()}
		r.all[id] = m
		r.group.Go(func() { m.run(ctx) })
	}
	m.inside++
	m.stopTimer()
	return m, nil
}

// leave closes a room a while after its last user has left.
func (m *room) leave() {
	r := m.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	m.inside--
	if m.inside > 0 {
		return
	}
	if r.closed || m.isOver() {
		m.close()
		return
	}
	m.timer = time.AfterFunc(linger, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if m.inside == 0 {
			m.close()
		}
	})
}

// close ends an empty room. The caller holds rooms.mu.
func (m *room) close() {
	m.end()
	if m.rooms.all[m.id] == m {
		delete(m.rooms.all, m.id)
	}
}

// stopTimer keeps a room open. The caller holds rooms.mu.
func (m *room) stopTimer() {
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
}

func (m *room) isOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}
