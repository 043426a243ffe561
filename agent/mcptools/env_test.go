package mcptools_test

import (
	"context"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// real is a worker whose time is real: a process or a network that a handler waits for keeps virtual time from passing.
type real struct {
	ctx    context.Context
	client *client.Client
}

func start(t *testing.T, bindings ...handler.Binding) *real {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: "embedded://",
		Logger: quiet})
	must.No(t, err)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet}, bindings...)
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		c.Close()
	})
	return &real{ctx, c}
}

// talk is a conversation of an agent with real servers.
func talk(t *testing.T, model agent.Model, servers ...mcptools.Server) (agent.Result, error) {
	t.Helper()
	p := pool(t, servers...)
	t.Cleanup(p.Close)
	e := start(t, handler.Bind(chat, talking(p, model)))
	x, err := client.Submit(e.ctx, e.client, chat, "hello")
	must.No(t, err)
	return x.Result(e.ctx)
}

// talkBeside is one with servers in this process, in virtual time.
func talkBeside(t *testing.T, model agent.Model, w *world,
	change func(*mcptools.Server)) *fftest.Report[agent.Result] {
	t.Helper()
	return fftest.Run(t, chat, besides(model, change, w), "hello")
}

// besides is a handler whose runs have sessions of their own with servers in this process, as in a process of its own.
func besides(model agent.Model, change func(*mcptools.Server),
	worlds ...*world) func(context.Context, *handler.Task, string) (agent.Result, error) {
	return func(ctx context.Context, t *handler.Task, prompt string) (r agent.Result, err error) {
		err = pooled(change, worlds, func(p *mcptools.Pool) (err error) {
			r, err = talking(p, model)(ctx, t, prompt)
			return err
		})
		return r, err
	}
}

// pooled gives a function a pool of servers in this process, a, b and so on, while it runs.
func pooled(change func(*mcptools.Server), worlds []*world, fn func(p *mcptools.Pool) error) error {
	var servers []mcptools.Server
	for i, w := range worlds {
		b := &beside{world: w}
		defer b.running.Wait()
		s := mcptools.Server{Name: string(rune('a' + i)), Transport: b.transport}
		if w.dialect == "old" {
			s.Protocol = "2025-11-25"
		}
		if change != nil {
			change(&s)
		}
		servers = append(servers, s)
	}
	p, err := mcptools.New(mcptools.Config{Logger: quiet}, servers...)
	if err != nil {
		return err
	}
	defer p.Close()
	return fn(p)
}

var help = handler.Define[string, string]("help")

// ask runs a helper on a server of its own.
func ask(h *Helper, question string) (string, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		return "", err
	}
	defer s.Close()
	w, err := runtime.New(runtime.Config{URL: s.URL(), Logger: quiet}, handler.Bind(help, h.Handle))
	if err != nil {
		return "", err
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer stop()
	working.Go(func() { _ = w.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Logger: quiet})
	if err != nil {
		return "", err
	}
	defer c.Close()
	x, err := client.Submit(ctx, c, help, question)
	if err != nil {
		return "", err
	}
	return x.Result(ctx)
}
