package bounds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// watch files the calls that fn makes under the case's name and, if it is not empty, what they are about.
func (b *bench) watch(what string, fn func()) {
	for _, args := range [][]string{{"CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "100000"},
		{"SLOWLOG", "RESET"}} {
		b.no(b.s.Do(b.ctx, args...).Error())
	}
	before, err := b.s.Sample(b.ctx)
	b.no(err)
	fn()
	after, err := b.s.Sample(b.ctx)
	b.no(err)
	b.no(b.s.Do(b.ctx, "CONFIG", "SET", "slowlog-log-slower-than", "-1").Error())
	took := b.slowlog()
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

// slowlog returns how long every call of a function took, in ms, oldest first.
func (b *bench) slowlog() map[string][]float64 {
	list, err := b.s.Do(b.ctx, "SLOWLOG", "GET", "-1").ToArray()
	b.no(err)
	out := map[string][]float64{}
	for _, item := range slices.Backward(list) {
		fields, err := item.ToArray() // number, time, µs, arguments, client, its name
		b.no(err)
		if len(fields) < 4 {
			b.no(fmt.Errorf("SLOWLOG GET: an entry of %d fields", len(fields)))
		}
		us, err := fields[2].ToInt64()
		b.no(err)
		args, err := fields[3].AsStrSlice()
		b.no(err)
		if len(args) > 1 && strings.HasPrefix(strings.ToLower(args[0]), "fcall") {
			out[args[1]] = append(out[args[1]], float64(us)/1000)
		}
	}
	return out
}

func (e *entry) call() Call {
	longest := slices.Max(e.least)
	return Call{Case: e.name, Function: e.function, Calls: len(e.least), Longest: longest,
		Median: measure.Median(e.least), Commands: e.commands, Met: longest <= most}
}
