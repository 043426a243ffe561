// Package embedded runs a Redis-compatible server inside this process, so that nothing needs to be installed. It keeps
// its data in memory, or in a folder.
//
//	client ──┐                                ┌─ internal/store: keys, in memory or also in the folder
//	worker ──┼─ redis://127.0.0.1:port ─▶ session ─┼─ FCALL: internal/functions, one Lua state, which calls the store
//	tick  ───┘ or inproc://n, in memory       └─ PUBLISH, SUBSCRIBE: the hub
//
// The engine speaks to it over loopback exactly as to a real server, and loads the same function library, so the
// semantics are the real ones. A new store has 8 partitions unless the first process asks for another number. The
// server answers the commands that FlowFabric and its tests use, as Redis does. It has one database, one user, no
// replicas and no limit of memory.
//
// In memory it is for development: starting one logs a warning, takes a loopback address only, and is refused when the
// environment says production. With a folder it is allowed in production, on one machine. One process owns the folder,
// and others reach the server by its port. Every answer says that the effects of the command are as safe as
// [Config.FsyncAlways] promises, and no message of a command is seen before that. When the store cannot say so,
// because the disk failed in the middle, the connection is closed.
//
// Time: commands go by this machine's clock, until a test pins it with [Server.SetTime].
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// envVar is the environment variable that, set to "production", refuses a server without a folder.
const envVar = "FLOWFABRIC_ENV"

// How often the memory of expired keys is given back. Where time is virtual, a year of it must not cost a tick for each
// of its seconds.
const (
	expireInterval          = time.Second
	expireIntervalInProcess = time.Minute
)

// Config says how to start a server. The zero value listens on a free port of 127.0.0.1 and keeps its data in memory.
type Config struct {
	// Addr is host:port. The host must be a loopback address or "localhost", unless Dir and Password are set. Port 0
	// takes a free one. Default "127.0.0.1:0".
	Addr string
	// Dir is the folder that keeps the data. It is made if it does not exist. One process at a time may use it.
	// Default "": the data is in memory, and lost when the server closes.
	Dir string
	// FsyncAlways answers a change of Dir once the disk has it. Callers at the same time share one sync. Default false:
	// once the operating system has it. Then the end of the process loses nothing, and the end of the machine may lose
	// about the last second.
	FsyncAlways bool
	// Password is what a connection must tell (AUTH) before any other command, as client.Config.Password does. Default
	// "": none is asked for.
	Password string
	// InProcess keeps the server off the network: it opens no port, Addr is ignored, and its URL ("inproc://7") is
	// good in this process only. Then the server, its clock and every connection to it may live in a testing/synctest
	// bubble, where waiting for a socket would keep virtual time from moving. Nobody outside can reach such a
	// server, so it is not announced. Default false.
	InProcess bool
	// Logger receives the announcement, and what happens to the folder. Default slog.Default().
	Logger *slog.Logger
}

// Server is a running embedded server. Its methods may be called concurrently.
type Server struct {
	dir, password string
	fsyncAlways   bool
	log           *slog.Logger
	store         *store.Store
	host          *host // of functions; it belongs to the holder of the store's lock
	hub           *hub

	url     string
	hangUp  func() // nobody can connect any more
	cancel  context.CancelFunc
	loops   conc.WaitGroup
	close   sync.Once
	started time.Time
	runID   string

	pinned           atomic.Pointer[time.Time] // the time that a test has set
	lastID, commands atomic.Int64
	calls            atomic.Int64 // of FCALL

	mu       sync.Mutex
	closed   bool
	sessions map[*session]struct{}
}

// Start starts a server and announces it once. ctx bounds the start, not the server's life: that ends with
// [Server.Close]. The error wraps [flowfabric.ErrConfig] when the environment variable FLOWFABRIC_ENV says production
// and there is no Dir, when Addr may not be used, or when another process has the folder; a port in use is the
// listener's own error.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" && strings.EqualFold(strings.TrimSpace(os.Getenv(envVar)), "production") {
		return nil, fmt.Errorf("%w: %s=production refuses an embedded server that keeps nothing on disk; "+
			"give it a folder (embedded:///path), or set FLOWFABRIC_URL to a Valkey or Redis server",
			flowfabric.ErrConfig, envVar)
	}
	addr := cmp.Or(cfg.Addr, "127.0.0.1:0")
	if err := checkAddr(addr, cfg); err != nil && !cfg.InProcess {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start embedded server: %w", context.Cause(ctx))
	}
	if err := compileOnce(); err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	s := &Server{dir: cfg.Dir, password: cfg.Password, fsyncAlways: cfg.FsyncAlways,
		log: cmp.Or(cfg.Logger, slog.Default()),
		hub: newHub(), sessions: map[*session]struct{}{}, started: time.Now(), runID: newRunID()}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	opened := time.Since(s.started)
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if cfg.InProcess {
		s.url, s.hangUp = inproc.Listen(s.dial)
		s.loops.Go(func() { s.expire(life, expireIntervalInProcess) })
		return s, nil
	}
	if err := s.listen(ctx, life, addr); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("start embedded server on %s: %w", addr, err), s.store.Close())
	}
	s.loops.Go(func() { s.expire(life, expireInterval) })
	s.announce(opened)
	return s, nil
}

