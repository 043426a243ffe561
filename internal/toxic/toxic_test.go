package toxic_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl        = 2 * time.Second
	partitions = 8
	most       = 4000 // jobs, whose ends are all counted
	spell      = 600 * time.Millisecond
)

var toxics = map[string]toxic{
	"latency":    {latency: 20 * time.Millisecond, jitter: 60 * time.Millisecond},
	"narrow":     {rate: 40_000},
	"resets":     {resetAfter: 6_000, latency: 15 * time.Millisecond}, // so that calls are under way when it happens
	"half-open":  {deaf: true},
	"mute":       {mute: true},
	"slow close": {slowClose: 300 * time.Millisecond, resetAfter: 30_000},
}

var names = []string{"latency", "narrow", "resets", "half-open", "mute", "slow close"}

// Every toxic comes over every connection of workers, producer and readers, alone and together, and both workers are
// cut off for longer than their leases last. After the connection is restored everything settles, once.
func TestToxics(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	w := newEnv(t, ctx)
	began := time.Now()
	w.run(func() {
		for range 2 {
			for _, i := range w.random.Perm(len(w.proxies) * len(names)) {
				p, name := w.proxies[i%len(w.proxies)], names[i/len(w.proxies)]
				if w.random.IntN(3) > 0 { // a third in each of two rounds: not the same every time
					continue
				}
				p.set(toxics[name])
				w.pass(spell)
				if w.random.IntN(3) > 0 { // sometimes it stays while others come
					p.set(toxic{})
				}
			}
			for _, p := range w.proxies {
				p.set(toxic{})
			}
			w.reset(w.proxies[w.random.IntN(2)]) // whatever was drawn
			for _, p := range w.proxies[:2] {    // both workers, past their leases
				p.set(toxic{deaf: true, mute: true})
			}
			w.pass(ttl + spell)
			w.proxies[0].set(toxic{}) // its old requests arrive now
			w.pass(spell)
			w.proxies[1].set(toxic{})
			w.pass(spell)
		}
	})
	resets := 0
	for _, p := range w.proxies {
		resets += p.count()
	}
	t.Logf(
		"%d jobs acknowledged, %d without an answer, %d resets, %d attempts interrupted; restored and settled after %v",
		w.acked, w.unknown, resets, w.reclaims.Load(), time.Since(began).Round(time.Millisecond))
	if resets == 0 || w.reclaims.Load() == 0 {
		t.Error("no connection was reset or no lease was lost: nothing was proved")
	}
}

// env is a server, its proxies and everybody behind them.
type env struct {
	t       *testing.T
	ctx     context.Context
	url     string // without a proxy
	random  *rand.Rand
	proxies []*proxy // two workers, producer, readers
	audit   *engine.Engine
	raw     rueidis.Client

	mu             sync.Mutex
	jobs           int
	acked, unknown int
	pending        sync.WaitGroup // tails and waiters
	reclaims       atomic.Int64
}

