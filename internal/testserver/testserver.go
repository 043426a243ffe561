// Package testserver gives tests a real server of their own: Redis or Valkey as a child process, or the
// embedded one. Each call starts a fresh, empty server that only this test knows, and that dies with it.
//
//	url := testserver.Redis(t)                  // unix:///tmp/ff123/s.sock, nothing on disk
//	srv := testserver.Start(t, testserver.ServerValkey, testserver.AOF())
//	srv.Kill(); srv.Restart()                   // same address, same data directory
//	nodes := testserver.Cluster(t, testserver.ServerRedis) // three primaries with a replica each
//	set := testserver.Sentinel(t, testserver.ServerRedis)  // a primary, two replicas and three Sentinels
//
// A server that is not installed skips the test with a loud line that says how to get it; where the
// environment variable CI is set it fails the test instead, so that a pipeline never passes by skipping.
package testserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Kind is a server program, by its name in PATH.
type Kind string

// The kinds of real servers.
const (
	ServerRedis  Kind = "redis-server"
	ServerValkey Kind = "valkey-server"
	// ServerFolder is our own store in a folder: flowfabric serve --data, which [Start] builds. It listens on TCP.
	ServerFolder Kind = "flowfabric"
)

// install says how to get a server.
var install = map[Kind]string{
	ServerRedis:  "on Debian or Ubuntu: make deps (as root), or: apt-get install redis-server; on macOS: brew install redis",
	ServerValkey: "on Debian or Ubuntu: make deps (as root), or from Debian 13, Ubuntu 24.10 on: apt-get install valkey-server; on macOS: brew install valkey",
}

// Option changes how a server is started.
type Option func(*Server)

// AOF makes every write durable before it is answered (appendonly, fsync always), so that data survive
// [Server.Kill]. Without it nothing is written to disk.
func AOF() Option { return func(s *Server) { s.aof = true } }

// TCP listens on a random port of 127.0.0.1 instead of a unix socket.
func TCP() Option { return func(s *Server) { s.tcp = true } }

// Args appends raw server arguments, for example Args("--maxmemory", "10mb").
func Args(args ...string) Option { return func(s *Server) { s.args = append(s.args, args...) } }

// Redis starts a Redis server and returns its URL.
func Redis(t testing.TB, opts ...Option) (url string) {
	t.Helper()
	return Start(t, ServerRedis, opts...).URL()
}

// Valkey starts a Valkey server and returns its URL.
func Valkey(t testing.TB, opts ...Option) (url string) {
	t.Helper()
	return Start(t, ServerValkey, opts...).URL()
}

// Embedded starts an embedded server of its own (not the shared one) and returns its URL.
func Embedded(t testing.TB) (url string) {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(s.Close)
	return s.URL()
}

// Server is a real server of one test. Its methods belong to the test's goroutine.
type Server struct {
	t       testing.TB
	program string
	dir     string
	network string // "unix" or "tcp"
	address string
	bus     string // port of the cluster bus, "" outside a cluster
	pass    string // of the default user, "" for none
	watch   string // of a Sentinel, what its configuration says of the primary; "" for a server of data
	aof     bool
	tcp     bool
	folder  bool
	args    []string

	process *os.Process
	output  *bytes.Buffer // complete once exited is closed
	exited  chan struct{}
	owner   conc.WaitGroup
}

