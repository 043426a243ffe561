//go:build unix

package crash_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
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

// paying calls the model payments times, each call at most maxTokens.
var paying = handler.Define[job, answer]("crash-paying", handler.Retry(1000, time.Millisecond, 50*time.Millisecond),
	handler.MaxReclaims(10_000), flowfabric.Retention(5*time.Minute))

const payments, maxTokens = 10, 400

// workPaying is the worker of TestLedgerUnderFire.
func workPaying(url, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := runtime.New(runtime.Config{URL: url, Instance: name, LeaseTTL: ttl, Concurrency: 16,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		handler.Bind(paying, func(ctx context.Context, t *handler.Task, _ job) (answer, error) {
			conn, err := net.Dial("unix", os.Getenv("FF_CRASH_PAYING"))
			if err != nil {
				return answer{}, err
			}
			defer func() { _ = conn.Close() }()
			p := payer{conn, bufio.NewScanner(conn)}
			for i := range payments {
				if _, err := handler.Step(ctx, t, fmt.Sprint("pay", i), func(ctx context.Context) (int64, error) {
					return p.pay(ctx, t)
				}); err != nil {
					return answer{}, err
				}
			}
			return answer{Worker: name}, nil
		}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}

// payer talks to the model for one run of a handler.
type payer struct {
	conn    net.Conn
	answers *bufio.Scanner
}

func (p payer) say(what string, n int64) error {
	_, err := fmt.Fprintln(p.conn, what, n)
	return err
}

// pay reserves, calls the model and settles. Of twenty calls one is not made after all, one is forgotten, and one
// fails after it was made.
func (p payer) pay(ctx context.Context, t *handler.Task) (used int64, err error) {
	most := 1 + rand.Int64N(maxTokens)
	if err := p.say("intend", most); err != nil {
		return 0, err
	}
	r, err := t.Reserve(ctx, map[string]int64{"tokens": most})
	switch {
	case errors.Is(err, flowfabric.ErrOverBudget):
		return 0, errors.Join(p.say("refused", 0), err)
	case err != nil:
		return 0, err
	}
	what := rand.IntN(20)
	if what == 0 {
		if err := r.Release(ctx); err != nil {
			return 0, err
		}
		return 0, p.say("released", 0)
	}
	if err := p.say("call", 0); err != nil {
		return 0, err
	}
	if !p.answers.Scan() {
		return 0, errors.New("the model has gone")
	}
	if _, err := fmt.Sscan(p.answers.Text(), &used); err != nil {
		return 0, err
	}
	switch what {
	case 1:
		return used, nil
	case 2:
		return 0, errors.New("what the model said is of no use")
	}
	if err := r.Settle(ctx, map[string]int64{"tokens": used}); err != nil {
		return 0, err
	}
	return used, p.say("settled", 0)
}

// paid is the model: it counts what is called when it is called, outside the store, and what may be charged above that.
type paid struct {
	t *testing.T

	mu     sync.Mutex
	limits map[string]int64 // that the gates have, or are about to get
	tokens int64
	over   int // calls above a limit

	intended, refused, released, calls, settled int64
	open                                        int64 // reservations of which nobody said how they ended
	waste                                       int64 // what they had reserved and the model did not use
}

// listen serves the model at an address until the test ends.
func (m *paid) listen(path string) {
	l, err := net.Listen("unix", path)
	must.No(m.t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { m.serve(conn) })
		}
	})
	m.t.Cleanup(func() { // the workers, which end before, hang up
		_ = l.Close()
		serving.Wait()
	})
}

// bought is one reservation, as the worker tells of it.
type bought struct {
	reserved, used int64
	open           bool
}

func (m *paid) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var x bought
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var what string
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
			break // cut short by a kill
		}
		if answer := m.hear(&x, what, n); answer > 0 {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond) // not a wait for anything: it takes its time
			if _, err := fmt.Fprintln(conn, answer); err != nil {
				break
			}
		}
	}
	m.hear(&x, "gone", 0)
}

