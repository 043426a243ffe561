// Package gateway measures events of a stream on their way through the HTTP API to many readers.
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
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Options of a run.
type Options struct {
	Server  string // program to start
	Readers int    // of one execution
}

var talks = handler.Define[int, string]("talks", flowfabric.Retries(0))

type bench struct {
	ctx    context.Context
	o      Options
	base   string
	out    io.Writer
	pid    int      // of flowfabric serve
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
	b := &bench{ctx: ctx, o: o, out: out, frames: make(chan int)}
	stop, err := b.serve(s.URL())
	if err != nil {
		return err
	}
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	w, err := runtime.New(runtime.Config{URL: s.URL(), Concurrency: 256, Logger: quiet}, handler.Bind(talks, b.talk))
	if err != nil {
		return err
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { _ = w.Run(ctx) })
	fmt.Fprintf(out, "%s, flowfabric serve in a process of its own\n\n", s.Name())
	return b.stream()
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

// talk writes frames as it is told.
func (b *bench) talk(ctx context.Context, t *handler.Task, _ int) (string, error) {
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

// reader follows an execution and counts its frames.
func (b *bench) reader(id string, frames *atomic.Int64, ready func()) error {
	address := strings.TrimPrefix(b.base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	fmt.Fprintf(conn, "GET /v1/executions/%s/events HTTP/1.1\r\nHost: %s\r\n\r\n", id, address)
	lines, first := bufio.NewReaderSize(conn, 4096), true
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("follow %s: %s", id, line)
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
	if err := failed.Load(); err != nil {
		return nil, nil, *err
	}
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
	const rounds, burst = 5, 200
	used, err := measure.ProcessTime(b.pid)
	if err != nil {
		return err
	}
	for round := range rounds {
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
	after, err := measure.ProcessTime(b.pid)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "flowfabric serve: %.2f µs of a core for an event of one reader\n",
		float64((after-used).Microseconds())/float64(rounds*burst*b.o.Readers))
	b.frames <- 0
	return wait()
}
