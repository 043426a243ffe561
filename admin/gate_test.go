package admin

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// gateStore is a store with one gate, whose adjustment frees waiters.
type gateStore struct {
	*fakeStore
	mu      sync.Mutex
	wake    []engine.Waiter
	opened  map[uint16][]int // how many routes each call opened
	refused uint16           // a partition that opens nothing
}

func (s *gateStore) AdjustUsage(context.Context, string,
	map[string]int64) (map[string]int64, []engine.Waiter, error) {
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

func newGateStore(t *testing.T, log *bytes.Buffer) (*gateStore, *Admin) {
	t.Helper()
	s := &gateStore{fakeStore: newFake(), opened: map[uint16][]int{}, refused: 9}
	a := s.admin(t, s)
	a.conn.Logger = slog.New(slog.NewTextHandler(log, nil))
	return s, a
}

// Waiters are woken partition by partition, in calls of at most 256 routes; one that cannot be woken is worth a line
// and no error, and a caller who leaves does not leave them asleep.
func TestWakingIsACourtesy(t *testing.T) {
	var log bytes.Buffer
	s, a := newGateStore(t, &log)
	s.refused = 2
	for i := range 600 {
		s.wake = append(s.wake, engine.Waiter{Partition: 1, Route: uint64(i)})
	}
	s.wake = append(s.wake, engine.Waiter{Partition: 2, Route: 7})
	ended, end := context.WithCancel(t.Context())
	end()
	used, err := a.AdjustUsage(ended, "acme", map[string]int64{"tokens": -1})
	if err != nil || used["tokens"] != 0 {
		t.Errorf("%v, %v", used, err)
	}
	slices.Sort(s.opened[1])
	if !slices.Equal(s.opened[1], []int{88, 256, 256}) || !slices.Equal(s.opened[2], []int{1}) {
		t.Errorf("%v", s.opened)
	}
	if n := strings.Count(log.String(), "could not be opened"); n != 1 ||
		!strings.Contains(log.String(), "partition=2") {
		t.Errorf("%d lines: %s", n, &log)
	}
}

// Scopes are one of four; a lane without a namespace is in the client's.
func TestScopes(t *testing.T) {
	_, a := newGateStore(t, &bytes.Buffer{})
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
		got, err := a.validScope(x.scope)
		if (err == nil) != x.ok || x.ok && got != x.want {
			t.Errorf("%+v: %+v, %v", x.scope, got, err)
		}
	}
}