// hear takes down what a worker says of its reservation, and answers a call.
func (m *paid) hear(x *bought, what string, n int64) (answer int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch what {
	case "intend", "gone":
		if x.open {
			m.open++
			m.waste += x.reserved - x.used
		}
		if *x = (bought{reserved: n, open: what == "intend"}); x.open {
			m.intended++
		}
	case "refused":
		m.refused++
		x.open = false
	case "released":
		m.released++
		x.open = false
	case "settled":
		m.settled++
		x.open = false
	case "call":
		x.used = 1 + rand.Int64N(x.reserved)
		m.calls, m.tokens = m.calls+1, m.tokens+x.used
		for name, limit := range m.limits {
			if m.tokens > limit {
				if m.over++; m.over < 10 {
					m.t.Errorf("%d tokens are used, the limit of %s is %d", m.tokens, name, limit)
				}
			}
		}
		return x.used
	}
	return 0
}

// now copies what was counted; made are the reservations that were used or given back.
func (m *paid) now() (tokens, waste, made int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens, m.waste, m.calls + m.released
}

// treasury is who pays, and with what.
type treasury struct {
	t    *testing.T
	ctx  context.Context
	r    *rand.Rand
	c    *client.Client
	e    *engine.Engine
	raw  rueidis.Client
	m    *paid
	open []*client.Execution[answer]

	made, kills, restarts, reckoned int
	blows                           int // half seconds in which a wake may have died with a worker or the server
	logged                          int // how many were made when it was told of last
	raises                          int // for whoever raises
}

// chain are the gates, each under the next one.
var chain = []string{"user", "team", "org"}

// TestLedgerUnderFire kills workers and the server, which has every write on disk, while 64 handlers at a time reserve,
// call a model and settle under three gates above each other, with little room. The model is outside the store. At
// every call no limit is passed; at the end all work has ended, nothing is reserved, the gates agree, all that the
// model counted is counted, and nothing beyond that but what those had reserved of which nobody said how they ended.
func TestLedgerUnderFire(t *testing.T) {
	goal := number(t, "FLOWFABRIC_CRASH_RESERVATIONS", 800, 1_000_000)
	const fleet = 4
	server := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	m := &paid{t: t, limits: map[string]int64{}}
	path := filepath.Join(t.TempDir(), "model.sock")
	m.listen(path)
	e, err := engine.Open(ctx, engine.Config{URL: server.URL(), Partitions: 4,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(e.Close)
	c, err := client.Connect(ctx, client.Config{URL: server.URL()})
	must.No(t, err)
	t.Cleanup(c.Close)
	f := &treasury{t: t, ctx: ctx, r: seeded(t), c: c, e: e, m: m, raw: rawClient(t, server.URL())}
	for _, name := range slices.Backward(chain) {
		f.raise(ctx, name, room)
	}
	workers := make([]*process, fleet)
	hire := func(i int) {
		workers[i] = startPaying(t, server.URL(), path, fmt.Sprint("w", i, "-", f.kills))
	}
	for i := range workers {
		hire(i)
	}
	stride, crashes := max(80, min(1000, goal/20)), max(300, min(5000, goal/10))
	nextKill, nextCrash := stride, crashes
	moved := testwait.Running(t)
	f.until(goal, func(made int) {
		for i, w := range workers {
			select {
			case <-w.done: // it began while the server was away
				hire(i)
			default:
			}
		}
		if made >= nextKill {
			i := f.r.IntN(fleet)
			workers[i].kill()
			f.kills++
			hire(i)
			nextKill += stride
			f.blows = 6
		}
		if made >= nextCrash {
			server.Kill()
			server.Restart()
			f.restarts++
			nextCrash += crashes
			f.blows = 6
		}
		if made >= f.logged+10_000 {
			f.logged = made
			t.Logf("%d reservations in %s, %d kills, %d restarts, %d open", made, moved().Round(time.Second), f.kills,
				f.restarts, len(f.open))
		}
	})
	for _, w := range workers {
		w.signal(t, syscall.SIGTERM)
		w.ended(t)
	}
	f.judge()
}

func startPaying(t *testing.T, url, model, name string) *process {
	t.Helper()
	exe, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "FF_CRASH_URL="+url, "FF_CRASH_NAME="+name, "FF_CRASH_PAYING="+model)
	p := launch(t, name, cmd)
	p.expect(t, "ready")
	return p
}

// until submits work and makes room until enough was reserved and all work has ended, and strikes meanwhile.
func (f *treasury) until(goal int, strike func(made int)) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	var raising sync.WaitGroup
	chance := rand.New(rand.NewPCG(f.r.Uint64(), 0))
	raising.Go(func() { f.makeRoom(ctx, chance) })
	defer raising.Wait()
	defer cancel()
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	last, moved := int64(-1), testwait.Running(f.t)
	for n := 0; f.made*payments < goal || len(f.open) > 0; n++ {
		if f.made*payments < goal && len(f.open) < 160 {
			f.submit(32)
		}
		if n%20 == 19 {
			f.collect()
			_, _ = f.reckon() // the next one makes up for what fails
			f.reopen()
		}
		_, _, made := f.m.now()
		strike(int(made))
		if made != last {
			last, moved = made, testwait.Running(f.t)
		}
		if moved() > 2*time.Minute {
			f.t.Fatalf("%d executions wait although there is room: %s", len(f.open), f.stuck())
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("%d of %d executions have not ended: %s", len(f.open), f.made, f.stuck())
		case <-again.C:
		}
	}
}

