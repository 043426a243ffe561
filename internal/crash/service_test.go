//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/examples/governor/model"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// calling calls a model service once, with an estimate of at most maxEstimate tokens.
var calling = handler.Define[job, answer]("crash-calling", handler.Retry(1000, time.Millisecond, 50*time.Millisecond),
	handler.MaxReclaims(10_000))

const (
	theService  = "fake/model"
	maxEstimate = 1000
)

// callers are the tenants of the service, with weights 1, 2 and 3.
var callers = []string{"one", "two", "three"}

// workCalling is a worker that calls the service at a socket, with its gate or, for comparison, without.
func workCalling(url, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	path := os.Getenv("FF_CRASH_CALLING")
	caller := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
	governed := os.Getenv("FF_CRASH_UNGOVERNED") == ""
	w, err := runtime.New(runtime.Config{URL: url, Instance: name, LeaseTTL: ttl, Concurrency: 16, Namespaces: callers,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		handler.Bind(calling, func(ctx context.Context, t *handler.Task, in job) (answer, error) {
			estimate := map[string]int64{"tokens": int64(maxEstimate/2 + in.Index%(maxEstimate/2+1))}
			_, err := handler.Step(ctx, t, "call", func(ctx context.Context) (int64, error) {
				if !governed {
					used, pause, err := question(ctx, caller, t.Namespace(), estimate["tokens"])
					return used, handler.RetryAfter(pause, err)
				}
				p, err := t.Acquire(ctx, theService, estimate)
				if err != nil {
					return 0, err
				}
				if os.Getenv("FF_CRASH_CARELESS") != "" {
					switch rand.IntN(20) {
					case 0:
						return 0, errors.Join(errors.New("it is not made after all"), p.Release(ctx))
					case 1:
						used, _, err := question(ctx, caller, t.Namespace(), estimate["tokens"])
						return used, err // and nobody says so
					}
				}
				used, pause, err := question(ctx, caller, t.Namespace(), estimate["tokens"])
				if pause > 0 {
					return 0, errors.Join(err, p.Refused(ctx, pause))
				}
				return used, errors.Join(err, p.Settle(ctx, map[string]int64{"tokens": used}))
			})
			return answer{Worker: name}, err
		}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}

// question calls the service; pause is what it asks for when it refuses the call.
func question(ctx context.Context, c *http.Client, tenant string, most int64) (used int64, pause time.Duration,
	err error) {
	body, err := json.Marshal(model.Question{Tenant: tenant, MaxTokens: most})
	if err != nil {
		return 0, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model/", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		_, _ = io.Copy(io.Discard, res.Body)
		return 0, time.Duration(seconds) * time.Second, fmt.Errorf("the service answers %s", res.Status)
	}
	var got model.Answer
	return got.Tokens, 0, json.NewDecoder(res.Body).Decode(&got)
}

// governor is a service, its gate, and who calls it.
type governor struct {
	t       testing.TB
	ctx     context.Context
	server  *testserver.Server
	path    string
	service *model.Service
	e       *engine.Engine
	raw     rueidis.Client
	clients map[string]*client.Client
	workers []*process
	env     []string
	serial  int
	made    map[string]int
	open    []*client.Execution[answer]
}

// govern serves a service at a socket, makes its gate, if it is to have one, and opens the store.
func govern(t testing.TB, ctx context.Context, s *model.Service, gate admission.Service, env ...string) *governor {
	t.Helper()
	g := &governor{t: t, ctx: ctx, server: testserver.Start(t, testserver.ServerRedis, testserver.AOF()),
		path: filepath.Join(t.TempDir(), "model.sock"), service: s, clients: map[string]*client.Client{},
		workers: make([]*process, 4), env: env, made: map[string]int{}}
	l, err := net.Listen("unix", g.path)
	must.No(t, err)
	web := &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(l) })
	t.Cleanup(func() { _ = web.Close(); serving.Wait() })
	g.e, err = engine.Open(ctx, engine.Config{URL: g.server.URL(), Partitions: 4,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(g.e.Close)
	g.raw = rawClient(t, g.server.URL())
	_, _, _, err = g.e.PutGate(ctx, admission.Gate{Name: theService, Service: &gate}, 0)
	must.No(t, err)
	for _, name := range callers {
		c, err := client.Connect(ctx, client.Config{URL: g.server.URL(), Namespace: name})
		must.No(t, err)
		t.Cleanup(c.Close)
		g.clients[name] = c
	}
	return g
}

// hire starts a worker in a place.
func (g *governor) hire(i int) {
	g.t.Helper()
	exe, err := os.Executable()
	must.No(g.t, err)
	g.serial++
	name := fmt.Sprintf("w%d-%d", i, g.serial)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "FF_CRASH_URL="+g.server.URL(), "FF_CRASH_NAME="+name,
		"FF_CRASH_CALLING="+g.path), g.env...)
	g.workers[i] = launch(g.t, name, cmd)
	g.workers[i].expect(g.t, "ready")
}

// submit makes n executions of a tenant, under keys, so that it may be repeated.
func (g *governor) submit(tenant string, n int) {
	g.t.Helper()
	first := g.made[tenant]
	inputs := make([]job, n)
	for i := range inputs {
		inputs[i].Index = first + i*37
	}
	for g.ctx.Err() == nil {
		list, err := client.SubmitMany(g.ctx, g.clients[tenant], calling, inputs,
			client.Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(fmt.Sprint("k", first+i)) }))
		if err == nil {
			g.made[tenant] += n
			g.open = append(g.open, list...)
			return
		}
	}
}

