package scenario_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc/pool"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tiny = scenario.Options{Raw: true, Items: 200, Payload: 32, Concurrency: 4, Batch: 8, Partitions: 2, Rounds: 2,
	Samples: 10, Tailers: 3, Held: 20, Members: 128, Workers: 2, Window: 20 * time.Millisecond,
	Growth: []int{100, 300}}

// plain is a system that can do no more than it must: jobs go through a channel. It is also its own server, and
// counts what it sees.
type plain struct {
	name   string
	log    *[]string // of all systems: name of the one that was opened
	jobs   chan []byte
	opened int
	resets int
	served int
	stops  int
}

func (p *plain) Name() string                            { return p.name }
func (p *plain) Version() string                         { return "1" }
func (p *plain) URL() string                             { return "" }
func (p *plain) PID() int                                { return 0 }
func (p *plain) Memory(context.Context) (float64, error) { return float64(len(p.jobs)), nil }
func (p *plain) Stop()                                   { p.stops++ }
func (p *plain) Close()                                  {}

func (p *plain) Serve(context.Context) (driver.Server, error) {
	p.served++
	return p, nil
}
func (p *plain) Reset(context.Context) error { p.resets++; return nil }
func (p *plain) Sample(context.Context) (driver.Sample, error) {
	return driver.Sample{CPU: time.Second, Commands: map[string]driver.Command{}}, nil
}

func (p *plain) Open(context.Context, driver.Server, driver.Settings) (driver.Store, error) {
	p.opened++
	p.jobs = make(chan []byte, 10_000)
	*p.log = append(*p.log, p.name)
	return p, nil
}

func (p *plain) Submit(_ context.Context, payload []byte) error {
	p.jobs <- payload
	return nil
}

func (p *plain) SubmitMany(ctx context.Context, payloads [][]byte) error {
	for _, job := range payloads {
		p.jobs <- job
	}
	return nil
}

