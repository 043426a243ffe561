package runtime_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// records is a log that passes on every record of a message.
type records struct {
	part string
	seen chan slog.Record
}

func (l records) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, l.part) {
		l.seen <- r
	}
	return nil
}

func (l records) Enabled(context.Context, slog.Level) bool { return true }
func (l records) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l records) WithGroup(string) slog.Handler            { return l }

// A cancel is what somebody asked for: it is no warning, and is not called a lost lease.
func TestCancelIsLoggedCalmly(t *testing.T) {
	w := newEnv(t)
	b, started, _ := blocking()
	log := records{"outcome is dropped", make(chan slog.Record, 8)}
	w.start(runtime.Config{Logger: slog.New(log)}, b)
	id := w.submit("x")
	<-started
	if _, err := w.engine.CancelExecution(w.ctx, id,
		engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-log.seen:
		if r.Level != slog.LevelInfo ||
			r.Message != "flowfabric: execution cancelled; the handler's outcome is dropped" {
			t.Errorf("%s %s", r.Level, r.Message)
		}
	case <-w.ctx.Done():
		t.Error("nothing was logged")
	}
	w.reach(id, codes.Cancelled)
}
