package cost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/stream"
)

// held is how many executions one session holds at a time: the default concurrency of a worker.
const held = 64

// lane is one partition with the session that drains it.
type lane struct {
	partition uint16
	claim     engine.ClaimRequest
	fences    []flowfabric.Fence
}

// bench is one round on an empty store.
type bench struct {
	s       *server.Server
	e       *engine.Engine
	o       Options
	batch   int
	variant variant
	payload []byte
	lanes   []*lane
	samples map[string][]float64
}

// round creates, claims, appends to, renews, ticks and completes o.Items executions, batch items a call, and
// adds its figures to samples under "<operation> <batch>". Of a variant that is named only creating, claiming and
// completing are measured.
func round(ctx context.Context, s *server.Server, o Options, batch int, v variant, samples map[string][]float64) error {
	if err := s.Do(ctx, "FLUSHALL", "SYNC").Error(); err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: uint16(o.Partitions), Logger: o.Logger})
	if err != nil {
		return err
	}
	defer e.Close()
	b := &bench{s: s, e: e, o: o, batch: batch, variant: v, payload: make([]byte, o.Payload), samples: samples}
	for p := range o.Partitions {
		session := engine.NewSessionID(fmt.Sprintf("bench-%d", p))
		b.lanes = append(b.lanes,
			&lane{partition: uint16(p), claim: engine.ClaimRequest{Partition: uint16(p), Session: session,
				Number: 1, TTL: time.Hour, Max: batch, Wait: true}})
	}
	steps := []func(context.Context) error{b.index, b.warm, b.create, b.prepare, b.drain}
	if v.name == "" {
		steps = append(steps, b.tick, b.wait)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each runs fn once per partition, all at the same time.
func (b *bench) each(ctx context.Context, fn func(context.Context, *lane) error) error {
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for _, l := range b.lanes {
		p.Go(func(ctx context.Context) error { return fn(ctx, l) })
	}
	return p.Wait()
}

// timed runs a phase of items items and files its figures under "<operation> <batch>": the µs of the median call
// and the commands it made, per item.
func (b *bench) timed(ctx context.Context, operation string, items int, run func() error) error {
	p, err := b.s.Timed(ctx, "fcall", run)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	key := fmt.Sprintf("%s%s %d", operation, b.variant.name, b.batch)
	b.samples[key] = append(b.samples[key], p.USec*p.Calls/float64(items))
	b.samples[key+" commands"] = append(b.samples[key+" commands"], p.Commands/float64(items))
	return nil
}

func (b *bench) share() int { return b.o.Items / len(b.lanes) }

func (b *bench) items(l *lane, n int) []engine.NewExecution {
	out := make([]engine.NewExecution, n)
	for i := range out {
		out[i] = engine.NewExecution{ID: mint.ID(l.partition),
			Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "bench", Tags: b.variant.tags,
				Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}, Payload: b.payload}
	}
	return out
}

// index has the store keep lists by the tags.
func (b *bench) index(ctx context.Context) error {
	if !b.variant.indexed {
		return nil
	}
	return b.each(ctx, func(ctx context.Context, l *lane) error {
		return b.e.SetIndex(ctx, l.partition, false, slices.Sorted(maps.Keys(b.variant.tags)), true)
	})
}

// warm creates and cancels one execution in every partition, so that the route exists.
func (b *bench) warm(ctx context.Context) error {
	return b.each(ctx, func(ctx context.Context, l *lane) error {
		out, err := b.e.CreateExecutions(ctx, l.partition, b.items(l, 1))
		if err != nil {
			return err
		}
		_, err = b.e.CancelExecution(ctx, out[0].ID, engine.Cancellation{Source: engine.CancelOperator})
		return err
	})
}

