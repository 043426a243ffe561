package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func TestWhyOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		says := func(id flowfabric.ExecutionID, reason string, text string) {
			t.Helper()
			why, err := admin.New(c).Why(ctx, id)
			if err != nil || why.Reason != string(reason) || why.ID != id || !strings.Contains(why.String(), text) {
				t.Errorf("%v, %s: %s, want %s and %q", err, why.Reason, why, reason, text)
			}
		}
		x := submit(ctx, t, c, "tides")
		says(x.ID(), explain.WhyWaitingNoWorker, `no live worker takes kind "write-article"`)
		_, err := e.RegisterWorker(ctx, engine.Registration{Instance: "tester", Token: "t", TTL: time.Hour,
			Info: flowfabric.WorkerInfo{Namespaces: []string{"default"}, Lanes: []string{"default"},
				Kinds: []string{"write-article"}}})
		must.No(t, err)
		says(x.ID(), explain.WhyWaitingNext, "1 live worker takes")
		finish(ctx, t, e, x.ID(), "wet")
		says(x.ID(), explain.WhyCompleted, `worker "tester" completed it`)
		if why, err := admin.New(c).Why(ctx, x.ID()); err != nil || why.State != flowfabric.Completed {
			t.Errorf("%+v, %v", why, err)
		}
		must.No(t, admin.New(c).Purge(ctx, x.ID(), 0))
		says(x.ID(), explain.WhyPurged, "It ended completed")
		says(mint.ID(1), explain.WhyNotFound, "never created")
		must.No(t, e.FreezePartition(trail.As(ctx, "", "moving"), 1))
		says(mint.ID(1), explain.WhyPartitionFrozen, `because of "moving"`)
		for _, bad := range []flowfabric.ExecutionID{{}, mint.ID(7)} {
			if why, err := admin.New(c).Why(ctx, bad); !errors.Is(err, flowfabric.ErrInvalidInput) || why.Reason != "" {
				t.Errorf("%q: %v, %v", bad, why, err)
			}
		}
	})
}
