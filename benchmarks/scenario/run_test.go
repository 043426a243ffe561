package scenario_test

import (
	"context"
	"fmt"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tiny = scenario.Options{Items: 200, Payload: 32, Concurrency: 4, Batch: 8, Partitions: 2, Rounds: 2, Samples: 10, Tailers: 3,
	Held: 20, Members: 128, Lease: time.Second, Workers: 2, Window: 20 * time.Millisecond, Growth: []int{100, 300}, Payloads: []int{8, 64}}

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
	how    []driver.Durability
}

func (p *plain) Name() string                            { return p.name }
func (p *plain) Version() string                         { return "1" }
func (p *plain) URL() string                             { return "" }
func (p *plain) PID() int                                { return 0 }
func (p *plain) Memory(context.Context) (float64, error) { return float64(len(p.jobs)), nil }
func (p *plain) Stop()                                   { p.stops++ }
func (p *plain) Close()                                  {}

func (p *plain) Serve(_ context.Context, how driver.Serving) (driver.Server, error) {
	p.served++
	p.how = append(p.how, how.Durability)
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
	for _, name := range []string{"append", "tail", "renew", "flow", "tenants", "gated", "partitions", "calls"} {
		results := run(t, name, &plain{name: "plain", log: &log})
		if len(results) != 1 || !strings.HasPrefix(results[0].NotAvailable(), "n/a") || len(results[0].Summary) != 0 {
			t.Errorf("%s: %+v", name, results)
		}
	}
}

func TestPlainSystemRunsTheRest(t *testing.T) {
	var log []string
	for _, name := range []string{"submit", "lifecycle", "latency", "idle", "memory", "payload", "durability"} {
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

// What a system lacks of a scenario is no reason to leave out the rest.
func TestGrowthWithoutRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		results := run(t, "growth", &sized{plain: &plain{name: "plain", log: &log}})
		if len(results) != 7 || !strings.HasPrefix(results[6].NotAvailable(), "n/a") || results[6].Variant != "routes" {
			t.Fatalf("%+v", results)
		}
		for _, r := range results[:6] {
			if r.Summary[measure.Throughput].Min <= 0 || len(r.Rounds) != tiny.Rounds {
				t.Errorf("%s: %+v", r.Variant, r)
			}
		}
	})
}

// In every second round the last value comes first; results are in the order of the values all the same, and are compared with the first.
func TestValuesAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		p := &plain{name: "plain", log: &log}
		sizes := &sized{plain: p}
		results := run(t, "payload", sizes)
		if got := fmt.Sprint(sizes.order); got != "[8 64 64 8]" {
			t.Errorf("payloads in the order %s, want [8 64 64 8]", got)
		}
		if len(results) != 2 || results[0].Variant != "8 B" || results[1].Variant != "64 B" {
			t.Fatalf("%+v", results)
		}
		if _, ok := results[0].Summary[measure.OfFirst]; ok {
			t.Error("the first value is compared with itself")
		}
		for i := range tiny.Rounds {
			first, second := results[0].Rounds[i].Figures, results[1].Rounds[i].Figures
			if want := second[measure.ServerItem] / first[measure.ServerItem]; second[measure.OfFirst] != want || want <= 0 {
				t.Errorf("round %d: a job of the second value costs %v of one of the first, want %v", i, second[measure.OfFirst], want)
			}
		}
		if p.served != 1 {
			t.Errorf("%d servers", p.served)
		}
	})
}

// sized sees in which order payloads of different sizes come. Its server seems to work all the time, and a job takes a millisecond of
// a virtual clock.
type sized struct {
	*plain
	mu    sync.Mutex
	order []int
	used  time.Duration
}

func (s *sized) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	handle := w.Handle
	w.Handle = func(ctx context.Context, payload []byte) {
		time.Sleep(time.Millisecond)
		handle(ctx, payload)
	}
	return s.plain.Work(ctx, w)
}

func (s *sized) Serve(context.Context, driver.Serving) (driver.Server, error) {
	s.served++
	return s, nil
}
func (s *sized) Open(ctx context.Context, server driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := s.plain.Open(ctx, server, cfg)
	return s, err
}

func (s *sized) Sample(context.Context) (driver.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += time.Second
	return driver.Sample{CPU: s.used, Commands: map[string]driver.Command{}}, nil
}

func (s *sized) SubmitMany(ctx context.Context, payloads [][]byte) error {
	s.mu.Lock()
	s.order = append(s.order, len(payloads[0]))
	s.mu.Unlock()
	return s.plain.SubmitMany(ctx, payloads)
}

// Every way of serving has a server of its own, and rounds alternate between them.
func TestServings(t *testing.T) {
	var log []string
	p := &plain{name: "plain", log: &log}
	results := run(t, "durability", p)
	if p.served != 3 || p.stops != 3 || fmt.Sprint(p.how) != "[nothing on disk on disk every second on disk always]" {
		t.Errorf("%d servers, %d of them stopped: %v", p.served, p.stops, p.how)
	}
	if len(results) != 9 || len(results[8].Rounds) != tiny.Rounds || results[8].Variant != "on disk always: lifecycle" {
		t.Errorf("%+v", results)
	}
}
