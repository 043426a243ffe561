package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// logOf is what is kept of the log of an execution.
func (w *env) logOf(id flowfabric.ExecutionID) (lines []stream.LogLine) {
	w.Helper()
	for q := (stream.LogRange{}); ; {
		page, err := w.engine.ReadLogLines(w.ctx, id, q, 1000)
		must.No(w, err)
		lines = append(lines, page.Lines...)
		if !page.More {
			return lines
		}
		q.After = page.After
	}
}

// logText is "attempt level message attributes" of lines.
func logText(lines []stream.LogLine) string {
	var out []string
	for _, x := range lines {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", x.Attempt, x.Level, x.Message, x.Attributes)))
	}
	return strings.Join(out, "\n")
}

// logsAs is a kind whose handler does something with its logger.
func logsAs(kind string, do func(*slog.Logger), opts ...handler.DefineOption) handler.Binding {
	return handler.Bind(handler.Define[string, string](kind, opts...),
		func(_ context.Context, t *handler.Task, _ string) (string, error) {
			do(t.Logger())
			return "", nil
		})
}

// callsOf counts the calls of a function of the server.
func callsOf(function string) (func(string, time.Duration, error), *atomic.Int64) {
	var n atomic.Int64
	return func(name string, _ time.Duration, _ error) {
		if name == function {
			n.Add(1)
		}
	}, &n
}

// What a handler logs is kept from the level of its kind on, whatever the worker's own logger takes; off keeps nothing
// and makes no call. Attributes of the worker are in its own log alone.
func TestHandlersLogsAreKept(t *testing.T) {
	w := newEnv(t)
	var mu sync.Mutex
	var text bytes.Buffer
	own := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	say := func(log *slog.Logger) {
		log.Debug("a")
		log.With("x", 1).WithGroup("g").Info("b", "y", "z")
		log.Warn("c")
	}
	onCall, calls := callsOf("ff_append_log")
	w.start(runtime.Config{Logger: own, OnCall: onCall}, logsAs("info", say),
		logsAs("debug", say, handler.KeepLogs("debug")), logsAs("warn", say, handler.KeepLogs("warn")),
		logsAs("off", say, handler.KeepLogs("off")), logsAs("silent", func(*slog.Logger) {}))
	for kind, want := range map[string]string{
		"info": `1 info b {"x":1,"g.y":"z"}` + "\n1 warn c", "debug": "1 debug a\n" + `1 info b {"x":1,"g.y":"z"}` +
			"\n1 warn c", "warn": "1 warn c", "off": "", "silent": ""} {
		before := calls.Load()
		id := w.submitKind(kind, "")
		w.reach(id, "T1")
		if got := logText(w.logOf(id)); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if n := calls.Load() - before; (n == 0) != (want == "") {
			t.Errorf("%s: %d calls", kind, n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(text.String(), "msg=c worker=worker execution="); n != 4 ||
		strings.Contains(text.String(), "msg=b") {
		t.Errorf("the worker's own log has %d lines of 4: %s", n, text.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A handler that logs ten lines costs one call more, its completion stays the other.
func TestTenLinesCostOneCall(t *testing.T) {
	w := newEnv(t)
	onCall, calls := callsOf("ff_append_log")
	w.start(runtime.Config{OnCall: onCall}, logsAs("ten", func(log *slog.Logger) {
		for n := range 10 {
			log.Info("line", "n", n)
		}
	}))
	least := int64(1 << 62)
	for range 5 { // a machine that stands still for longer than lines wait makes it two
		before := calls.Load()
		id := w.submitKind("ten", "")
		w.reach(id, "T1")
		if n := len(w.logOf(id)); n != 10 {
			t.Fatalf("%d lines", n)
		}
		least = min(least, calls.Load()-before)
	}
	if least != 1 {
		t.Errorf("%d calls", least)
	}
}

// Many goroutines log at once: each line is kept, or counted as dropped.
func TestManyGoroutinesLog(t *testing.T) {
	w := newEnv(t)
	const goroutines, lines = 20, 500
	w.start(runtime.Config{}, logsAs("many", func(log *slog.Logger) {
		var wg conc.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				log := log.With("g", g)
				for n := range lines {
					log.Info("line", "n", n)
				}
			})
		}
		wg.Wait()
	}))
	id := w.submitKind("many", "")
	w.reach(id, "T1")
	got := w.logOf(id)
	if len(got) != 1000 {
		t.Errorf("%d lines are kept of %d", len(got), goroutines*lines)
	}
}

// The lines that were sent stay when the worker loses its lease, and those of the next attempt are apart.
func TestLogsOutliveTheLease(t *testing.T) {
	w := newEnv(t)
	w.start(runtime.Config{}, handler.Bind(handler.Define[string, string]("lost"),
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			task.Logger().Info("begins")
			if task.Attempt() == 1 {
				<-ctx.Done()
				task.Logger().Info("too late")
				return "", ctx.Err()
			}
			return "", nil
		}))
	id := w.submitKind("lost", "")
	w.eventually("the line is kept while the handler runs", func() bool { return len(w.logOf(id)) == 1 })
	_, err := w.engine.RevokeLease(w.ctx, id, "")
	must.No(t, err)
	w.reach(id, "T1")
	if got := logText(w.logOf(id)); got != "1 info begins\n2 info begins" {
		t.Error(got)
	}
}

// What was logged before a wait is there as soon as the execution is suspended, and the runs of an attempt share a log.
func TestLogsComeBeforeTheWait(t *testing.T) {
	w := newEnv(t)
	w.start(signing(), handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		task.Logger().Info("run")
		return handler.Await[string](ctx, task, "word", suspend.Because(suspend.ReasonApproval))
	}))
	id := w.submit("x")
	w.eventually("it waits", func() bool { return w.suspension(id).State == flowfabric.Suspended })
	if got := logText(w.logOf(id)); got != "1 info run" {
		t.Error(got)
	}
	w.signalled(id, "word", `"go"`, waitwords.EffectSatisfied)
	w.reach(id, "T1")
	if got := logText(w.logOf(id)); got != "1 info run\n1 info run" {
		t.Error(got)
	}
}
