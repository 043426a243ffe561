package maintain

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	"github.com/flowfabric/flowfabric-go/internal/admit"
)

const (
	deliverConcurrency = 2               // outboxes delivered at once, beside the ticks
	deliverBatches     = 20              // of one outbox in one go, before others have their turn
	deliverPause       = 2 * time.Second // at most, about, between two tries: work waits for it
)

// delivery delivers the outboxes of the partitions whose ticks report entries, beside the ticks, which go on
// meanwhile. Only run.loop touches the map; the workers see jobs and answers. An error pauses that partition's
// outbox, with backoff, and nothing else; the tick finds it again.
type delivery struct {
	cfg     Config
	jobs    chan parcel
	answers chan delivered
	workers conc.WaitGroup
	state   map[uint16]*parcels
}

// parcel is one go: about how many entries there are to deliver.
type parcel struct {
	partition uint16
	entries   int
}

// parcels is what is remembered of one partition's outbox.
type parcels struct {
	busy     bool
	later    bool // a tick told of more while it was busy
	failures int  // in a row
	until    time.Time
	backoff  backoff.BackOff
}

// delivered is the end of one go; more tells that it ended with entries left.
type delivered struct {
	partition uint16
	more      bool
	err       error
}

func newDelivery(cfg Config, partitions int) *delivery {
	return &delivery{cfg: cfg, jobs: make(chan parcel, partitions), answers: make(chan delivered, partitions),
		state: map[uint16]*parcels{}}
}

// start makes the workers.
func (d *delivery) start(ctx context.Context, partitions map[uint16]*partition) {
	for id := range partitions {
		d.state[id] = &parcels{backoff: backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstBackoff),
			backoff.WithMaxInterval(deliverPause), backoff.WithMaxElapsedTime(0))}
	}
	for range deliverConcurrency {
		d.workers.Go(func() {
			for job := range d.jobs {
				more, err := d.deliver(ctx, job)
				d.answers <- delivered{job.partition, more, err} // never blocks: one place for each partition
			}
		})
	}
}

// stop waits for the workers; what they did not get to is found by the next tick.
func (d *delivery) stop() {
	close(d.jobs)
	d.workers.Wait()
}

// want delivers what a tick has found, unless that has just failed. What is found while a go is under way may be what
// that one is about to deliver, or newer: the end of it decides.
func (d *delivery) want(id uint16, entries int, now time.Time) {
	p := d.state[id]
	switch {
	case d.cfg.Outbox == nil || now.Before(p.until):
	case p.busy:
		p.later = true
	default:
		p.busy, p.later = true, false
		d.jobs <- parcel{id, entries} // never blocks: one place for each partition
	}
}

// settle ends a go and tells whether the tick should look at once whether there is more.
func (d *delivery) settle(ctx context.Context, a delivered) (again bool) {
	p := d.state[a.partition]
	p.busy = false
	if a.err != nil {
		p.until = time.Now().Add(p.backoff.NextBackOff())
		if p.failures++; p.failures == 1 && ctx.Err() == nil {
			d.cfg.Logger.Warn(
				"flowfabric: gates or executions did not receive the reports of ended work; the delivery is retried until it succeeds",
				"partition", a.partition, "error", a.err)
		}
		return false
	}
	if p.failures > 0 {
		d.cfg.Logger.Info("flowfabric: gates and executions receive reports again", "partition", a.partition,
			"failures", p.failures)
		p.failures, p.until = 0, time.Time{}
		p.backoff.Reset()
	}
	return a.more || p.later
}

// deliver makes one go. A panic below counts as an error.
func (d *delivery) deliver(ctx context.Context, job parcel) (more bool, err error) {
	caught := panics.Try(func() {
		for range deliverBatches {
			n, e := admit.Deliver(ctx, d.cfg.Outbox, job.partition)
			if n > 0 || e != nil {
				d.cfg.OnDeliver(job.partition, n, e)
			}
			if err = e; err != nil || n == 0 {
				return
			}
			if job.entries -= n; job.entries <= 0 { // the next entry rings
				return
			}
		}
		more = true
	})
	if caught != nil {
		err = caught.AsError()
	}
	return more, err
}
