package scenario_test

import (
	"context"
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

// sized is a system whose server seems to work all the time, and whose jobs take a millisecond of a virtual clock.
type sized struct {
	*plain
	mu   sync.Mutex
	used time.Duration
}

func (s *sized) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	handle := w.Handle
	w.Handle = func(ctx context.Context, payload []byte) {
		time.Sleep(time.Millisecond)
		handle(ctx, payload)
	}
	return s.plain.Work(ctx, w)
}

func (s *sized) Serve(context.Context) (driver.Server, error) {
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
