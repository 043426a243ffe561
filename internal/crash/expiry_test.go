//go:build unix

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Sessions that hold everything expire in the same millisecond: half of it is held by one session of one partition,
// the rest by many. The tick requeues every execution once, in calls none of which holds the server for long. With
// the full 100,000 (FLOWFABRIC_SOAK_CRASH) that takes at most 60 s and no call over 5 ms.
func TestExpireAtOnce(t *testing.T) {
	const partitions, lease = 8, time.Hour
	total := number(t, "FLOWFABRIC_CRASH_EXPIRIES", 10_000, 100_000)
	url := testserver.Redis(t, testserver.Args("--slowlog-log-slower-than", "500", "--slowlog-max-len", "100000"))
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Partitions: partitions, TestClock: true})
	must.No(t, err)
	t.Cleanup(e.Close)
	raw := rawClient(t, url)

	var holders sync.WaitGroup
	for p := range uint16(partitions) {
		n, sessions := total/2, 1
		if p > 0 {
			n, sessions = total/2/(partitions-1), 10
		}
		if p == partitions-1 {
			n += total - total/2 - total/2/(partitions-1)*(partitions-1)
		}
		holders.Go(func() {
			if err := hoard(ctx, e, p, n, sessions, lease); err != nil {
				t.Error(err)
			}
		})
	}
	holders.Wait()
	if t.Failed() {
		return
	}
	for p := range uint16(partitions) {
		must.No(t, raw.Do(ctx, raw.B().Hset().Key(keys.Root(p)).FieldValue().
			FieldValue("clock_offset", strconv.FormatInt((lease+time.Minute).Milliseconds(), 10)).Build()).
			Error())
	}
	must.No(t, raw.Do(ctx, raw.B().SlowlogReset().Build()).Error())

	ran := testwait.Running(t)
	meter := &meter{Engine: e, raw: raw}
	requeued := drain(t, ctx, meter, total)
	took := ran()
	if requeued != total {
		t.Errorf("%d executions were requeued, want %d", requeued, total)
	}
	slices.Sort(meter.cost)
	dearest := meter.cost[len(meter.cost)-1]
	slowest, over := slowlog(t, ctx, raw, "ff_tick")
	t.Logf("%d expiries requeued in %v; processor time of a tick: %s; by the clock the slowest took %v, %d over 5 ms",
		total, took.Round(time.Millisecond), quantiles(meter.cost), slowest, over)
	if total >= 100_000 && (took > time.Minute || dearest > 5*time.Millisecond) {
		t.Errorf("want at most 60 s, and no call over 5 ms")
	}

	reclaimed, checker := 0, invariant.NewChecker()
	err = invariant.Each(ctx, raw, partitions, func(d *invariant.Dump) error {
		for _, bad := range checker.Violations(d) {
			t.Errorf("partition %d: %s", d.Partition, bad)
		}
		for key, core := range d.Hashes {
			if strings.HasPrefix(key, ":x:") && core["s"] == "R1r" && core["lc"] == "1" && core["n"] == "1" {
				reclaimed++
			}
		}
		return nil
	})
	if err != nil || reclaimed != total {
		t.Errorf("%d executions wait for their second attempt after one reclaim, want %d (%v)", reclaimed, total, err)
	}
}