func newEnv(t *testing.T, ctx context.Context) *env {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FLOWFABRIC_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FLOWFABRIC_SEED=%d", seed)
	w := &env{t: t, ctx: ctx, url: testserver.Redis(t), random: rand.New(rand.NewPCG(seed, 0))}
	path := strings.TrimPrefix(w.url, "unix://")
	var err error
	if w.audit, err = engine.Open(ctx, engine.Config{URL: w.url, Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.audit.Close)
	w.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{path}, ForceSingleClient: true,
		DisableCache: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	must.No(t, err)
	t.Cleanup(w.raw.Close)
	for range 4 {
		w.proxies = append(w.proxies, newProxy(t, path))
	}
	return w
}

// pass lets a toxic have its time, which is what it is about.
func (w *env) pass(d time.Duration) {
	select {
	case <-w.ctx.Done():
		w.t.Fatal("the time of the test is up")
	case <-time.After(d):
	}
}

// reset waits until a connection of a worker was reset in the middle of a reply.
func (w *env) reset(p *proxy) {
	before := p.count()
	p.set(toxics["resets"])
	for p.count() == before {
		w.pass(10 * time.Millisecond)
	}
	p.set(toxic{})
}

// run starts everybody, lets poison do its work, heals, waits until all has settled, stops everybody and looks.
func (w *env) run(poison func()) {
	t := w.t
	t.Helper()
	var workers, producer sync.WaitGroup
	must.No(w.t, crash.RecordEnds(w.ctx, w.audit))
	working, stop := context.WithCancel(w.ctx)
	for i := range 2 {
		name := fmt.Sprintf("worker-%d", i)
		worker, err := runtime.New(runtime.Config{URL: w.proxies[i].url(), Instance: name, LeaseTTL: ttl,
			Concurrency:  16,
			DrainTimeout: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, crash.Bind(name))
		must.No(t, err)
		workers.Go(func() {
			if err := worker.Run(working); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	submits := w.connect(2)
	reads := w.connect(3)
	submitting, enough := context.WithCancel(w.ctx)
	producer.Go(func() { w.produce(submitting, submits, reads) })

	poison()
	for _, p := range w.proxies {
		p.set(toxic{})
	}
	enough()
	producer.Wait()
	w.pending.Wait() // every tail and every waiter comes to its end
	submits.Close()
	reads.Close()
	w.settled()
	stop()
	workers.Wait()
	w.look()
}

func (w *env) connect(i int) *client.Client {
	w.t.Helper()
	// timed: what gets no reply is to end, as unknown
	c, err := client.Connect(w.ctx, client.Config{URL: w.proxies[i].url(), SubmitTimeout: 2 * time.Second,
		CallTimeout: time.Second, // timed: likewise
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil))})
	must.No(w.t, err)
	return c
}

// produce submits batches of ten until ctx ends; an acknowledged one gets a waiter, and a stream a tail, too.
func (w *env) produce(ctx context.Context, submits, reads *client.Client) {
	again := time.NewTicker(40 * time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil && w.jobs+10 <= most {
		batch := make([]crash.Job, 10)
		for i := range batch {
			batch[i].Index = w.jobs + i
		}
		w.jobs += len(batch)
		handles, _ := client.SubmitMany(w.ctx, submits, crash.Mix, batch,
			client.Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(batch[i].Key()) }))
		for i, job := range batch {
			if i >= len(handles) || handles[i] == nil {
				w.unknown++
				continue
			}
			w.acked++
			x := client.Attach(reads, crash.Mix, handles[i].ID())
			w.pending.Go(func() { w.await(job, x) })
			if job.Mode() == crash.Stream {
				w.pending.Go(func() { w.tail(x) })
			}
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

// await wants the result of a job, or the failure that it must come to.
func (w *env) await(job crash.Job, x *client.Execution[crash.Answer]) {
	got, err := x.Result(w.ctx)
	switch {
	case job.Ends() == codes.Failed:
		if !errors.Is(err, flowfabric.ErrFailed) {
			w.t.Errorf("job %d: %v, want ErrFailed", job.Index, err)
		}
	case err != nil:
		w.t.Errorf("job %d %s: %v", job.Index, x.ID(), err)
	case got.Index != job.Index:
		w.t.Errorf("job %d has the result of job %d", job.Index, got.Index)
	}
}

// tail follows a stream to its end: no attempt may have a hole, and the last one all frames.
func (w *env) tail(x *client.Execution[crash.Answer]) {
	frames, last, ended := map[uint32]int{}, uint32(0), false
	for event, err := range x.Tail(w.ctx) {
		if err != nil {
			w.t.Errorf("tail of %s: %v", x.ID(), err)
			return
		}
		switch event.Kind {
		case stream.TailFrame:
			frames[event.Attempt]++
			if n := frames[event.Attempt]; event.Frame.Sequence != uint64(n) ||
				string(event.Frame.Payload) != strconv.Itoa(n-1) {
				w.t.Errorf("tail of %s attempt %d: frame %d has sequence %d, %q", x.ID(), event.Attempt, n,
					event.Frame.Sequence, event.Frame.Payload)
				return
			}
		case stream.TailGap:
			w.t.Errorf("tail of %s: a gap of %d frames", x.ID(), event.Trimmed)
		case stream.TailEnd:
			last, ended = event.Attempt, true
		}
	}
	if !ended || frames[last] != crash.Tokens {
		w.t.Errorf("tail of %s: ended %v with %d frames in attempt %d, want %d", x.ID(), ended, frames[last], last,
			crash.Tokens)
	}
}

// settled waits until what was submitted without an answer has ended, too, if it is there at all.
func (w *env) settled() {
	w.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for i := 0; i < w.jobs; {
		var s engine.Snapshot
		id, err := crash.Job{Index: i}.Execution(w.ctx, w.audit)
		if err == nil {
			s, err = w.audit.ReadExecution(w.ctx, id)
		}
		if errors.Is(err, flowfabric.ErrNotFound) || err == nil && s.State.Terminal() {
			i++
			continue
		}
		select {
		case <-w.ctx.Done():
			w.t.Fatalf("job %d never ended: code %s, session %s (%v)", i, s.Code, s.Session, err)
		case <-again.C:
		}
	}
}

// look counts and checks everything that is stored; nobody writes any more.
func (w *env) look() {
	t := w.t
	t.Helper()
	ends, err := crash.Ends(w.ctx, w.audit)
	must.No(t, err)
	existing := 0
	for i := range w.jobs {
		job := crash.Job{Index: i}
		id, err := job.Execution(w.ctx, w.audit)
		var s engine.Snapshot
		if err == nil {
			s, err = w.audit.ReadExecution(w.ctx, id)
		}
		if errors.Is(err, flowfabric.ErrNotFound) {
			continue
		}
		must.No(t, err)
		existing++
		w.reclaims.Add(int64(s.Reclaims))
		if s.Code != job.Ends() || s.Retries != job.Failures() {
			t.Errorf("job %d %s: code %s after %d retries, want %s after %d: %+v", i, id, s.Code, s.Retries,
				job.Ends(), job.Failures(), s.AttemptLog)
		}
		w.mu.Lock()
		if n := ends[id]; n != 1 {
			t.Errorf("job %d %s ended %d times", i, id, n)
		}
		w.mu.Unlock()
	}
	if existing < w.acked {
		t.Errorf("%d executions for %d acknowledged submits", existing, w.acked)
	}
	dumps, err := invariant.ReadAll(w.ctx, w.raw, partitions)
	must.No(t, err)
	checker := invariant.NewChecker()
	for _, d := range dumps {
		for _, bad := range checker.Violations(d) {
			t.Errorf("partition %d: %s", d.Partition, bad)
		}
	}
}
