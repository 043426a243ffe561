package mcptools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// deadly are the steps in which a worker is killed, once each, in the order in which they come.
var deadly = []string{"model 1", "tool 1.2 a_search", "tool 1.3 refund", "sub tool 1.1 a_search", "sub model 2",
	"model 2"}

// work is a worker process. It does not get beyond the first call of what is deadly.
func work(url, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s := mcptools.Server{Name: "a", Command: []string{self}, Env: []string{asServer + "=" + dir}}
	asking(&s)
	p, err := mcptools.New(mcptools.Config{Logger: quiet}, s)
	if err != nil {
		return err
	}
	defer p.Close()
	notes := &world{dir: dir}
	o := &office{parallel: 1, pool: func(fn func(*mcptools.Pool) error) error { return fn(p) },
		did: func(step string) {
			if notes.note(step) == 0 && slices.Contains(deadly, step) {
				<-ctx.Done()
			}
		}}
	w, err := runtime.New(runtime.Config{URL: url, LeaseTTL: 2 * time.Second, Logger: quiet},
		handler.Bind(chat, o.Handle), handler.Bind(clerk, o.clerk))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// launch starts a worker process, and returns what kills it and waits for its end.
func launch(t *testing.T, url, dir string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asWorker+"="+url, asServer+"="+dir)
	cmd.Stderr = os.Stderr
	must.No(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	return kill
}

// anna answers whatever is asked in an execution and its children, and notes what is set aside while a child asks.
func (o *office) anna(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) (aside int64) {
	for e, err := range c.Execution(id).Tail(ctx) {
		if err != nil {
			o.fault("anna: %v", err)
			return aside
		}
		if e.Kind != stream.TailSuspended {
			continue
		}
		of := id
		if e.Child != nil {
			of, aside = e.Child.ID, o.gate(ctx, c).Reserved["tokens"]
		}
		for _, p := range e.Suspension.Waitpoints {
			answer, known := answers[p.Key]
			if !known || !p.Open() {
				continue
			}
			_, err := c.Execution(of).Approve(ctx, p.Key, answer, anna)
			if err != nil && !errors.Is(err, flowfabric.ErrWaitpointClosed) {
				o.fault("anna: %s: %v", p.Key, err)
			}
		}
	}
	return aside
}

// undisturbed is what readers see of an office whose workers live.
func undisturbed(t *testing.T) []string {
	t.Helper()
	var o *office
	handle := func(ctx context.Context, task *handler.Task, in string) (agent.Result, error) {
		return o.Handle(ctx, task, in)
	}
	r := fftest.Run(t, chat, answered(handle, "approve 1.4 refund", "approve 1.2 a_search", "approve 1.3 refund"),
		"hello", fftest.Gates(purse), helped(func(fx *fftest.Effects) *office {
			o, _ = newOffice(fx)
			return o
		}))
	wantOffice(t, r.Result, r.Err)
	return o.check(t, "undisturbed", nil)
}

// The same with processes: workers are killed in the middle of calls of models and tools, of the agent and its
// sub-agent, and with them the MCP servers that they started. Each call that was killed is made once more and no other
// is; the ledger has what was recorded, and nothing stays reserved.
func TestCrashesOfProcesses(t *testing.T) {
	shown := undisturbed(t)
	t.Setenv(suspend.EnvTokenKeys, "A:"+strings.Repeat("a1", 32))
	url, dir := testserver.Redis(t), t.TempDir()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	must.No(t, err)
	defer c.Close()
	must.No(t, admin.New(c).PutGate(ctx, purse))
	x, err := client.Submit(ctx, c, chat, "hello", flowfabric.Gates(purse.Name))
	must.No(t, err)

	o := &office{}
	var aside int64
	var readers conc.WaitGroup
	readers.Go(func() { o.read(ctx, c, x.ID()) })
	readers.Go(func() { aside = o.anna(ctx, c, x.ID()) })
	kill := launch(t, url, dir)
	notes := func(step string) int {
		text, _ := os.ReadFile(filepath.Join(dir, step))
		return len(text)
	}
	for _, step := range deadly {
		testwait.Until(t, fmt.Sprint("a worker is in ", step), func() bool { return notes(step) == 1 })
		kill()
		kill = launch(t, url, dir)
	}
	r, err := x.Result(ctx)
	readers.Wait()
	wantOffice(t, r, err)
	o.check(t, "killed", shown)
	for _, step := range []string{"model 1", "tool 1.1 a_search", "tool 1.2 a_search", "tool 1.3 refund",
		"sub model 1", "sub tool 1.1 a_search", "sub tool 1.2 refund", "sub model 2", "model 2"} {
		want := 1
		if slices.Contains(deadly, step) {
			want = 2
		}
		if n := notes(step); n != want {
			t.Errorf("%s was done %d times, want %d", step, n, want)
		}
	}
	if used := o.purse.Used["tokens"]; used != 40 || aside != 90 {
		t.Errorf("%d tokens are used, want 40; %d were set aside while the clerk asked, want 90", used, aside)
	}
	s, err := x.Get(ctx)
	must.No(t, err)
	t.Logf("%d workers were killed; the agent had %d attempts; readers were told %d events", len(deadly), s.Attempts,
		len(o.whole))
}
