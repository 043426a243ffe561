package flowfabric

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// claimant claims from every partition whose number modulo of is its own, one after the other.
type claimant struct {
	store        *store
	at, step     uint16
	settle       bool
	session      string
	number       uint64
	subscription string
}

// Claimant implements [driver.Claimer]: sessions and claims of package engine, as a worker makes them.
func (s *store) Claimant(_ context.Context, number, of int,
	settle bool) (func(context.Context, int) (int, error), error) {
	c := &claimant{store: s, at: uint16(number), step: uint16(of), settle: settle}
	return c.claim, nil
}

// claim takes jobs from the current partition, or goes on to the next one.
func (c *claimant) claim(ctx context.Context, most int) (int, error) {
	for c.at < c.store.engine.Partitions() {
		if c.session == "" {
			if err := c.open(ctx); err != nil {
				return 0, err
			}
		}
		reply, err := c.store.engine.ClaimNext(ctx, c.request(most))
		if err != nil {
			return 0, err
		}
		if len(reply.Claims) == 0 {
			c.at, c.session = c.at+c.step, ""
			continue
		}
		c.number++
		if c.settle {
			err = c.complete(ctx, reply.Claims)
		}
		return len(reply.Claims), err
	}
	return 0, nil
}

// open makes a session, and learns the routes of the partition.
func (c *claimant) open(ctx context.Context) error {
	c.session, c.number, c.subscription = engine.NewSessionID("claimant"), 0, ""
	reply, err := c.store.engine.ClaimNext(ctx, c.request(1))
	if err != nil {
		return err
	}
	var routes []uint64
	for _, r := range reply.Routes {
		routes = append(routes, r.ID)
	}
	c.subscription, err = c.store.engine.SetSubscription(ctx, c.at, engine.Subscription{Classes: routes})
	return err
}

func (c *claimant) request(most int) engine.ClaimRequest {
	return engine.ClaimRequest{Partition: c.at, Session: c.session, Number: c.number + 1, TTL: time.Minute, Max: most,
		Subscription: c.subscription}
}

func (c *claimant) complete(ctx context.Context, claims []engine.Claim) error {
	items := make([]engine.Completion, len(claims))
	for i := range claims {
		items[i] = engine.Completion{Fence: claims[i].Fence,
			Result: []byte(`{"number":100000,"bytes":229,"state":"done"}`)}
	}
	settled, _, err := c.store.engine.CompleteExecutions(ctx, c.at, items, nil)
	for i := range settled {
		if settled[i].Err != nil && err == nil {
			err = fmt.Errorf("complete %s: %w", items[i].Fence.Execution, settled[i].Err)
		}
	}
	return err
}