// compileOnce compiles the library before a client waits for it.
var compileOnce = sync.OnceValue(func() error {
	_, err := functions.Compile(library.Library(library.Variant{}))
	return err
})

func newRunID() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// open reads the folder, if there is one.
func (s *Server) open() (err error) {
	if s.dir == "" {
		s.store = store.New(s.now)
	} else {
		if s.dir, err = filepath.Abs(s.dir); err != nil {
			return err
		}
		if s.store, err = store.Open(s.dir, store.Options{Always: s.fsyncAlways, Clock: s.now,
			Logger: s.log}); err != nil {
			return err
		}
	}
	s.store.Deliver(s.hub)
	s.host = newHost(s.store)
	return nil
}

func (s *Server) announce(opened time.Duration) {
	if s.dir == "" {
		s.log.Warn("flowfabric: embedded server started; for development only, nothing is persisted", "url", s.url)
		return
	}
	s.store.Lock()
	keys, _ := s.store.Size()
	s.store.Unlock()
	s.log.Info("flowfabric: embedded server started", "url", s.url, "folder", s.dir, "keys", keys,
		"opened_in", opened.Round(time.Millisecond))
}

// listen takes connections of a port.
func (s *Server) listen(ctx, life context.Context, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	s.url = "redis://" + reachable(l.Addr())
	if err := s.store.Listens(s.url); err != nil {
		return errors.Join(err, l.Close())
	}
	s.hangUp = func() { _ = l.Close() }
	s.loops.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				s.serve(conn)
			case life.Err() != nil || errors.Is(err, net.ErrClosed):
				return
			default: // too many open files, say; it may pass
				s.log.Warn("flowfabric: the embedded server cannot take a connection", "error", err)
				select {
				case <-life.Done():
				case <-time.After(acceptPause):
				}
			}
		}
	})
	return nil
}

// reachable is an address that works on this machine: one that stands for all addresses names none.
func reachable(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return at.String()
}

// acceptPause is how long no connection is taken after one could not be.
const acceptPause = 100 * time.Millisecond

// dial opens a connection in memory.
func (s *Server) dial(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	if !s.serve(far) {
		return nil, net.ErrClosed
	}
	return near, nil
}

// serve answers a connection, unless the server has been closed.
func (s *Server) serve(conn net.Conn) bool {
	c := &session{srv: s, conn: conn, in: store.NewReader(conn), id: s.lastID.Add(1), known: s.password == ""}
	if !c.known {
		c.in.Limit(strangerArguments, strangerBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.sessions[c] = struct{}{}
	s.loops.Go(c.serve)
	return true
}

func (s *Server) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// URL is the address clients on this machine dial, "redis://127.0.0.1:port", or "inproc://n". It never changes, and has
// no password.
func (s *Server) URL() string { return s.url }

// Close stops the server and closes its connections. Data without a folder is lost. It is idempotent, and every call
// returns only after the server has stopped.
func (s *Server) Close() {
	s.close.Do(func() {
		s.cancel()
		s.hangUp()
		s.mu.Lock()
		s.closed = true
		for c := range s.sessions {
			_ = c.conn.Close()
		}
		s.mu.Unlock()
		s.loops.Wait()
		if err := s.store.Close(); err != nil {
			s.log.Error("flowfabric: close the folder of the embedded server", "folder", s.dir, "error", err)
		}
	})
}

// SetTime pins the server's clock to t: TIME answers t until the next call, and keys expire by it. A zero t lets the
// clock follow this machine's again. Only tests need it.
func (s *Server) SetTime(t time.Time) {
	if t.IsZero() {
		s.pinned.Store(nil)
	} else {
		s.pinned.Store(&t)
	}
}

func (s *Server) now() time.Time {
	if t := s.pinned.Load(); t != nil {
		return *t
	}
	return time.Now()
}

// expire gives back the memory of keys that nobody asks for any more.
func (s *Server) expire(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.store.Expire()
		}
	}
}

// checkAddr refuses an address that other machines could reach, unless they need a password and the data is kept.
func checkAddr(addr string, cfg Config) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w: embedded server address %q: want host:port", flowfabric.ErrConfig, addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) &&
		(cfg.Dir == "" || cfg.Password == "") {
		return fmt.Errorf("%w: embedded server address %q is not a loopback address; that needs Config.Dir and "+
			"Config.Password", flowfabric.ErrConfig, addr)
	}
	return nil
}
