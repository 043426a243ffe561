package maintain

import (
	"context"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	"github.com/flowfabric/flowfabric-go/internal/admit"
)

// reckonEvery is how often a partition of gates is asked for reservations whose leases may be over; they are suspect
// when nobody has vouched for them in a minute (lua/lib/ledger.lua).
const reckonEvery = time.Minute

// reckoning ends reservations whose leases are over, beside the ticks. The owner of a partition's tick looks after the
// partitions of gates that have its number, counted round. Only run.loop calls want; one worker does the rest.
type reckoning struct {
	cfg     Config
	jobs    chan []uint16
	workers conc.WaitGroup
	failing bool // the worker's
}

func newReckoning(cfg Config) *reckoning { return &reckoning{cfg: cfg, jobs: make(chan []uint16, 1)} }

// start makes the worker.
func (k *reckoning) start(ctx context.Context) {
	k.workers.Go(func() {
		for list := range k.jobs {
			for _, partition := range list {
				if ctx.Err() != nil {
					break
				}
				k.reckon(ctx, partition)
			}
		}
	})
}

func (k *reckoning) stop() {
	close(k.jobs)
	k.workers.Wait()
}

// want has those partitions of gates looked at that belong to owned partitions, unless that is under way.
func (k *reckoning) want(byID map[uint16]*partition) {
	if k.cfg.Gates == nil {
		return
	}
	var list []uint16
	for gate := range k.cfg.Gates.GatePartitions() {
		if p := byID[gate%k.cfg.Engine.Partitions()]; p != nil && p.owned {
			list = append(list, gate)
		}
	}
	if len(list) == 0 {
		return
	}
	select {
	case k.jobs <- list:
	default:
	}
}

func (k *reckoning) reckon(ctx context.Context, partition uint16) {
	var ended int
	var err error
	if caught := panics.Try(func() { ended, err = admit.Reckon(ctx, k.cfg.Gates, partition) }); caught != nil {
		err = caught.AsError()
	}
	if ended > 0 || err != nil {
		k.cfg.OnReckon(partition, ended, err)
	}
	switch {
	case err != nil && !k.failing && ctx.Err() == nil:
		k.failing = true
		k.cfg.Logger.Warn("flowfabric: reservations of ended work could not be charged; it is tried again every minute",
			"gate_partition", partition, "error", err)
	case err == nil:
		k.failing = false
	}
}
