package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// flushing runs a test on servers that can be flushed behind everybody's back; ask sends a command and returns the
// first line of the answer.
func flushing(t *testing.T, f func(w *env, ask func(command string) string)) {
	for name, start := range map[string]func(t *testing.T) *env{
		"embedded": newEnv,
		"redis":    func(t *testing.T) *env { return envAt(t, testserver.Redis(t, testserver.TCP())) },
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "redis://"))
			must.No(t, err)
			defer conn.Close()
			answers := bufio.NewReader(conn)
			f(w, func(command string) string {
				words := strings.Fields(command)
				text := fmt.Sprintf("*%d\r\n", len(words))
				for _, word := range words {
					text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
				}
				if _, err := conn.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
				line, err := answers.ReadString('\n')
				must.No(t, err)
				return strings.TrimSpace(line)
			})
		})
	}
}

// A store that is flushed under a worker is booted again by it. What it held is lost, as with any lease; timers,
// waits for signals, and what is submitted from then on go on as in a new store.
func TestAWorkerOutlivesAFlush(t *testing.T) {
	flushing(t, func(w *env, ask func(string) string) {
		lost, began := make(chan error, 1), make(chan struct{})
		worker := w.start(runtime.Config{TokenKeys: keyA, LeaseTTL: 2 * time.Second}, greetBinding(),
			handler.Bind(handler.Define[string, string]("hold"),
				func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
					close(began)
					<-ctx.Done()
					lost <- context.Cause(ctx)
					return "", ctx.Err()
				}),
			handler.Bind(handler.Define[string, string]("wait"),
				func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					return handler.Await[string](ctx, task, "go")
				}))
		w.submitKind("hold", "")
		<-began
		if answer := ask("FLUSHALL"); answer != "+OK" {
			t.Fatal(answer)
		}
		w.eventually("the worker boots the store", func() bool { return ask("EXISTS ff:{fp:3}") == ":1" })
		if cause := <-lost; !errors.Is(cause, flowfabric.ErrLeaseLost) {
			t.Errorf("the handler that held a lease: %v", cause)
		}
		for p := range uint16(4) {
			at := func(x *engine.NewExecution) { x.ID = mint.ID(p) }
			now := w.submit("now", at)
			later := w.submit("later", at,
				func(x *engine.NewExecution) { x.Delay = flowfabric.Millis(300 * time.Millisecond) })
			waits := w.submit("", at, func(x *engine.NewExecution) { x.Kind = "wait" })
			w.reach(now, codes.Completed)
			w.reach(later, codes.Completed)
			w.reach(waits, codes.AwaitingSignal, codes.Failed)
			w.signalled(waits, "go", `"gone"`, "resume_condition_satisfied")
			w.reach(waits, codes.Completed)
		}
		w.eventually("the worker is listed", func() bool {
			for _, p := range w.engine.Workers(w.ctx) {
				for _, row := range p.Reply {
					if row.Alive && row.Instance == worker.Instance() {
						return true
					}
				}
			}
			return false
		})
		if err := worker.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// A handler that waits declares the token keys to a flushed store itself. It does not fail until the registration is
// renewed, which does so, too: a third of the lease later.
func TestAHandlerThatWaitsOutlivesAFlush(t *testing.T) {
	flushing(t, func(w *env, ask func(string) string) {
		w.start(runtime.Config{TokenKeys: keyA, LeaseTTL: 5 * time.Minute},
			handler.Bind(handler.Define[string, string]("wait"),
				func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					return handler.Await[string](ctx, task, "go")
				}))
		if answer := ask("FLUSHALL"); answer != "+OK" {
			t.Fatal(answer)
		}
		w.eventually("the worker boots the store", func() bool { return ask("EXISTS ff:{fp:3}") == ":1" })
		waits := w.submitKind("wait", "")
		if s := w.reach(waits, codes.AwaitingSignal, codes.Failed); s.Code != codes.AwaitingSignal {
			t.Errorf("the handler that waits: %s, %s", s.Code, s.Failure.Category)
		}
	})
}

// The store was flushed and made anew with other partition counts: the worker ends, and says what to do.
func TestAWorkerEndsWhenTheStoreHasOtherCounts(t *testing.T) {
	for _, partitions := range []uint16{2, 8} {
		flushing(t, func(w *env, ask func(string) string) {
			worker := w.start(runtime.Config{LeaseTTL: 2 * time.Second}, greetBinding())
			// The first call makes the store anew, so nobody else may be in between.
			ask("MULTI")
			ask("FLUSHALL")
			ask(fmt.Sprintf(
				"HSET ff:config:partitions num_flow_partitions %d num_gate_partitions 32",
				partitions))
			ask("EXEC")
			e, err := engine.Open(w.ctx, engine.Config{URL: w.url, Logger: quiet})
			must.No(t, err)
			defer e.Close()
			w.eventually("the worker ends", func() bool { return worker.Ready() != nil })
			err = worker.stop()
			counts, ok := errors.AsType[*engine.CountsError](err)
			if !ok || counts.Stored.Executions != partitions || counts.Used.Executions != 4 ||
				!strings.Contains(err.Error(), "restart this process") {
				t.Errorf("run: %v", err)
			}
		})
	}
}
