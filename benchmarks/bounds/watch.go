package bounds

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// watch files the calls that fn makes under the case's name and, if it is not empty, what they are about.
func (b *bench) watch(what string, fn func()) {
	b.no(b.s.WatchSlow(b.ctx, 0))
	before, err := b.s.Sample(b.ctx)
	b.no(err)
	fn()
	after, err := b.s.Sample(b.ctx)
	b.no(err)
	took, err := b.s.Slow(b.ctx)
	b.no(err)
	b.no(b.s.WatchSlow(b.ctx, -1))
	var commands, calls float64
	for name, c := range after.Sub(before).Commands {
		if strings.HasPrefix(name, "fcall") {
			calls += c.Calls
		} else if name != "info" && !strings.HasPrefix(name, "config") && !strings.HasPrefix(name, "slowlog") {
			commands += c.Calls
		}
	}
	name := b.name
	if what != "" {
		name += ": " + what
	}
	for function, ms := range took {
		each := 0.0
		if len(took) == 1 && calls > 0 { // commands of several functions cannot be told apart
			each = commands / calls
		}
		b.recorder.add(name, function, ms, each)
	}
}

func (e *entry) call() Call {
	longest := slices.Max(e.least)
	return Call{Case: e.name, Function: e.function, Calls: len(e.least), Longest: longest,
		Median: measure.Median(e.least), Commands: e.commands, Met: longest <= most}
}
