package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	durations "github.com/flowfabric/flowfabric-go/internal/spread"
)

// cpu is how many seconds of processor time the server has used, which other load on the machine hardly changes.
func (b *bench) cpu() (seconds float64) {
	b.Helper()
	info, err := b.raw.Do(b.Context(), b.raw.B().Info().Section("cpu").Build()).ToString()
	must.No(b, err)
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if text, ok := strings.CutPrefix(line, name); ok {
				x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				must.No(b, err)
				seconds += x
			}
		}
	}
	return seconds
}

// BenchmarkNoteTimes gives the server's time of a call that adds some rows of what a worker measured in half a minute,
// and the bytes of a minute of a kind in the store.
func BenchmarkNoteTimes(b *testing.B) {
	for _, rows := range []int{2, 4, 8} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			x, r, number := newBench(b), rand.New(rand.NewPCG(1, 2)), uint64(0)
			var tally durations.Tally
			for range 3000 { // waits of about 20 ms, runs of about 100 ms
				tally.Completed++
				tally.Waited.Add(time.Duration(r.ExpFloat64() * 20e6))
				tally.Ran.Add(time.Duration(100e6 + r.NormFloat64()*30e6))
			}
			var list []engine.Times
			for i := range rows {
				list = append(list, engine.Times{Kind: fmt.Sprint("kind", i), Minute: time.Now().Unix() / 60,
					Tally: &tally})
			}
			began := x.cpu()
			for b.Loop() {
				number++
				must.No(b, x.e.NoteTimes(b.Context(), "default", "sender", number, list))
			}
			b.ReportMetric((x.cpu()-began)*1e6/float64(number), "server-cpu-µs/op")
			b.ReportMetric(float64(len(tally.Text())), "bytes/minute")
		})
	}
}
