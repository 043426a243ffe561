package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// floodShare is how many times as many jobs as -n wait for the tenant that floods.
const floodShare = 5

// tenancy is one variant: a flood that waits, and somebody who submits one job at a time.
type tenancy struct {
	name     string
	flood    bool
	same     bool          // the small one is the tenant that floods
	first    bool          // its job is submitted before the flood
	priority int           // of the flood
	ageing   time.Duration // 0: none
	samples  int
}

// tenants measures from the submission of a small tenant's job until its handler begins, without and beside a flood
// of another's; in the flood's own queue, which is what it would be without shares; how two floods share by weight;
// and how long a job of low priority waits in a flood of high priority.
func tenants(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Sharer); !ok {
		return b.lacks("no tenants")
	}
	few := max(b.Samples/5, 1)
	for _, v := range []tenancy{
		{name: "nobody else", samples: few},
		{name: "beside a flood", flood: true, samples: few},
		{name: "in the flood's queue", flood: true, same: true, samples: 1},
		{name: "low priority in a flood", flood: true, same: true, first: true, priority: 9, samples: 1},
		{name: "... with ageing of 1 ms", flood: true, same: true, first: true, priority: 9, ageing: time.Millisecond,
			samples: 1},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.tenancy(ctx, v); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return b.weights(ctx)
}

func (b *Bench) tenancy(ctx context.Context, v tenancy) error {
	const small, flood = "small", "flood"
	s := b.Store.(driver.Sharer)
	who := small
	if v.same {
		who = flood
	}
	if v.ageing > 0 {
		if err := s.Age(ctx, flood, v.ageing); err != nil {
			return err
		}
	}
	one := b.payloads(v.samples)
	for i := range one {
		one[i][0] = 1
	}
	began := make(chan time.Time, 1)
	// A slot of the flood is not free again at once, as with real work.
	w := driver.Worker{Concurrency: b.Concurrency, Handle: func(ctx context.Context, in []byte) {
		if in[0] == 1 {
			began <- time.Now()
			return
		}
		_ = pause(ctx, time.Millisecond)
	}}
	var took []time.Duration
	var submitted time.Time
	submit := func(i int) error {
		submitted = time.Now()
		return s.SubmitFor(ctx, who, 0, one[i:i+1])
	}
	if v.first {
		if err := submit(0); err != nil {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil { // older than ageing makes up for
			return err
		}
	}
	if v.flood {
		all := b.payloads(floodShare * b.Items)
		for i := range all {
			all[i][0] = 0
		}
		if err := s.SubmitFor(ctx, flood, v.priority, all); err != nil {
			return err
		}
	}
	m, err := b.start(ctx, v.name)
	if err != nil {
		return err
	}
	stop, err := s.WorkForAll(ctx, w)
	if err != nil {
		return err
	}
	if v.first {
		submitted = time.Now() // it waits for workers, and that is not what is asked
	}
	for i := range v.samples {
		if !v.first {
			if err := submit(i); err != nil {
				return fmt.Errorf("%w, worker: %w", err, stop())
			}
		}
		select {
		case at := <-began:
			took = append(took, max(at.Sub(submitted), 0))
		case <-ctx.Done():
			return fmt.Errorf("job %d has not begun: %w, worker: %w", i, context.Cause(ctx), stop())
		}
	}
	f, commands, err := m.Stop(ctx, len(took))
	if err != nil {
		return err
	}
	for _, name := range []string{measure.Throughput, measure.ServerItem, measure.ClientItem, measure.AllocItem,
		measure.CallsItem, measure.CmdsItem} {
		delete(f, name) // the flood's
	}
	f.Latencies(took)
	b.done(v.name, f, commands)
	return stop()
}

// weights lets two tenants flood, one with three times the weight, and counts what it is given while both wait.
func (b *Bench) weights(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	s := b.Store.(driver.Sharer)
	if err := s.Weigh(ctx, "heavy", 3); err != nil {
		return err
	}
	for i, tenant := range []string{"heavy", "light"} {
		all := b.payloads(b.Items)
		for n := range all {
			all[n][0] = byte(i)
		}
		if err := s.SubmitFor(ctx, tenant, 0, all); err != nil {
			return err
		}
	}
	var heavy, all atomic.Int64
	// three quarters of them are less than the heavy one has
	enough, most := make(chan struct{}), int64(max(b.Items, 2))
	m, err := b.start(ctx, "weights")
	if err != nil {
		return err
	}
	stop, err := s.WorkForAll(ctx,
		driver.Worker{Concurrency: b.Concurrency, Handle: func(_ context.Context, in []byte) {
			n := all.Add(1)
			if n <= most && in[0] == 0 {
				heavy.Add(1)
			}
			if n == most {
				close(enough)
			}
		}})
	if err != nil {
		return err
	}
	select {
	case <-enough:
	case <-ctx.Done():
		return fmt.Errorf("%d of %d jobs ran: %w, worker: %w", all.Load(), most, context.Cause(ctx), stop())
	}
	f, commands, err := m.Stop(ctx, int(most))
	if err != nil {
		return err
	}
	f[measure.Share] = float64(heavy.Load()) / float64(most)
	b.done("two floods of weights 3 and 1: the first's", f, commands)
	return stop()
}
