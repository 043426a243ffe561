// Package embedded runs the development server: an in-memory, Redis-compatible server inside this process, so that
// a demo, an example or a test needs nothing installed. It is stock miniredis with functions.
//
//	client ──┐                              ┌─ keys in memory, gone when the last user releases it
//	worker ──┼─ redis://127.0.0.1:port ─▶ miniredis
//	tick  ───┘ or inproc://n, in memory     ├─ FCALL: internal/functions, one Lua state, which calls miniredis
//	                                        └─ key TTLs: advanced by a ticker of ours, once a second
//
// The engine speaks to it over loopback exactly as to a real server, and loads the same function library, so the
// semantics are the real ones. A new store has 8 partitions unless the first process asks for another number. What
// it lacks is everything that makes a server fit for
// production: persistence, replication, access control, memory limits. Starting one therefore logs a warning,
// takes a loopback address only, and is refused when the environment says production.
//
// Time: the TIME command answers this machine's clock, until a test pins it with [Server.SetTime]. The
// library stores and compares expiry times itself; key TTLs only clean up, so their resolution of one second
// is never visible in an answer.
package embedded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/library"
)

// envVar is the environment variable that, set to "production", refuses the embedded server.
const envVar = "FLOWFABRIC_ENV"

// How often key TTLs are advanced. Every pass visits all keys, so finer costs more than it is worth; and where time is
// virtual, a year of it must not cost a tick for each of its seconds.
const (
	ttlInterval          = time.Second
	ttlIntervalInProcess = time.Minute
)

// Config says how to start a server. The zero value listens on a free port of 127.0.0.1.
type Config struct {
	// Addr is host:port; the host must be a loopback address or "localhost", because the server has no
	// access control. Port 0 takes a free one. Default "127.0.0.1:0".
	Addr string
	// InProcess keeps the server off the network: it opens no port, Addr is ignored, and its URL ("inproc://7") is
	// good in this process only. Then the server, its clock and every connection to it may live in a testing/synctest
	// bubble, where waiting for a socket would keep virtual time from moving. Nobody outside can reach such a
	// server, so it is not announced. Default false.
	InProcess bool
	// Logger receives the announcement. Default slog.Default().
	Logger *slog.Logger
}

// Server is a running embedded server. Its methods may be called concurrently.
type Server struct {
	mini   *miniredis.Miniredis
	url    string
	hangUp func() // nobody can connect any more
	cancel context.CancelFunc
	loops  conc.WaitGroup
	close  sync.Once

	mu       sync.Mutex
	pinned   bool      // TIME is set by a test; the ticker stands still
	advanced time.Time // key TTLs have been advanced up to here
}

// Start starts a server and announces it once as development-only. ctx bounds the start, not the server's
// life: that ends with [Server.Close]. The error wraps [flowfabric.ErrConfig] when the environment variable
// FLOWFABRIC_ENV says production or when Addr is not a loopback address; a port in use is the listener's own error.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if strings.EqualFold(strings.TrimSpace(os.Getenv(envVar)), "production") {
		return nil, fmt.Errorf("%w: %s=production refuses the embedded server, which keeps nothing on disk; "+
			"set FLOWFABRIC_URL to a Valkey or Redis server", flowfabric.ErrConfig, envVar)
	}
	addr := cmp.Or(cfg.Addr, "127.0.0.1:0")
	if err := checkLoopback(addr); err != nil && !cfg.InProcess {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start embedded server: %w", context.Cause(ctx))
	}
	s := &Server{mini: miniredis.NewMiniRedis(), advanced: time.Now()}
	if err := s.equip(); err != nil {
		s.mini.Close()
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	if cfg.InProcess {
		s.url, s.hangUp = inproc.Listen(s.dial)
	} else {
		if err := s.listen(ctx, addr); err != nil {
			s.mini.Close()
			return nil, fmt.Errorf("start embedded server on %s: %w", addr, err)
		}
		cmp.Or(cfg.Logger, slog.Default()).Warn(
			"flowfabric: embedded server started; for development only, nothing is persisted",
			"url", s.url)
	}
	interval := ttlInterval
	if cfg.InProcess {
		interval = ttlIntervalInProcess
	}
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.loops.Go(func() { s.advanceTTLs(life, interval) })
	return s, nil
}

// compileOnce compiles the library before a client waits for it.
var compileOnce = sync.OnceValue(func() error {
	_, err := functions.Compile(library.Library(library.Variant{}))
	return err
})

// equip starts the server, which its first connection does, and gives it its functions before anybody can reach it.
func (s *Server) equip() error {
	if err := compileOnce(); err != nil {
		return err
	}
	first, err := s.mini.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	return addFunctions(s.mini)
}

// listen takes connections of a port.
func (s *Server) listen(ctx context.Context, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	s.url = "redis://" + l.Addr().String()
	s.hangUp = func() { _ = l.Close() }
	s.loops.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mini.Server().ServeConn(conn)
		}
	})
	return nil
}

// dial opens a connection in memory.
func (s *Server) dial(context.Context) (net.Conn, error) { return s.mini.Dial() }

// URL is the address clients dial, "redis://127.0.0.1:port", or "inproc://n". It never changes.
func (s *Server) URL() string { return s.url }

// Close stops the server, drops its data and closes its connections. It is idempotent, and every call returns
// only after the server has stopped.
func (s *Server) Close() {
	s.close.Do(func() {
		s.cancel()
		s.hangUp()
		s.loops.Wait()
		s.mini.Close()
	})
}

// SetTime pins the server's clock to t: TIME answers t until the next call, and key TTLs shrink by how far the
// clock moved forward. A zero t lets the clock follow this machine's again. Only tests need it.
func (s *Server) SetTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.pinned {
		s.advance(now)
	}
	s.pinned = !t.IsZero()
	s.mini.SetTime(t)
	if s.pinned {
		now = t
	}
	s.advance(now)
	s.advanced = now // also after a jump backwards, which gives no TTL back
}

// advance shrinks all key TTLs up to now. The caller holds mu.
func (s *Server) advance(now time.Time) {
	if elapsed := now.Sub(s.advanced); elapsed > 0 {
		s.mini.FastForward(elapsed)
		s.advanced = now
	}
}

// advanceTTLs replaces what a real server does by itself: stock miniredis expires keys only when told to. Its
// own clock-driven mode walks all keys on every command instead of once a second.
func (s *Server) advanceTTLs(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.mu.Lock()
			if !s.pinned {
				s.advance(time.Now())
			}
			s.mu.Unlock()
		}
	}
}

// checkLoopback refuses an address that other machines could reach.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w: embedded server address %q: want host:port", flowfabric.ErrConfig, addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w: embedded server address %q is not a loopback address; the server has no access control",
			flowfabric.ErrConfig, addr)
	}
	return nil
}
