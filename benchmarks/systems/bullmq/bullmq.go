// Package bullmq drives BullMQ through processes of Node.js: one submits, one or more work, as far as a scenario needs
// them.
// What they run is in node/, and is what BullMQ's users write: Queue.add, Queue.addBulk, and a Worker with an async
// no-op function.
//
//	driver ──requests, a line each──▶ producer.js ──ioredis──▶ server ◀──ioredis── worker.js ──batches of counts──▶ driver
//
// The pipes to this process are no part of what is measured, as far as that can be:
//
//   - Payloads are handed over before a measured part begins. "So many submitters, so many jobs a call" then runs in
//     producer.js, which times the calls itself ([driver.Producer]).
//   - Where handlers only count, worker.js has the no-op handler and tells of the jobs it handled once per turn of
//     its event loop: some µs of its time per message, and the last one arrives some tens of µs late. Elsewhere
//     (latency, and where jobs are held) the payload goes to the handler of this process, and the job completes when
//     that has returned.
//   - Latency is the difference of two readings of the machine's monotonic clock: in producer.js before Queue.add, in
//     worker.js as the first thing in the handler.
//
// Processor time of all these processes counts as client ([driver.Remote]), this one's reading of messages included.
// BullMQ carries JSON, so the payload is base64, in and out. Settings are BullMQ's and ioredis' defaults: completed
// jobs are kept without limit, events are written, jobs are not retried.
//
// A process of Node.js runs JavaScript on one core, so users who need more of BullMQ start more processes. There are
// two configurations: bullmq, in which one process works, and bullmq-2, in which two do. Each worker of a scenario is
// then one in either process, and they share its concurrency. Workers of one store share these processes, as those of
// other systems share theirs.
//
// V8 compiles what it has seen run often: client time per job halves within the first thousands of jobs. Programs in
// production have run for long, so processes live as long as their server, over all rounds, with new connections in
// each; and before the first round ten thousand jobs for each that works go through them. Garbage is collected when V8
// sees fit: forced collections throw compiled code away too, and doubled the client time of the jobs after them.
package bullmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// System is BullMQ with its default settings. It is a [driver.System].
type System struct {
	// Program is the server to start: redis-server, valkey-server or a path.
	Program string
	// Node is the program that runs JavaScript; "" is node.
	Node string
	// Dir is where its packages are installed; "" is node/ beside this file.
	Dir string
	// Processes is how many work, and share the concurrency of each worker; 0 is 1.
	Processes int
	// Cold leaves out the jobs that let the just-in-time compiler see the code before anything is measured.
	Cold bool
}

// Name is "bullmq", or "bullmq-2" where two processes work.
func (s System) Name() string {
	if n := s.working(); n > 1 {
		return fmt.Sprint("bullmq-", n)
	}
	return "bullmq"
}

// working is how many processes work.
func (s System) working() int { return max(s.Processes, 1) }

// Version names BullMQ's, its client library's and the interpreter's.
func (s System) Version() string {
	bullmq, err := s.installed("bullmq")
	if err != nil {
		return "(not installed)"
	}
	ioredis, err := s.installed("ioredis")
	if err != nil {
		return "(not installed)"
	}
	node, err := exec.Command(s.node(), "--version").Output()
	if err != nil {
		return "(not installed)"
	}
	return fmt.Sprintf("%s, ioredis %s, node %s; worker processes: %d", bullmq, ioredis,
		strings.TrimSpace(string(node)), s.working())
}

// installed is the version of an installed npm package.
func (s System) installed(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir(), "node_modules", name, "package.json"))
	if errors.Is(err, fs.ErrNotExist) { // whose text has a path of this machine, and reports are published
		return "", fmt.Errorf("npm package %s: %w (make bench-deps)", name, driver.ErrNotInstalled)
	}
	if err != nil {
		return "", fmt.Errorf("npm package %s: %w", name, err)
	}
	var about struct{ Version string }
	err = json.Unmarshal(text, &about)
	return about.Version, err
}

func (s System) node() string { return cmp.Or(s.Node, "node") }

func (s System) dir() string {
	if s.Dir != "" {
		return s.Dir
	}
	_, file, _, _ := runtime.Caller(0) // benchmarks are run from their sources
	return filepath.Join(filepath.Dir(file), "node")
}

// Serve starts a server, and the processes that submit and work.
func (s System) Serve(ctx context.Context) (driver.Server, error) {
	if _, err := exec.LookPath(s.node()); err != nil {
		return nil, fmt.Errorf("%s: %w (make bench-deps): %w", s.node(), driver.ErrNotInstalled, err)
	}
	for _, name := range []string{"bullmq", "ioredis"} {
		if _, err := s.installed(name); err != nil {
			return nil, err
		}
	}
	srv, err := server.Start(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	out := &served{Server: srv, processes: &processes{ctx: ctx, system: s, url: srv.URL()}}
	if s.Cold {
		return out, nil
	}
	if err := s.warm(ctx, out); err != nil {
		out.Stop()
		return nil, fmt.Errorf("warm up: %w", err)
	}
	return out, nil
}

// served is a server with the processes that were started for it.
type served struct {
	*server.Server
	processes *processes
}

// Stop ends the processes, then the server.
func (s *served) Stop() {
	s.processes.close()
	s.Server.Stop()
}

// Open opens a queue.
func (s System) Open(ctx context.Context, srv driver.Server, cfg driver.Settings) (driver.Store, error) {
	own, ok := srv.(*served)
	if !ok {
		return nil, fmt.Errorf("bullmq: %T was not started by this driver", srv)
	}
	producer, err := own.processes.take("producer.js")
	if err != nil {
		return nil, err
	}
	out := &store{processes: own.processes, producer: producer, workers: map[int]*worker{}}
	if _, err := producer.call(ctx, request{Op: "open", Typed: cfg.Typed}); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// store is an open queue, and the processes that belong to it meanwhile.
type store struct {
	processes *processes
	producer  *process

	mu      sync.Mutex
	hosts   []*process // of the workers; none before the first
	last    int        // number of a worker or a batch
	workers map[int]*worker
}

func (s *store) own() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*process{s.producer}, s.hosts...)
}

// Close lets the processes be used by the next store.
func (s *store) Close() {
	ctx, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	for _, p := range s.own() {
		if _, err := p.call(ctx, request{Op: "close"}); err != nil { // a dead one has said so before
			_ = p.close()
			continue
		}
		s.processes.give(p)
	}
}

// PIDs implements [driver.Remote].
func (s *store) PIDs() (out []int) {
	for _, p := range s.own() {
		out = append(out, p.pid())
	}
	return out
}

// number is new for every call.
func (s *store) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// connection are the options of ioredis that lead to a server.
func connection(url string) (map[string]any, error) {
	if path, ok := strings.CutPrefix(url, "unix://"); ok {
		return map[string]any{"path": path}, nil
	}
	if strings.HasPrefix(url, "redis://") {
		return map[string]any{"url": url}, nil
	}
	return nil, errors.New("bullmq: want a server at unix:// or redis://, not " + url)
}
