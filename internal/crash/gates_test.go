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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// limited works for a moment under gates, and says when.
var limited = handler.Define[job, answer]("crash-limited", flowfabric.Retries(0))

// workLimited is the worker of TestGatesUnderFire.
func workLimited(url, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := runtime.New(runtime.Config{URL: url, Instance: name, LeaseTTL: ttl, Concurrency: 8,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		handler.Bind(limited, func(ctx context.Context, t *handler.Task, _ job) (answer, error) {
			at := func(what string) { fmt.Printf("%s %d %s/%d\n", what, time.Now().UnixNano(), t.ID(), t.Attempt()) }
			at("begin")
			defer at("end")
			select {
			case <-ctx.Done():
				return answer{}, context.Cause(ctx)
			case <-time.After(40 * time.Millisecond):
				return answer{Worker: name}, nil
			}
		}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}

// TestGatesUnderFire kills workers (SIGKILL) whose work has gates that let so many run at once, 25 times, or 1,000 with
// FLOWFABRIC_SOAK_CRASH. By what the workers say of when they began and ended, and when they were killed, never more
// run at once than a gate allows; at the end all work has succeeded and no slot is held.
func TestGatesUnderFire(t *testing.T) {
	kills := number(t, "FLOWFABRIC_CRASH_GATE_KILLS", 25, 1000)
	const fleet, narrow, wide = 4, 4, 6
	r, url := seeded(t), testserver.Redis(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	e, err := engine.Open(ctx, engine.Config{URL: url, Partitions: 4, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer e.Close()
	l := &ledgerOfRuns{t: t, e: e, caps: map[string]int{"narrow": narrow, "wide": wide}, gates: map[string][]string{}}
	for name, most := range l.caps {
		if _, _, _, err := e.PutGate(ctx, admission.Gate{Name: name, Concurrency: most}, 0); err != nil {
			t.Fatal(err)
		}
	}
	workers := make([]*process, fleet)
	hire := func(i, n int) { workers[i] = startLimited(t, url, fmt.Sprint("w", i, "-", n)) }
	for i := range workers {
		hire(i, 0)
	}
	for n := range kills {
		l.create(ctx, 12)
		l.wait(ctx, func() bool { return len(l.open) < 60 })
		time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond) // not a wait for anything: a kill comes at any time
		i := r.IntN(fleet)
		workers[i].kill()
		l.read(workers[i], time.Now().UnixNano())
		hire(i, n+1)
	}
	l.wait(ctx, func() bool { return len(l.open) == 0 })
	l.wait(ctx, l.free)
	for _, w := range workers {
		w.signal(t, syscall.SIGTERM)
		w.ended(t)
		l.read(w, time.Now().UnixNano())
	}
	l.judge()
}

func startLimited(t *testing.T, url, name string) *process {
	t.Helper()
	exe, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "FF_CRASH_URL="+url, "FF_CRASH_NAME="+name, "FF_CRASH_LIMITED=1")
	p := launch(t, name, cmd)
	p.expect(t, "ready")
	return p
}

// ledgerOfRuns is what is known of who ran when.
type ledgerOfRuns struct {
	t     *testing.T
	e     *engine.Engine
	caps  map[string]int
	gates map[string][]string // of an execution
	open  []flowfabric.ExecutionID
	turns []turn
	made  int
	cut   int // attempts that a kill ended
}

// turn is an instant at which somebody began (+1) or ended (-1).
type turn struct {
	at     int64
	change int
	id     string
}

// create makes n executions, with one gate, or the other, or both.
func (l *ledgerOfRuns) create(ctx context.Context, n int) {
	l.t.Helper()
	by := map[uint16][]engine.NewExecution{}
	for range n {
		p := uint16(l.made % 4)
		id := mint.ID(p)
		names := [][]string{{"narrow"}, {"wide"}, {"narrow", "wide"}}[l.made%3]
		x := engine.NewExecution{ID: id, Start: flowfabric.Start{Namespace: limits.DefaultNamespace,
			Lane: limits.DefaultLane,
			Kind: "crash-limited"},
			Payload: []byte(`{"Index":1}`)}
		x.Policy.MaxReclaims = 1000
		x.Names = append(x.Names, names...)
		l.gates[id.String()] = names
		l.open, by[p] = append(l.open, id), append(by[p], x)
		l.made++
	}
	for p, items := range by {
		out, err := l.e.CreateExecutions(ctx, p, items)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, c := range out {
			if c.Err != nil {
				l.t.Fatal(c.Err)
			}
		}
	}
}

// wait asks again and again until a condition holds, and forgets what has ended.
func (l *ledgerOfRuns) wait(ctx context.Context, done func() bool) {
	l.t.Helper()
	for {
		l.open = slices.DeleteFunc(l.open, func(id flowfabric.ExecutionID) bool {
			x, err := l.e.ReadExecution(ctx, id)
			if err != nil {
				l.t.Fatal(err)
			}
			if x.Code != "T1" && strings.HasPrefix(string(x.Code), "T") {
				l.t.Fatalf("%s ended as %s %s", id, x.Code, x.Failure.Category)
			}
			return x.Code == "T1"
		})
		if done() {
			return
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("%d of %d executions have not ended", len(l.open), l.made)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// free tells whether no slot is held.
func (l *ledgerOfRuns) free() bool {
	held := 0
	for name := range l.caps {
		q, err := l.e.ReadGate(context.Background(), name, 0, 0, 0)
		if err != nil {
			l.t.Fatal(err)
		}
		held += q.Held
	}
	return held == 0
}

// read takes down what a worker said that ended at an instant.
func (l *ledgerOfRuns) read(p *process, ended int64) {
	running := map[string]bool{}
	for len(p.lines) > 0 {
		var what, attempt string
		var at int64
		if _, err := fmt.Sscan(<-p.lines, &what, &at, &attempt); err != nil {
			continue // cut short by the kill
		}
		id, _, _ := strings.Cut(attempt, "/")
		if what == "begin" {
			running[attempt] = true
			l.turns = append(l.turns, turn{at, 1, id})
		} else if running[attempt] {
			delete(running, attempt)
			l.turns = append(l.turns, turn{at, -1, id})
		}
	}
	for attempt := range running {
		id, _, _ := strings.Cut(attempt, "/")
		l.turns = append(l.turns, turn{ended, -1, id})
		l.cut++
	}
}

// judge counts how many ran at once.
func (l *ledgerOfRuns) judge() {
	l.t.Helper()
	slices.SortFunc(l.turns, func(a, b turn) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.change - b.change
	})
	now, most := map[string]int{}, map[string]int{}
	for _, x := range l.turns {
		for _, name := range l.gates[x.id] {
			now[name] += x.change
			most[name] = max(most[name], now[name])
		}
	}
	for name, limit := range l.caps {
		if most[name] > limit || most[name] == 0 || now[name] != 0 {
			l.t.Errorf("%s: up to %d ran at once, the cap is %d; %d at the end", name, most[name], limit, now[name])
		}
	}
	if l.cut == 0 {
		l.t.Error("no kill hit a worker that ran something: nothing was proved")
	}
	l.t.Logf("%d executions, %d attempts cut short, at once %v", l.made, l.cut, most)
}
