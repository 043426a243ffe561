package conformance_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// bench is a server whose time is read.
type bench struct {
	*testing.B
	e   *engine.Engine
	raw rueidis.Client
}

func newBench(b *testing.B) *bench {
	url := testserver.Redis(b)
	opt, err := rueidis.ParseURL(url)
	must.No(b, err)
	opt.ForceSingleClient, opt.DisableCache = true, true
	raw, err := rueidis.NewClient(opt)
	must.No(b, err)
	b.Cleanup(raw.Close)
	e, err := engine.Open(b.Context(), engine.Config{URL: url, Partitions: 1})
	must.No(b, err)
	b.Cleanup(e.Close)
	return &bench{b, e, raw}
}

// micros is how much time of the server a call takes of those that f makes.
func (b *bench) micros(f func()) float64 {
	b.Helper()
	must.No(b, b.raw.Do(b.Context(), b.raw.B().ConfigResetstat().Build()).Error())
	f()
	info, err := b.raw.Do(b.Context(), b.raw.B().Info().Section("commandstats").Build()).ToString()
	must.No(b, err)
	for line := range strings.Lines(info) {
		var calls, usec int
		if rest, ok := strings.CutPrefix(line, "cmdstat_fcall:"); ok {
			_, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &usec)
			must.No(b, err)
			return float64(usec) / float64(calls)
		}
	}
	b.Fatal(info)
	return 0
}

func (b *bench) put(g admission.Gate) {
	b.Helper()
	_, _, _, err := b.e.PutGate(b.Context(), g, 0)
	must.No(b, err)
}

func (b *bench) call(service string, n int) engine.ServiceCall {
	return engine.ServiceCall{Service: service, Fence: flowfabric.Fence{Execution: mint.ID(0), Epoch: 1}, Number: 1,
		Namespace: fmt.Sprint("n", n), Since: time.UnixMilli(1), Estimate: map[string]int64{"tokens": 1000}}
}

// ask asks for the turn of a call that is let through, or not.
func (b *bench) ask(x engine.ServiceCall, want bool) {
	b.Helper()
	turn, err := b.e.Acquire(b.Context(), x)
	must.No(b, err)
	if turn.Admitted != want {
		b.Fatalf("%+v", turn)
	}
}

func (b *bench) settle(x engine.ServiceCall) {
	b.Helper()
	x.Used = map[string]int64{"tokens": 600}
	_, err := b.e.EndCall(b.Context(), x, engine.CallSettled)
	must.No(b, err)
}

// BenchmarkServerTimeOfService tells what the server spends on a call to a service beside what it spends on ff_spend,
// in turns on the same server: a turn that is free, the end of the call, and with 10,000 in 100 namespaces in line an
// ask of one near its turn and of one far from it.
//
//	go test -run '^$' -bench ServerTimeOfService -benchtime 1x .
func BenchmarkServerTimeOfService(b0 *testing.B) {
	b := newBench(b0)
	wide := map[string]int64{"requests": 1_000_000_000, "tokens": 1_000_000_000}
	b.put(admission.Gate{Name: "free/model", Service: &admission.Service{PerMinute: wide, Calls: 1000}})
	b.put(admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: 1 << 50}}})
	var asked, ended, spent float64
	const rounds, calls = 20, 500
	for round := range rounds + 1 {
		list := make([]engine.ServiceCall, calls)
		spends := b.micros(func() {
			for i := range list {
				list[i] = b.call("free/model", 0)
				_, err := b.e.ReportUsage(b.Context(), admission.Usage{Gate: "purse", Epoch: 1, Sequence: 1,
					Execution: list[i].Fence.Execution, Amounts: map[string]int64{"tokens": 600}})
				must.No(b, err)
			}
		})
		asks := b.micros(func() {
			for _, x := range list {
				b.ask(x, true)
			}
		})
		ends := b.micros(func() {
			for _, x := range list {
				b.settle(x)
			}
		})
		if round > 0 { // the first one warms up
			asked, ended, spent = asked+asks/rounds, ended+ends/rounds, spent+spends/rounds
		}
	}
	b.ReportMetric(asked, "us-acquire")
	b.ReportMetric(ended, "us-settle")
	b.ReportMetric(spent, "us-spend")

	b.put(admission.Gate{Name: "busy/model", Service: &admission.Service{Calls: 1}})
	b.ask(b.call("busy/model", 0), true)
	line := make([]engine.ServiceCall, 10_000)
	b.ReportMetric(b.micros(func() {
		for i := range line {
			line[i] = b.call("busy/model", i%100)
			b.ask(line[i], false)
		}
	}), "us-join")
	b.ReportMetric(b.micros(func() {
		for _, x := range line[:500] {
			b.ask(x, false)
		}
	}), "us-near")
	b.ReportMetric(b.micros(func() {
		for _, x := range line[9_000:9_500] {
			b.ask(x, false)
		}
	}), "us-far")
}

// BenchmarkManyServices makes gates of services (FLOWFABRIC_SERVICES, 10,000), and tells the memory of each, before and
// after a call, and what the server spends on a call's turn among so many.
//
//	FLOWFABRIC_SERVICES=1000000 go test -run '^$' -bench ManyServices -benchtime 1x .
func BenchmarkManyServices(b0 *testing.B) {
	b := newBench(b0)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("FLOWFABRIC_SERVICES"), "10000"))
	must.No(b, err)
	name := func(i int) string { return fmt.Sprintf("provider/model-%07d", i) }
	each := func(most int, f func(i int)) {
		p := pool.New().WithMaxGoroutines(64)
		for part := range 64 {
			p.Go(func() {
				for i := part; i < most; i += 64 {
					f(i)
				}
			})
		}
		p.Wait()
	}
	put := func(i int) {
		b.put(admission.Gate{Name: name(i), Service: &admission.Service{Calls: 10,
			PerMinute: map[string]int64{"requests": 500, "tokens": 1_000_000}}})
	}
	calls := func(from int) float64 {
		return b.micros(func() {
			for i := range 500 {
				b.ask(b.call(name(from+i), 0), true)
			}
		})
	}
	each(1000, put)
	b.ReportMetric(calls(0), "us-among-1000")
	before := b.memory()
	each(n, func(i int) {
		if i >= 1000 {
			put(i)
		}
	})
	b.ReportMetric((b.memory()-before)/float64(n-1000), "B-each")
	b.ReportMetric(calls(500), "us-among-all")
	before = b.memory()
	most := min(n, 100_000)
	each(most, func(i int) {
		if i >= 1000 {
			x := b.call(name(i), 0)
			b.ask(x, true)
			b.settle(x)
		}
	})
	b.ReportMetric((b.memory()-before)/float64(most-1000), "B-more-when-called")
}

// memory of the server in bytes.
func (b *bench) memory() float64 {
	b.Helper()
	info, err := b.raw.Do(b.Context(), b.raw.B().Info().Section("memory").Build()).ToString()
	must.No(b, err)
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			must.No(b, err)
			return n
		}
	}
	b.Fatal(info)
	return 0
}
