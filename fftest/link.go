package fftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

var errCut = errors.New("fftest: the network is down")

// link is the network between one worker process, or the client, and the store. It reads along with what is sent, so
// that it can break at a chosen call.
type link struct {
	dial    inproc.Dialer
	journal *journal
	died    func() // told, on a connection's goroutine, that the journal's crash has come; nil: the client's link
	wrote   func() // of the client's link: told that something is about to change; else nil
	crashed bool   // guarded by journal.mu

	sent atomic.Int64 // requests, of a worker's link
	over atomic.Bool  // the crash has come: no answer reaches the worker any more, however soon the server gives it

	// sending is held for reading from when the journal notes a request until the server has it: a worker does not
	// die in between, as what is noted counts as recorded.
	sending sync.RWMutex

	mu    sync.Mutex
	down  bool
	conns map[*conn]struct{}
}

// connect is the link's [inproc.Dialer].
func (l *link) connect(ctx context.Context) (net.Conn, error) {
	inner, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, link: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = inner.Close()
		return nil, errCut
	}
	if l.conns == nil {
		l.conns = map[*conn]struct{}{}
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// cut breaks all connections, between two requests, and refuses new ones until restore.
func (l *link) cut() {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		_ = c.Conn.Close()
	}
	l.conns = nil
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// conn is one connection. Only one goroutine at a time writes to it.
type conn struct {
	net.Conn
	link    *link
	partial []byte // the beginning of a request
	reading sync.Mutex
	last    bool // the crash came over this one; set before link.over
	drained bool // guarded by reading
}

// Behind the last requests of a worker that dies, a connection asks for this text: once it is back, the server has
// carried them out. Until then the next worker must not come, or what counts as recorded might not be.
const lastWord = "fftest: this was the last request"

var lastRequest = fmt.Appendf(nil, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(lastWord), lastWord)

// Write sends the requests in p, all of them or those before the crash.
func (c *conn) Write(p []byte) (int, error) {
	late, crashed, err := c.send(p)
	if err != nil {
		return 0, err
	}
	for _, victim := range late {
		victim.died()
	}
	if crashed {
		c.reading.Lock() // a reader that waits for an answer lets go of it when the last one is there
		c.drain(nil)
		c.reading.Unlock()
		c.link.died()
		return 0, errCut
	}
	return len(p), nil
}

// Read returns what the server answers, and nothing that it answers after the crash.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if !c.link.over.Load() {
		n, err := c.Conn.Read(p)
		if !c.link.over.Load() {
			return n, err
		}
		c.drain(p[:n])
	}
	return 0, errCut
}

// drain reads what the server still answers, up to the last word; read is what was read of it before. The caller holds
// reading.
func (c *conn) drain(read []byte) {
	answers, buffer := bytes.Clone(read), make([]byte, 4096)
	for c.last && !c.drained {
		if bytes.Contains(answers, []byte(lastWord)) {
			c.drained = true
			return
		}
		n, err := c.Conn.Read(buffer)
		answers = append(answers, buffer[:n]...)
		c.drained = err != nil
	}
}

// send notes and sends the requests in p, those before the crash if there is one. late are who dies of what was sent.
func (c *conn) send(p []byte) (late []*link, crashed bool, err error) {
	c.link.sending.RLock()
	defer c.link.sending.RUnlock()
	c.partial = append(c.partial, p...)
	whole := 0
	for !crashed {
		args, size := parseRequest(c.partial[whole:])
		if size == 0 {
			break
		}
		deliver := true
		if c.link.died != nil {
			deliver, crashed = c.link.journal.note(c.link, args)
		} else if victim := c.outside(args); victim != nil {
			late = append(late, victim)
		}
		if deliver {
			whole += size
		}
	}
	if crashed && !c.link.over.Load() {
		c.partial = append(c.partial[:whole:whole], lastRequest...)
		whole, c.last = len(c.partial), true
		c.link.over.Store(true)
	}
	if whole > 0 {
		if _, err := c.Conn.Write(c.partial[:whole]); err != nil {
			return nil, false, err
		}
		c.partial = append(c.partial[:0], c.partial[whole:]...)
	}
	return late, crashed, nil
}

// outside looks at a request of the client and lets a worker die before it, or returns the one that dies after it.
func (c *conn) outside(args []string) (late *link) {
	function := called(args)
	if writes()[function] && c.link.wrote != nil {
		c.link.wrote()
	}
	victim, after := c.link.journal.outside(function)
	if victim != nil && !after {
		victim.died()
		return nil
	}
	return victim
}

// Close forgets the connection, too.
func (c *conn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	return c.Conn.Close()
}

// parseRequest returns the first request in data and its size, 0 while it is not all there.
func parseRequest(data []byte) (args []string, size int) {
	rest := data
	number := func(mark byte) (int, bool) {
		line, after, found := bytes.Cut(rest, []byte("\r\n"))
		if !found || len(line) < 2 || line[0] != mark {
			return 0, false
		}
		n, err := strconv.Atoi(string(line[1:]))
		rest = after
		return n, err == nil && n >= 0
	}
	count, ok := number('*')
	if !ok {
		return nil, 0
	}
	for range count {
		n, ok := number('$')
		if !ok || len(rest)-2 < n {
			return nil, 0
		}
		args = append(args, string(rest[:n]))
		rest = rest[n+2:]
	}
	return args, len(data) - len(rest)
}
