//go:build unix

package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// fleet is a producer and eight workers against one server, in processes of their own, and what was done to them.
type fleet struct {
	t          *testing.T
	ctx        context.Context
	url, dir   string
	program    string
	partitions uint16
	patience   time.Duration // of the producer, for one submission
	random     *rand.Rand
	engine     *engine.Engine
	raw        rueidis.Client

	workers  []*process
	stopped  map[*process]time.Time
	serial   int
	producer *process
	upto     int
	faults   []fault
}

// fault is one blow to a worker: what it held may be claimed again a ttl later.
type fault struct {
	worker string
	at     time.Time
	stop   bool // SIGSTOP
}

const fleetSize = 8

var program struct {
	sync.Once
	path string
	err  error
}

// build compiles the worker once per test process, without the race detector.
func build(t *testing.T) string {
	t.Helper()
	program.Do(func() {
		dir, err := os.MkdirTemp("", "ffworker")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "worker")
		if out, err := exec.Command("go", "build", "-o", program.path, "./worker").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("build the worker: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// number reads a count from the environment.
func number(t *testing.T, name string, usual, soak int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		if os.Getenv("FLOWFABRIC_SOAK_CRASH") != "" {
			return soak
		}
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q", name, text)
	}
	return n
}

// seeded is the source of a test's choices; its seed is logged and may be given by FLOWFABRIC_SEED.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(number(t, "FLOWFABRIC_SEED", int(time.Now().UnixNano()), int(time.Now().UnixNano())))
	t.Logf("FLOWFABRIC_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// muster boots the store and starts producer and workers. The test's context bounds everything.
func muster(t *testing.T, ctx context.Context, url string, partitions uint16, patience time.Duration) *fleet {
	t.Helper()
	f := assemble(t, ctx, url, partitions, patience, fleetSize)
	f.look()
	f.produce()
	for i := range f.workers {
		f.replace(i)
	}
	for _, w := range f.workers {
		w.expect(t, "ready")
	}
	return f
}

// assemble makes a fleet in which nobody works yet, and touches nothing on the server.
func assemble(t *testing.T, ctx context.Context, url string, partitions uint16, patience time.Duration,
	size int) *fleet {
	t.Helper()
	return &fleet{t: t, ctx: ctx, url: url, dir: t.TempDir(), program: build(t), partitions: partitions,
		patience: patience, random: seeded(t), stopped: map[*process]time.Time{}, workers: make([]*process, size),
		raw: rawClient(t, url)}
}

// look opens the test's own view of the store, which loads the library and boots the store as any process does.
func (f *fleet) look() {
	f.t.Helper()
	var err error
	if f.engine, err = engine.Open(f.ctx, engine.Config{URL: f.url, Partitions: f.partitions}); err != nil {
		f.t.Fatal(err)
	}
	f.partitions = f.engine.Partitions() // the process of a folder may have booted it before
	f.t.Cleanup(f.engine.Close)
}

// rawClient talks plain commands, for the audit.
func rawClient(t testing.TB, url string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{url[strings.Index(url, "://")+3:]}, DialCtxFn: dial, ForceSingleClient: true,
		DisableCache: true,
	})
	must.No(t, err)
	t.Cleanup(c.Close)
	return c
}

func (f *fleet) spawn(name string, env ...string) *process {
	f.t.Helper()
	return f.spawnOf(f.program, name, env...)
}

func (f *fleet) spawnOf(program, name string, env ...string) *process {
	f.t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(append(os.Environ(), "FF_CRASH_URL="+f.url, "FF_CRASH_NAME="+name, "FF_CRASH_TTL="+ttl.String(),
		"FF_CRASH_JOURNAL="+f.journal(name)), env...)
	return launch(f.t, name, cmd)
}

func (f *fleet) journal(name string) string { return filepath.Join(f.dir, name+".journal") }

// replace starts a new worker in a place and does not wait for it.
func (f *fleet) replace(place int) {
	f.t.Helper()
	f.serial++
	f.workers[place] = f.spawn(fmt.Sprintf("w%d", f.serial))
}

// produce starts the producer, which goes on where its predecessor was killed.
func (f *fleet) produce() {
	f.t.Helper()
	f.producer = f.spawn("producer", "FF_CRASH_ROLE=producer", "FF_CRASH_PATIENCE="+f.patience.String(),
		"FF_CRASH_PARTITIONS="+strconv.Itoa(int(f.partitions)))
	f.allow(f.upto)
}

// allow lets the producer submit the jobs below n.
func (f *fleet) allow(n int) {
	f.t.Helper()
	f.upto = n
	if _, err := fmt.Fprintf(f.producer.input, "upto %d\n", n); err != nil {
		f.t.Fatal(err)
	}
}

// abreast waits until at most so many of the jobs that the producer was allowed have not ended: faults are to hit
// workers that work.
func (f *fleet) abreast(backlog int) {
	f.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for f.upto-f.count(":done") > backlog {
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("%d jobs were allowed, %d have ended: %s", f.upto, f.count(":done"), f.stuck(f.upto))
		case <-again.C:
		}
	}
}

// submitted waits until the producer is done with all it was allowed.
func (f *fleet) submitted() {
	f.t.Helper()
	for {
		if n, err := strconv.Atoi(f.producer.expect(f.t, "at ")); err == nil && n >= f.upto {
			return
		}
	}
}

// strike kills a random worker, now and then the producer too, and starts successors at once. It returns the worker
// that is dead.
func (f *fleet) strike() *process {
	f.t.Helper()
	if f.random.IntN(10) == 0 {
		f.producer.kill()
		f.produce()
	}
	i := f.random.IntN(len(f.workers))
	victim := f.workers[i]
	if _, asleep := f.stopped[victim]; !asleep { // else its leases have been running out since it was stopped
		f.faults = append(f.faults, fault{worker: victim.name, at: time.Now()})
	}
	victim.kill()
	delete(f.stopped, victim)
	f.replace(i)
	f.workers[i].expect(f.t, "ready")
	return victim
}

// pause stops a random worker that runs; wake continues those whose leases have run out.
func (f *fleet) pause() {
	f.t.Helper()
	w := f.workers[f.random.IntN(len(f.workers))]
	if _, already := f.stopped[w]; already {
		return
	}
	f.faults = append(f.faults, fault{worker: w.name, at: time.Now(), stop: true})
	w.signal(f.t, syscall.SIGSTOP)
	f.stopped[w] = time.Now()
}

func (f *fleet) wake(all bool) {
	f.t.Helper()
	for w, since := range f.stopped {
		if all || time.Since(since) > ttl+2*time.Second { // timed: how long it is stopped is the fault
			w.signal(f.t, syscall.SIGCONT)
			delete(f.stopped, w)
		}
	}
}

// stand ends producer and workers cleanly: the store is quiet afterwards.
func (f *fleet) stand() {
	f.t.Helper()
	f.wake(true)
	all := append([]*process{f.producer}, f.workers...)
	for _, p := range all {
		p.signal(f.t, syscall.SIGTERM)
		_ = p.input.Close()
	}
	for _, p := range all {
		p.ended(f.t)
	}
}

// journals lists the journals of all workers that ever lived.
func (f *fleet) journals() []string {
	list, err := filepath.Glob(filepath.Join(f.dir, "w*.journal"))
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}