func (p *plain) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	handlers := pool.New()
	for range w.Concurrency {
		handlers.Go(func() {
			for {
				select {
				case job := <-p.jobs:
					w.Handle(ctx, job)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return sync.OnceValue(func() error { cancel(); handlers.Wait(); return nil }), nil
}

func find(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	i := slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return scenario.All[i]
}

func run(t *testing.T, name string, systems ...driver.System) []scenario.Result {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	results, err := scenario.Run(ctx, find(t, name), systems, tiny, func(string, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestSystemsAlternate(t *testing.T) {
	var log []string
	a, b := &plain{name: "a", log: &log}, &plain{name: "b", log: &log}
	results := run(t, "drain", a, b)
	if got := strings.Join(log, " "); got != "a b b a" {
		t.Errorf("order of rounds: %s, want a b b a", got)
	}
	if len(results) != 2 || results[0].System != "a" || results[1].System != "b" {
		t.Fatalf("%+v", results)
	}
	for _, r := range results {
		if len(r.Rounds) != tiny.Rounds {
			t.Errorf("%s has %d rounds, want %d", r.System, len(r.Rounds), tiny.Rounds)
		}
	}
	if a.served != 1 || a.stops != 1 || a.resets != a.opened {
		t.Errorf("served %d, stopped %d, reset %d, opened %d", a.served, a.stops, a.resets, a.opened)
	}
}

// A feature that a system lacks is reported as such, and never as a figure.
func TestLackingFeatures(t *testing.T) {
	var log []string
	for _, name := range []string{"append", "tail", "flow", "partitions", "calls", "claims"} {
		results := run(t, name, &plain{name: "plain", log: &log})
		if len(results) != 1 || !strings.HasPrefix(results[0].NotAvailable(), "n/a") || len(results[0].Summary) != 0 {
			t.Errorf("%s: %+v", name, results)
		}
	}
}

// another is a system whose handlers get something else than was submitted.
type another struct{ *plain }

func (a another) Open(ctx context.Context, s driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := a.plain.Open(ctx, s, cfg)
	return a, err
}

func (a another) Submit(ctx context.Context, payload []byte) error {
	return a.plain.Submit(ctx, append(payload[:len(payload)-1:len(payload)-1], payload[len(payload)-1]+1))
}

func TestLatencyChecksPayloads(t *testing.T) {
	var log []string
	_, err := scenario.Run(t.Context(), find(t, "latency"), []driver.System{another{&plain{name: "a", log: &log}}},
		tiny, func(string, int) {})
	if err == nil || !strings.Contains(err.Error(), "another payload") {
		t.Errorf("%v, want an error about payloads", err)
	}
}

// elsewhere submits and begins jobs by another clock, an hour ahead, on which every job begins 7 ms after it was
// submitted.
type elsewhere struct {
	*plain
	prepared *int // jobs
}

func (e elsewhere) Open(ctx context.Context, s driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := e.plain.Open(ctx, s, cfg)
	return e, err
}

var ahead = time.Now().Add(time.Hour)

func (e elsewhere) Prepare(_ context.Context, payloads [][]byte, submitters,
	perCall int) (func(context.Context) ([]time.Duration, error), error) {
	*e.prepared += len(payloads)
	return func(ctx context.Context) ([]time.Duration, error) {
		calls := (len(payloads) + perCall - 1) / perCall
		return slices.Repeat([]time.Duration{time.Duration(submitters) * time.Second}, calls),
			e.SubmitMany(ctx, payloads)
	}, nil
}

func (e elsewhere) SubmitAt(ctx context.Context, payload []byte) (time.Time, error) {
	return ahead, e.Submit(ctx, payload)
}

func (e elsewhere) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	handle := w.Handle
	w.Handle = func(ctx context.Context, payload []byte) {
		handle(driver.WithBegan(ctx, ahead.Add(7*time.Millisecond)), payload)
	}
	return e.plain.Work(ctx, w)
}

// A store that submits from another process times its calls itself.
func TestProducersOfAnotherProcess(t *testing.T) {
	var log []string
	prepared := 0
	system := elsewhere{&plain{name: "e", log: &log}, &prepared}
	for i, want := range []float64{1000, 4000, 1000} { // tiny has four submitters
		if r := run(t, "submit", system)[i]; r.Summary[measure.P50].Median != want {
			t.Errorf("submit, %s: p50 %v ms, want %v", r.Variant, r.Summary[measure.P50].Median, want)
		}
	}
	if r := run(t, "latency", system)[0]; r.Summary[measure.P50].Median != 7 || r.Summary[measure.P99].Median != 7 {
		t.Errorf("latency: %+v", r.Summary)
	}
	prepared = 0
	if run(t, "lifecycle", system); prepared != tiny.Rounds*tiny.Items {
		t.Errorf("lifecycle prepared %d jobs, want %d", prepared, tiny.Rounds*tiny.Items)
	}
}

func TestPlainSystemRunsTheRest(t *testing.T) {
	var log []string
	for _, name := range []string{"submit", "lifecycle", "latency", "idle", "memory"} {
		for _, r := range run(t, name, &plain{name: "plain", log: &log}) {
			if r.NotAvailable() != "" || len(r.Summary) == 0 {
				t.Errorf("%s %s: %q, %+v", name, r.Variant, r.NotAvailable(), r.Summary)
			}
			if _, ok := r.Summary[measure.Retained]; ok {
				t.Errorf("%s: a system that cannot count has a count", name)
			}
		}
	}
}

// polling is a system whose workers look for jobs from time to time.
type polling struct{ *plain }

func (p polling) Poll() time.Duration { return 200 * time.Millisecond }

func (p polling) Open(ctx context.Context, s driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := p.plain.Open(ctx, s, cfg)
	return p, err
}

// Jobs come at any moment between two looks of a worker that polls, and there are only as many samples as a round has
// time for.
func TestLatencyOfPollingSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		began := time.Now()
		r := run(t, "latency", polling{&plain{name: "polling", log: &log}})[0]
		if n := r.Summary[measure.Items]; n.Min != 1 || n.Max != 1 { // five windows are over after the first
			t.Errorf("%v samples, want 1", n)
		}
		// Two rounds of a warm-up and a sample, one to two intervals before each.
		if took := time.Since(began); took < 4*200*time.Millisecond || took > 8*200*time.Millisecond {
			t.Errorf("two rounds took %v", took)
		}
		r = run(t, "latency", &plain{name: "plain", log: &log})[0]
		if n := r.Summary[measure.Items]; n.Min != float64(tiny.Samples) {
			t.Errorf("%v samples of a system that does not poll, want %d", n, tiny.Samples)
		}
	})
}

// slow is a system whose worker begins when producers submit no more. It keeps how many jobs waited then.
type slow struct {
	*plain
	most int
}

func (s *slow) Open(ctx context.Context, at driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := s.plain.Open(ctx, at, cfg)
	return s, err
}

func (s *slow) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	handle := w.Handle
	var once sync.Once
	w.Handle = func(ctx context.Context, job []byte) {
		once.Do(func() {
			synctest.Wait()
			s.most = max(s.most, len(s.jobs)+1)
		})
		handle(ctx, job)
	}
	w.Concurrency = 1
	return s.plain.Work(ctx, w)
}

// Producers of lifecycle do not submit everything before a worker wakes up.
func TestLifecycleBoundsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		s := &slow{plain: &plain{name: "slow", log: &log}}
		run(t, "lifecycle", s)
		if want := 2 * tiny.Items / 20; s.most != want {
			t.Errorf("%d jobs waited for the worker, want two waves, which is %d", s.most, want)
		}
	})
}

// settling is a system whose workers settle later than their handlers return.
type settling struct {
	*plain
	most []int // what Settle was asked
}

func (s *settling) Open(ctx context.Context, server driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := s.plain.Open(ctx, server, cfg)
	return s, err
}

func (s *settling) Done(context.Context) (int, error) { return 50, nil }
func (s *settling) Settle(_ context.Context, most int) (int, error) {
	s.most = append(s.most, most)
	return 3, nil
}

// What was settled counts, and not what was handled, up to the moment when as few are unsettled as in other systems.
func TestSettlingLate(t *testing.T) {
	var log []string
	for _, name := range []string{"drain", "lifecycle"} {
		late := &settling{plain: &plain{name: "late", log: &log}}
		for _, round := range run(t, name, late)[0].Rounds {
			if got := round.Figures[measure.Items]; got != 200-50-3 {
				t.Errorf("%s: %v items, want 147", name, got)
			}
			if _, ok := round.Figures[measure.Backlog]; !ok {
				t.Errorf("%s does not tell how long settling took", name)
			}
		}
		if !slices.Equal(late.most, []int{tiny.Concurrency, tiny.Concurrency}) {
			t.Errorf("%s waited until %v were left, want %d in each round", name, late.most, tiny.Concurrency)
		}
	}
}
