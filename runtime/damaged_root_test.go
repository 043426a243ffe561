package runtime_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A partition whose root is of another type keeps no worker from starting, nor from the work of other partitions.
func TestDamagedRootStopsOnePartition(t *testing.T) {
	s := testserver.Start(t, testserver.ServerRedis)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	opened := func() *engine.Engine {
		e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: 4, Logger: quiet})
		must.No(t, err)
		t.Cleanup(e.Close)
		return e
	}
	opened()
	s.Do("DEL", keys.Root(2))
	s.Do("SET", keys.Root(2), "x")
	w := &env{T: t, ctx: ctx, url: s.URL(), engine: opened()}
	r := w.start(runtime.Config{}, greetBinding())
	for _, partition := range []uint16{0, 1, 3} {
		id := w.submit("you", func(x *engine.NewExecution) { x.ID = mint.ID(partition) })
		w.reach(id, codes.Completed)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
