package toxic_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/schedule"
)

const (
	processes = 5
	spans     = 40 // times the clock is moved on
	span      = 50 * time.Second
)

// threeNodes is the item of a flow, see template.
var threeNodes = schedule.Item{Nodes: 3, Start: flowfabric.Start{Namespace: "default", Kind: "report"}}

// template is a flow of three nodes, as a schedule stores it.
func template(t *testing.T) []byte {
	t.Helper()
	work := handler.Define[int, int]("k")
	f := flow.New("report")
	a := flow.Add(f, "a", work, 1)
	flow.Add(f, "c", work, 3, flow.After(a, flow.Add(f, "b", work, 2)))
	plan, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)),
		Start: flowfabric.Start{Namespace: "default"}})
	must.No(t, err)
	text, err := plan.Encode()
	must.No(t, err)
	return text
}

// process is one of several that share a store: an engine behind a proxy of its own, and a maintenance loop that is
// stopped and started.
type process struct {
	name   string
	proxy  *proxy
	engine *engine.Engine
	loop   *maintain.Loop
	cancel context.CancelFunc
	run    sync.WaitGroup
}

// agenda is what they do together.
type agenda struct {
	t         *testing.T
	ctx       context.Context
	random    *rand.Rand
	raw       rueidis.Client
	audit     *engine.Engine
	processes []*process
	already   atomic.Int64 // steps that somebody else had made, or whose reply was lost
	restarts  int
	names     []string
	specs     map[string]schedule.Definition
	first     map[string]time.Time
}

// Five processes over 10,000 virtual instants: each is submitted once, in spite of loops that stop and start at any
// time, connections that are reset in the middle of replies, and an owner that is cut off. What a policy does not run
// is counted.
func TestSchedulesOfManyProcesses(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	a := newAgenda(t, ctx)
	for i := range 5 {
		a.put(fmt.Sprintf("every%d", i),
			schedule.Definition{Spec: schedule.Every(time.Second, time.Time{}), CatchUp: schedule.CatchUpAll})
	}
	a.put("cron", schedule.Definition{Spec: schedule.Cron("*/5 * * * * *", "Australia/Lord_Howe"),
		CatchUp: schedule.CatchUpAll})
	a.put("last", schedule.Definition{Spec: schedule.Every(time.Second, time.Time{})})
	a.put("skip", schedule.Definition{Spec: schedule.Cron("*/7 * * * * *", ""), CatchUp: schedule.CatchUpSkip})
	a.put("solo", schedule.Definition{Spec: schedule.Every(3*time.Second, time.Time{}), CatchUp: schedule.CatchUpAll,
		Overlap: schedule.OverlapSkip})
	a.put("jitter", schedule.Definition{Spec: schedule.Every(2*time.Second, time.Time{}), CatchUp: schedule.CatchUpAll,
		Jitter: flowfabric.Millis(time.Second)})
	a.put("runs", schedule.Definition{Spec: schedule.Every(time.Second, time.Time{}), CatchUp: schedule.CatchUpAll,
		Runs: 777})
	a.put("until", schedule.Definition{Spec: schedule.Every(time.Second, time.Time{}), CatchUp: schedule.CatchUpAll,
		Until: a.now("until").Add(777 * time.Second)})
	a.put("flow", schedule.Definition{Spec: schedule.Every(5*time.Second, time.Time{}), CatchUp: schedule.CatchUpAll,
		Item: threeNodes})
	a.put("flow last", schedule.Definition{Spec: schedule.Every(5*time.Second, time.Time{}), Item: threeNodes})
	a.put("flow runs", schedule.Definition{Spec: schedule.Every(5*time.Second, time.Time{}),
		CatchUp: schedule.CatchUpAll, Runs: 111, Item: threeNodes})
	for range spans {
		a.disturb()
		a.advance(span)
		a.settled()
	}
	a.account()
	t.Logf("%d restarts, %d steps that were made already or whose reply was lost", a.restarts, a.already.Load())
	if a.restarts == 0 || a.already.Load() == 0 {
		t.Error("nothing was restarted or lost: nothing was proved")
	}
}

