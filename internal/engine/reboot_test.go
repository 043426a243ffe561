package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// callsOnPartition3 are calls of every kind of function, by name, with the error that each has in an empty store.
func callsOnPartition3(e *Engine) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			created, err := e.CreateExecutions(ctx, 3,
				[]NewExecution{{ID: mint.ID(3), Start: flowfabric.Start{Namespace: "n", Lane: "l",
					Kind: "k"}}})
			if err == nil {
				err = created[0].Err
			}
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := e.ClaimNext(ctx, sampleClaim)
			return none(err, denied.UnknownSubscription)
		},
		"read": func(ctx context.Context) error {
			_, err := e.ReadExecution(ctx, sampleID)
			return none(err, flowfabric.ErrNotFound)
		},
		"tick": func(ctx context.Context) error { _, err := e.Tick(ctx, 3, "w", false); return err },
		"poll": func(ctx context.Context) error { _, _, err := e.Poll(ctx, []uint16{0, 1, 2, 3}); return err },
		"renew": func(ctx context.Context) error {
			_, err := e.RenewSession(ctx, 3, "w~1", time.Minute, 0)
			return none(err, denied.LeaseExpired)
		},
	}
}

// none is nil for an error that tells of an empty store.
func none(err, empty error) error {
	if errors.Is(err, empty) {
		return nil
	}
	return err
}

// Whichever call meets a store that was flushed boots it as Open does, and goes on; many at once boot it once.
func TestFlushedStoreIsBootedAgain(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		var configured atomic.Int32
		var logged bytes.Buffer
		e := open(t, Config{URL: url, Partitions: 4, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			OnCall: func(name string, _ time.Duration, _ error) {
				if name == "ff_configure" {
					configured.Add(1)
				}
			}})
		for name, call := range callsOnPartition3(e) {
			answered(t, e, "FLUSHALL")
			if err := call(t.Context()); err != nil {
				t.Errorf("%s after a flush: %v", name, err)
			}
			for p := range uint16(4) {
				if got := answered(t, e, "HGET", keys.Root(p), "protocol"); got != protocol {
					t.Errorf("%s: partition %d has protocol %q", name, p, got)
				}
			}
			if got := answered(t, e, "HGET", keys.Config, "num_flow_partitions"); got != "4" {
				t.Errorf("%s: the store has %q partitions", name, got)
			}
		}
		answered(t, e, "FLUSHALL")
		if !e.Embedded() {
			answered(t, e, "FUNCTION", "FLUSH")
		}
		configured.Store(0)
		var all sync.WaitGroup
		for range 50 {
			for name, call := range callsOnPartition3(e) {
				all.Go(func() {
					if err := call(t.Context()); err != nil {
						t.Errorf("%s among many: %v", name, err)
					}
				})
			}
		}
		all.Wait()
		if n := configured.Load(); n != 1 {
			t.Errorf("%d boots, want 1", n)
		}
		if !strings.Contains(logged.String(), "it was flushed, or restarted without its data") {
			t.Errorf("the log does not say what happened: %s", logged.String())
		}
	}
}

// A store that another process made anew with other partition counts is left alone: the error names both counts and
// the remedy.
func TestStoreMadeAnewWithOtherCounts(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		e := open(t, Config{URL: url, Partitions: 4})
		answered(t, e, "FLUSHALL")
		other := open(t, Config{URL: url, Partitions: 2})
		for name, call := range callsOnPartition3(e) {
			err := call(t.Context())
			oneLine(t, name, err, flowfabric.ErrConfig,
				"made anew with 2 execution and 32 gate partitions, and this process began with 4 execution and 32 gate partitions; restart this process")
			if counts, ok := errors.AsType[*CountsError](err); !ok || counts.Stored.Executions != 2 ||
				counts.Used.Executions != 4 {
				t.Errorf("%s: %+v", name, counts)
			}
		}
		if n := answered(t, e, "EXISTS", keys.Root(3)); n != "0" && n != "" {
			t.Errorf("partition 3 was made (%s)", n)
		}
		// Of more partitions a call on one of the old ones notices nothing; the next new registration of a worker does.
		answered(t, e, "FLUSHALL")
		open(t, Config{URL: url, Partitions: 8})
		if _, err := other.Tick(t.Context(), 0, "w", false); err != nil {
			t.Error(err)
		}
		_, err := other.RegisterWorker(t.Context(), Registration{Instance: "w", Token: "t", TTL: time.Hour})
		oneLine(t, "register", err, flowfabric.ErrConfig, "restart this process")
	}
}

// A process that may not boot a store says who has to.
func TestFlushedStoreOfAProcessThatMayNotBootIt(t *testing.T) {
	url, no := testserver.Redis(t), false
	first := open(t, Config{URL: url, Partitions: 4})
	e := open(t, Config{URL: url, CreateConfig: &no})
	answered(t, e, "FLUSHALL")
	for name, call := range callsOnPartition3(e) {
		oneLine(t, name, call(t.Context()), flowfabric.ErrConfig, "let a process boot it that may")
	}
	if _, err := first.Tick(t.Context(), 0, "w", false); err != nil {
		t.Fatal(err)
	}
	e.reboots.at = time.Time{} // the refusal stands for a second
	for name, call := range callsOnPartition3(e) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, after another process booted the store: %v", name, err)
		}
	}
}
