package chat

import (
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric-go/agent"
)

// tape has the events of one message.
type tape struct {
	id   string
	role agent.Role // "" of what belongs to no message
	told []*told
	done bool
	next *tape // behind a tape that is done
}

// told is an event with its encodings, which all readers share.
type told struct {
	event
	mu    sync.Mutex
	texts []written
}

type written struct {
	form string
	text []byte
}

// text is the encoding of the event in a form. It must depend on the event and the form alone. The first reader that
// needs it calls write; no reader may change it.
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

// put adds events. If from is not "", it first drops the events of that message and all behind it.
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

// open begins the tape of a message, and compacts the one before it.
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

// drop makes the events of a message and all behind it void.
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

// events are all events that are not void.
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

// standing leaves out calls that were never complete: no record has them.
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
