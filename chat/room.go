package chat

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
)

// linger is how long a room stays open when the last one has left.
const linger = 20 * time.Second

// begin is what the current link of an execution began with: the messages of its input, and how often it had continued.
type begin struct {
	messages  []agent.Message
	continues int
}

// roomsConfig is what rooms need of a handler.
type roomsConfig struct {
	client     *client.Client
	begin      func(ctx context.Context, id flowfabric.ExecutionID) (begin, error)
	transcript agent.TranscriptOptions
}

// rooms are the conversations that are followed in this process: one tail each, however many follow.
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

// tape has what is told of one message.
type tape struct {
	id   string
	role agent.Role // "" of what belongs to no message
	told []*told
	done bool
	next *tape // behind a tape that is done
}

// told is an event with what it was written as, which all readers share.
type told struct {
	event
	mu    sync.Mutex
	texts []written
}

type written struct {
	form string
	text []byte
}

// text is the event in a form, as write makes it, which must depend on the event and the form alone. The first reader
// who asks has it made; nobody may change it.
func (t *told) text(form string, write func(event) []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.texts {
		if w.form == form {
			return w.text
		}
	}
	text := write(t.event)
	t.texts = append(t.texts, written{form, text})
	return text
}

// leave lets a room close, a while after the last one has left.
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

// close ends a room that nobody is in. The caller holds rooms.mu.
func (m *room) close() {
	m.end()
	if m.rooms.all[m.id] == m {
		delete(m.rooms.all, m.id)
	}
}

// stopTimer has a room stay open. The caller holds rooms.mu.
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

// stir wakes all who wait for a change. The caller holds mu.
func (m *room) stir() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tail reads what is stored, and goes on with what comes.
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
				t.held = append(t.held, state) // for who reads the next message of the assistant
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

// heed does what follows from an event of the tail.
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

// events are all that was told and stands.
func (m *room) events() (all []event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tapes {
		for _, e := range t.told {
			all = append(all, e.event)
		}
	}
	return all
}

// put tells events. If from is not "", what was told of that message and behind it is void before.
func (m *room) put(events []event, from string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from != "" {
		m.drop(from)
	}
	for _, e := range events {
		if last := m.last(); last == nil || e.kind == kindSaid || e.kind == kindBegan {
			m.open(e)
		}
		last := m.last()
		last.told = append(last.told, &told{event: e})
	}
	t := m.fold.teller
	m.state = state{doing: t.doing, asks: t.asks, state: t.state, document: m.fold.document, attempt: m.fold.attempt,
		at: m.fold.at}
	if m.fold.working && t.doing != doingAnswer && t.doing != doingEnded {
		m.state.doing, m.state.next = doingAnswer, true
	}
	m.stir()
}

func (m *room) last() *tape {
	if len(m.tapes) == 0 {
		return nil
	}
	return m.tapes[len(m.tapes)-1]
}

// drop takes a message and all behind it back.
func (m *room) drop(from string) {
	last := m.last()
	last.told = append(last.told, &told{event: event{kind: kindDropped, at: m.fold.at, last: true, message: from}})
	last.done, last.next = true, &tape{}
	n := 0
	for n < len(m.tapes) && m.tapes[n].id != from {
		n++
	}
	m.tapes = append(m.tapes[:n:n], last.next)
	if n > 0 {
		m.tapes[n-1].done, m.tapes[n-1].next = true, last.next
	}
}

// open begins the tape of a message, and makes the one before it short.
func (m *room) open(e event) {
	next := &tape{id: e.message}
	switch e.kind {
	case kindSaid:
		next.role = agent.User
	case kindBegan:
		next.role = agent.Assistant
	}
	last := m.last()
	if last == nil {
		m.tapes = append(m.tapes, next)
		return
	}
	if last.role == "" && len(last.told) == 0 {
		last.id, last.role = next.id, next.role
		return
	}
	last.done, last.next = true, next
	m.tapes = append(m.tapes, next)
	if last.role != agent.Assistant {
		return
	}
	var events []event
	for _, t := range last.told {
		events = append(events, t.event)
	}
	short := &tape{id: last.id, role: last.role, done: true, next: next}
	for _, e := range compact(events) {
		if e.lasts() {
			short.told = append(short.told, &told{event: e})
		}
	}
	n := len(m.tapes) - 2
	m.tapes[n] = short
	if n > 0 {
		m.tapes[n-1].next = short
	}
}

