package tenants

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// limits measures what limits of keys cost: the server's time for an execution from its creation until its slot is free
// again, and memory, with no limit and with the work spread over more and more keys; and what is left of the keys in
// the end. Every key may run 32 at once.
func limits(ctx context.Context, s *server.Server, o Options, out io.Writer) error {
	fmt.Fprintf(out, "\nlimits of keys, 32 at once each: at least %d executions, of which %d are claimed %d a call\n\n",
		o.Work, o.Claimed, each)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w,
		"keys\tcreate µs\tclaim and admit µs\tcomplete and release µs\tbytes waiting\tkeys served\tleft of them\t")
	for _, n := range o.Keys {
		if err := limited(ctx, s, o, n, w); err != nil {
			return fmt.Errorf("%d limit keys: %w", n, err)
		}
	}
	return w.Flush()
}

func limited(ctx context.Context, s *server.Server, o Options, n int, out io.Writer) error {
	b, empty, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer b.e.Close()
	work := max(o.Work, n)
	create, err := b.timed(func() error {
		return b.create(work, func(i int, x *engine.NewExecution) {
			if n > 0 {
				x.Limits = []flowfabric.KeyLimit{{Key: "user-" + strconv.Itoa(i%n), Concurrency: 32}}
			}
		})
	})
	if err != nil {
		return err
	}
	full, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	claim, complete, served, err := b.workLimited(o.Claimed, work)
	if err != nil {
		return err
	}
	left := 0
	for cursor := "0"; ; {
		page, err := s.Do(ctx, "SCAN", cursor, "MATCH", "ff:{q:*}:q*", "COUNT", "10000").AsScanEntry()
		if err != nil {
			return err
		}
		left += len(page.Elements)
		if cursor = strconv.FormatUint(page.Cursor, 10); cursor == "0" {
			break
		}
	}
	fmt.Fprintf(out, "%d\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t%d\t\n", n, create/float64(work), claim, complete,
		(full-empty)/float64(work), served, left)
	return nil
}

// workLimited claims as a worker does, completes, and has the slots released; served is how many keys were met.
func (b *bench) workLimited(n, work int) (claim, complete float64, served int, err error) {
	a := admit.New(admit.Config{Engine: b.e, Logger: slog.New(slog.DiscardHandler)})
	q := engine.ClaimRequest{Session: engine.NewSessionID("tenants"), Number: 1, TTL: time.Hour, Max: each}
	keys := map[uint64]bool{}
	for done := 0; done < min(n, work); {
		var reply engine.ClaimReply
		took, err := b.timed(func() (err error) {
			reply, err = a.ClaimNext(b.ctx, q)
			return err
		})
		if err != nil {
			return 0, 0, 0, err
		}
		if q.Subscription == "" {
			if q.Subscription, err = b.e.SetSubscription(b.ctx, 0,
				engine.Subscription{Classes: []uint64{1}}); err != nil {
				return 0, 0, 0, err
			}
			q.Table = reply.Table
			continue
		}
		claim += took
		if len(reply.Claims) == 0 {
			return 0, 0, 0, fmt.Errorf("nothing to claim after %d", done)
		}
		items := make([]engine.Completion, len(reply.Claims))
		for i, c := range reply.Claims {
			items[i] = engine.Completion{Fence: c.Fence}
			keys[c.Route] = true
		}
		if took, err = b.timed(func() error {
			if _, _, err := b.e.CompleteExecutions(b.ctx, 0, items, nil); err != nil {
				return err
			}
			_, err := admit.Deliver(b.ctx, b.e, 0)
			return err
		}); err != nil {
			return 0, 0, 0, err
		}
		complete += took
		done += len(reply.Claims)
		q.Number++
		q.Rotation++
	}
	return claim / float64(n), complete / float64(n), len(keys), nil
}
