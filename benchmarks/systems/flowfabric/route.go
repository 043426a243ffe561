package flowfabric

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// routed is a store of several kinds of jobs: each is a route of its own.
type routed struct {
	*store
	kinds []*handler.Definition[[]byte, []byte]
	next  atomic.Uint32
}

// Routes implements [driver.Router].
func (s *store) Routes(n int) driver.Store {
	r := &routed{store: s}
	for i := range n {
		r.kinds = append(r.kinds, handler.Define[[]byte, []byte](fmt.Sprintf("%s-%d", kind, i)))
	}
	return r
}

func (r *routed) kind() *handler.Definition[[]byte, []byte] {
	return r.kinds[(r.next.Add(1)-1)%uint32(len(r.kinds))]
}

func (r *routed) Submit(ctx context.Context, payload []byte) error {
	_, err := client.Submit(ctx, r.client, r.kind(), payload)
	return err
}

func (r *routed) SubmitMany(ctx context.Context, payloads [][]byte) error {
	_, err := client.SubmitMany(ctx, r.client, r.kind(), payloads)
	return err
}

func (r *routed) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	bindings := make([]handler.Binding, len(r.kinds))
	for i, k := range r.kinds {
		bindings[i] = handler.Bind(k, handling(w))
	}
	return r.workOn(ctx, w, nil, bindings...)
}
