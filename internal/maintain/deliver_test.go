package maintain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// post is a fake server with an outbox in partition 0: its ticks tell how many entries there are.
type post struct {
	*ticker

	mu       sync.Mutex
	entries  []string
	told     []string // gates that were told of holds
	down     bool     // the gates do not answer
	tries    int
	panicked bool
}

func newPost(n int) *post {
	p := &post{}
	for i := range n {
		p.entries = append(p.entries, fmt.Sprintf("%d-0", i))
	}
	p.ticker = newTicker(1, func(context.Context, uint16, int) (engine.TickReply, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return engine.TickReply{Owner: true, Next: time.Second, Outbox: len(p.entries)}, nil
	})
	return p
}

func (p *post) ReadOutbox(_ context.Context, _ uint16, after string) (out []engine.OutboxEntry, total int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.entries[slices.Index(p.entries, after)+1:]
	for _, id := range rest[:min(100, len(rest))] {
		out = append(out, engine.OutboxEntry{ID: id, News: []engine.News{{Gate: "q" + id, What: engine.NewsGone}}})
	}
	return out, len(p.entries), nil
}

func (p *post) TrimOutbox(_ context.Context, _ uint16, ids []string) (left int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries = p.entries[len(ids):]
	return len(p.entries), nil
}

func (p *post) SettleGates(_ context.Context, news []engine.News) ([]bool, []engine.Waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if !p.panicked {
		p.panicked = true
		panic("of the test")
	}
	if p.down {
		return nil, nil, errors.New("down")
	}
	for _, x := range news {
		p.told = append(p.told, x.Gate)
	}
	return make([]bool, len(news)), nil, nil
}

func (p *post) CreateExecutions(context.Context, uint16, []engine.NewExecution) ([]engine.Created, error) {
	return nil, nil
}

func (p *post) RefuseStart(context.Context, engine.Subject, string, string, string) error { return nil }

func (p *post) BringEvent(context.Context, *engine.Published, engine.EventResume) error { return nil }

func (p *post) ForgetExpected(context.Context, uint16, []engine.Expected) (int, error) { return 0, nil }

func (p *post) NoteWaiters(context.Context, uint16, []engine.Awaiting, bool) ([]engine.Awaited, error) {
	panic("nobody is awaited")
}

func (p *post) TellWaiters(context.Context, uint16, []engine.AwaitedEnd) (int, error) {
	panic("nobody is awaited")
}

func (p *post) OpenRoutes(context.Context, uint16, []uint64) ([]bool, error) { panic("nobody waits") }
func (p *post) GatePartitions() uint16                                       { return 1 }

// What a tick finds in an outbox is delivered at once and to the last entry. While a gate does not answer nothing
// is forgotten, the ticks go on, and one line is logged; a panic is such a failure, too.
func TestOutboxIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newPost(2250) // more than one go
		p.down = true
		delivered := 0
		l := maintain.New(maintain.Config{Engine: p, Owner: "me", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnDeliver: func(_ uint16, n int, _ error) { delivered += n }})
		ctx, stop := context.WithCancel(t.Context())
		var running conc.WaitGroup
		running.Go(func() { _ = l.Run(ctx) })

		time.Sleep(20 * time.Second)
		p.mu.Lock()
		if len(p.entries) != 2250 || p.tries < 4 || p.tries > 21 {
			t.Errorf("%d entries after %d tries", len(p.entries), p.tries)
		}
		p.down = false
		p.mu.Unlock()
		if n := len(p.of(0)); n < 20 {
			t.Errorf("%d ticks in 20 s", n)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(p.entries) > 0 || len(p.told) != 2250 || delivered != 2250 {
			t.Errorf("%d left, %d told, %d delivered", len(p.entries), len(p.told), delivered)
		}

		ticks := len(p.of(0))
		p.mu.Lock()
		p.entries = []string{"9999-0"}
		p.mu.Unlock()
		l.Ring(0)
		synctest.Wait()
		if len(p.entries) > 0 || len(p.of(0)) > ticks+2 {
			t.Errorf("rung: %d left after %d ticks", len(p.entries), len(p.of(0))-ticks)
		}
		stop()
		running.Wait()
		if n := strings.Count(log.String(), "gates or executions did not receive"); n != 1 ||
			!strings.Contains(log.String(), "receive reports again") {
			t.Errorf("%d complaints: %s", n, log.String())
		}
	})
}
