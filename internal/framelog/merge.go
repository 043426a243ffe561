package framelog

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/stream"
)

const (
	// mergeEvery is the pause between looks for what a merge has to know before it goes on. A writer collects longer.
	mergeEvery = 10 * time.Millisecond
	// mergeAtMost is how long an event waits for others that may come before it. It waits so long only after the
	// server's clock was set back.
	mergeAtMost = time.Second
)

// poll is what a merge and the tailer of one of its sources tell each other. The tailer does not wait: where it would,
// it yields that it is idle, and when it is asked again it looks.
type poll struct {
	box  *inbox
	past time.Time // the look must tell of later than this; zero: of half a second ago
	now  time.Time // of the server, when everything was yielded that had happened
	rest Event
}

func (p *poll) idle() *Event {
	p.rest.Idle, p.rest.At = true, p.now
	return &p.rest
}

func (p *poll) look() look {
	if p.past.IsZero() {
		return lookGlance
	}
	return lookPast
}

// merge shows the events of announced children among those of the execution that made them. Each source is a tail of
// its own. All executions of a merge are of one partition, whose clock says when each event was: the id of a frame, or
// the instant of what is told. The merge yields the event with the least instant, and of equal ones that of a child
// before that of its parent, and of siblings in the order in which they were announced. An event that is earlier than
// the last one that was told counts as of the same instant.
// It yields an event only if no other source can have one that comes before it: each has another event ready, or was
// looked at later. So the order follows from what the sources have, whoever reads and whenever.
//
// TailGap and TailRetry, which only some readers are told, come as soon as their source has them.
type merge struct {
	h       *Hub
	ctx     context.Context
	durable bool
	stored  bool
	yield   func(*Event, error) bool
	wake    chan struct{}
	timer   *time.Timer
	sources []*source // each after its children, which are in the order in which they were announced
	clock   uint64    // ms of the last event
	seen    uint64    // ms of the server's clock that have passed
	own     Event
	text    []byte
	busy    bool
	late    time.Time // since when the first event waits for others
	looked  time.Time // for its sake
}

// source is one tail of a merge.
type source struct {
	id     flowfabric.ExecutionID
	parent *source
	child  *stream.Child // nil of the execution itself
	tag    string        // of its positions
	at     string        // its position behind the last event of it
	poll   poll
	next   func() (*Event, error, bool)
	stop   func()

	head   *Event // the next event
	key    uint64 // its ms
	idle   bool   // there was no next one
	absent bool   // because it does not exist yet
	known  uint64 // everything before this ms was yielded
	held   bool   // the next event announces a child for which there is no room
	purged bool   // the next event says that nothing is left
}

// merge goes on at a place until no child is open. Then it returns errAlone, and place is where to go on.
func (h *Hub) merge(ctx context.Context, id flowfabric.ExecutionID, o TailOptions, place *tailpos.Merged,
	yield func(*Event, error) bool) (err error) {
	m := &merge{h: h, ctx: ctx, durable: o.WithoutBestEffort, stored: o.Stored, yield: yield,
		wake: make(chan struct{}, 1), timer: time.NewTimer(lookEvery), clock: place.Clock}
	defer m.timer.Stop()
	own := &source{id: id, at: tailpos.Text(place.Own)}
	defer func() {
		m.remove(own)
		place.Own, _ = tailpos.Parse(own.at) // which a tail has made
		place.Children = nil
	}()
	m.add(0, own, TailOptions{Attempt: o.Attempt})
	for _, c := range place.Children { // see position
		m.open(0, m.sources[len(m.sources)-1-c.Parent], tailpos.Child{ID: c.ID, Name: c.Name, At: c.At})
	}
	for {
		if err := m.fill(); err != nil {
			return err
		}
		s := m.first()
		switch {
		case len(m.sources) == 1 && (s == nil || !s.announces()):
			return errAlone
		case s != nil:
			err = m.settle(s)
		case m.stored:
			return errDone
		default:
			err = m.wait()
		}
		if err != nil {
			return err
		}
	}
}

// open follows a child from its place on, as the ith source.
func (m *merge) open(i int, parent *source, c tailpos.Child) {
	id := flowfabric.ExecutionID(ids.Join(parent.id.Partition(), c.ID))
	s := &source{id: id, parent: parent, tag: tailpos.Tag(c.ID, c.Name), at: tailpos.Text(c.At),
		child: &stream.Child{Path: []string{c.Name}, ID: id}}
	if parent.child != nil {
		s.child.Path = append(slices.Clone(parent.child.Path), c.Name)
	}
	m.add(i, s, TailOptions{})
}

