// Package workerpython holds a worker in Python, and the tests that run it.
package workerpython

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store with its maintenance, and an API that can be killed.
type world struct {
	*testing.T
	python string
	client *client.Client
	admin  *admin.Admin
	tokens *httpapi.Tokens
	secret string
	addr   string

	api    *httpapi.Handler
	server *http.Server
	serves conc.WaitGroup
	breaks int64 // which answers break off: each so many; 0: none
}

type storyInput struct {
	About string  `json:"about"`
	Pause float64 `json:"pause"`
}

type storyOutput struct {
	Title string `json:"title"`
	Words int    `json:"words"`
}

var (
	story   = handler.Define[storyInput, storyOutput]("story")
	publish = handler.Define[map[string]any, map[string]any]("publish")
	chat    = handler.Define[string, map[string]int]("chat")
)

func newWorld(t *testing.T) *world {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no python3 of version 3.11 or newer; make deps installs it")
		}
		t.Skip("SKIPPED: there is no python3 of version 3.11 or newer, so the worker in Python is not tried")
	}
	quiet := slog.New(slog.DiscardHandler)
	dev, err := embedded.Start(t.Context(), embedded.Config{Addr: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	const keys = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: dev.URL(), TokenKeys: keys, Partitions: 4, Creator: "tests", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	none := handler.Define[int, int]("none") // the process does the maintenance
	w, err := runtime.New(runtime.Config{URL: dev.URL(), TokenKeys: keys, Logger: quiet},
		handler.Bind(none, func(context.Context, *handler.Task, int) (int, error) { return 0, nil }))
	if err != nil {
		t.Fatal(err)
	}
	secret, entry, err := httpapi.NewToken("py", httpapi.Worker, time.Time{}, "default")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := httpapi.ParseTokens("[" + entry + "]")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	v := &world{T: t, python: python, client: c, admin: admin.New(c), tokens: tokens, secret: secret,
		addr: "127.0.0.1:0"}
	v.serve()
	t.Cleanup(func() {
		v.kill()
		stop()
		running.Wait()
		c.Close()
		dev.Close()
	})
	return v
}

// serve starts a process of the API, so to speak: nothing is handed over from the one before.
func (v *world) serve() {
	v.Helper()
	listener, err := net.Listen("tcp", v.addr)
	if err != nil {
		v.Fatal(err)
	}
	v.addr = listener.Addr().String()
	if v.api, err = httpapi.New(httpapi.Config{Admin: v.admin, Authorize: v.tokens.Authorize,
		Logger: slog.New(slog.DiscardHandler)}); err != nil {
		v.Fatal(err)
	}
	var serving http.Handler = v.api
	if v.breaks > 0 {
		serving = breaking(v.api, v.breaks)
	}
	server := &http.Server{Handler: serving}
	v.server = server
	v.serves.Go(func() { _ = server.Serve(listener) })
}

// breaking carries out each request, and breaks off each nth answer in its middle.
func breaking(api http.Handler, n int64) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		text := answer.Body.Bytes()
		if asked.Add(1)%n != 0 || len(text) == 0 {
			_, _ = w.Write(text)
			return
		}
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush() // so that the rest is chunked, and missing
		panic(http.ErrAbortHandler)
	})
}

// kill cuts all connections.
func (v *world) kill() {
	_ = v.server.Close()
	v.serves.Wait()
	v.api.Close()
}

// The longest lease that the API gives lasts on a slow machine; a worker that is killed, or whose claims are lost,
// has a short one.
const longest, short = 600, 2

// process starts a worker with leases of some seconds.
func (v *world) process(lease int) (kill func()) {
	v.Helper()
	cmd := exec.Command(v.python, "worker.py")
	cmd.Env = append(os.Environ(), "FLOWFABRIC_API=http://"+v.addr, "FLOWFABRIC_TOKEN="+v.secret,
		fmt.Sprint("LEASE_SECONDS=", lease), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=../../clients/python/src")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if v.Failed() || strings.Contains(log.String(), "Traceback") {
				v.Errorf("the worker said:\n%s", log.String())
			}
		}
	}
	v.Cleanup(kill)
	return kill
}

