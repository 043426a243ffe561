package client

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Suspension reads the current suspension of an execution, or its last one: why and since when it waits, what ended
// it, and every waitpoint that is still known. The zero ID says that it was never suspended. Errors:
// flowfabric.ErrNotFound; ErrResultPurged after a purge.
func (e *Execution[Out]) Suspension(ctx context.Context) (suspend.Record, error) {
	c, id := e.client, e.id
	if err := c.admit("suspension of", id); err != nil {
		return suspend.Record{}, err
	}
	s, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return suspend.Record{}, link.Signalled("suspension of", id, err)
	}
	return s, nil
}

// Waitpoints lists the waitpoints of an execution, the open ones first and of those the oldest first. Of a token it
// shows the key it is signed with and a fingerprint, never the token or what would do in its stead. Errors: as
// [Execution.Suspension].
func (e *Execution[Out]) Waitpoints(ctx context.Context) ([]suspend.Waitpoint, error) {
	c, id := e.client, e.id
	if err := c.admit("waitpoints of", id); err != nil {
		return nil, err
	}
	s, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return nil, link.Signalled("waitpoints of", id, err)
	}
	closed := func(w suspend.Waitpoint) int {
		if w.Open() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(s.Waitpoints, func(a, b suspend.Waitpoint) int {
		return cmp.Or(closed(a)-closed(b), a.CreatedAt.Compare(b.CreatedAt))
	})
	return s.Waitpoints, nil
}