func (m *merge) add(i int, s *source, o TailOptions) {
	o.From, o.WithoutBestEffort = stream.Position(s.at), m.durable
	s.next, s.stop = iter.Pull2(func(yield func(*Event, error) bool) {
		err := m.tail(s, o, yield)
		if err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errDone) {
			yield(nil, err)
		}
	})
	m.sources = slices.Insert(m.sources, i, s)
}

// tail is that of a source.
func (m *merge) tail(s *source, o TailOptions, yield func(*Event, error) bool) error {
	f, box, err := m.h.join(s.id, m.wake)
	if err != nil {
		return err
	}
	defer m.h.leave(f, box)
	s.poll.box = box
	t := &tailer{ctx: m.ctx, feed: f, box: box, yield: yield, cursor: PlaceAt(stream.Cursor{}), poll: &s.poll,
		durable: o.WithoutBestEffort, only: o.Attempt != nil}
	if err = t.place(o); err == nil {
		err = t.run()
	}
	return err
}

// remove ends a source and those below it.
func (m *merge) remove(s *source) {
	for i := len(m.sources) - 1; i >= 0; i-- {
		for at := m.sources[i]; at != nil; at = at.parent {
			if at == s {
				m.sources[i].stop()
				m.sources = slices.Delete(m.sources, i, i+1)
				break
			}
		}
	}
	for _, s := range m.sources {
		s.held = false
	}
}

// fill asks the sources that may have an event.
func (m *merge) fill() error {
	for i := 0; i < len(m.sources); i++ {
		if s := m.sources[i]; s.head == nil && !s.idle {
			over, err := m.ask(s)
			if err != nil {
				return err
			}
			if over {
				i = -1
			}
		}
	}
	return nil
}

// ask takes the next event of a source. over is true of a child that has none any more, and is not followed.
func (m *merge) ask(s *source) (over bool, err error) {
	before := m.seen
	e, err, more := s.next()
	switch {
	case err != nil && s.child != nil && (errors.Is(err, flowfabric.ErrNotFound) ||
		errors.Is(err, flowfabric.ErrResultPurged)):
		at, _ := tailpos.Parse(s.at)
		s.head, s.key, s.purged = &Event{TailEvent: stream.TailEvent{Kind: stream.TailGap, Reason: "purged",
			Attempt: max(1, at.Attempt), Position: stream.Position(s.at)}}, 0, true
	case err != nil:
		return false, err
	case !more && s.child == nil:
		return false, errDone
	case !more:
		m.remove(s)
		return true, nil
	case e.Idle:
		s.idle, s.absent, s.poll.past = true, e.At.IsZero(), time.Time{}
		if s.absent {
			s.known = max(s.known, before)
		} else {
			s.known = max(s.known, uint64(e.At.UnixMilli()))
			m.seen = max(m.seen, s.known)
		}
	default:
		s.head, s.key, s.idle = e, instant(&e.TailEvent), false
		m.seen = max(m.seen, s.key)
	}
	return false, nil
}

// instant is when an event was, in ms of the server's clock; 0 if it has no place among others.
func instant(e *stream.TailEvent) uint64 {
	switch e.Kind {
	case stream.TailFrame:
		return e.Frame.ID.Ms
	case stream.TailResumed:
		return e.Resumed.First.Ms
	case stream.TailGap, stream.TailRetry:
		return 0
	}
	if e.At.IsZero() {
		return 0
	}
	return uint64(e.At.UnixMilli())
}

func (s *source) announces() bool {
	return s.head.Kind == stream.TailFrame && s.head.Frame.Type == limits.FrameOfChild
}

// first is the source whose event comes next, if that is known of it.
func (m *merge) first() (first *source) {
	for _, s := range m.sources {
		if s.head != nil && !s.held && (first == nil || max(s.key, m.clock) < max(first.key, m.clock)) {
			first = s
		}
	}
	return first
}

// settle yields the event of the first source, or learns more of those that may come before it.
func (m *merge) settle(s *source) error {
	key, before := max(s.key, m.clock), true
	var behind []*source
	for _, other := range m.sources {
		if other == s {
			before = false
		} else if other.head == nil && (other.known < key || before && other.known == key) {
			behind = append(behind, other)
		}
	}
	if len(behind) == 0 || s.key == 0 || !m.late.IsZero() && time.Since(m.late) > mergeAtMost {
		m.late = time.Time{}
		return m.pass(s, key)
	}
	if m.late.IsZero() {
		m.late = time.Now()
	}
	if err := m.pause(mergeEvery - time.Since(m.looked)); err != nil {
		return err
	}
	m.looked = time.Now()
	if slices.ContainsFunc(behind, func(s *source) bool { return s.absent }) {
		if err := m.look(); err != nil {
			return err
		}
	}
	for _, other := range behind {
		if !slices.Contains(m.sources, other) { // its parent is over
			continue
		}
		other.poll.past = time.UnixMilli(int64(key))
		if _, err := m.ask(other); err != nil {
			return err
		}
	}
	return nil
}

