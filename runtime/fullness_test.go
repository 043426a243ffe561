package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// with are the lines that have all these words.
func (l *lines) with(words ...string) (some []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.all.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		some = append(some, line)
	}
	return some
}

// A worker warns once a run when an execution has used four fifths of its steps, or of its history: in its log, and
// by a metric.
func TestNearlyFull(t *testing.T) {
	w := newEnv(t)
	reg, log := prometheus.NewRegistry(), &lines{}
	cfg := signing()
	cfg.Registerer, cfg.Logger = reg, slog.New(slog.NewTextHandler(log, nil))
	step := func(ctx context.Context, task *handler.Task, name string) error {
		_, err := handler.Step(ctx, task, name, func(context.Context) (int, error) { return 0, nil })
		return err
	}
	w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		for i := range 798 {
			if err := step(ctx, task, fmt.Sprint("step ", i)); err != nil {
				return "", err
			}
		}
		if _, err := task.Drain(ctx, "user"); err != nil { // the 799th
			return "", err
		}
		if n := len(log.with("used most")); n > 0 && task.Retries() == 0 {
			t.Errorf("%d warnings after 799 steps", n)
		}
		for i := range 3 {
			if err := step(ctx, task, fmt.Sprint("more ", i+10*task.Retries())); err != nil {
				return "", err
			}
		}
		if task.Retries() == 0 {
			return "", fmt.Errorf("once")
		}
		return in, nil
	}))
	id := w.submit("x", retries(1))
	w.reach(id, codes.Completed)
	warned := log.with("level=WARN", "used most of a limit", "limit=steps", "most=1000", "execution="+id.String(),
		"kind=greet")
	if len(warned) != 2 || !strings.Contains(warned[0], "used=800") || !strings.Contains(warned[1], "used=803") {
		t.Errorf("%q", warned)
	}
	if n := reading(t, reg, "nearly_full_total", "kind=greet", "limit=steps"); n != 2 {
		t.Errorf("the metric reads %v", n)
	}
}

// A history that is nearly full is told of when the execution waits, until it is full: then it forgets.
func TestNearlyFullHistory(t *testing.T) {
	w := newEnv(t)
	reg, log := prometheus.NewRegistry(), &lines{}
	cfg := signing()
	cfg.Registerer, cfg.Logger = reg, slog.New(slog.NewTextHandler(log, nil))
	ready := make(chan struct{})
	w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		<-ready
		return handler.Await[string](ctx, task, "go")
	}))
	for before, want := range map[int]int{790: 0, 800: 1, 1000: 0} {
		id := w.submit("x")
		for i := range before {
			tags := map[string]string{"a.n": fmt.Sprint(i)}
			must.No(t, w.engine.SetTags(trail.As(w.ctx, "anna", "test"), id, tags, nil))
		}
		ready <- struct{}{}
		w.reach(id, codes.AwaitingSignal)
		w.eventually("the wait is told of", func() bool {
			return len(log.with("limit=history", "most=1000", "execution="+id.String())) == want
		})
	}
	if n := reading(t, reg, "nearly_full_total", "limit=history"); n != 1 {
		t.Errorf("the metric reads %v", n)
	}
}
