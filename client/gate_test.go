package client

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// gateStore is a store with one gate, "acme".
type gateStore struct {
	*fakeStore
	reads map[string]int
	lost  int // so many reads are not answered first
}

func (s *gateStore) FindGate(_ context.Context, gate flowfabric.Gate) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.reads[gate.Name()]++
	if s.lost > 0 {
		s.lost--
		return flowfabric.ErrTransport
	}
	if gate.Name() != "acme" {
		return denied.New("ff_read_gate", "gate_not_found", gate.Name())
	}
	return nil
}

// A gate that exists is asked for once in ten seconds; one that does not is asked for every time, and nothing is
// created.
func TestGatesAreBelieved(t *testing.T) {
	s := &gateStore{fakeStore: newFake(), reads: map[string]int{}}
	c := newClient(Config{URL: "redis://fake", Logger: slog.New(slog.DiscardHandler)}.withDefaults(), s, noTails{}, nil)
	t.Cleanup(c.Close)
	def := handler.Define[string, string]("k")
	s.lost = 2 // repeated, as creating is
	for range 3 {
		if _, err := Submit(t.Context(), c, def, "x", flowfabric.Gates("acme")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := Submit(t.Context(), c, def, "x", flowfabric.Gates("acme", "nobody")); !errors.Is(err,
			denied.NoGate) || !strings.Contains(err.Error(), "submit k: gate nobody") {
			t.Error(err)
		}
	}
	if s.reads["acme"] != 3 || s.reads["nobody"] != 2 || len(s.Stored) != 3 {
		t.Errorf("%v, %d created", s.reads, len(s.Stored))
	}
	c.link.Gates.Forget(flowfabric.Gate("acme")) // as after ten seconds
	if _, err := Submit(t.Context(), c, def, "x", flowfabric.Gates("acme")); err != nil || s.reads["acme"] != 4 {
		t.Errorf("%v, %v", err, s.reads)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Submit(ended, c, def, "x", flowfabric.Gates("other")); !errors.Is(err, context.Canceled) ||
		len(s.Stored) != 4 || s.reads["other"] != 0 {
		t.Errorf("%v, %d created", err, len(s.Stored))
	}
	if _, err := Submit(t.Context(), c, def, "x", flowfabric.Gates("no name")); !errors.Is(err,
		flowfabric.ErrInvalidInput) || s.reads["no name"] != 0 {
		t.Error(err)
	}
}