// snapshot is the conversation as it stands now.
func (m *room) snapshot() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := snapshot{doing: m.state.doing, asks: m.state.asks, state: m.state.state, document: m.state.document,
		attempt: m.state.attempt, at: m.state.at, changed: m.changed}
	for _, t := range m.tapes {
		if t.role == "" {
			continue
		}
		one := message{id: t.id, role: t.role}
		for _, e := range t.told {
			if e.kind == kindSaid {
				one.said = e.said
			}
			one.events = append(one.events, e.event)
		}
		one.events = standing(one.events)
		s.messages = append(s.messages, one)
	}
	return s
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

// standing leaves out calls that were never whole: no record has them.
func standing(events []event) []event {
	type id struct {
		step int
		call string
	}
	broken := map[id]bool{}
	for _, e := range events {
		if e.unmade() {
			broken[id{e.step, e.call.ID}] = true
		}
	}
	if len(broken) == 0 {
		return events
	}
	return slices.DeleteFunc(events, func(e event) bool { return e.call.ID != "" && broken[id{e.step, e.call.ID}] })
}

// place is where a follower begins. The zero value is the beginning of the message that is being answered now.
type place struct {
	answerTo string          // id of a message of the user: where its answer begins, as soon as it does
	behind   stream.Position // that of an event of a message: behind it; if it is not known, as if it were ""
	// now begins behind everything that was told before the call, in the message that is told last.
	now bool
	// attempt is the least one that must have been heard of, for what follows a rewind: client.Rewound.Attempt.
	attempt uint32
}

// follow begins to read at a place. It returns nil if there is neither answerTo nor now, and nothing is being answered.
// It waits for nothing: next does.
func (m *room) follow(at place) *follower {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &follower{room: m, at: at}
	last := m.last()
	f.found = at.behind != "" && f.find(at.behind)
	switch {
	case f.found:
	case at.now, at.answerTo == "" && m.state.next:
		if last == nil {
			last = &tape{}
			m.tapes = append(m.tapes, last)
		}
		f.tape, f.read = last, len(last.told)
	case at.answerTo != "":
	case m.state.doing != doingAnswer:
		return nil
	case last == nil || last.role == agent.Assistant:
		f.tape = last
	default: // maybe behind what was dropped
		for _, t := range m.tapes {
			if t.role == agent.User {
				f.at.answerTo = t.id
			}
		}
	}
	if f.tape == nil && f.at.answerTo == "" {
		return nil
	}
	return f
}

// follower reads what is told, from its place on: a slow one holds up nobody. It is for one goroutine.
type follower struct {
	room  *room
	at    place
	tape  *tape // nil: the place is waited for
	found bool  // it goes on behind an event
	// unheard says that the execution has ended before it heard the message whose answer is waited for.
	unheard bool
	read    int
}

// find begins behind an event.
func (f *follower) find(behind stream.Position) bool {
	for _, t := range f.room.tapes {
		for n, e := range t.told {
			if e.last && e.event.at == behind {
				f.tape, f.read = t, n+1
			}
		}
	}
	return f.tape != nil
}

// seek finds the place that is waited for.
func (f *follower) seek() {
	m := f.room
	if m.state.attempt < f.at.attempt {
		return
	}
	said := false
	for _, t := range m.tapes {
		said = said || t.role == agent.User && t.id == f.at.answerTo
		if said && t.role == agent.Assistant {
			f.tape = t
			return
		}
	}
	if last := m.last(); m.state.doing == doingEnded && last != nil {
		f.tape, f.read, f.unheard = last, max(0, len(last.told)-1), !said // its end
	}
}

// next are the next events, at least one; it waits for them until ctx ends. io.EOF comes behind the last event of an
// execution that has ended, and when the rooms close; an error is that of the tail.
func (f *follower) next(ctx context.Context) ([]*told, error) {
	m := f.room
	for {
		m.mu.Lock()
		if f.tape == nil {
			f.seek()
		}
		for f.tape != nil && f.read >= len(f.tape.told) && f.tape.done {
			f.tape, f.read = f.tape.next, 0
		}
		if f.tape != nil && f.read < len(f.tape.told) {
			ready := f.tape.told[f.read:len(f.tape.told):len(f.tape.told)]
			f.read = len(f.tape.told)
			m.mu.Unlock()
			return ready, nil
		}
		changed, over, err := m.changed, m.over, m.err
		m.mu.Unlock()
		if over {
			if err == nil {
				err = io.EOF
			}
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
