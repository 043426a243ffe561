// Package bounds measures the longest calls about flows that the documented limits allow: how long one of them keeps
// the server from everybody else. The project wants none above 5 ms.
//
// It starts a server of its own, drives it through package engine, and reads the time that the server itself gives
// for every single call (SLOWLOG). A round makes the same calls in the same order; of each the least of all rounds
// counts, because what is above it is mostly the operating system taking the processor away. The figure of a case is
// the longest of its calls.
package bounds

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// most is the budget of a call, in ms.
const most = 5.0

// Options of a run.
type Options struct {
	Server  string // program to start
	Rounds  int
	Members int // of the larger flows: at most 1,000, the largest fan-in
	Logger  *slog.Logger
}

// Report is a whole run.
type Report struct {
	Server  string `json:"server"`
	Rounds  int    `json:"rounds"`
	Members int    `json:"members"`
	Calls   []Call `json:"calls"`
}

// Call is what a case measured of one function.
type Call struct {
	Case     string  `json:"case"`
	Function string  `json:"function"`
	Calls    int     `json:"calls"`
	Longest  float64 `json:"longest_ms"` // the longest call, each taken at its best round
	Median   float64 `json:"median_ms"`  // of the calls, likewise
	Commands float64 `json:"commands"`   // that the server executed per call; the same on every machine
	Met      bool    `json:"met"`
}

// Run measures. It takes all but one processor from this process, so that the server has them.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Rounds < 1 || o.Members < 128 || o.Members > 1000 {
		return Report{}, fmt.Errorf("bounds: want at least one round, and 128 to 1,000 members")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return Report{}, err
	}
	defer s.Stop()
	all := recorder{at: map[string]*entry{}}
	for range o.Rounds {
		for _, c := range slices.Concat(cases, gateCases) {
			if err := once(ctx, s, o, c, &all); err != nil {
				return Report{}, fmt.Errorf("bounds: %s: %w", c.name, err)
			}
		}
	}
	r := Report{Server: s.Name(), Rounds: o.Rounds, Members: o.Members}
	for _, name := range all.order {
		r.Calls = append(r.Calls, all.at[name].call())
	}
	return r, nil
}

// once runs a case on an empty store.
func once(ctx context.Context, s *server.Server, o Options, c boundCase, all *recorder) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: 1, Logger: o.Logger, TestClock: true})
	if err != nil {
		return err
	}
	defer e.Close()
	b := &bench{ctx: ctx, s: s, e: e, n: o.Members, recorder: all, name: c.name}
	b.claim = engine.ClaimRequest{Session: engine.NewSessionID("bounds"), Number: 1, TTL: time.Hour, Max: 100}
	return b.try(func() { c.run(b) })
}

// recorder keeps what was measured, in the order in which it came first.
type recorder struct {
	order []string
	at    map[string]*entry
}

type entry struct {
	name, function string
	least          []float64 // ms of each call, the least of all rounds
	commands       float64   // of the last round
}

func (b *recorder) add(name, function string, took []float64, commands float64) {
	key := name + "\x00" + function
	e := b.at[key]
	if e == nil {
		e = &entry{name: name, function: function}
		b.at[key], b.order = e, append(b.order, key)
	}
	for i, ms := range took {
		if i == len(e.least) {
			e.least = append(e.least, math.Inf(1))
		}
		e.least[i] = min(e.least[i], ms)
	}
	e.commands = commands
}

// Print writes the table.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s, flows of %d members, one partition, the least of %d rounds for each call; budget %.0f ms\n\n",
		r.Server, r.Members, r.Rounds, most)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tfunction\tcalls\tlongest ms\tmedian ms\tcommands/call\t")
	for _, c := range r.Calls {
		verdict := "met"
		if !c.Met {
			verdict = "NOT MET"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t%.2f\t%.0f\t%s\n", c.Case, strings.TrimPrefix(c.Function, "ff_"), c.Calls,
			c.Longest, c.Median, c.Commands, verdict)
	}
	return w.Flush()
}

// bench is one case in one round. Its methods panic with a failed error, which try returns.
type bench struct {
	ctx      context.Context
	s        *server.Server
	e        *engine.Engine
	n        int
	recorder *recorder
	name     string
	claim    engine.ClaimRequest
	fences   map[flowfabric.ExecutionID]flowfabric.Fence
}

type failed struct{ error }

func (b *bench) no(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func (b *bench) try(fn func()) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failed:
			err = x.error
		default:
			panic(x)
		}
	}()
	fn()
	return nil
}