// dismiss stops the workers.
func (g *governor) dismiss() {
	g.t.Helper()
	for _, w := range g.workers {
		w.signal(g.t, syscall.SIGTERM)
	}
	for _, w := range g.workers {
		w.ended(g.t)
	}
}

// reckon ends the calls of those whose leases are over, as if a minute had passed since they were vouched for.
func (g *governor) reckon() (ended int, failed error) {
	p := ids.GatePartition(theService, g.e.GatePartitions())
	key := keys.Partition(keys.GateRoot(p)).Reserved()
	members, failed := g.raw.Do(g.ctx, g.raw.B().Zrange().Key(key).Min("0").Max("-1").Build()).AsStrSlice()
	for _, member := range members {
		failed = errors.Join(failed, g.raw.Do(g.ctx, g.raw.B().Zadd().Key(key).Xx().ScoreMember().
			ScoreMember(1, member).Build()).Error())
	}
	n, err := admit.Reckon(g.ctx, g.e, p)
	return n, errors.Join(failed, err)
}

// passed are the calls that arrived at the service, with what each is of the minute.
type passed struct {
	mu   sync.Mutex
	list []arrival
}

type arrival struct {
	at     time.Time
	tokens int64
}

func (p *passed) note(q model.Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, arrival{time.Now(), q.MaxTokens})
}

// judge fails the test if in any time more arrived than a bucket of this size and a refill lets through.
func (p *passed) judge(t testing.TB, burst, minute int64) {
	t.Helper()
	const late = 2 * time.Second // between the gate's word and the arrival
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		sum := int64(0)
		for _, x := range p.list[i:] {
			sum += x.tokens
			took := x.at.Sub(p.list[i].at)
			most := burst + maxEstimate + int64(float64(minute-burst)*(took+late).Minutes())
			if sum > most {
				t.Fatalf("%d tokens within %v, at most %d may be", sum, took, most)
			}
		}
	}
}

// TestServiceUnderFire kills workers and the server, which has every write on disk, while 64 handlers at a time call a
// service under its gate. Now and then a call is not made after all, a handler forgets to say how it ended, and the
// service refuses everything for a second. It is never called more often at once than allowed, and never more in any
// time than its buckets let through; at the end all work has ended and no call is under way.
func TestServiceUnderFire(t *testing.T) {
	goal := number(t, "FLOWFABRIC_CRASH_CALLS", 400, 100_000)
	const calls, minute = 12, 1_800_000
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	p := &passed{}
	s := model.New(model.Limits{}, 100*time.Millisecond, func(most int64) int64 { return most })
	s.OnCall(p.note)
	g := govern(t, ctx, s, admission.Service{PerMinute: map[string]int64{"tokens": minute}, Calls: calls,
		Weights: map[string]int{"two": 2, "three": 3}}, "FF_CRASH_CARELESS=1")
	r := seeded(t)
	for i := range g.workers {
		g.hire(i)
	}
	kills, restarts, refusals, reckoned := 0, 0, 0, 0
	nextKill, nextCrash, nextClose := goal/10, goal/3, goal/5
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for _, name := range callers {
		g.submit(name, goal/len(callers))
	}
	last, moved := int64(-1), testwait.Running(t)
	for n := 0; len(g.open) > 0; n++ {
		for i, w := range g.workers {
			select {
			case <-w.done: // it began while the server was away
				g.hire(i)
			default:
			}
		}
		counts, _ := s.Counts()
		made := int(counts[""].Calls)
		if made >= nextKill {
			i := r.IntN(len(g.workers))
			g.workers[i].kill()
			g.hire(i)
			kills++
			nextKill += max(40, goal/20)
		}
		if made >= nextCrash {
			g.server.Kill()
			g.server.Restart()
			restarts++
			nextCrash += max(150, min(2000, goal/10))
		}
		if made >= nextClose {
			s.Close(300 * time.Millisecond)
			refusals++
			nextClose += max(150, goal/5)
		}
		if n%20 == 19 {
			ended, _ := g.reckon() // the next one makes up for what fails
			reckoned += ended
			g.collect()
		}
		if counts[""].Calls != last {
			last, moved = counts[""].Calls, testwait.Running(t)
		}
		if moved() > 2*time.Minute {
			t.Fatalf("%d executions wait although there is room: %s", len(g.open), g.stuck())
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d executions have not ended: %s", len(g.open), g.stuck())
		case <-again.C:
		}
	}
	g.dismiss()
	for ended := 1; ended > 0; {
		var err error
		ended, err = g.reckon()
		must.No(t, err)
		reckoned += ended
	}
	gate, err := g.e.ReadGate(ctx, theService, 32, 0, 0)
	must.No(t, err)
	counts, peak := s.Counts()
	if peak > calls || gate.State.UnderWay != 0 || gate.State.Waiting != 0 || len(gate.Line) != 0 {
		t.Errorf("%d calls at once, %d may be; at the end %d are under way and %d wait: %+v", peak, calls,
			gate.State.UnderWay, gate.State.Waiting, gate.Line)
	}
	p.judge(t, minute/40, minute)
	bad, err := invariant.CheckAdmission(ctx, g.raw, keys.GateRoot(ids.GatePartition(theService,
		g.e.GatePartitions())))
	must.No(t, err)
	for _, what := range bad {
		t.Error(what)
	}
	if kills == 0 || restarts == 0 || refusals == 0 || counts[""].Refused == 0 || peak < calls/2 {
		t.Error("some of it never happened: nothing was proved")
	}
	t.Logf("%+v, at most %d at once; %d kills, %d restarts, %d times closed, %d calls ended by the reckoning",
		counts[""], peak, kills, restarts, refusals, reckoned)
}