// submit makes n executions, under keys, so that it may be repeated.
func (f *treasury) submit(n int) {
	f.t.Helper()
	inputs, first := make([]job, n), f.made
	for f.ctx.Err() == nil {
		list, err := client.SubmitMany(f.ctx, f.c, paying, inputs, flowfabric.Gates(chain[0]),
			client.Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(fmt.Sprint("k", first+i)) }))
		if err == nil {
			f.open, f.made = append(f.open, list...), f.made+n
			return
		}
	}
}

// collect forgets what has ended.
func (f *treasury) collect() {
	f.t.Helper()
	f.open = slices.DeleteFunc(f.open, func(x *client.Execution[answer]) bool {
		s, err := f.e.ReadExecution(f.ctx, x.ID())
		if err == nil && s.Code != "T1" && strings.HasPrefix(string(s.Code), "T") {
			f.t.Fatalf("%s ended as %s %s", x.ID(), s.Code, s.Failure.Category)
		}
		return err == nil && s.Code == "T1"
	})
}

// room is the most that is made in a gate at once: about what the calls of all handlers need at the same time, so that
// one of a few is refused. With less, most of the time is spent on asking again.
const room = 48 * maxTokens

// makeRoom raises limits until it is told to end, also while a worker or the server starts anew.
func (f *treasury) makeRoom(ctx context.Context, r *rand.Rand) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if i := r.IntN(2 * len(chain)); i < len(chain) {
				f.raise(ctx, chain[i], 500+r.Int64N(room))
			}
		}
	}
}

// raise makes a little room in a gate, if there is less. What the model had counted before is counted there.
func (f *treasury) raise(ctx context.Context, name string, room int64) {
	f.t.Helper()
	g := admission.Gate{Name: name, OnHard: admission.HardBlock}
	if i := slices.Index(chain, name) + 1; i < len(chain) {
		g.Parent = chain[i]
	}
	limit := int64(0)
	for ctx.Err() == nil {
		tokens, _, _ := f.m.now()
		now, err := f.e.ReadGate(ctx, name, 0, 0, 0)
		if err != nil && !errors.Is(err, flowfabric.ErrNotFound) {
			continue // the server has just been killed
		}
		if now.Used["tokens"] < tokens {
			f.t.Errorf("%s: %d are used, the model counted %d", name, now.Used["tokens"], tokens)
		}
		if limit = max(limit, now.Used["tokens"]+room); now.Limits["tokens"].Hard >= limit {
			return
		}
		f.m.mu.Lock()
		f.m.limits[name] = max(f.m.limits[name], limit)
		f.m.mu.Unlock()
		g.Limits = map[string]admission.Limit{"tokens": {Hard: limit}}
		room = 0
		if _, _, wake, err := f.e.PutGate(ctx, g, now.Revision); err == nil {
			f.raises++
			_ = admit.Wake(ctx, f.e, wake) // else they open by themselves
			return
		}
	}
}

