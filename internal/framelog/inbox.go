package framelog

import (
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/stream"
)

// Bounds of what waits for one tailer. One message is far smaller.
const (
	inboxFrames = 256
	inboxBytes  = 1 << 20
)

// message is what one append published; its frames are shared by all tailers.
type message struct {
	attempt uint32
	frames  []stream.Frame
	resumed *stream.Resumption // the run that begins with them
	bytes   int

	told []atomic.Pointer[Event] // of each frame, as the first tailer that needed it made it
}

// news is why a tailer wakes, beside messages.
type news uint8

const (
	newsState  news = 1 << iota // a transition was published: look at the attempt's state
	newsBehind                  // something may be missing: read from the cursor
)

// inbox is the bounded queue between a feed and one tailer. The feed never waits: what does not fit is dropped
// and the tailer told to read it.
type inbox struct {
	signal chan struct{} // capacity 1

	mu     sync.Mutex
	queue  []message
	frames int
	bytes  int
	news   news
	err    error // ends the tail
}

// newInbox makes one that rings a signal of capacity 1, nil for one of its own.
func newInbox(signal chan struct{}) *inbox {
	if signal == nil {
		signal = make(chan struct{}, 1)
	}
	return &inbox{signal: signal}
}

func (b *inbox) push(m message) {
	b.mu.Lock()
	switch {
	case b.news&newsBehind != 0: // it is going to read anyway
	case b.frames+len(m.frames) > inboxFrames || b.bytes+m.bytes > inboxBytes:
		b.drop()
		b.news |= newsBehind
	default:
		b.queue = append(b.queue, m)
		b.frames += len(m.frames)
		b.bytes += m.bytes
	}
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) drop() { b.queue, b.frames, b.bytes = nil, 0, 0 }

// tell adds news; after newsBehind what is queued need not be kept.
func (b *inbox) tell(n news) {
	b.mu.Lock()
	b.news |= n
	if n&newsBehind != 0 {
		b.drop()
	}
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// waiting tells whether there is something to take.
func (b *inbox) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) > 0 || b.news != 0 || b.err != nil
}

// take empties the inbox.
func (b *inbox) take() (messages []message, n news, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, n, err = b.queue, b.news, b.err
	b.drop()
	b.news = 0
	return messages, n, err
}

// caughtUp forgets that something may be missing; called before a range read, which covers everything that was
// published until then.
func (b *inbox) caughtUp() {
	b.mu.Lock()
	b.news &^= newsBehind
	b.mu.Unlock()
}
