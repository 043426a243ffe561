package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// Workers as they registered and as the partitions know them, and giving one up.
func TestWorkers(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		register := func(instance string) {
			t.Helper()
			_, err := e.RegisterWorker(ctx,
				engine.Registration{Instance: instance, Token: "t", TTL: time.Minute, InFlight: 7,
					Info: flowfabric.WorkerInfo{Pool: "pool", Kinds: []string{"write-article"}}})
			must.No(t, err)
		}
		list := func() map[string]flowfabric.Worker {
			t.Helper()
			workers, err := admin.New(c).Workers(ctx)
			must.No(t, err)
			out := map[string]flowfabric.Worker{}
			for i, w := range workers {
				out[w.Instance] = w
				if i > 0 && workers[i-1].Instance >= w.Instance {
					t.Errorf("%s comes after %s", w.Instance, workers[i-1].Instance)
				}
			}
			return out
		}
		register("idle")
		register("tester")
		for range 3 { // "tester" claims, one session each
			claim(ctx, t, e, submit(ctx, t, c, "x").ID())
		}
		all := list()
		idle, busy := all["idle"], all["tester"]
		if len(all) != 2 || !idle.Alive || !idle.Registered || idle.InFlight != 0 || len(idle.Sessions) != 0 ||
			idle.Pool != "pool" {
			t.Errorf("idle: %+v", idle)
		}
		if !busy.Alive || busy.InFlight != 3 || busy.Reported != 7 || len(busy.Sessions) != 3 ||
			busy.SeenAt.IsZero() || busy.Kinds[0] != "write-article" {
			t.Errorf("busy: %+v", busy)
		}
		if s := busy.Sessions[0]; !s.Alive || s.Held != 1 || s.Partition > 1 {
			t.Errorf("session: %+v", s)
		}

		for again, want := range []int{3, 0} {
			held, err := admin.New(c).MarkWorkerDead(ctx, "tester", flowfabric.Reason("the machine is gone"))
			if err != nil || held != want {
				t.Errorf("marking dead, time %d: %d held, %v, want %d", again, held, err, want)
			}
		}
		gone := list()["tester"]
		if gone.Alive || !gone.Dead || gone.Reason != "the machine is gone (by billing)" {
			t.Errorf("given up: %+v", gone)
		}
		for _, s := range gone.Sessions {
			if s.Alive || !s.Dead || s.Reason != "the machine is gone (by billing)" {
				t.Errorf("session: %+v", s)
			}
		}
		// Its work is free at once, as after a crash.
		for p := range e.Partitions() {
			if _, err := e.Tick(ctx, p, "ticker", false); err != nil {
				t.Fatal(err)
			}
		}
		if gone = list()["tester"]; gone.InFlight != 0 || len(gone.Sessions) != 0 {
			t.Errorf("after a tick: %+v", gone)
		}
	})
}

// A process whose registration was forgotten shows in what it holds; it is given up all the same.
func TestUnregisteredWorker(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "x")
		claim(ctx, t, e, x.ID())
		workers, err := admin.New(c).Workers(ctx)
		if err != nil || len(workers) != 1 {
			t.Fatalf("%+v, %v", workers, err)
		}
		if w := workers[0]; w.Instance != "tester" || w.Registered || !w.Alive || w.InFlight != 1 ||
			!w.SeenAt.IsZero() {
			t.Errorf("%+v", w)
		}
		if held, err := admin.New(c).MarkWorkerDead(ctx, "tester"); err != nil || held != 1 {
			t.Errorf("%d, %v", held, err)
		}
		if _, err := admin.New(c).MarkWorkerDead(ctx, "nobody"); !errors.Is(err, denied.NoWorker) {
			t.Errorf("nobody: %v", err)
		}
		for _, bad := range []string{"", "a{b}"} {
			if _, err := admin.New(c).MarkWorkerDead(ctx, bad); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

// A partition that does not answer is named, and the others are listed.
func TestWorkersOfSomePartitions(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		for _, instance := range []string{"a", "b", "c", "d", "e", "f"} {
			// at least one is registered in each of two partitions
			if _, err := e.RegisterWorker(ctx,
				engine.Registration{Instance: instance, Token: "t", TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		must.No(t, e.FreezePartition(trail.As(ctx, "", "moving"), 1))
		workers, err := admin.New(c).Workers(ctx)
		if !errors.Is(err, flowfabric.ErrPartitionFrozen) || len(workers) == 0 || len(workers) == 6 {
			t.Errorf("%d workers, %v", len(workers), err)
		}
	})
}
