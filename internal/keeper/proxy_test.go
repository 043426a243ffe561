package keeper_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// proxy stands between an engine and a real server. While it is cut, requests still arrive but no answer comes
// back: the first answer ends its connection, and new connections are refused.
type proxy struct {
	server   string
	listener net.Listener
	tasks    conc.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

func newProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	p := &proxy{server: server, listener: l, conns: map[net.Conn]struct{}{}}
	p.tasks.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.tasks.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

// lose cuts the next answer off; restore ends that.
func (p *proxy) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.server)
		if err != nil || !p.enter(near, far) {
			_ = near.Close()
			if err == nil {
				_ = far.Close()
			}
			continue
		}
		p.tasks.Go(func() {
			defer p.leave(near, far)
			_, _ = io.Copy(far, near)
		})
		p.tasks.Go(func() {
			defer p.leave(near, far)
			buf := make([]byte, 64<<10)
			for {
				n, err := far.Read(buf)
				if err != nil || p.swallows() {
					return
				}
				if _, err := near.Write(buf[:n]); err != nil {
					return
				}
			}
		})
	}
}

func (p *proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

func (p *proxy) enter(both ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	for _, c := range both {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *proxy) leave(both ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range both {
		_ = c.Close()
		delete(p.conns, c)
	}
}
