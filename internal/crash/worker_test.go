//go:build unix

package crash_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const (
	ttl    = 3 * time.Second
	tokens = 60
)

type job struct{ Index int }

type answer struct {
	Pass   string // made in the step, once
	Worker string
}

// streaming writes numbered frames for about two seconds, half of them before and half after a durable step.
var streaming = handler.Define[job, answer]("crash-stream", handler.Retry(0, time.Second, time.Second))

// writer holds one execution for long and reports how its context ended.
var hold = handler.Define[job, answer]("crash-hold", flowfabric.Retries(0))

// TestMain runs the worker when the parent asks for one.
func TestMain(m *testing.M) {
	if url := os.Getenv("FF_CRASH_URL"); url != "" {
		role := work
		switch {
		case os.Getenv("FF_CRASH_LIMITED") != "":
			role = workLimited
		case os.Getenv("FF_CRASH_PAYING") != "":
			role = workPaying
		case os.Getenv("FF_CRASH_CALLING") != "":
			role = workCalling
		case os.Getenv("FF_CRASH_GATEWAY") != "":
			role = serveGateway
		}
		if err := role(url, os.Getenv("FF_CRASH_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if program.path != "" {
		_ = os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(code)
}

func work(url, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	w, err := runtime.New(runtime.Config{
		URL: url, Instance: name, LeaseTTL: ttl, Concurrency: 64,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	},
		handler.Bind(streaming, func(ctx context.Context, t *handler.Task, in job) (answer, error) {
			for i := range tokens / 2 {
				if err := emit(ctx, t, i); err != nil {
					return answer{}, err
				}
			}
			pass, err := handler.Step(ctx, t, "middle", func(context.Context) (string, error) {
				return fmt.Sprintf("%s/%d/%d", name, t.Attempt(), time.Now().UnixNano()), nil
			})
			if err != nil {
				return answer{}, err
			}
			for i := range tokens / 2 {
				if err := emit(ctx, t, tokens/2+i); err != nil {
					return answer{}, err
				}
			}
			return answer{Pass: pass, Worker: name}, nil
		}),
		handler.Bind(hold, func(ctx context.Context, t *handler.Task, in job) (answer, error) {
			say("holding %s %d", t.ID(), t.Attempt())
			<-ctx.Done()
			say("lost %v", context.Cause(ctx))
			// A handler that ignores its context would go on writing: every write must be refused.
			ignored := context.WithoutCancel(ctx)
			ferr := t.Frame(ignored, "token", "too late")
			if ferr == nil {
				ferr = t.Flush(ignored)
			}
			say("frame %v", ferr)
			_, serr := handler.Step(ignored, t, "late", func(context.Context) (int, error) { return 1, nil })
			say("step %v", serr)
			return answer{Worker: name}, nil // and so must the result
		}))
	if err != nil {
		return err
	}
	say("ready")
	return w.Run(ctx)
}

func emit(ctx context.Context, t *handler.Task, i int) error {
	if err := t.Frame(ctx, "token", strconv.Itoa(i)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(30 * time.Millisecond):
		return nil
	}
}

// start runs the test binary as a worker and waits until it is ready.
func start(t *testing.T, url, name string) *process {
	t.Helper()
	exe, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "FF_CRASH_URL="+url, "FF_CRASH_NAME="+name)
	p := launch(t, name, cmd)
	p.expect(t, "ready")
	return p
}