// collect forgets what has ended.
func (g *governor) collect() {
	g.t.Helper()
	var left []*client.Execution[answer]
	for _, x := range g.open {
		s, err := g.e.ReadExecution(g.ctx, x.ID())
		if err == nil && s.Code == "T1" {
			continue
		}
		if err == nil && s.Code[0] == 'T' {
			g.t.Fatalf("%s ended as %s %s", x.ID(), s.Code, s.Failure.Category)
		}
		left = append(left, x)
	}
	g.open = left
}

// stuck tells what the first executions that have not ended are, and how the gate stands.
func (g *governor) stuck() string {
	text := ""
	for _, x := range g.open[:min(5, len(g.open))] {
		if s, err := g.e.ReadExecution(context.Background(), x.ID()); err == nil {
			text += fmt.Sprintf("%s %s; ", x.ID(), s.Code)
		}
	}
	gate, err := g.e.ReadGate(context.Background(), theService, 32, 100, 0)
	return text + fmt.Sprintf("%+v %+v %v", gate.State, gate.Line, err)
}

// BenchmarkService measures what a gate makes of a flood of three tenants with weights 1, 2 and 3 from 64 handlers in
// 4 processes: how many calls the service refuses, how much of its minute is used, and how the tenants share it.
// FLOWFABRIC_CRASH_SECONDS says for how long (20); FF_CRASH_UNGOVERNED=1 is the same without the gate.
//
//	FLOWFABRIC_CRASH_SECONDS=130 go test -run '^$' -bench Service ./internal/crash
func BenchmarkService(b *testing.B) {
	seconds, err := strconv.Atoi(os.Getenv("FLOWFABRIC_CRASH_SECONDS"))
	if err != nil {
		seconds = 20
	}
	const minute = 900_000
	s := model.New(model.Limits{Tokens: minute}, time.Second, nil)
	g := govern(b, b.Context(), s, admission.Service{PerMinute: map[string]int64{"tokens": minute},
		Weights: map[string]int{"two": 2, "three": 3}})
	for range 1 + seconds/15 {
		for _, name := range callers {
			g.submit(name, 500)
		}
	}
	for i := range g.workers {
		g.hire(i)
	}
	time.Sleep(10 * time.Second) // the beginning is not measured: no tenant has its turn before its work is claimed
	before, _ := s.Counts()
	began := time.Now()
	time.Sleep(time.Duration(seconds) * time.Second)
	after, peak := s.Counts()
	took := time.Since(began)
	calls, tokens := after[""].Calls-before[""].Calls, after[""].Tokens-before[""].Tokens
	refused := after[""].Refused - before[""].Refused
	b.ReportMetric(float64(tokens)/(minute*took.Minutes())*100, "%-of-the-rate")
	b.ReportMetric(float64(refused)/float64(calls+refused)*100, "%-refused")
	b.ReportMetric(float64(calls), "calls")
	b.ReportMetric(float64(peak), "at-once")
	for i, name := range callers {
		b.ReportMetric(float64(after[name].Tokens-before[name].Tokens)/float64(tokens)*600/float64(i+1),
			"%-of-the-share-of-"+name)
	}
	gate, err := g.e.ReadGate(b.Context(), theService, 32, 0, 0)
	must.No(b, err)
	b.Logf("%+v", *gate.State)
	g.dismiss()
}
