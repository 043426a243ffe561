package flowfabric

import (
	"context"
	"fmt"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
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

// spaced is a store of several namespaces.
type spaced struct {
	*store
	names []client.SubmitOption
	next  atomic.Uint32
}

// Namespaces implements [driver.Spacer].
func (s *store) Namespaces(n int) driver.Store {
	r := &spaced{store: s}
	for i := range n {
		r.names = append(r.names, flowfabric.Namespace(fmt.Sprintf("n%d", i)))
	}
	return r
}

func (r *spaced) name() client.SubmitOption {
	return r.names[(r.next.Add(1)-1)%uint32(len(r.names))]
}

func (r *spaced) Submit(ctx context.Context, payload []byte) error {
	_, err := client.Submit(ctx, r.client, definition, payload, r.name())
	return err
}

func (r *spaced) SubmitMany(ctx context.Context, payloads [][]byte) error {
	_, err := client.SubmitMany(ctx, r.client, definition, payloads, r.name())
	return err
}

func (r *spaced) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	return r.work(ctx, w, handling(w), "*")
}
