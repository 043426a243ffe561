package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// across measures the same parts under several values of something, in the order of the values in one round and
// backwards in the next, so that a drift of the machine meets them all. It files part by part, and tells by how much
// a job cost the server more than under the first value in the same round. A part without a name is the only one.
func (b *Bench) across(values []string, run func(i int, file filing) error) error {
	type row struct {
		part     string
		value    int
		figures  measure.Figures
		commands map[string]driver.Command
	}
	defer func() { b.part = "" }()
	var parts []string
	var rows []row
	for i := range values {
		if b.round%2 == 1 {
			i = len(values) - 1 - i
		}
		b.part = values[i]
		err := run(i, func(part string, f measure.Figures, commands map[string]driver.Command) {
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
			rows = append(rows, row{part, i, f, commands})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", values[i], err)
		}
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(x.value, y.value) })
	for _, part := range parts {
		var first float64
		for _, r := range rows {
			if r.part != part {
				continue
			}
			if cost := r.figures[measure.ServerItem]; r.value == 0 {
				first = cost
			} else if first > 0 {
				r.figures[measure.OfFirst] = cost / first
			}
			variant := values[r.value]
			if part != "" {
				variant = part + ", " + variant
			}
			b.done(variant, r.figures, r.commands)
		}
	}
	return nil
}

// filing keeps what was measured of a part.
type filing func(part string, f measure.Figures, commands map[string]driver.Command)
