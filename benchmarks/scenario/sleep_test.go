package scenario_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// sleeping are sizes of which every part has twenty rounds of its handlers at least.
func sleeping() scenario.Options {
	o := tiny
	o.Sleeps, o.Handlers = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}, []int{4, 20}
	return o
}

// On a virtual clock a system whose slots are never idle reaches the ideal exactly.
func TestSleepTellsTheShareOfTheIdeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		results, err := scenario.Run(t.Context(), find(t, "sleep"), []driver.System{&plain{name: "plain", log: &log}},
			sleeping(), func(string, int) {})
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 4 || results[3].Variant != "100ms, 20 handlers" {
			t.Fatalf("%+v", results)
		}
		for _, r := range results {
			if of := r.Summary[measure.OfIdeal]; of.Min < 0.999 || of.Max > 1.001 {
				t.Errorf("%s: %+v of the ideal, want 1", r.Variant, of)
			}
		}
		if most := results[3].Summary[measure.AtOnce]; most.Min != 20 || most.Max != 20 {
			t.Errorf("%+v handlers at once, want 20", most)
		}
	})
}

// greedy is a system that runs one handler more than it is allowed.
type greedy struct{ *plain }

func (g greedy) Open(ctx context.Context, s driver.Server, cfg driver.Settings) (driver.Store, error) {
	_, err := g.plain.Open(ctx, s, cfg)
	return g, err
}

func (g greedy) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	w.Concurrency++
	return g.plain.Work(ctx, w)
}

func TestSleepRefusesMoreHandlersThanAllowed(t *testing.T) {
	var log []string
	o := sleeping()
	o.Sleeps, o.Handlers, o.Items = o.Sleeps[:1], o.Handlers[:1], 10
	_, err := scenario.Run(t.Context(), find(t, "sleep"), []driver.System{greedy{&plain{name: "greedy", log: &log}}}, o,
		func(string, int) {})
	if err == nil || !strings.Contains(err.Error(), "5 handlers ran at once, want at most 4") {
		t.Errorf("%v, want an error about handlers at once", err)
	}
}

// seen keeps the settings that a system was opened with, and the jobs it got.
type seen struct {
	*plain
	typed []bool
	sizes map[int]bool
}

func (s *seen) Open(ctx context.Context, at driver.Server, cfg driver.Settings) (driver.Store, error) {
	s.typed = append(s.typed, cfg.Typed)
	_, err := s.plain.Open(ctx, at, cfg)
	return s, err
}

func (s *seen) SubmitMany(ctx context.Context, payloads [][]byte) error {
	for _, p := range payloads {
		size := len(p)
		if s.typed[len(s.typed)-1] {
			document, err := json.Marshal(driver.Typed(p))
			if err != nil {
				return err
			}
			size = len(document)
		}
		s.sizes[size] = true
	}
	return s.plain.SubmitMany(ctx, payloads)
}

// Jobs are typed unless asked otherwise, plain bytes are a variant, and both have the size that was asked for.
func TestTypedJobsAndBytes(t *testing.T) {
	var log []string
	s := &seen{plain: &plain{name: "seen", log: &log}, sizes: map[int]bool{}}
	o := tiny
	o.Raw, o.Rounds, o.Payload = false, 1, 64
	results, err := scenario.Run(t.Context(), find(t, "drain"), []driver.System{s}, o, func(string, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[0].Variant != "" || results[1].Variant != "bytes" || len(s.typed) != 2 ||
		!s.typed[0] || s.typed[1] {
		t.Errorf("%d results, opened typed %v; want typed jobs, then bytes", len(results), s.typed)
	}
	if len(s.sizes) != 1 || !s.sizes[64] {
		t.Errorf("payloads of %v bytes, want 64", s.sizes)
	}
}
