package client

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestConflictNamesTheKey(t *testing.T) {
	c := newFake().client(t)
	x, err := Submit(t.Context(), c, echo, "a", flowfabric.IdempotencyKey("tides-1"))
	must.No(t, err)
	_, one := Submit(t.Context(), c, echo, "b", flowfabric.IdempotencyKey("tides-1"))
	_, many := SubmitMany(t.Context(), c, echo, []string{"b"},
		Keys(func(int) flowfabric.Key { return flowfabric.IdempotencyKey("tides-1") }))
	item, _ := errors.AsType[*ItemError](many)
	if item == nil {
		t.Fatalf("%v, want an ItemError", many)
	}
	want := "submit " + x.ID().String() +
		`: idempotency_conflict: key "tides-1" names an execution with another payload`
	for _, err := range []error{one, item.Err} {
		if !errors.Is(err, denied.Idempotency) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOutcomeCountsAttempts(t *testing.T) {
	id := mint.ID(1)
	for n, want := range map[uint32]string{0: "after 0 attempts", 1: "after 1 attempt", 2: "after 2 attempts"} {
		got := newOutcomeError(snapshot(id, codes.Failed, n)).Error()
		if got != "execution "+id.String()+" failed "+want {
			t.Errorf("%s", got)
		}
	}
}
