package chat

import (
	"context"
	"io"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
)

// place is where a follower begins. The zero value is the beginning of the message that is being answered now.
type place struct {
	answerTo string          // id of a message of the user: where its answer begins, as soon as it does
	behind   stream.Position // that of an event of a message: behind it; if it is not known, as if it were ""
	// now begins behind all events so far, in the last message.
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

// follower reads events from its place on. A slow one does not delay others. It is for one goroutine.
type follower struct {
	room  *room
	at    place
	tape  *tape // nil: the place is waited for
	found bool  // it continues behind an event
	// unheard says that the execution ended before it got the message whose answer is expected.
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
