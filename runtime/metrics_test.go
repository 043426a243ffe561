package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// observed is what a registry shows, by metric family.
func observed(t testing.TB, reg prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := reg.Gather()
	must.No(t, err)
	out := make(map[string]*dto.MetricFamily, len(all))
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// reading sums the series of a family that have all the given labels, "name=value"; of a histogram how often it
// observed.
func reading(t testing.TB, reg prometheus.Gatherer, name string, labels ...string) (sum float64) {
	t.Helper()
	f := observed(t, reg)["flowfabric_"+name]
	for _, m := range f.GetMetric() {
		has := func(want string) bool {
			return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName()+"="+l.GetValue() == want
			})
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !has(l) }) {
			continue
		}
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			sum += float64(m.GetHistogram().GetSampleCount())
		case dto.MetricType_COUNTER:
			sum += m.GetCounter().GetValue()
		default:
			sum += m.GetGauge().GetValue()
		}
	}
	return sum
}

// moves waits for what a registry reads.
type moves struct {
	*env
	reg *prometheus.Registry
}

func (m moves) reads(want float64, name string, labels ...string) {
	m.Helper()
	m.eventually(fmt.Sprintf("%s%q reads %v", name, labels, want), func() bool {
		return reading(m, m.reg, name, labels...) >= want
	})
}

