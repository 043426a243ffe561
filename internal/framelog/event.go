package framelog

import (
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/stream"
)

// Event is an event of a tail on its way to one of many readers. One of a frame that was published is the same for all
// who follow, and they share what it is written as. It is valid until the reader asks for the next one.
type Event struct {
	stream.TailEvent
	// Idle tells that nothing more is ready: a reader who collects events passes them on now. Nothing else is set.
	Idle bool

	shared bool
	run    uint32 // if it is shared: the last run that its readers were told of
	mu     sync.Mutex
	texts  atomic.Pointer[text]
}

// text is one form that an event was written in.
type text struct {
	form  string
	bytes []byte
	next  *text
}

var idle = &Event{Idle: true}

// Text is the event in a form, as write makes it. The first reader of a shared event who asks for the form has it
// made, and all others get the same bytes, which nobody may change. A form names what write makes of an event, in all
// of the process. write must not keep the event.
func (e *Event) Text(form string, write func(stream.TailEvent) []byte) []byte {
	if !e.shared {
		return write(e.TailEvent)
	}
	if made := e.made(form); made != nil {
		return made.bytes
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	made := e.made(form)
	if made == nil {
		made = &text{form, write(e.TailEvent), e.texts.Load()}
		e.texts.Store(made)
	}
	return made.bytes
}

func (e *Event) made(form string) *text {
	at := e.texts.Load()
	for at != nil && at.form != form {
		at = at.next
	}
	return at
}
