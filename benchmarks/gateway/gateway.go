// Package gateway measures the HTTP API beside the Go client, in one run: submissions a second, events of streams to
// many readers, the memory that a reader costs, and results that are waited for.
//
// It starts a server and a "flowfabric serve" of their own; work is done by a worker in this process.
package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Options of a run.
type Options struct {
	Server  string // program to start
	Submits int    // of each kind
	Readers int    // of one execution
	Many    int    // readers of 100 executions
	Waits   int    // results that are waited for
	Work    int    // executions of a drain
	Idle    int    // workers that wait for work
}

var talks = handler.Define[int, string]("talks", flowfabric.Retries(0))

type bench struct {
	ctx    context.Context
	o      Options
	base   string
	store  *server.Server
	pid    int
	client *client.Client
	out    io.Writer
	frames chan int // tells the handler how many frames to write next; 0 ends it
}

// Run measures and writes what it found.
func Run(ctx context.Context, o Options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	b := &bench{ctx: ctx, o: o, out: out, store: s, frames: make(chan int)}
	stop, err := b.serve(s.URL())
	if err != nil {
		return err
	}
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	if b.client, err = client.Connect(ctx, client.Config{URL: s.URL(), Logger: quiet}); err != nil {
		return err
	}
	defer b.client.Close()
	w, err := runtime.New(runtime.Config{URL: s.URL(), Concurrency: 256, Logger: quiet}, handler.Bind(talks, b.talk))
	if err != nil {
		return err
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { _ = w.Run(ctx) })
	fmt.Fprintf(out, "%s, flowfabric serve in a process of its own\n\n", s.Name())
	for _, part := range []func() error{b.submits, b.stream, b.memory, b.waits, b.drains, b.lone, b.idle} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// serve builds and starts flowfabric serve.
func (b *bench) serve(url string) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "flowfabric")
	build := exec.Command("go", "build", "-o", program, "./cmd/flowfabric")
	build.Dir = ".." // the commands of this module are run in its directory
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build flowfabric: %w: %s", err, text)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := probe.Addr().String()
	if err := probe.Close(); err != nil {
		return nil, err
	}
	command := exec.Command(program, "serve", "--url", url, "--addr", address)
	if err := command.Start(); err != nil {
		return nil, err
	}
	b.base, b.pid = "http://"+address, command.Process.Pid
	stop = func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 200 {
		if r, err := http.Get(b.base + "/readyz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return stop, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, errors.New("flowfabric serve does not become ready")
}

// talk writes frames as it is told, if its input is 1; else it returns at once.
func (b *bench) talk(ctx context.Context, t *handler.Task, in int) (string, error) {
	if in != 1 {
		return "done", nil
	}
	for {
		select {
		case n := <-b.frames:
			if n == 0 {
				return "done", nil
			}
			for i := range n {
				if err := t.Frame(ctx, "token", "word "+strconv.Itoa(i)); err != nil {
					return "", err
				}
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// post makes a JSON call and returns the id in its answer.
func (b *bench) post(path, body string) (string, error) {
	r, err := http.Post(b.base+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode >= 300 {
		return "", fmt.Errorf("%s: %d %s: %w", path, r.StatusCode, text, err)
	}
	var made struct {
		ID string `json:"id"`
	}
	return made.ID, json.Unmarshal(text, &made)
}

// submits compares 64 callers of the API with 64 of the client.
func (b *bench) submits() error {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 256
	nobody := handler.Define[int, string]("nobody")
	rate := func(submit func() error) (float64, error) {
		var left atomic.Int64
		left.Store(int64(b.o.Submits))
		var failed atomic.Pointer[error]
		var group conc.WaitGroup
		began := time.Now()
		for range 64 {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					if err := submit(); err != nil {
						failed.Store(&err)
						return
					}
				}
			})
		}
		group.Wait()
		if err := failed.Load(); err != nil {
			return 0, *err
		}
		return float64(b.o.Submits) / time.Since(began).Seconds(), nil
	}
	for round := range 3 {
		direct, err := rate(func() error { _, err := client.Submit(b.ctx, b.client, nobody, 1); return err })
		if err != nil {
			return err
		}
		api, err := rate(func() error { _, err := b.post("/v1/executions", `{"kind":"nobody","input":1}`); return err })
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "submits, 64 at once, round %d: Go client %.0f/s, HTTP API %.0f/s\n", round+1, direct, api)
	}
	return nil
}

// reader follows an execution and counts its frames.
func (b *bench) reader(id string, frames *atomic.Int64, ready func()) error {
	address := strings.TrimPrefix(b.base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	fmt.Fprintf(conn, "GET /v1/executions/%s/events HTTP/1.1\r\nHost: x\r\n\r\n", id)
	lines, first := bufio.NewReaderSize(conn, 4096), true
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && bytes.HasPrefix(line, []byte("event: attempt")) {
			first = false
			ready()
		}
		if bytes.HasPrefix(line, []byte("event: frame")) {
			frames.Add(1)
		}
		if bytes.HasPrefix(line, []byte("event: end")) {
			return nil
		}
	}
}

// follow starts readers, n of each execution, and returns when all of them are there.
func (b *bench) follow(ids []string, n int) (frames *atomic.Int64, wait func() error, err error) {
	frames = &atomic.Int64{}
	var group conc.WaitGroup
	var ready sync.WaitGroup
	var failed atomic.Pointer[error]
	for _, id := range ids {
		for range n {
			ready.Add(1)
			group.Go(func() {
				once := sync.OnceFunc(ready.Done)
				defer once()
				if err := b.reader(id, frames, once); err != nil {
					failed.Store(&err)
				}
			})
		}
	}
	ready.Wait()
	return frames, func() error {
		group.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}, nil
}

// stream sends frames of one execution to many readers.
func (b *bench) stream() error {
	id, err := b.post("/v1/executions", `{"kind":"talks","input":1}`)
	if err != nil {
		return err
	}
	frames, wait, err := b.follow([]string{id}, b.o.Readers)
	if err != nil {
		return err
	}
	for round := range 3 {
		const burst = 200
		before, began := frames.Load(), time.Now()
		b.frames <- burst
		want := before + int64(burst*b.o.Readers)
		for frames.Load() < want {
			time.Sleep(time.Millisecond)
			if time.Since(began) > time.Minute {
				return fmt.Errorf("%d of %d events came", frames.Load()-before, want-before)
			}
		}
		fmt.Fprintf(b.out, "stream, %d readers of one execution, round %d: %.0f events/s\n", b.o.Readers, round+1,
			float64(want-before)/time.Since(began).Seconds())
	}
	b.frames <- 0
	return wait()
}

// resident is the memory of flowfabric serve, in KiB.
func (b *bench) resident() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("no VmRSS")
	}
	return strconv.Atoi(fields[0])
}