// Every collector moves when what it counts happens, on a real worker and a real server; and together they cover every
// metric that docs/reference/metrics.md lists.
func TestMetricsMove(t *testing.T) {
	w := envAt(t, testserver.Redis(t))
	m := moves{w, prometheus.NewRegistry()}
	cfg := signing()
	cfg.Registerer, cfg.LeaseTTL, cfg.Instance = m.reg, time.Second, "first"
	first := w.submit("complete") // its queue is there when the first samples are taken
	blocked, frozen, flooded := make(chan struct{}), make(chan struct{}), make(chan struct{})
	tell := sync.OnceFunc(func() { close(flooded) }) // a lease that the freeze cost makes a second run
	worker := w.start(cfg,
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
			if in == "flood" {
				<-frozen
				defer tell()
				return in, flooding(ctx, task)
			}
			return act(ctx, task, in, blocked)
		}), handler.BindBatch(handler.Define[string, string]("bulk"),
			func(_ context.Context, items []*handler.Item[string, string]) error {
				for _, item := range items {
					item.Complete(item.In)
				}
				return nil
			}, handler.Batch{Size: 1}))
	kind := "kind=greet"

	w.reach(first, codes.Completed)
	// registered with these partitions, and with the one that had work, so the next one rings
	m.reads(3, "claims_total", "result=empty")
	w.reach(w.submit("complete"), codes.Completed)
	m.reads(1, "settled_total", kind, "outcome=complete", "category=")
	m.reads(1, "claims_total", "result=work")
	m.reads(1, "claimed_executions_total")
	m.reads(1, "claim_seconds")
	m.reads(1, "start_latency_seconds", kind)
	m.reads(1, "handler_seconds", kind)
	w.reach(w.submitKind("bulk", "x"), codes.Completed)
	m.reads(1, "batch_size", "kind=bulk")
	m.reads(1, "batch_wait_seconds", "kind=bulk")
	m.reads(1, "server_call_seconds", "function=ff_claim_next")
	m.reads(1, "polls_total", "result=empty")
	m.reads(1, "build_info")
	m.reads(1, "workers")
	m.reads(1, "workers_ready")
	m.reads(limits.DefaultConcurrency, "slots")
	m.reads(4, "partitions")
	m.reads(4, "partitions_owned")
	m.reads(4, "ticks_total", "result=owner")
	m.reads(1, "serving", "namespace=default", "lane=default", kind)
	if n := reading(t, m.reg, "ticks_overdue") + reading(t, m.reg, "schedules_due"); n != 0 {
		t.Errorf("%v ticks overdue or schedules due in a healthy world", n)
	}

	w.eventually("a ring for work", func() bool { // of a route that is known
		w.reach(w.submit("complete"), codes.Completed)
		return reading(t, m.reg, "doorbell_total", "message=work") > 0
	})
	w.reach(w.submit("fail"), codes.Failed)
	m.reads(1, "settled_total", kind, "outcome=fail", "category=no_luck")
	w.reach(w.submit("frames"), codes.Completed)
	m.reads(2, "frames_appended_total", "mode=durable")
	m.reads(8, "frames_appended_bytes_total", "mode=durable")
	m.reads(1, "frames_appended_total", "mode=best_effort")

	wait := w.submit("wait")
	w.reach(wait, codes.AwaitingSignal)
	m.reads(1, "settled_total", kind, "outcome=suspend")
	w.signalled(wait, "go", `"on"`, waitwords.EffectSatisfied)
	w.reach(wait, codes.Completed)
	m.reads(1, "resumptions_total", kind, "cause=signal")

	w.reach(w.submit("fill"), codes.Completed)
	m.reads(1, "nearly_full_total", kind, "limit=step_bytes")
	w.reach(w.submit("delay"), codes.Completed)
	m.reads(1, "tick_effects_total", "effect=promoted")
	m.reads(1, "tick_lag_seconds")

	holding := w.submit("block")
	m.reads(1, "in_flight")
	m.reads(1, "lease_renewals_total", "result=ok")
	if _, err := w.engine.CancelExecution(w.ctx, holding,
		engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	m.reads(1, "leases_lost_total", "cause=cancelled")

	dying := w.submit("block")
	held := w.reach(dying, codes.Active)
	if _, err := w.engine.MarkSessionDead(trail.As(w.ctx, "", "test"), dying.Partition(), held.Session); err != nil {
		t.Fatal(err)
	}
	m.reads(1, "lease_renewals_total", "result=error")
	m.reads(1, "sessions_lost_total", "cause=lease_expired")
	m.reads(1, "leases_lost_total", "cause=lease_lost")
	m.reads(1, "tick_effects_total", "effect=requeued")
	close(blocked)
	w.reach(dying, codes.Completed)

	flood := w.submit("flood")
	w.reach(flood, codes.Active)
	must.No(t, w.engine.FreezePartition(trail.As(w.ctx, "", "test"), flood.Partition()))
	m.reads(1, "server_call_errors_total", "class=retry", "error=partition_frozen")
	close(frozen)
	<-flooded
	must.No(t, w.engine.ThawPartition(w.ctx, flood.Partition()))
	m.reads(1, "frames_lost_total", "cause=shed")
	w.reach(flood, codes.Completed)

	every := schedule.Definition{Spec: schedule.Every(time.Second, time.Time{}), Overlap: schedule.OverlapSkip,
		Item: schedule.Item{Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "nobody serves it"}}}
	text, err := calendar.Encode(every)
	must.No(t, err)
	put := engine.SchedulePut{Name: "every second", Definition: text, Next: time.Now().Add(time.Second)}
	if _, err := w.engine.PutSchedule(w.ctx, put); err != nil {
		t.Fatal(err)
	}
	m.reads(1, "schedule_firings_total", "outcome=fired")
	m.reads(1, "schedule_firings_total", "outcome=missed") // the execution before has not ended
	m.reads(1, "schedule_missed_total", "reason=overlap")

	w.amount("spent", 1)
	if _, err := w.engine.ReportUsage(w.ctx,
		admission.Usage{Gate: "spent", Key: "all", Amounts: map[string]int64{"tokens": 1}}); err != nil {
		t.Fatal(err)
	}
	w.gate(admission.Gate{Name: "one", Rate: 1, Window: flowfabric.Millis(time.Hour)})
	w.submit("block", asking(flowfabric.Gate("spent")))
	w.submit("block", asking(flowfabric.Gate("one")))
	w.submit("block", asking(flowfabric.Gate("one")))
	w.submit("block", asking(flowfabric.Gate("missing")))
	m.reads(1, "gate_hits_total", "reason=amount", "dimension=tokens")
	m.reads(1, "gate_waiting", "gate=spent")
	m.reads(1, "gate_hits_total", "reason=rate", "dimension=")
	m.reads(1, "admissions_total", "outcome=not_found")
	m.reads(1, "admissions_total", "outcome=admitted")
	m.reads(4, "grants_total")
	m.reads(1, "outbox_deliveries_total", "result=ok")

	documented(t, m.reg)
	problems, err := testutil.GatherAndLint(m.reg)
	must.No(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	_ = worker.stop()
	if n := reading(t, m.reg, "workers") + reading(t, m.reg, "slots") + reading(t, m.reg, "partitions_owned"); n != 0 {
		t.Errorf("after the end %v workers, slots and partitions are left", n)
	}
}