// A worker is killed in the middle of its text. Another one gets the execution, does not repeat the step, and tells
// the text anew, in an attempt of its own; of no attempt a frame is lost or there twice.
func TestKilledMidway(t *testing.T) {
	v := newWorld(t)
	kill := v.process(short)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	x, err := client.Submit(ctx, v.client, story, storyInput{About: "a lighthouse", Pause: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	titles, texts, events := map[uint32]string{}, map[uint32]string{}, v.client.Execution(x.ID()).Tail(ctx)
	for event, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		f := event
		if f.Kind != stream.TailFrame {
			continue
		}
		if f.Frame.Type == "title" {
			titles[f.Attempt] = string(f.Frame.Payload)
		} else {
			texts[f.Attempt] += string(f.Frame.Payload)
		}
		if f.Attempt == 1 && f.Frame.Sequence == 5 {
			kill()
			v.process(longest)
		}
	}
	out, err := x.Result(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const all = " the light turned over the dark water and nobody on the shore knew who kept it"
	if out.Words != 16 || titles[1] != out.Title+":" || titles[2] != titles[1] || texts[2] != all ||
		!strings.HasPrefix(all, texts[1]) || len(texts) != 2 {
		t.Errorf("%+v: titles %v, texts %v", out, titles, texts)
	}
	s, err := v.client.Execution(x.ID()).Get(ctx)
	if err != nil || s.Reclaims != 1 || s.Attempts != 2 || !strings.HasPrefix(s.Worker, "python-") {
		t.Errorf("%v: %+v", err, s)
	}
}

// A handler fails, is retried, waits for an approval without a slot, and goes on with it.
func TestRetryAndApproval(t *testing.T) {
	v := newWorld(t)
	v.process(longest)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	x, err := client.Submit(ctx, v.client, publish, map[string]any{"text": " news", "fail_first": true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.AwaitSuspension(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := v.client.Execution(x.ID()).Approve(ctx, "approval", "yes"); err != nil {
		t.Fatal(err)
	}
	out, err := x.Result(ctx)
	if err != nil || out["published"] != "News" {
		t.Errorf("%v %v", out, err)
	}
	if s, err := v.client.Execution(x.ID()).Get(ctx); err != nil || s.Retries != 1 || s.Attempts != 2 ||
		s.Reclaims != 0 {
		t.Errorf("%v: %+v", err, s)
	}
}

// Two stories reserve more words than there are: one waits until there are more, and none is counted twice.
func TestReserves(t *testing.T) {
	v := newWorld(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	press := func(words int64) {
		t.Helper()
		if err := v.admin.PutGate(ctx, admission.Gate{Name: "press", OnHard: admission.HardBlock,
			Limits: map[string]admission.Limit{"words": {Hard: words}}}); err != nil {
			t.Fatal(err)
		}
	}
	used := func() admission.GateRecord {
		t.Helper()
		g, err := v.admin.GetGate(ctx, "press")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	press(20)
	v.process(longest)
	var list []*client.Execution[storyOutput]
	for _, about := range []string{"a lighthouse", "the sea"} {
		x, err := client.Submit(ctx, v.client, story, storyInput{About: about, Pause: 0.001},
			flowfabric.Gates("press"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	testwait.Progress(t, "one is told, and the other one waits", func() (bool, any) {
		g := used()
		return g.Used["words"] == 16 && g.Reserved["words"] == 0 && g.Waiting == 1, fmt.Sprint(g.Used, g.Reserved,
			g.Waiting)
	})
	press(40)
	for _, x := range list {
		if out, err := x.Result(ctx); err != nil || out.Words != 16 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if g := used(); g.Used["words"] != 32 || g.Reserved["words"] != 0 {
		t.Errorf("%v, %v reserved", g.Used, g.Reserved)
	}
}

// Messages are answered once each, those that came early and those that it waits for, although another worker goes on
// in the middle.
func TestConversation(t *testing.T) {
	v := newWorld(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	x, err := client.Submit(ctx, v.client, chat, "Ann")
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		t.Helper()
		if _, err := v.client.Execution(x.ID()).Send(ctx, "user", text); err != nil {
			t.Fatal(err)
		}
	}
	say("early")
	kill := v.process(longest)
	if _, err := x.AwaitSuspension(ctx); err != nil {
		t.Fatal(err)
	}
	kill()
	say("late")
	say("bye")
	v.process(longest)
	out, err := x.Result(ctx)
	if err != nil || out["answers"] != 2 {
		t.Errorf("%v %v", out, err)
	}
	transcript, err := v.client.Execution(x.ID()).Transcript(ctx)
	if err != nil || transcript.Text() != "Ann, you said early. Ann, you said late. " {
		t.Errorf("%q %v", transcript.Text(), err)
	}
	if m, err := v.client.Execution(x.ID()).Messages(ctx, 0); err != nil || m.Total != 3 || m.Waiting != 0 {
		t.Errorf("%+v %v", m, err)
	}
}

// Every third answer breaks off in its middle. What was asked is asked again, and everything is done.
func TestAnswersThatBreakOff(t *testing.T) {
	v := newWorld(t)
	v.kill()
	v.breaks = 3
	v.serve()
	v.process(short)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	for i := range 3 {
		x, err := client.Submit(ctx, v.client, story, storyInput{About: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := x.Result(ctx); err != nil || out.Words != 16 {
			t.Errorf("%d: %+v %v", i, out, err)
		}
	}
}

// The API is killed again and again while a worker works through it. Everything is done, and told completely.
func TestKilledGateway(t *testing.T) {
	v := newWorld(t)
	v.process(short)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	var list []*client.Execution[storyOutput]
	for i := range 12 {
		x, err := client.Submit(ctx, v.client, story, storyInput{About: fmt.Sprint(i), Pause: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	done := make(chan struct{})
	var killing conc.WaitGroup
	killing.Go(func() {
		for pause := 300 * time.Millisecond; ; pause += pause / 10 { // a slow machine gets through in the end
			select {
			case <-done:
				return
			case <-time.After(pause):
				v.kill()
				v.serve()
			}
		}
	})
	for i := range list {
		out, err := list[i].Result(ctx)
		if err != nil || out.Words != 16 {
			t.Errorf("%d: %+v %v", i, out, err)
		}
		tr, err := v.client.Execution(list[i].ID()).Transcript(ctx)
		if err != nil {
			t.Errorf("%d: %v", i, err)
		} else if !strings.HasSuffix(tr.Text(), "knew who kept it") {
			t.Errorf("%d: %q", i, tr.Text())
		}
	}
	close(done)
	killing.Wait()
}