func newAgenda(t *testing.T, ctx context.Context) *agenda {
	t.Helper()
	url := testserver.Redis(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a := &agenda{t: t, ctx: ctx, random: rand.New(rand.NewPCG(seed, 0)), specs: map[string]schedule.Definition{},
		first: map[string]time.Time{}}
	a.audit = a.open(url)
	path := strings.TrimPrefix(url, "unix://")
	var err error
	a.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{path}, ForceSingleClient: true,
		DisableCache: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	must.No(t, err)
	t.Cleanup(a.raw.Close)
	for i := range processes {
		p := &process{name: fmt.Sprintf("p%d", i), proxy: newProxy(t, path)}
		p.engine = a.open(p.proxy.url())
		a.processes = append(a.processes, p)
		a.start(p)
		t.Cleanup(func() { a.stop(p) })
	}
	return a
}

func (a *agenda) open(url string) *engine.Engine {
	a.t.Helper()
	// timed: calls of one that is cut off are to end, and loops repeat them
	e, err := engine.Open(a.ctx, engine.Config{URL: url, TestClock: true, Partitions: 2, CallTimeout: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(a.t, err)
	a.t.Cleanup(e.Close)
	return e
}

func (a *agenda) start(p *process) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(a.ctx)
	p.loop = maintain.New(maintain.Config{Engine: counted{p.engine, &a.already}, Owner: p.name,
		Logger: slog.New(slog.DiscardHandler)})
	p.run.Go(func() {
		if err := p.loop.Run(ctx); err != nil {
			a.t.Errorf("%s: %v", p.name, err)
		}
	})
}

// counted counts the firings that found the work done.
type counted struct {
	*engine.Engine
	already *atomic.Int64
}

func (c counted) FireSchedule(ctx context.Context, f engine.Firing) (engine.Fired, error) {
	out, err := c.Engine.FireSchedule(ctx, f)
	if out.Already {
		c.already.Add(1)
	}
	return out, err
}

func (a *agenda) stop(p *process) {
	p.cancel()
	p.run.Wait()
}

// put makes a schedule whose first instant is to come.
func (a *agenda) put(name string, d schedule.Definition) {
	a.t.Helper()
	var input []byte
	if d.Item.Nodes > 0 {
		input = template(a.t)
	} else {
		d.Item = schedule.Item{Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}}
	}
	text, err := calendar.Encode(d)
	must.No(a.t, err)
	next := d.Spec.Next(a.now(name))
	if _, err := a.audit.PutSchedule(a.ctx, engine.SchedulePut{Name: name, Definition: text, Input: input, Next: next,
		Limit: d.Runs}); err != nil {
		a.t.Fatal(err)
	}
	a.names, a.specs[name], a.first[name] = append(a.names, name), d, next
}

func (a *agenda) page(name string) engine.SchedulePage {
	a.t.Helper()
	page, err := a.audit.Schedules(a.ctx, a.audit.SchedulePartition(name), engine.ScheduleQuery{Name: name})
	must.No(a.t, err)
	return page
}

func (a *agenda) now(name string) time.Time { return a.page(name).Now }

// advance moves the server's clock.
func (a *agenda) advance(d time.Duration) {
	a.t.Helper()
	for p := range uint16(2) {
		must.No(a.t, a.raw.Do(a.ctx, a.raw.B().Hincrby().Key(keys.Root(p)).Field("clock_offset").Increment(
			d.Milliseconds()).Build()).Error())
	}
}

// disturb does something to one process, at random.
func (a *agenda) disturb() {
	for _, p := range a.processes {
		p.proxy.set(toxic{})
	}
	p := a.processes[a.random.IntN(processes)]
	switch a.random.IntN(4) {
	case 0:
		a.stop(p)
		a.start(p)
		a.restarts++
	case 1:
		p.proxy.set(toxic{deaf: true, mute: true}) // maybe the owner
	default:
		for _, p := range a.processes {
			p.proxy.set(toxic{resetAfter: 8000 + a.random.IntN(30000)})
		}
	}
}

// settled waits until nothing is due; every process hears of it, as it would by its claims and polls.
func (a *agenda) settled() {
	a.t.Helper()
	testwait.Progress(a.t, "nothing is due", func() (bool, any) {
		due := 0
		for p := range uint16(2) {
			page, err := a.audit.Schedules(a.ctx, p, engine.ScheduleQuery{Due: true})
			must.No(a.t, err)
			for _, s := range page.Schedules {
				if s.Next.Before(page.Now.Add(-10 * time.Second)) { // what came due since is for the next time
					due++
				}
			}
		}
		for _, p := range a.processes {
			p.loop.Ring(0)
			p.loop.Ring(1)
		}
		return due == 0, due
	})
}

// account compares what exists with what should.
func (a *agenda) account() {
	a.t.Helper()
	for _, p := range a.processes {
		p.proxy.set(toxic{})
		a.stop(p)
	}
	executions, submitted, exact := a.executions(), 0, 0
	for _, name := range a.names {
		page := a.page(name)
		s, d, instants, fired := page.Schedules[0], a.specs[name], uint64(0), uint64(0)
		for at := a.first[name]; at.Before(s.Next) ||
			s.Next.IsZero() && !at.IsZero() && (d.Runs == 0 || fired < d.Runs); at = calendar.Next(d, at) {
			instants++
			switch {
			case a.ran(executions, s, at, d.Item.Nodes):
				fired++
			case d.CatchUp == schedule.CatchUpAll && d.Overlap == "":
				a.t.Fatalf("%s: the instant %s was not submitted", name, at)
			}
		}
		submitted += int(fired) * max(1, d.Item.Nodes)
		if d.Item.Nodes > 0 && !s.Next.IsZero() && a.ran(executions, s, s.Next, d.Item.Nodes) {
			// its process was stopped on the way
			submitted += d.Item.Nodes
		}
		if over := d.Runs > 0 || !d.Until.IsZero(); over != s.Next.IsZero() || d.Runs > 0 && fired != d.Runs {
			a.t.Errorf("%s: next at %s after %d of %d runs, until %s", name, s.Next, fired, d.Runs, d.Until)
		}
		if d.CatchUp == schedule.CatchUpAll && d.Overlap == "" {
			exact += int(instants)
		}
		if s.Fired != fired || s.Fired+s.Missed != instants {
			a.t.Errorf("%s: %d instants, %d executions; it says %d fired, %d missed (%v)", name, instants, fired,
				s.Fired, s.Missed, s.Reasons)
		}
		a.t.Logf("%s: %d instants, %d fired, %d missed %v", name, instants, s.Fired, s.Missed, s.Reasons)
	}
	if submitted != len(executions) {
		a.t.Errorf("%d executions exist, %d belong to an instant", len(executions), submitted)
	}
	if exact < 10000 {
		a.t.Errorf("only %d instants", exact)
	}
	checker := invariant.NewChecker()
	for p := range uint16(2) {
		dump, err := invariant.Read(a.ctx, a.raw, p)
		must.No(a.t, err)
		if bad := checker.Violations(dump); len(bad) > 0 {
			a.t.Errorf("partition %d:\n%s", p, strings.Join(bad[:min(len(bad), 10)], "\n"))
		}
	}
}

// ran tells whether an instant was submitted. A flow was, if it was released with all of its members; one that was
// not and is there is forgotten, since it never runs.
func (a *agenda) ran(executions map[flowfabric.ExecutionID]bool, s engine.Schedule, at time.Time, nodes int) bool {
	a.t.Helper()
	if nodes == 0 {
		return executions[mint.Join(ids.Scheduled(s.Partition, s.Name, s.Incarnation, at))]
	}
	id := flowfabric.FlowID(mint.Join(ids.ScheduledFlow(s.Partition, s.Name, s.Incarnation, s.Revision,
		at)))
	record, err := a.audit.DescribeFlow(a.ctx, id)
	switch {
	case errors.Is(err, denied.NoFlow):
		return false
	case err != nil:
		a.t.Fatal(err)
	case record.ReleasedAt.IsZero():
		for _, node := range []string{"a", "b", "c"} {
			delete(executions, id.Member(node))
		}
		return false
	case record.Members != nodes:
		a.t.Errorf("%s: the flow of %s was released with %d members", s.Name, at, record.Members)
	}
	return executions[id.Member("a")] && executions[id.Member("b")] && executions[id.Member("c")]
}

// executions are all that exist.
func (a *agenda) executions() map[flowfabric.ExecutionID]bool {
	a.t.Helper()
	out := map[flowfabric.ExecutionID]bool{}
	for p := range uint16(2) {
		prefix := keys.Root(p) + ":x:"
		all, err := a.raw.Do(a.ctx, a.raw.B().Keys().Pattern(prefix+"*").Build()).AsStrSlice()
		must.No(a.t, err)
		for _, key := range slices.Compact(all) {
			id, err := ids.ParseUUID(key[len(prefix):])
			must.No(a.t, err)
			out[mint.Join(p, id)] = true
		}
	}
	return out
}
