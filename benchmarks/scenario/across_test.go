package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// What a system lacks of a scenario is no reason to leave out the rest.
func TestGrowthWithoutRoutesAndNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		results := run(t, "growth", &sized{plain: &plain{name: "plain", log: &log}})
		if len(results) != 8 || results[6].Variant != "routes" || results[7].Variant != "namespaces" {
			t.Fatalf("%+v", results)
		}
		for _, r := range results[6:] {
			if !strings.HasPrefix(r.NotAvailable(), "n/a") {
				t.Errorf("%s: %q", r.Variant, r.NotAvailable())
			}
		}
		for _, r := range results[:6] {
			if r.Summary[measure.Throughput].Min <= 0 || len(r.Rounds) != tiny.Rounds {
				t.Errorf("%s: %+v", r.Variant, r)
			}
		}
	})
}

// In every second round the last value comes first; results are in the order of the values all the same, and are
// compared with the first.
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
			if want := second[measure.ServerItem] / first[measure.ServerItem]; second[measure.OfFirst] != want ||
				want <= 0 {
				t.Errorf("round %d: a job of the second value costs %v of one of the first, want %v", i,
					second[measure.OfFirst], want)
			}
		}
		if p.served != 1 {
			t.Errorf("%d servers", p.served)
		}
	})
}

// sized sees in which order payloads of different sizes come. Its server seems to work all the time, and a job takes
// a millisecond of a virtual clock.
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
