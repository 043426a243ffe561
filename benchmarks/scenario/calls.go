package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// calls measures the ceiling of everything that is made of calls: a function that does nothing, beside the lightest
// call that the system itself makes, which is given as a share of it.
func calls(ctx context.Context, b *Bench) error {
	light, ok := b.Store.(driver.Lightest)
	if !ok {
		return b.lacks("no light call to compare")
	}
	server, ok := b.Server.(driver.Callable)
	if !ok {
		return b.lacks("the server has no functions")
	}
	ceiling := map[int]float64{}
	for _, v := range []struct {
		name       string
		goroutines int
		own        bool
	}{
		{name: "nothing, one goroutine", goroutines: 1},
		{name: "lightest, one goroutine", goroutines: 1, own: true},
		{name: fmt.Sprintf("nothing, %d goroutines", b.Concurrency), goroutines: b.Concurrency},
		{name: fmt.Sprintf("lightest, %d goroutines", b.Concurrency), goroutines: b.Concurrency, own: true},
	} {
		call, stop := light.Lightest, func() {}
		if !v.own {
			var err error
			if call, stop, err = server.Trivial(ctx); err != nil {
				return err
			}
		}
		f, commands, err := b.measureCalls(ctx, v.name, v.goroutines, call)
		stop()
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if v.own {
			f[measure.RawRatio] = f[measure.Throughput] / ceiling[v.goroutines]
		} else {
			ceiling[v.goroutines] = f[measure.Throughput]
		}
		b.done(v.name, f, commands)
	}
	return nil
}

// measureCalls makes as many calls as the run has jobs, a quarter of them when there is one goroutine, after a tenth
// to warm up.
func (b *Bench) measureCalls(ctx context.Context, variant string, goroutines int,
	call func(context.Context) error) (measure.Figures, map[string]driver.Command, error) {
	each := max(b.Items/goroutines, 1)
	if goroutines == 1 {
		each = max(b.Items/4, 1)
	}
	do := func(ctx context.Context, _ int) error { return call(ctx) }
	if _, err := repeat(ctx, goroutines, max(each/warmShare, 1), do); err != nil {
		return nil, nil, err
	}
	m, err := b.start(ctx, variant)
	if err != nil {
		return nil, nil, err
	}
	took, err := repeat(ctx, goroutines, each, do)
	if err != nil {
		return nil, nil, err
	}
	f, commands, err := m.Stop(ctx, each*goroutines)
	if err != nil {
		return nil, nil, err
	}
	f.Latencies(took)
	return f, commands, nil
}

// repeat lets n goroutines make so many calls each, and returns how long these took.
func repeat(ctx context.Context, n, calls int, call func(ctx context.Context, i int) error) ([]time.Duration, error) {
	took := make([][]time.Duration, n)
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for i := range n {
		took[i] = make([]time.Duration, 0, calls)
		p.Go(func(ctx context.Context) error {
			for range calls {
				began := time.Now()
				if err := call(ctx, i); err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(began))
			}
			return nil
		})
	}
	err := p.Wait()
	return slices.Concat(took...), err
}
