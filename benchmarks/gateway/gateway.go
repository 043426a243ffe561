// Package gateway measures events of a stream on their way through the HTTP API to many readers.
//
// It starts a server and a "flowfabric serve" of their own, and then a web server with a handler of package chat; work
// is done by a worker in this process.
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
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/chat"
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
	url    string // of the store
	base   string
	out    io.Writer
	pid    int      // of the web server
	frames chan int // tells the handler how many frames to write next; 0 ends it
}

// door is a way to the stream of an execution.
type door struct {
	name           string
	program        string // package to build and start
	arguments      func(url, address string) []string
	ready          string // path
	follows        func(id string) string
	begun, counted string // beginnings of lines: of the first, and of those that are counted
	ended          string
}

var doors = []door{
	{"flowfabric serve", "./cmd/flowfabric", func(url, address string) []string {
		return []string{"serve", "--url", url, "--addr", address}
	}, "/readyz", func(id string) string { return "/v1/executions/" + id + "/events" }, "event: attempt",
		"event: frame", "event: end"},
	{"package chat", "./benchmarks/gateway/chatserver", func(url, address string) []string {
		return []string{url, address}
	}, "/readyz", func(id string) string { return "/chat/" + id + "/stream" }, `data: {"type":"start"`,
		`data: {"type":"text-delta"`, "data: [DONE]"},
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
	b := &bench{ctx: ctx, o: o, out: out, url: s.URL(), frames: make(chan int)}
	quiet := slog.New(slog.DiscardHandler)
	w, err := runtime.New(runtime.Config{URL: s.URL(), Concurrency: 256, Logger: quiet}, handler.Bind(talks, b.talk),
		handler.Bind(chats, b.chat))
	if err != nil {
		return err
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { _ = w.Run(ctx) })
	fmt.Fprintf(out, "%s, each web server in a process of its own\n\n", s.Name())
	for _, d := range doors {
		if err := b.through(d); err != nil {
			return err
		}
	}
	return nil
}

// through measures a door.
func (b *bench) through(d door) error {
	stop, err := b.serve(d)
	if err != nil {
		return err
	}
	defer stop()
	var id string
	if d.name == "package chat" {
		id, err = b.begin()
	} else {
		id, err = b.post("/v1/executions", `{"kind":"talks","input":1}`)
	}
	if err != nil {
		return err
	}
	return b.stream(d, id)
}

// serve builds and starts a web server.
func (b *bench) serve(d door) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", program, d.program)
	build.Dir = ".." // the commands of this module are run in its directory
	if in, ok := strings.CutPrefix(d.program, "./benchmarks/"); ok {
		build.Dir, build.Args[len(build.Args)-1] = ".", "./"+in
	}
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", d.name, err, text)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := probe.Addr().String()
	if err := probe.Close(); err != nil {
		return nil, err
	}
	command := exec.Command(program, d.arguments(b.url, address)...)
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
		if r, err := http.Get(b.base + d.ready); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return stop, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("%s does not become ready", d.name)
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

var chats = handler.Define[chat.Conversation, agent.Result]("chats", flowfabric.Retries(0))

// chat holds a conversation, in one answer that is written as it is told.
func (b *bench) chat(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
	return chat.Run(ctx, t, in, agent.Config{Model: agent.ModelFunc(func(ctx context.Context, _ agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		var text strings.Builder
		for {
			select {
			case n := <-b.frames:
				if n == 0 {
					return agent.Response{Message: agent.Message{Parts: agent.Text(text.String())}}, nil
				}
				for i := range n {
					word := "word " + strconv.Itoa(i)
					text.WriteString(word)
					if err := delta(agent.Delta{Text: word}); err != nil {
						return agent.Response{}, err
					}
				}
			case <-ctx.Done():
				return agent.Response{}, context.Cause(ctx)
			}
		}
	})})
}

// begin begins a conversation, and has the first word said, so that there is a stream to follow.
func (b *bench) begin() (id string, err error) {
	r, err := http.Post(b.base+"/chat/", "application/json", strings.NewReader(
		`{"id":"c","messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"go"}]}]}`))
	if err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		return "", fmt.Errorf("begin: %d %s", r.StatusCode, text)
	}
	b.frames <- 1
	_, err = bufio.NewReader(r.Body).ReadString('}')
	return "c", errors.Join(err, r.Body.Close())
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
func (b *bench) reader(d door, id string, frames *atomic.Int64, ready func()) error {
	address := strings.TrimPrefix(b.base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", d.follows(id), address)
	lines, first := bufio.NewReaderSize(conn, 4096), true
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("follow %s: %s", id, line)
		}
		if first && bytes.HasPrefix(line, []byte(d.begun)) {
			first = false
			ready()
		}
		if bytes.HasPrefix(line, []byte(d.counted)) {
			frames.Add(1)
		}
		if bytes.HasPrefix(line, []byte(d.ended)) {
			return nil
		}
	}
}

// follow starts readers and returns when all of them are there.
func (b *bench) follow(d door, id string, n int) (frames *atomic.Int64, wait func() error, err error) {
	frames = &atomic.Int64{}
	var group conc.WaitGroup
	var ready sync.WaitGroup
	var failed atomic.Pointer[error]
	for range n {
		ready.Add(1)
		group.Go(func() {
			once := sync.OnceFunc(ready.Done)
			defer once()
			if err := b.reader(d, id, frames, once); err != nil {
				failed.Store(&err)
			}
		})
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
func (b *bench) stream(d door, id string) error {
	frames, wait, err := b.follow(d, id, b.o.Readers)
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
		fmt.Fprintf(b.out, "%s, %d readers of one execution, round %d: %.0f events/s\n", d.name, b.o.Readers, round+1,
			float64(want-before)/time.Since(began).Seconds())
	}
	after, err := measure.ProcessTime(b.pid)
	if err != nil {
		return err
	}
	memory, err := measure.Memory(b.pid)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s: %.2f µs of a core for an event of one reader, %.1f MiB of memory\n\n", d.name,
		float64((after-used).Microseconds())/float64(rounds*burst*b.o.Readers), float64(memory)/(1<<20))
	b.frames <- 0
	return wait()
}