// partitions of the gates.
func (f *treasury) partitions() (list []uint16) {
	for _, name := range chain {
		list = append(list, ids.GatePartition(name, f.e.GatePartitions()))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// reckon ends the reservations of those whose leases are over, as if a minute had passed since they were vouched for:
// the workers' server has the real clock.
func (f *treasury) reckon() (ended int, failed error) {
	for _, p := range f.partitions() {
		key := keys.Partition(keys.GateRoot(p)).Reserved()
		members, err := f.raw.Do(f.ctx, f.raw.B().Zrange().Key(key).Min("0").Max("-1").Build()).AsStrSlice()
		failed = errors.Join(failed, err)
		for _, member := range members {
			failed = errors.Join(failed, f.raw.Do(f.ctx, f.raw.B().Zadd().Key(key).Xx().ScoreMember().
				ScoreMember(1, member).Build()).Error())
		}
		n, err := admit.Reckon(f.ctx, f.e, p)
		ended, failed = ended+n, errors.Join(failed, err)
	}
	f.reckoned += ended
	return ended, failed
}

// reopen opens the queues that are closed after a blow, as if the half minute had passed after which they open by
// themselves: whoever was to wake them may have died. Without a blow nobody helps them.
func (f *treasury) reopen() {
	if f.blows == 0 {
		return
	}
	f.blows--
	for _, p := range f.e.Gates(f.ctx) {
		var closed []uint64
		for _, c := range p.Closed {
			closed = append(closed, c.Route.ID)
		}
		if len(closed) > 0 {
			_, _ = f.e.OpenRoutes(f.ctx, p.Partition, closed) // else they open by themselves
		}
	}
}

// stuck tells what the first executions that have not ended are, and how the gates stand.
func (f *treasury) stuck() string {
	var b strings.Builder
	for _, x := range f.open[:min(3, len(f.open))] {
		if s, err := f.e.ReadExecution(context.Background(), x.ID()); err == nil {
			fmt.Fprintf(&b, "%s %s; ", x.ID(), s.Code)
		}
	}
	for _, name := range chain {
		if g, err := f.e.ReadGate(context.Background(), name, 0, 0, 0); err == nil {
			fmt.Fprintf(&b, "%s %v reserved %v of %v; ", name, g.Used, g.Reserved, g.Limits)
		}
	}
	for _, p := range f.e.Gates(context.Background()) {
		fmt.Fprintf(&b, "%v ", p.Closed)
	}
	return b.String()
}

// judge counts everything.
func (f *treasury) judge() {
	f.t.Helper()
	for ended := 1; ended > 0; {
		var err error
		ended, err = f.reckon()
		must.No(f.t, err)
	}
	tokens, waste, made := f.m.now()
	used := map[string]int64{}
	for _, name := range chain {
		g, err := f.e.ReadGate(f.ctx, name, 0, 0, 0)
		must.No(f.t, err)
		used[name] = g.Used["tokens"]
		if g.Reserved["tokens"] != 0 {
			f.t.Errorf("%s: %d are reserved", name, g.Reserved["tokens"])
		}
		if beyond := used[name] - tokens; beyond < 0 || beyond > waste || used[name] != used[chain[0]] {
			f.t.Errorf("%s: %d are used, the model counted %d, and %d may have been wasted; %s has %d", name,
				used[name], tokens, waste, chain[0], used[chain[0]])
		}
	}
	for _, p := range f.partitions() {
		bad, err := invariant.CheckAdmission(f.ctx, f.raw, keys.GateRoot(p))
		must.No(f.t, err)
		for _, what := range bad {
			f.t.Errorf("gates %d: %s", p, what)
		}
	}
	m := f.m
	if m.refused == 0 || m.open == 0 || m.released == 0 || f.kills == 0 || f.restarts == 0 {
		f.t.Error("some of it never happened: nothing was proved")
	}
	f.t.Logf("%d reservations, %d wanted by %d executions: %d refused, %d released, %d settled, %d open; %d calls; "+
		"%d kills, %d restarts, %d raises, %d ended by the reckoning; %d tokens, %d wasted of %d at most, limits %v",
		made, m.intended, f.made, m.refused, m.released, m.settled, m.open, m.calls, f.kills, f.restarts, f.raises,
		f.reckoned, tokens, used["org"]-tokens, waste, m.limits)
}