func (b *bench) create(ctx context.Context) error {
	before, err := b.s.Memory(ctx)
	if err != nil {
		return err
	}
	err = b.timed(ctx, "create", b.share()*len(b.lanes), func() error {
		return b.each(ctx, func(ctx context.Context, l *lane) error {
			for left := b.share(); left > 0; left -= b.batch {
				out, err := b.e.CreateExecutions(ctx, l.partition, b.items(l, min(b.batch, left)))
				if err != nil {
					return err
				}
				if out[0].Err != nil {
					return out[0].Err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	n := float64(b.share() * len(b.lanes))
	after, err := b.s.Memory(ctx)
	state := "waiting" + b.variant.name
	b.samples[state] = append(b.samples[state], (after-before)/n-float64(b.o.Payload))
	b.samples["before"] = append(b.samples["before"], before)
	return err
}

// prepare learns the routes, stores the subscriptions, and registers waiters that will not be needed.
func (b *bench) prepare(ctx context.Context) error {
	return b.each(ctx, func(ctx context.Context, l *lane) error {
		r, err := b.e.ClaimNext(ctx, l.claim)
		if err != nil {
			return err
		}
		l.claim.Table = r.Table
		var routes []uint64
		for _, row := range r.Routes {
			routes = append(routes, row.ID)
		}
		l.claim.Subscription, err = b.e.SetSubscription(ctx, l.partition, engine.Subscription{Classes: routes})
		return err
	})
}

// drain claims as many as a worker holds, appends frames to them in the first pass, renews, completes, and goes
// on until nothing is left.
func (b *bench) drain(ctx context.Context) error {
	claim := func() error { return b.each(ctx, b.claim) }
	complete := func() error { return b.each(ctx, b.complete) }
	for pass := range b.share() / held {
		if err := b.timed(ctx, "claim", held*len(b.lanes), claim); err != nil {
			return err
		}
		if pass == 0 && b.variant.name == "" {
			if err := b.hold(ctx); err != nil {
				return err
			}
		}
		if err := b.timed(ctx, "complete", held*len(b.lanes), complete); err != nil {
			return err
		}
	}
	if err := claim(); err != nil { // the rest, which ends in empty claims: another price
		return err
	}
	return complete()
}

func (b *bench) claim(ctx context.Context, l *lane) error {
	for len(l.fences) < held {
		l.claim.Max = min(b.batch, held-len(l.fences))
		r, err := b.e.ClaimNext(ctx, l.claim)
		if err != nil {
			return fmt.Errorf("claim in partition %d: %w", l.partition, err)
		}
		if len(r.Claims) == 0 {
			return nil
		}
		l.claim.Number++
		for _, c := range r.Claims {
			if len(c.Input) != b.o.Payload {
				return fmt.Errorf("%s came with %d bytes", c.Fence.Execution, len(c.Input))
			}
			l.fences = append(l.fences, c.Fence)
		}
	}
	return nil
}

func (b *bench) complete(ctx context.Context, l *lane) error {
	for len(l.fences) > 0 {
		n := min(b.batch, len(l.fences))
		items := make([]engine.Completion, n)
		for i := range items {
			items[i] = engine.Completion{Fence: l.fences[i], Result: b.payload}
		}
		out, _, err := b.e.CompleteExecutions(ctx, l.partition, items, nil)
		if err != nil {
			return err
		}
		for _, s := range out {
			if s.Err != nil || s.Already {
				return fmt.Errorf("complete: already %v, %w", s.Already, s.Err)
			}
		}
		l.fences = l.fences[n:]
	}
	return nil
}

// hold does what a worker does while it holds executions: frames and renewals. The frames are dropped again, so
// that they do not count as memory of the executions.
func (b *bench) hold(ctx context.Context) error {
	const streams = 4 // a partition; long enough that starting them does not decide the figure
	perExecution := max(4, b.share()/streams/b.batch) * b.batch
	err := b.timed(ctx, "append", perExecution*streams*len(b.lanes), func() error {
		return b.each(ctx, func(ctx context.Context, l *lane) error {
			frames := make([]stream.Frame, b.batch)
			for i := range frames {
				frames[i] = stream.Frame{Type: "token", Payload: b.payload}
			}
			for _, f := range l.fences[:streams] {
				for sent := 0; sent < perExecution; sent += b.batch {
					if _, err := b.e.AppendFrames(ctx, f, uint64(sent+1), frames); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return b.timed(ctx, "renew", b.share()*len(b.lanes), func() error {
		return b.each(ctx, func(ctx context.Context, l *lane) error {
			for range b.share() {
				if _, err := b.e.RenewSession(ctx, l.partition, l.claim.Session, time.Hour, 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// tick measures a tick that finds nothing to do while sessions are open, and what the done executions occupy.
func (b *bench) tick(ctx context.Context) error {
	for _, l := range b.lanes { // the first call takes the ownership
		if _, err := b.e.Tick(ctx, l.partition, "bench", false); err != nil {
			return err
		}
	}
	err := b.timed(ctx, "tick", b.share()*len(b.lanes), func() error {
		return b.each(ctx, func(ctx context.Context, l *lane) error {
			for range b.share() {
				if _, err := b.e.Tick(ctx, l.partition, "bench", false); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	keys, err := b.s.Do(ctx, "KEYS", "*:f:*").AsStrSlice() // streams, and their meta hashes below
	if err != nil {
		return err
	}
	meta, err := b.s.Do(ctx, "KEYS", "*:fm:*").AsStrSlice()
	if err != nil {
		return err
	}
	if keys = append(keys, meta...); len(keys) > 0 {
		if err := b.s.Do(ctx, append([]string{"DEL"}, keys...)...).Error(); err != nil {
			return err
		}
	}
	after, err := b.s.Memory(ctx)
	before := b.samples["before"][len(b.samples["before"])-1]
	n := float64(b.share() * len(b.lanes))
	b.samples["done"] = append(b.samples["done"], (after-before)/n-2*float64(b.o.Payload))
	return err
}
