package embedded

import (
	"net"
	"sync"
)

// Bounds of an outbox, in bytes.
const (
	mostReplies  = 1 << 20  // then the connection waits before it runs another command
	mostMessages = 32 << 20 // then it is closed, as Redis does (client-output-buffer-limit pubsub)
)

// outbox is what a connection that has subscribed still has to send. A goroutine sends it, so that who publishes
// never waits for a subscriber.
type outbox struct {
	conn     net.Conn
	mu       sync.Mutex
	changed  sync.Cond
	bytes    []byte
	messages int // bytes of them that are messages
	ended    bool
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn}
	o.changed.L = &o.mu
	return o
}

// message adds a message, or closes the connection of a subscriber that is too slow.
func (o *outbox) message(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages+len(b) > mostMessages {
		o.bytes, o.ended = nil, true
		_ = o.conn.Close()
	}
	if !o.ended {
		o.bytes, o.messages = append(o.bytes, b...), o.messages+len(b)
	}
	o.changed.Broadcast()
}

// reply adds replies once there is room.
func (o *outbox) reply(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.bytes) > mostReplies && !o.ended {
		o.changed.Wait()
	}
	if !o.ended {
		o.bytes = append(o.bytes, b...)
	}
	o.changed.Broadcast()
}

// end says that nothing more comes.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.changed.Broadcast()
}

// send sends until the end, and closes the connection.
func (o *outbox) send() {
	defer func() { _ = o.conn.Close() }()
	for spare := []byte(nil); ; {
		o.mu.Lock()
		for len(o.bytes) == 0 && !o.ended {
			o.changed.Wait()
		}
		next := o.bytes
		o.bytes, o.messages = spare[:0], 0
		o.changed.Broadcast()
		o.mu.Unlock()
		if len(next) == 0 {
			return
		}
		if _, err := o.conn.Write(next); err != nil {
			o.end()
			return
		}
		if spare = next; cap(spare) > mostReplies {
			spare = nil
		}
	}
}
