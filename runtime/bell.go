package runtime

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// doorbell keeps the subscriptions of this instance: off-cluster one for all partitions, in a cluster one each,
// since the channels live where the partitions do.
type doorbell struct {
	store   subscriber
	sched   *scheduler
	keeper  *keeper.Keeper
	ticks   *maintain.Loop // nil when maintenance is disabled
	log     *slog.Logger
	metrics *metrics

	total     int32
	confirmed atomic.Int32
	first     chan struct{} // closed when all were confirmed once, or given up waiting for
	opened    atomic.Bool
	channels  map[string]*partition // that ring this instance
	urgent    map[string]*partition // that tell all workers of urgent work
}

// subscriber is what a doorbell asks of the server.
type subscriber interface {
	Cluster() bool
	Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
		fn func(channel, message string)) error
}

func newDoorbell(r *run) *doorbell {
	d := &doorbell{store: r.store, sched: r.sched, keeper: r.keeper, ticks: r.ticks, log: r.log, metrics: r.metrics,
		total: 1, first: make(chan struct{}), channels: map[string]*partition{}, urgent: map[string]*partition{}}
	for _, p := range r.sched.partitions {
		d.channels[engine.BellChannel(p.id, r.cfg.Instance)] = p
		d.urgent[engine.UrgentChannel(p.id)] = p
	}
	if r.store.Cluster() {
		d.total = int32(len(r.sched.partitions))
	}
	return d
}

// healthy reports that every subscription is confirmed: a ring can be relied on.
func (d *doorbell) healthy() bool { return d.confirmed.Load() == d.total }

// listen keeps all subscriptions alive until ctx ends.
func (d *doorbell) listen(ctx context.Context) {
	if d.total == 1 {
		channels := slices.AppendSeq(slices.Collect(maps.Keys(d.channels)), maps.Keys(d.urgent))
		d.keep(ctx, 0, channels, d.sched.partitions)
		return
	}
	var each conc.WaitGroup
	for channel, p := range d.channels {
		each.Go(func() { d.keep(ctx, p.id, []string{channel, engine.UrgentChannel(p.id)}, []*partition{p}) })
	}
	each.Wait()
}

// keep subscribes, and again whenever that ends. A new subscription means that rings and notices may have been
// missed: claim, renew, and tick.
func (d *doorbell) keep(ctx context.Context, route uint16, channels []string, partitions []*partition) {
	pause, failures := newBackoff(100*time.Millisecond, 5*time.Second), 0
	for ctx.Err() == nil {
		var up atomic.Bool
		began := time.Now()
		err := d.store.Subscribe(ctx, route, channels, func() {
			if up.CompareAndSwap(false, true) {
				d.confirmed.Add(1)
				d.open()
			}
			d.sched.ringAll(partitions)
			for _, p := range partitions {
				d.keeper.Reconnected(p.id)
				if d.ticks != nil {
					d.ticks.Ask(p.id)
				}
			}
		}, d.ring)
		if up.Load() {
			d.confirmed.Add(-1)
			if time.Since(began) > time.Second {
				pause.Reset()
				failures = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		if failures++; failures == 1 {
			d.log.Warn("flowfabric: doorbell lost, subscribing again; polls stand in for it", "partition", route,
				"error", err)
		}
		sleep(ctx, pause.NextBackOff())
	}
}

// open lets the scheduler start: registering before anybody listens would be in vain.
func (d *doorbell) open() {
	if d.healthy() && d.opened.CompareAndSwap(false, true) {
		close(d.first)
	}
}

// ring acts on one message. It runs on the connection's goroutine and must not block.
func (d *doorbell) ring(channel, message string) {
	p := d.channels[channel]
	if p == nil {
		d.told(d.urgent[channel], message)
		return
	}
	switch message {
	case "r":
		d.metrics.wakeUps.WithLabelValues("routes").Inc()
		d.sched.ring(p)
	case "l":
		d.metrics.wakeUps.WithLabelValues("lost").Inc()
		d.keeper.RenewNow(p.id)
	case "t":
		d.metrics.wakeUps.WithLabelValues("timers").Inc()
		if d.ticks != nil {
			d.ticks.Ring(p.id)
		}
	default:
		if priority, work := strings.CutPrefix(message, "w"); work {
			n, _ := strconv.Atoi(priority) // none for work that is not urgent
			d.sched.ringWork(p, time.Now(), n)
			d.metrics.wakeUps.WithLabelValues("work").Inc()
		}
	}
}

// told acts on what all workers are told of urgent work.
func (d *doorbell) told(p *partition, message string) {
	if m, ok := parseUrgent(message); ok && p != nil {
		d.sched.urge(p, m)
		d.metrics.wakeUps.WithLabelValues("urgent").Inc()
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
