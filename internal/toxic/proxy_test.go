package toxic_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// toxic is what a proxy does to its connections; the zero value is a clean one.
type toxic struct {
	latency, jitter time.Duration // before every chunk, in each direction
	rate            int           // bytes per second and direction, 0 = unlimited
	resetAfter      int           // bytes of replies after which a connection is reset, 0 = never
	deaf            bool          // requests are held back
	mute            bool          // replies are held back
	slowClose       time.Duration // the end of a connection reaches the other side this much later
}

// proxy forwards TCP connections to a unix socket. set changes all of them at once, old ones too.
type proxy struct {
	listener net.Listener
	upstream string
	owner    sync.WaitGroup

	mu      sync.Mutex
	toxic   toxic
	changed chan struct{} // closed by the next set
	open    map[*link]bool
	closed  bool
	resets  int
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	once           sync.Once
	done           chan struct{}
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	p := &proxy{listener: l, upstream: upstream, changed: make(chan struct{}), open: map[*link]bool{}}
	p.owner.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

// count is how many connections were reset.
func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resets
}

func (p *proxy) set(x toxic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toxic = x
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *proxy) state() (toxic, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.toxic, p.changed
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	links := make([]*link, 0, len(p.open))
	for l := range p.open {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.end(false)
	}
	p.owner.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server, done: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			l.end(false)
			return
		}
		p.open[l] = true
		p.mu.Unlock()
		p.owner.Go(func() { p.pump(l, client, server, false) })
		p.owner.Go(func() { p.pump(l, server, client, true) })
	}
}

// end closes both sides, with a reset of the client's if so wished.
func (l *link) end(reset bool) {
	l.once.Do(func() {
		if tcp, ok := l.client.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = l.client.Close()
		_ = l.server.Close()
		close(l.done)
	})
}

// pump forwards one direction until a side has closed.
func (p *proxy) pump(l *link, from, to net.Conn, replies bool) {
	defer func() {
		p.mu.Lock()
		delete(p.open, l)
		p.mu.Unlock()
	}()
	buffer, passed := make([]byte, 4096), 0
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			chunk := buffer[:n]
			x := p.delay(l, n, replies)
			passed += n
			if replies && x.resetAfter > 0 && passed > x.resetAfter {
				_, _ = to.Write(chunk[:n/2]) // the middle of a reply
				p.mu.Lock()
				p.resets++
				p.mu.Unlock()
				l.end(true)
				return
			}
			if _, err := to.Write(chunk); err != nil {
				l.end(false)
				return
			}
		}
		if err != nil {
			if x, _ := p.state(); x.slowClose > 0 {
				p.wait(l, nil, x.slowClose)
			}
			l.end(false)
			return
		}
	}
}

// delay holds a chunk for as long as the toxic wants, and returns what holds afterwards.
func (p *proxy) delay(l *link, n int, replies bool) toxic {
	for {
		x, changed := p.state()
		if x.mute && replies || x.deaf && !replies {
			if !p.wait(l, changed, -1) {
				return x
			}
			continue
		}
		d := x.latency
		if x.jitter > 0 {
			d += rand.N(x.jitter)
		}
		if x.rate > 0 {
			d += time.Duration(n) * time.Second / time.Duration(x.rate)
		}
		if d > 0 {
			p.wait(l, nil, d)
		}
		return x
	}
}

// wait lets d pass (-1: for ever), or less: until changed is closed. It is false when the link has ended.
func (p *proxy) wait(l *link, changed chan struct{}, d time.Duration) bool {
	var after <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-l.done:
		return false
	case <-changed:
	case <-after:
	}
	return true
}