// hoard creates n executions in a partition and claims them all; a third has an attempt timeout, and so an alarm
// that fires in the same moment, and every tenth has frames.
func hoard(ctx context.Context, e *engine.Engine, p uint16, n, sessions int, lease time.Duration) error {
	for first := 0; first < n; first += 100 {
		items := make([]engine.NewExecution, min(100, n-first))
		for i := range items {
			items[i] = engine.NewExecution{ID: mint.ID(p),
				Start: flowfabric.Start{Namespace: "default", Lane: "default",
					Kind: "hoard"}, Payload: []byte("x")}
			if i%3 == 0 {
				items[i].Policy.AttemptTimeout = flowfabric.Millis(lease + time.Second)
			}
		}
		created, err := e.CreateExecutions(ctx, p, items)
		if err != nil {
			return err
		}
		for _, c := range created {
			if c.Err != nil {
				return c.Err
			}
		}
	}
	table, err := e.ClaimNext(ctx, engine.ClaimRequest{Partition: p, Session: "h~0", Number: 1, TTL: lease, Max: 1})
	if err != nil {
		return err
	}
	routes := make([]uint64, len(table.Routes))
	for i, r := range table.Routes {
		routes[i] = r.ID
	}
	subscription, err := e.SetSubscription(ctx, p, engine.Subscription{Classes: routes})
	if err != nil {
		return err
	}
	held := 0
	for call := uint64(0); held < n; call++ {
		reply, err := e.ClaimNext(ctx,
			engine.ClaimRequest{Partition: p, Session: fmt.Sprintf("h~%d", call%uint64(sessions)),
				Number: call/uint64(sessions) + 1, TTL: lease, Max: 100, Subscription: subscription,
				Table: table.Table})
		if err != nil {
			return err
		}
		if len(reply.Claims) == 0 {
			return fmt.Errorf("partition %d: nothing left to claim after %d of %d", p, held, n)
		}
		held += len(reply.Claims)
		for i := 0; i < len(reply.Claims); i += 10 {
			if _, err := e.AppendFrames(ctx, reply.Claims[i].Fence, 1,
				[]stream.Frame{{Type: "token", Payload: []byte("a")}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// meter makes one tick at a time and asks the server what processor time each took: unlike the clock, that does not
// count the time for which somebody else had the processor.
type meter struct {
	*engine.Engine
	raw  rueidis.Client
	mu   sync.Mutex
	cost []time.Duration
}

func (m *meter) Tick(ctx context.Context, partition uint16, owner string, release bool) (engine.TickReply, error) {
	return m.tick(ctx, release, func() (engine.TickReply, error) {
		return m.Engine.Tick(ctx, partition, owner, release)
	})
}

func (m *meter) AskTick(ctx context.Context, partition uint16, owner string) (engine.TickReply, error) {
	return m.tick(ctx, false, func() (engine.TickReply, error) { return m.Engine.AskTick(ctx, partition, owner) })
}

func (m *meter) tick(ctx context.Context, release bool,
	call func() (engine.TickReply, error)) (engine.TickReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, err := m.spent(ctx)
	if err != nil {
		return engine.TickReply{}, err
	}
	reply, err := call()
	if err != nil || release {
		return reply, err
	}
	after, err := m.spent(ctx)
	m.cost = append(m.cost, after-before)
	return reply, err
}

// spent is the processor time that the server's main thread has used.
func (m *meter) spent(ctx context.Context) (sum time.Duration, err error) {
	info, err := m.raw.Do(ctx, m.raw.B().Info().Section("cpu").Build()).ToString()
	for line := range strings.SplitSeq(info, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			seconds, wrong := strconv.ParseFloat(value, 64)
			if wrong != nil {
				return 0, wrong
			}
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	if sum == 0 && err == nil {
		err = errors.New("the server does not tell its processor time")
	}
	return sum, err
}

// drain runs the real loop of ticks until everything is requeued, or nothing has been for some rounds.
func drain(t *testing.T, ctx context.Context, ticker maintain.Ticker, total int) (requeued int) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := 0
	loop := maintain.New(maintain.Config{Engine: ticker, Owner: "sweeper", OnTick: func(_ uint16, r engine.TickReply) {
		// from one goroutine
		requeued += r.Requeued
		if idle++; r.Requeued > 0 {
			idle = 0
		}
		if requeued >= total || idle > 5*int(ticker.Partitions()) {
			cancel()
		}
	}})
	must.No(t, loop.Run(ctx))
	return requeued
}

// slowlog is the longest time a call of a function held the server, and how many took over 5 ms.
func slowlog(t *testing.T, ctx context.Context, raw rueidis.Client, function string) (slowest time.Duration, over int) {
	t.Helper()
	entries, err := raw.Do(ctx, raw.B().SlowlogGet().Count(100_000).Build()).ToArray()
	must.No(t, err)
	for _, entry := range entries {
		fields, err := entry.ToArray()
		must.No(t, err)
		took, err1 := fields[2].AsInt64()
		args, err2 := fields[3].AsStrSlice()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if len(args) < 2 || args[1] != function {
			continue
		}
		d := time.Duration(took) * time.Microsecond
		if slowest = max(slowest, d); d > 5*time.Millisecond {
			over++
		}
	}
	return slowest, over
}
