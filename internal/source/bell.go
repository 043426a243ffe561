package source

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// doorbell keeps the subscriptions of this instance: off-cluster one for all partitions, in a cluster one each,
// since the channels live where the partitions do.
type doorbell struct {
	cfg *ListenerConfig

	total     int32
	confirmed atomic.Int32
	first     chan struct{} // closed when all were confirmed once
	opened    atomic.Bool
	channels  map[string]uint16 // that ring this instance
	urgent    map[string]uint16 // that tell all workers of urgent work
}

func newDoorbell(cfg *ListenerConfig) *doorbell {
	d := &doorbell{cfg: cfg, total: 1, first: make(chan struct{}), channels: map[string]uint16{},
		urgent: map[string]uint16{}}
	for p := range cfg.Engine.Partitions() {
		d.channels[engine.BellChannel(p, cfg.Name)] = p
		d.urgent[engine.UrgentChannel(p)] = p
	}
	if cfg.Engine.Cluster() {
		d.total = int32(cfg.Engine.Partitions())
	}
	return d
}

// healthy reports that every subscription is confirmed: a ring can be relied on.
func (d *doorbell) healthy() bool { return d.confirmed.Load() == d.total }

// listen keeps all subscriptions alive until ctx ends.
func (d *doorbell) listen(ctx context.Context) {
	if d.total == 1 {
		channels := slices.AppendSeq(slices.Collect(maps.Keys(d.channels)), maps.Keys(d.urgent))
		d.keep(ctx, channels, slices.Collect(maps.Values(d.channels)))
		return
	}
	var each conc.WaitGroup
	for channel, p := range d.channels {
		each.Go(func() { d.keep(ctx, []string{channel, engine.UrgentChannel(p)}, []uint16{p}) })
	}
	each.Wait()
}

// keep subscribes, and again whenever that ends. A new subscription means that rings and notices may have been
// missed: claim, renew, and tick.
func (d *doorbell) keep(ctx context.Context, channels []string, partitions []uint16) {
	pause, failures := newBackoff(), 0
	for ctx.Err() == nil {
		var up atomic.Bool
		began := time.Now()
		err := d.cfg.Engine.Subscribe(ctx, partitions[0], channels, func() {
			if up.CompareAndSwap(false, true) {
				d.confirmed.Add(1)
				d.open()
			}
			d.connected(partitions)
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
			d.cfg.Logger.Warn(
				"flowfabric: the doorbell connection was lost; the worker subscribes again and polls meanwhile", "partition",
				partitions[0], "error", err)
		}
		sleep(ctx, pause.NextBackOff())
	}
}

func (d *doorbell) connected(partitions []uint16) {
	for _, s := range d.cfg.Sources() {
		of := make([]*Partition, len(partitions))
		for i, p := range partitions {
			of[i] = s.partitions[p]
		}
		s.ringAll(of)
	}
	for _, p := range partitions {
		d.cfg.OnConnect(p)
	}
}

// open tells that work is heard of: registering before anybody listens would be in vain.
func (d *doorbell) open() {
	if d.healthy() && d.opened.CompareAndSwap(false, true) {
		close(d.first)
	}
}

// ring acts on one message. It runs on the connection's goroutine and must not block.
func (d *doorbell) ring(channel, message string) {
	p, mine := d.channels[channel]
	if !mine {
		d.told(d.urgent[channel], message)
		return
	}
	switch message {
	case "r":
		for _, s := range d.cfg.Sources() {
			s.ring(s.partitions[p])
		}
		d.cfg.OnWake("routes", 1)
	case "l":
		d.cfg.OnLost(p)
		d.cfg.OnWake("lost", 1)
	case "t":
		d.cfg.OnTimers(p)
		d.cfg.OnWake("timers", 1)
	default:
		if priority, work := strings.CutPrefix(message, "w"); work {
			n := 0
			if priority != "" { // none for work that is not urgent
				n, _ = strconv.Atoi(priority)
			}
			for _, s := range d.cfg.Sources() {
				s.ringWork(s.partitions[p], time.Now(), n)
			}
			d.cfg.OnWake("work", 1)
		}
	}
}

// told acts on what all workers are told of urgent work.
func (d *doorbell) told(p uint16, message string) {
	m, ok := parseUrgent(message)
	if !ok {
		return
	}
	for _, s := range d.cfg.Sources() {
		s.urge(s.partitions[p], m)
	}
	d.cfg.OnWake("urgent", 1)
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