// look asks for the server's time. What does not exist afterwards had no event before.
func (m *merge) look() error {
	meta, err := m.h.src.ReadAttemptStream(m.ctx, m.sources[len(m.sources)-1].id, 1)
	if err == nil {
		m.seen = max(m.seen, uint64(meta.Now.UnixMilli()))
	} else if flowfabric.Retryable(err) { // the sources go on trying
		err = nil
	}
	return err
}

// pass yields the event of a source.
func (m *merge) pass(s *source, key uint64) error {
	e := s.head
	if s.announces() && m.hold(s) {
		return nil
	}
	m.clock, s.known = max(m.clock, key), max(s.known, s.key)
	s.at, s.head = string(e.Position), nil
	if e.Kind == stream.TailFrame && e.Frame.Type == limits.FrameOfChild {
		m.announced(s, e.Frame)
		return nil
	}
	m.own.TailEvent = e.TailEvent
	m.own.Child = s.child
	switch {
	case s.purged || e.Kind == stream.TailEnd && s.child != nil:
		m.remove(s)
	case e.Kind == stream.TailEnd:
		for len(m.sources) > 1 {
			m.remove(m.sources[0])
		}
	}
	m.own.Position = m.position()
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	m.busy = true
	if !m.yield(&m.own, nil) {
		return errLeft
	}
	return nil
}

// hold makes a source wait that announces a child for which there is no room. If all children wait so, none of them can
// end, and the first one goes on without the child that it has announced.
func (m *merge) hold(s *source) bool {
	if len(m.sources) <= limits.MaxTailed || m.followed(s) || s.child != nil &&
		len(s.child.Path) == limits.MaxTailedDepth {
		return false
	}
	s.held = true
	for _, other := range m.sources[:len(m.sources)-1] {
		if !other.held {
			return true
		}
	}
	first := m.sources[0]
	first.at, first.head, first.held = string(first.head.Position), nil, false
	return true
}

// followed tells whether the child that a source announces is open already.
func (m *merge) followed(s *source) bool {
	return slices.ContainsFunc(m.sources, func(other *source) bool {
		return other.id.String() == s.head.Frame.Correlation
	})
}

// announced follows a child that its parent has announced, unless it does already.
func (m *merge) announced(parent *source, f stream.Frame) {
	id, err := flowfabric.ParseExecutionID(f.Correlation)
	if err != nil || f.Source == "" || len(f.Source) > limits.MaxName || id.Partition() != parent.id.Partition() ||
		parent.child != nil && len(parent.child.Path) == limits.MaxTailedDepth ||
		slices.ContainsFunc(m.sources, func(s *source) bool { return s.id == id }) {
		return
	}
	m.open(slices.Index(m.sources, parent), parent, tailpos.Child{ID: ids.UUID(id), Name: f.Source})
}

// position is behind what was yielded of all sources. It has the last one first: each before its children.
func (m *merge) position() stream.Position {
	last := len(m.sources) - 1
	if last == 0 {
		return stream.Position(m.sources[0].at)
	}
	m.text = tailpos.Head(m.text[:0], m.clock, m.sources[last].at)
	for i := last - 1; i >= 0; i-- {
		s := m.sources[i]
		m.text = tailpos.Append(m.text, last-slices.Index(m.sources, s.parent), s.tag, s.at)
	}
	return stream.Position(m.text)
}

// rest tells the consumer, once, that nothing more is ready.
func (m *merge) rest() error {
	if m.busy && !m.yield(idle, nil) {
		return errLeft
	}
	m.busy = false
	return nil
}

// pause lets time pass in which more may come.
func (m *merge) pause(d time.Duration) error {
	if err := m.rest(); err != nil || d <= 0 {
		return err
	}
	m.timer.Reset(d)
	select {
	case <-m.timer.C:
		return nil
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
}

// wait returns when a source may have an event.
func (m *merge) wait() error {
	if err := m.rest(); err != nil {
		return err
	}
	m.timer.Reset(lookEvery)
	select {
	case <-m.wake:
		for _, s := range m.sources {
			s.idle = s.idle && !s.poll.box.waiting()
		}
	case <-m.timer.C:
		for _, s := range m.sources {
			s.idle = false
		}
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
	return nil
}
