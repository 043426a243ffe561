package webhook

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// What a delivery costs, of b.N that wait for one receiver: calls of functions, and time of the server's processor. It
// is the same for a thousand and for five thousand; -benchtime 1000x and 5000x say so.
func BenchmarkDeliveries(b *testing.B) {
	e := newEnv(b)
	in := newInbox(b)
	w := New(Config{Endpoints: endpoints(b, map[string]Endpoint{"one": endpointAt(b, in.URL)}), Admin: e.admin,
		Logger: quiet, Stop: e.ctx})
	must.No(b, w.keep(e.ctx))
	e.work(runtime.Config{Namespace: Namespace, Concurrency: 2}, w.Bindings()...) // relays, and may not send
	testwait.Until(b, "the relay has a place", func() bool {
		s, err := e.relay().Get(e.ctx)
		return err == nil && s.Continues > 0
	})
	option, err := rueidis.ParseURL(e.url)
	must.No(b, err)
	raw, err := rueidis.NewClient(option)
	must.No(b, err)
	defer raw.Close()
	used := func() (calls, millis float64) {
		info, err := raw.Do(e.ctx, raw.B().Arbitrary("INFO", "all").Build()).ToString()
		must.No(b, err)
		for _, m := range regexp.MustCompile(`cmdstat_fcall(?:_ro)?:calls=(\d+)|used_cpu_(?:user|sys):([\d.]+)`).
			FindAllStringSubmatch(info, -1) {
			n, _ := strconv.ParseFloat(m[1], 64)
			s, _ := strconv.ParseFloat(m[2], 64)
			calls, millis = calls+n, millis+1000*s
		}
		return calls, millis
	}
	stop := e.work(runtime.Config{}, users()...)
	_, err = client.SubmitMany(e.ctx, e.c, charge, make([]string, b.N))
	must.No(b, err)
	testwait.Progress(b, "all deliveries are stored", func() (bool, any) {
		waiting := 0
		queues, err := e.admin.Queues(e.ctx, Namespace)
		must.No(b, err)
		for _, q := range queues {
			if q.Kind == w.def.Kind() {
				waiting += q.Waiting
			}
		}
		return waiting == b.N, waiting
	})
	stop()
	calls, millis := used()
	b.ResetTimer()
	began := time.Now()
	e.work(runtime.Config{Namespace: Namespace, Capabilities: w.endpoints.Capabilities(), Concurrency: 2 * atOnce},
		w.Bindings()...)
	in.await(b, b.N)
	took := time.Since(began).Seconds()
	b.StopTimer()
	moreCalls, moreMillis := used()
	b.ReportMetric((moreCalls-calls)/float64(b.N), "calls/op")
	b.ReportMetric((moreMillis-millis)/float64(b.N), "server-ms/op")
	b.ReportMetric(float64(b.N)/took, "deliveries/s")
}
