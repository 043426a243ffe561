package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// gateStore is a store with one budget, "acme", whose adjustment frees waiters.
type gateStore struct {
	*fakeStore
	mu      sync.Mutex
	reads   map[string]int
	lost    int // so many reads are not answered first
	wake    []engine.Waiter
	opened  map[uint16][]int // how many routes each call opened
	refused uint16           // a partition that opens nothing
}

func (s *gateStore) ReadBudget(_ context.Context, name string, _, _ int) (admission.BudgetRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[name]++
	if s.lost > 0 {
		s.lost--
		return admission.BudgetRecord{}, flowfabric.ErrTransport
	}
	if name != "acme" {
		return admission.BudgetRecord{}, flowfabric.NewError("ff_read_budget", "budget_not_found", name)
	}
	return admission.BudgetRecord{}, nil
}

func (s *gateStore) AdjustBudget(context.Context, string, map[string]int64, string, string) (map[string]int64, []engine.Waiter, error) {
	return map[string]int64{"tokens": 0}, s.wake, nil
}

func (s *gateStore) OpenRoutes(ctx context.Context, partition uint16, routes []uint64) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[partition] = append(s.opened[partition], len(routes))
	if partition == s.refused || ctx.Err() != nil {
		return nil, flowfabric.ErrTransport
	}
	return nil, nil
}

func newGateStore(t *testing.T, log *bytes.Buffer) (*gateStore, *Client) {
	t.Helper()
	s := &gateStore{fakeStore: newFake(), reads: map[string]int{}, opened: map[uint16][]int{}, refused: 9}
	c := newClient(Config{URL: "redis://fake", Logger: slog.New(slog.NewTextHandler(log, nil))}.withDefaults(), s, noTails{}, nil)
	t.Cleanup(c.Close)
	return s, c
}

// A gate that exists is asked for once in ten seconds; one that does not is asked for every time, and nothing is created.
func TestGatesAreBelieved(t *testing.T) {
	s, c := newGateStore(t, &bytes.Buffer{})
	def := handler.Define[string, string]("k")
	s.lost = 2 // repeated, as creating is
	for range 3 {
		if _, err := Submit(t.Context(), c, def, "x", Budgets("acme")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := Submit(t.Context(), c, def, "x", Budgets("acme", "nobody")); !errors.Is(err, flowfabric.ErrBudgetNotFound) || !strings.Contains(err.Error(), "submit k: budget nobody") {
			t.Error(err)
		}
	}
	if s.reads["acme"] != 3 || s.reads["nobody"] != 2 || len(s.stored) != 3 {
		t.Errorf("%v, %d created", s.reads, len(s.stored))
	}
	c.known.mu.Lock()
	c.known.until[flowfabric.Budget("acme")] = time.Now()
	c.known.mu.Unlock()
	if _, err := Submit(t.Context(), c, def, "x", Budgets("acme")); err != nil || s.reads["acme"] != 4 {
		t.Errorf("%v, %v", err, s.reads)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Submit(ended, c, def, "x", Budgets("other")); !errors.Is(err, context.Canceled) || len(s.stored) != 4 || s.reads["other"] != 0 {
		t.Errorf("%v, %d created", err, len(s.stored))
	}
	if _, err := Submit(t.Context(), c, def, "x", Budgets("no name")); !errors.Is(err, flowfabric.ErrInvalidInput) || s.reads["no name"] != 0 {
		t.Error(err)
	}
}

// Waiters are woken partition by partition, in calls of at most 256 routes; one that cannot be woken is worth a line and no error, and
// a caller who leaves does not leave them asleep.
func TestWakingIsACourtesy(t *testing.T) {
	var log bytes.Buffer
	s, c := newGateStore(t, &log)
	s.refused = 2
	for i := range 600 {
		s.wake = append(s.wake, engine.Waiter{Partition: 1, Route: uint64(i)})
	}
	s.wake = append(s.wake, engine.Waiter{Partition: 2, Route: 7})
	ended, end := context.WithCancel(t.Context())
	end()
	used, err := c.AdjustBudget(ended, "acme", map[string]int64{"tokens": -1}, "")
	if err != nil || used["tokens"] != 0 {
		t.Errorf("%v, %v", used, err)
	}
	slices.Sort(s.opened[1])
	if !slices.Equal(s.opened[1], []int{88, 256, 256}) || !slices.Equal(s.opened[2], []int{1}) {
		t.Errorf("%v", s.opened)
	}
	if n := strings.Count(log.String(), "stay closed"); n != 1 || !strings.Contains(log.String(), "partition=2") {
		t.Errorf("%d lines: %s", n, &log)
	}
}

// Scopes are one of four; a lane without a namespace is in the client's.
func TestScopes(t *testing.T) {
	_, c := newGateStore(t, &bytes.Buffer{})
	for _, x := range []struct {
		scope, want admission.Scope
		ok          bool
	}{
		{admission.Scope{}, admission.Scope{}, true},
		{admission.Scope{Namespace: "n"}, admission.Scope{Namespace: "n"}, true},
		{admission.Scope{Lane: "l"}, admission.Scope{Namespace: "default", Lane: "l"}, true},
		{admission.Scope{TagKey: "a.b", Tag: "c"}, admission.Scope{TagKey: "a.b", Tag: "c"}, true},
		{admission.Scope{Tag: "c"}, admission.Scope{}, false},
		{admission.Scope{Namespace: "n", TagKey: "a.b", Tag: "c"}, admission.Scope{}, false},
		{admission.Scope{Lane: "{"}, admission.Scope{}, false},
	} {
		got, err := c.validScope(x.scope)
		if (err == nil) != x.ok || x.ok && got != x.want {
			t.Errorf("%+v: %+v, %v", x.scope, got, err)
		}
	}
}