// memory is what a reader costs the process that serves.
func (b *bench) memory() error {
	const executions = 100
	var ids []string
	for range executions {
		id, err := b.post("/v1/executions", `{"kind":"talks","input":1}`)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	before, err := b.resident()
	if err != nil {
		return err
	}
	began := time.Now()
	_, wait, err := b.follow(ids, b.o.Many/executions)
	if err != nil {
		return err
	}
	joined := time.Since(began)
	after, err := b.resident()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "memory, %d readers of %d executions: %.1f KiB a reader, all there after %s\n", b.o.Many,
		executions, float64(after-before)/float64(b.o.Many), joined.Round(time.Millisecond))
	for range executions {
		b.frames <- 0
	}
	return wait()
}

// waits is how many results are waited for at once, and how long after the end the last one comes.
func (b *bench) waits() error {
	id, err := b.post("/v1/executions", `{"kind":"talks","input":1}`)
	if err != nil {
		return err
	}
	before, err := b.resident()
	if err != nil {
		return err
	}
	var group conc.WaitGroup
	var failed atomic.Pointer[error]
	var asked sync.WaitGroup
	for range b.o.Waits {
		asked.Add(1)
		group.Go(func() {
			q, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.base+"/v1/executions/"+id+"/result", nil)
			if err != nil {
				failed.Store(&err)
				asked.Done()
				return
			}
			q.Header.Set("Prefer", "wait=60")
			asked.Done()
			r, err := http.DefaultClient.Do(q)
			if err == nil {
				if r.StatusCode != http.StatusOK {
					err = fmt.Errorf("result: %d", r.StatusCode)
				}
				r.Body.Close()
			}
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	asked.Wait()
	time.Sleep(2 * time.Second) // until all are held
	after, err := b.resident()
	if err != nil {
		return err
	}
	began := time.Now()
	b.frames <- 0
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Fprintf(b.out, "results, %d waits at once: %.1f KiB each, the last answered %s after the end\n", b.o.Waits,
		float64(after-before)/float64(b.o.Waits), time.Since(began).Round(time.Millisecond))
	return nil
}