// Start starts a server, waits until it answers PING, and stops it when the test ends.
func Start(t testing.TB, kind Kind, opts ...Option) *Server {
	t.Helper()
	// Not t.TempDir: the path of a unix socket must stay below about 100 bytes.
	dir, err := os.MkdirTemp("", "ff")
	must.No(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{t: t, dir: dir, network: "unix", address: filepath.Join(dir, "s.sock"), folder: kind == ServerFolder}
	if s.folder {
		opts = append(opts, TCP())
		s.program = filepath.Join(dir, string(kind))
		out, err := exec.Command("go", "build", "-o", s.program,
			"github.com/flowfabric/flowfabric-go/cmd/flowfabric").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	} else if s.program, err = exec.LookPath(string(kind)); err != nil {
		missing(t, kind)
	}
	for _, opt := range opts {
		opt(s)
	}
	if s.tcp {
		s.network, s.address = "tcp", freePort(t)
	}
	if s.pass != "" {
		s.args = append(s.args, "--requirepass", s.pass, "--masterauth", s.pass)
	}
	if s.watch != "" {
		s.configureSentinel()
	}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

func missing(t testing.TB, kind Kind) {
	t.Helper()
	text := fmt.Sprintf("%s is not installed. To run this test, %s", kind, install[kind])
	if os.Getenv("CI") != "" {
		t.Fatalf("%s (CI is set, so this is a failure)", text)
	}
	fmt.Fprintf(os.Stderr, "\n!!! SKIPPED %s: %s\n\n", t.Name(), text)
	t.Skip(text)
}

// URL is the server's address in the form engine.Config.URL takes. It survives Restart.
func (s *Server) URL() string {
	if s.network == "tcp" && s.pass != "" {
		return "redis://:" + s.pass + "@" + s.address
	}
	if s.network == "tcp" {
		return "redis://" + s.address
	}
	return "unix://" + s.address
}

// Address is the server's host:port, or the path of its unix socket.
func (s *Server) Address() string { return s.address }

// Folder is where a [ServerFolder] keeps its data.
func (s *Server) Folder() string { return filepath.Join(s.dir, "data") }

// Kill ends the server at once (SIGKILL) and waits until it is gone: what a crash looks like. Killing a server
// that does not run does nothing.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Kill()
		s.owner.Wait()
		s.process = nil
	}
}

// Restart starts the server (again) on the same address and data directory and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		s.t.Fatalf("start %s: %v", s.program, err)
	}
	if err := s.awaitPing(); err != nil {
		s.Kill()
		s.t.Fatalf("start %s: %v; its output:\n%s", s.program, err, s.output)
	}
}

// start launches the process. Its owner goroutine keeps the thread for as long as the child lives: on Linux
// the child is told to die with the thread that made it, and threads may end before the process does.
func (s *Server) start() error {
	cmd := exec.Command(s.program, s.arguments()...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = dieWithParent()
	s.output, s.exited = &bytes.Buffer{}, make(chan struct{})
	cmd.Stdout, cmd.Stderr = s.output, s.output
	started := make(chan error, 1)
	s.owner.Go(func() {
		defer close(s.exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // always "killed", or told by awaitPing
		}
	})
	if err := <-started; err != nil {
		return err
	}
	s.process = cmd.Process
	return nil
}

func (s *Server) arguments() []string {
	if s.watch != "" {
		return []string{filepath.Join(s.dir, sentinelFile), "--sentinel"}
	}
	if s.folder {
		args := []string{"serve", "--addr", "127.0.0.1:0", "--no-maintenance", "--data", s.Folder(),
			"--store-addr", s.address}
		if s.aof {
			args = append(args, "--fsync", "always")
		}
		return append(args, s.args...)
	}
	args := []string{"--dir", s.dir, "--daemonize", "no", "--save", "", "--port", "0", "--unixsocket", s.address}
	if s.network == "tcp" {
		host, port, _ := net.SplitHostPort(s.address)
		args = []string{"--dir", s.dir, "--daemonize", "no", "--save", "", "--bind", host, "--port", port}
	}
	if s.aof {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	return append(args, s.args...)
}

// awaitPing asks until the server answers, has exited, or the test ends.
func (s *Server) awaitPing() error {
	end := testwait.End(s.t)
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		err := ping(s.network, s.address)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("it exited")
		case <-end:
			return fmt.Errorf("no answer to PING: %w", err)
		case <-again.C:
		}
	}
}

func ping(network, address string) error {
	conn, err := net.DialTimeout(network, address, askTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(askTimeout)) // timed: awaitPing asks again
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		return fmt.Errorf("PING was answered %q", strings.TrimSpace(line))
	}
	return nil
}

// freePort finds a port nobody listens on. Another process may take it before the server does; then the
// server exits and the test fails by name, which has to be rarer than it is worth guarding against.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
