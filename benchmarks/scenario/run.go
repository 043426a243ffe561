package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// Result is one variant of one scenario for one system.
type Result struct {
	Scenario string                    `json:"scenario"`
	Variant  string                    `json:"variant,omitempty"`
	System   string                    `json:"system"`
	Server   string                    `json:"server"`
	Rounds   []Round                   `json:"rounds"`
	Summary  map[string]measure.Spread `json:"summary,omitempty"`
}

// NotAvailable is why there are no figures, or "".
func (r Result) NotAvailable() string {
	for _, round := range r.Rounds {
		if round.NotAvailable != "" {
			return round.NotAvailable
		}
	}
	return ""
}

// Run measures one scenario for all systems, round by round, in alternating order, so that a drift of the machine
// meets them all. Every system has a server of its own, which ends with the scenario; one that is not installed has no
// figures, and it is an error when none is. progress is told what begins.
func Run(ctx context.Context, sc Scenario, systems []driver.System, o Options,
	progress func(system string, round int)) ([]Result, error) {
	var results []*Result
	var benches []*Bench
	var missing error
	for _, system := range systems {
		s, err := system.Serve(ctx)
		if errors.Is(err, driver.ErrNotInstalled) {
			results = append(results, &Result{Scenario: sc.Name, System: system.Name(),
				Rounds: []Round{{NotAvailable: "n/a: " + err.Error()}}})
			missing = errors.Join(missing, fmt.Errorf("%s: %w", system.Name(), err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: start the server of %s: %w", sc.Name, system.Name(), err)
		}
		defer s.Stop()
		benches = append(benches, &Bench{Options: o, System: system, Server: s, scenario: sc.Name,
			record: func(variant string, round Round) {
				at := slices.IndexFunc(results, func(r *Result) bool {
					return r.System == system.Name() && r.Variant == variant
				})
				if at < 0 {
					at = len(results)
					results = append(results,
						&Result{Scenario: sc.Name, Variant: variant, System: system.Name(), Server: s.Name()})
				}
				results[at].Rounds = append(results[at].Rounds, round)
			}})
	}
	if len(benches) == 0 {
		return nil, missing
	}
	for round := range o.Rounds {
		for i := range benches {
			if round%2 == 1 {
				i = len(benches) - 1 - i
			}
			b := benches[i]
			b.round = round
			progress(b.System.Name(), round)
			if err := once(ctx, sc, b); err != nil {
				return nil, fmt.Errorf("%s of %s, round %d: %w", sc.Name, b.System.Name(), round+1, err)
			}
		}
	}
	return finished(results), nil
}

// once is one round of one system.
func once(ctx context.Context, sc Scenario, b *Bench) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close()
	return sc.Run(ctx, b)
}

// finished sums up, with the systems of a variant side by side.
func finished(results []*Result) []Result {
	var variants []string
	for _, r := range results {
		if !slices.Contains(variants, r.Variant) {
			variants = append(variants, r.Variant)
		}
	}
	out := make([]Result, 0, len(results))
	for _, variant := range variants {
		for _, r := range results {
			if r.Variant != variant {
				continue
			}
			rounds := make([]measure.Figures, len(r.Rounds))
			for i := range rounds {
				rounds[i] = r.Rounds[i].Figures
			}
			r.Summary = measure.Summary(rounds)
			out = append(out, *r)
		}
	}
	return out
}
