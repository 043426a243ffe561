package partmetrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deployment answers what is asked of partitions; one that it does not know does not answer.
type deployment struct {
	mu    sync.Mutex
	infos map[uint16]flowfabric.Partition
	reads int
}

func (*deployment) Partitions() uint16 { return 8 }

func (d *deployment) DescribePartition(_ context.Context, partition uint16) (flowfabric.Partition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	info, ok := d.infos[partition]
	if !ok {
		return info, errors.New("no answer")
	}
	info.Now = time.Now()
	return info, nil
}

func (*deployment) Queues(_ context.Context, partition uint16, _ string, _ int) ([]engine.Queue, error) {
	route := engine.Route{Namespace: "n", Lane: "l", Kind: "k"}
	return []engine.Queue{{Route: route, ReadQueuesQueue: wire.ReadQueuesQueue{State: "active", Depth: int(partition),
		Oldest: time.Now().Add(-time.Duration(partition) * time.Second)}}}, nil
}

// ReadGates answers that amounts of two gates are used up, and the slots of a third.
func (*deployment) ReadGates(_ context.Context, partition uint16) (engine.PartitionGates, error) {
	return engine.PartitionGates{Closed: []engine.Closing{{Why: "gate globex amount tokens 30 100 70",
		Waiting: 10 * int(partition)}, {Why: "gate acme amount tokens 9 9", Waiting: 1},
		{Why: "gate api cap", Waiting: 100}}}, nil
}

func (d *deployment) set(partition uint16, change func(*flowfabric.Partition)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	info := d.infos[partition]
	change(&info)
	d.infos[partition] = info
}

// scrape is what a registry shows, by line, without comments; what it leads to has been done when it returns.
func scrape(t *testing.T, reg prometheus.Gatherer) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	synctest.Wait()
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(answer.Body.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

func shows(t *testing.T, reg prometheus.Gatherer, want ...string) {
	t.Helper()
	lines := scrape(t, reg)
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("%q is missing in\n%s", line, strings.Join(lines, "\n"))
		}
	}
}

// A process tells of the partitions that its loops own, in sum, of what was read of them after a scrape and at most
// every 15 seconds; and counts what happened to them since its first look.
func TestOwnedPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &deployment{infos: map[uint16]flowfabric.Partition{}}
		for p := range uint16(4) {
			store.set(p, func(i *flowfabric.Partition) {
				i.Delayed.Count, i.Flows.Count, i.FlowTotals.Completed, i.TokensRefused, i.Closed.Count = 10, 1, 100,
					7, 1
			})
		}
		m, reg, quiet := New("x_"), prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
		reg.MustRegister(m)
		one, two := m.Watch(store, quiet), m.Watch(store, quiet)
		one.Ticked(9, engine.TickReply{Owner: true}) // does not answer
		one.Ticked(1, engine.TickReply{Owner: true, Schedules: 2, Outbox: 3, Requeued: 4})
		two.Ticked(2, engine.TickReply{Owner: true, Schedules: 5})
		two.Ticked(3, engine.TickReply{})
		shows(t, reg, `x_partitions 0`, `x_partitions_owned 0`, `x_ticks_total{result="owner"} 3`,
			`x_ticks_total{result="refused"} 1`, `x_tick_effects_total{effect="requeued"} 4`)

		ctx, stop := context.WithCancel(t.Context())
		var running conc.WaitGroup
		running.Go(func() { one.Run(ctx) })
		running.Go(func() { two.Run(ctx) })
		synctest.Wait()
		scrape(t, reg)
		shows(t, reg, `x_partitions 8`, `x_partitions_owned 3`, `x_schedules_due 7`, `x_outbox 3`,
			`x_gate_waiting{gate="globex"} 30`, `x_gate_waiting{gate="acme"} 2`,
			`x_executions{index="delayed"} 20`, `x_flows 2`, `x_flows_ended_total{state="completed"} 0`,
			`x_tokens_refused_total 0`,
			`x_queue_waiting{kind="k",lane="l",namespace="n",state="active"} 3`,
			`x_queue_oldest_age_seconds{kind="k",lane="l",namespace="n",state="active"} 2`)

		store.set(1, func(i *flowfabric.Partition) {
			i.Delayed.Count, i.FlowTotals.Completed, i.TokensRefused = 50,
				103, 9
		})
		one.Delivered(1, 2, nil)
		one.Reckoned(1, 3, nil)
		read := store.reads
		scrape(t, reg)
		// the samples are young
		shows(t, reg, `x_executions{index="delayed"} 20`, `x_outbox 1`, `x_outbox_lag_seconds 0`,
			`x_outbox_deliveries_total{result="ok"} 1`, `x_reckoned_total 3`)
		if n := store.reads - read; n != 2 {
			t.Errorf("%d readings, want one by each of two scrapes of the partition that does not answer", n)
		}
		time.Sleep(sampleEvery)
		shows(t, reg, `x_queue_oldest_age_seconds{kind="k",lane="l",namespace="n",state="active"} 17`,
			`x_outbox_lag_seconds 15`)
		shows(t, reg, `x_executions{index="delayed"} 60`, `x_flows_ended_total{state="completed"} 3`,
			`x_tokens_refused_total 2`)

		one.Ticked(1, engine.TickReply{}) // another process has it now
		shows(t, reg, `x_partitions_owned 2`, `x_schedules_due 5`, `x_outbox 0`, `x_outbox_lag_seconds 0`,
			`x_executions{index="delayed"} 10`)
		one.Ticked(1, engine.TickReply{Owner: true})
		store.set(1, func(i *flowfabric.Partition) { i.FlowTotals.Completed = 200; i.Frozen = true })
		scrape(t, reg)
		// what others saw is not told again
		shows(t, reg, `x_flows_ended_total{state="completed"} 3`, `x_partitions_frozen 1`,
			`x_queue_waiting{kind="k",lane="l",namespace="n",state="active"} 2`)
		stop()
		running.Wait()
		shows(t, reg, `x_partitions 0`, `x_partitions_owned 0`, `x_flows_ended_total{state="completed"} 3`)
	})
}

// Producers choose lanes and kinds, so the series of queues have a bound.
func TestQueuesBeyondTheBound(t *testing.T) {
	all, now := newSampled(), time.Now()
	for i := range maxQueueLabels + 10 {
		all.queue(engine.Queue{Route: engine.Route{Namespace: "n", Lane: "l", Kind: strings.Repeat("k", i+1)},
			ReadQueuesQueue: wire.ReadQueuesQueue{State: "active", Depth: 1}}, now, 0)
	}
	if other := all.queues[queue{"other", "other", "other", "active"}]; len(all.queues) != maxQueueLabels+1 ||
		other.waiting != 10 {
		t.Errorf("%d queues, %+v", len(all.queues), other)
	}
}
