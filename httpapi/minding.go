package httpapi

import (
	"sync"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gateway"
)

// mindedBody is a lease that a claim minds.
type mindedBody struct {
	leased
	Stopping string `json:"stopping,omitempty" jsonschema:"the stop of it that the worker has heard of, which is not told again"`
}

// minded is a lease that the worker has while it claims.
type minded struct {
	lease, heard string
	fence        flowfabric.Fence
	refused      error
}

// minding reads the leases of a claim.
func (s *workerSession) minding(list []mindedBody) ([]minded, error) {
	if len(list) > maxLeases {
		return nil, invalid("/leases", "there are %d, want at most %d", len(list), maxLeases)
	}
	out, places := make([]minded, len(list)), make(map[string]int, len(list))
	for i, b := range list {
		x := minded{lease: b.Lease, heard: b.Stopping}
		var err error
		if x.fence, x.refused, err = s.fenceOfMany("/leases", b.Lease, i, places); err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// watch listens for what happens to leases.
func (c *call) watch(list []minded) (*gateway.Watch, func()) {
	if len(list) == 0 {
		return nil, func() {}
	}
	partitions := map[uint16]bool{}
	for _, x := range list {
		partitions[x.fence.Execution.Partition()] = true
	}
	return c.h.gateway.Watch(partitions)
}

// news renews leases, and returns those of which the worker must hear: that are not held, or have another stop.
func (c *call) news(s *workerSession, list []minded) ([]leaseAnswer, error) {
	var mu sync.Mutex
	byPlace := map[int]leaseAnswer{}
	renewing := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for i, x := range list {
		renewing.Go(func() (err error) {
			out := leaseAnswer{Lease: x.lease, Code: flowfabric.CodeOf(denied.StaleLease)}
			if x.refused == nil {
				out, err = c.renew(s, x.fence, x.lease)
			}
			if !out.Held || out.Stopping != x.heard {
				mu.Lock()
				defer mu.Unlock()
				byPlace[i] = out
			}
			return err
		})
	}
	err := renewing.Wait()
	var out []leaseAnswer
	for i := range list {
		if x, there := byPlace[i]; there {
			out = append(out, x)
		}
	}
	return out, err
}
