package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// maxCounted is about how many executions one count looks at.
const maxCounted = 10000

// Counts are how many executions are in which state.
type Counts struct {
	States map[flowfabric.PublicState]int `json:"states" jsonschema:"by state; held ones apart from those that wait"`
	// More: the counts are those of the newest ones, about 10,000.
	More bool `json:"more,omitempty" jsonschema:"the counts are those of the newest ones, about 10,000"`
}

// Count counts what a filter's Namespace, Lane, Kind, Tags (one, that the store keeps, see [Admin.SetIndex]) and Since
// choose by state, the newest first, up to about 10,000. It looks at nothing but what it counts. What changes its state
// meanwhile is counted once. Since bounds the creation.
//
// Errors: flowfabric.ErrInvalidInput for a filter that is not legal or has anything else, before any call;
// flowfabric.ErrState when the store does not keep what is asked for; ErrTransport, ErrPartitionFrozen and others when
// a partition does not answer; [client.ErrClosed].
func (a *Admin) Count(ctx context.Context, f Filter) (Counts, error) {
	out, err := a.count(ctx, f)
	if err != nil {
		return Counts{}, fmt.Errorf("count: %w", err)
	}
	return out, nil
}

func (a *Admin) count(ctx context.Context, f Filter) (Counts, error) {
	out := Counts{States: map[flowfabric.PublicState]int{}}
	if a.closed() {
		return out, client.ErrClosed
	}
	f, err := f.complete(a.conn.Namespace)
	if err != nil {
		return out, err
	}
	if len(f.States) > 0 || len(f.Categories) > 0 || !f.Until.IsZero() || f.ErrorText != "" || len(f.Tags) > 1 ||
		!f.Flow.IsZero() || f.HeldBy != "" {
		return out, fmt.Errorf("%w: Filter of a count has more than Namespace, Lane, Kind, one tag and Since",
			flowfabric.ErrInvalidInput)
	}
	routes, tagged := engine.CreatedKey(one(f.Namespace), f.Lane, f.Kind), ""
	for key, value := range f.Tags {
		tagged = engine.TaggedKey(key, value)
	}
	n := int(a.store.Partitions())
	var mu sync.Mutex
	failed := a.eachPartition(func(p uint16) error {
		counts, more, err := a.conn.Engine.CountExecutions(ctx, p, routes, tagged, f.Since, max(100, maxCounted/n))
		mu.Lock()
		defer mu.Unlock()
		for code, k := range counts {
			state := codes.Shown(code)
			if state.BlockingReason == codes.Held {
				state.Public = Held
			}
			out.States[state.Public] += k
		}
		out.More = out.More || more
		return err
	})
	err = failed.sum("count", n)
	if errors.Is(err, denied.NotIndexed) {
		return out, denied.NotIndexed
	}
	return out, err
}