// act is a handler that does what its input says.
func act(ctx context.Context, task *handler.Task, in string, blocked <-chan struct{}) (string, error) {
	switch in {
	case "fail":
		return "", handler.Permanent(handler.Category("no_luck", errors.New("broken")))
	case "frames":
		return "", errors.Join(task.Frame(ctx, "token", "four"), task.Frame(ctx, "token", "more"),
			task.Live(ctx, "token", "now", time.Second))
	case "fill":
		for i := range 27 {
			if _, err := handler.Step(ctx, task, fmt.Sprint(i), func(context.Context) (string, error) {
				return strings.Repeat("x", 250<<10), nil
			}); err != nil {
				return "", err
			}
		}
	case "wait":
		return handler.Await[string](ctx, task, "go")
	case "delay":
		if task.AttemptType() == flowfabric.AttemptInitial {
			return "", handler.Delay(time.Millisecond)
		}
	case "block":
		select {
		case <-blocked:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return in, nil
}

// flooding sends more than the queue of a writer holds.
func flooding(ctx context.Context, task *handler.Task) error {
	payload := strings.Repeat("x", 60<<10)
	for range 40 {
		if err := task.Live(ctx, "token", payload, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// row is one line of the table in docs/reference/metrics.md: | `name` | type | labels | meaning |.
var row = regexp.MustCompile("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")

// documented compares what a registry shows with docs/reference/metrics.md, both ways: names, types and labels.
func documented(t *testing.T, reg prometheus.Gatherer) {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/metrics.md")
	must.No(t, err)
	told := map[string]string{}
	for line := range strings.Lines(string(page)) {
		// the outbox is in no worker; its module tests its own
		if m := row.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "flowfabric_sql_outbox_") {
			told[m[1]] = m[2] + " " +
				strings.Join(strings.Fields(strings.NewReplacer("`", "", ",", " ", "–", "").Replace(m[3])), ",")
		}
	}
	seen := observed(t, reg)
	for name, f := range seen {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		is := strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
		if told[name] != is {
			t.Errorf("%s is a %q, docs/reference/metrics.md says %q", name, is, told[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if seen[name] == nil {
			t.Errorf("docs/reference/metrics.md tells of %s, which nothing shows", name)
		}
	}
}

// However many executions run, the series stay as many: no label can hold an id, a tag or an error's text.
func TestMetricsHaveBoundedLabels(t *testing.T) {
	w := envAt(t, testserver.Redis(t))
	reg := prometheus.NewRegistry()
	w.start(runtime.Config{Registerer: reg},
		handler.Bind(greet, func(_ context.Context, task *handler.Task, in string) (string, error) {
			return "", handler.Permanent(errors.New("cannot greet " + in + " in " + task.ID().String()))
		}))
	run := func(count int) (series int) {
		before := reading(t, reg, "settled_total", "outcome=fail")
		for i := range count / 100 {
			p, batch := uint16(i%4), make([]engine.NewExecution, 100)
			for k := range batch {
				name := fmt.Sprintf("%d.%d", i, k)
				batch[k] = engine.NewExecution{ID: mint.ID(p),
					Start: flowfabric.Start{Namespace: "default", Lane: "default",
						Kind:    "greet",
						Creator: name, Tags: map[string]string{"some.tag": name}}, Payload: []byte(`"` + name + `"`)}
			}
			if _, err := w.engine.CreateExecutions(w.ctx, p, batch); err != nil {
				t.Fatal(err)
			}
		}
		w.eventually("all have failed", func() bool {
			return reading(t, reg, "settled_total", "outcome=fail") >= before+float64(count)
		})
		for _, f := range observed(t, reg) {
			series += len(f.GetMetric())
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if v := l.GetValue(); strings.Contains(v, "cannot greet") || len(v) > 64 {
						t.Errorf("%s has a label %s=%q", f.GetName(), l.GetName(), v)
					}
				}
			}
		}
		return series
	}
	first := run(400)
	// What other calls, messages and effects there are depends on timing; an id would bring a thousand.
	if second := run(1000); second > first+25 {
		t.Errorf("%d series after 400 executions, %d after 1,400", first, second)
	}
}

// Queues and partitions are told by who owns their ticks: the sums over two processes are what there is, once.
func TestQueueMetrics(t *testing.T) {
	servers(t, func(w *env) {
		t := w.T
		if set := w.engine.SetLane(w.ctx, wire.SetLane{Namespace: "default", Lane: "default",
			State: "paused"}); set[0].Err != nil {
			t.Fatal(set[0].Err)
		}
		ended := w.submit("x", func(x *engine.NewExecution) { x.Lane = "open" })
		if _, err := w.engine.CancelExecution(w.ctx, ended,
			engine.Cancellation{Source: engine.CancelOperator}); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			w.submit("x")
		}
		w.submit("x", func(x *engine.NewExecution) { x.Lane, x.Delay = "open", flowfabric.Millis(time.Hour) })
		one, two := prometheus.NewRegistry(), prometheus.NewRegistry()
		w.start(runtime.Config{Registerer: one, Instance: "one"}, greetBinding())
		w.start(runtime.Config{Registerer: two, Instance: "two"}, greetBinding())
		sum := func(name string, labels ...string) float64 {
			return reading(t, one, name, labels...) + reading(t, two, name, labels...)
		}
		w.eventually("every partition is owned and sampled", func() bool {
			return sum("partitions_owned") == 4 &&
				sum("queue_waiting", "kind=greet", "lane=default", "namespace=default", "state=paused") == 40 &&
				sum("executions", "index=delayed") == 1 && sum("executions", "index=ended") == 1
		})
		if age := sum("queue_oldest_age_seconds", "state=paused"); age <= 0 || age > 120 {
			t.Errorf("the oldest is %v s old", age)
		}
	})
}

// Workers of one process share collectors; the gauges are sums over them, and a name that somebody else has taken is an
// error that says so.
func TestWorkersShareCollectors(t *testing.T) {
	w := newEnv(t)
	reg := prometheus.NewRegistry()
	one := w.start(runtime.Config{Registerer: reg, Concurrency: 2, Instance: "one"}, greetBinding())
	w.start(runtime.Config{Registerer: reg, Concurrency: 3, Instance: "two"}, greetBinding())
	m := moves{w, reg}
	m.reads(2, "workers_ready")
	if n := reading(t, reg, "slots"); n != 5 {
		t.Errorf("%v slots, want 5", n)
	}
	m.reads(1, "ticks_total", "result=refused")
	w.eventually("four partitions are owned once", func() bool { return reading(t, reg, "partitions_owned") == 4 })
	must.No(t, one.stop())
	if n := reading(t, reg, "slots"); n != 3 {
		t.Errorf("%v slots after one has stopped, want 3", n)
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "flowfabric_claims_total", Help: "x"}))
	if _, err := runtime.New(runtime.Config{URL: w.url, Registerer: taken}, greetBinding()); !errors.Is(err,
		flowfabric.ErrConfig) {
		t.Errorf("a name that is taken answers %v", err)
	}
	if _, err := runtime.New(runtime.Config{URL: w.url, Registerer: taken, MetricPrefix: "other_"},
		greetBinding()); err != nil {
		t.Errorf("another prefix answers %v", err)
	}
	if _, err := runtime.New(runtime.Config{URL: w.url, MetricPrefix: "no-good"}, greetBinding()); !errors.Is(err,
		flowfabric.ErrConfig) {
		t.Errorf("a bad prefix answers %v", err)
	}
}
