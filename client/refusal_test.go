package client

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

func TestRefusalsInWords(t *testing.T) {
	id := flowfabric.NewExecutionID(1)
	for _, x := range []struct {
		verb string
		err  *flowfabric.Error
		is   error
		says string
	}{
		{"revoke", flowfabric.NewError("ff_revoke_lease", "execution_not_active", "R2af", "1", "0", ""), flowfabric.ErrNotActive,
			"execution_not_active: nobody runs it, it is delayed"},
		{"purge", flowfabric.NewError("ff_purge_execution", "execution_not_terminal", "A1"), flowfabric.ErrNotTerminal,
			"execution_not_terminal: it is active; cancel it first"},
		{"replay", flowfabric.NewError("ff_replay_execution", "replay_not_allowed", "it succeeded; a success is replayed only if forced"),
			flowfabric.ErrReplayNotAllowed, "replay_not_allowed: it succeeded; client.Force() replays a success"},
		{"get", flowfabric.NewError("ff_read_execution", "result_purged", "T1"), flowfabric.ErrResultPurged,
			"result_purged: it was purged; it was completed"},
		{"cancel", flowfabric.NewError("ff_cancel_execution", "execution_not_active", "T2", "1", "0", ""), flowfabric.ErrTerminal,
			flowfabric.ErrTerminal.Error() + ": it is failed"},
		{"get", flowfabric.NewError("ff_read_execution", "execution_not_found"), flowfabric.ErrNotFound,
			flowfabric.NewError("ff_read_execution", "execution_not_found").Error()},
	} {
		err := link.Operated(x.verb, id, x.err)
		if want := x.verb + " " + id.String() + ": " + x.says; !errors.Is(err, x.is) || err.Error() != want ||
			flowfabric.ClassOf(err) != flowfabric.ClassOf(x.is) || flowfabric.CodeOf(err) != flowfabric.CodeOf(x.is) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if link.Operated("get", id, nil) != nil {
		t.Error("nil is no error")
	}
}

func TestConflictNamesTheKey(t *testing.T) {
	c := newFake().client(t)
	x, err := Submit(t.Context(), c, echo, "a", IdempotencyKey("tides-1"))
	if err != nil {
		t.Fatal(err)
	}
	_, one := Submit(t.Context(), c, echo, "b", IdempotencyKey("tides-1"))
	_, many := SubmitMany(t.Context(), c, echo, []string{"b"}, IdempotencyKeys(func(int) string { return "tides-1" }))
	item, _ := errors.AsType[*ItemError](many)
	if item == nil {
		t.Fatalf("%v, want an ItemError", many)
	}
	want := "submit " + x.ID().String() + `: idempotency_conflict: key "tides-1" names an execution with another payload`
	for _, err := range []error{one, item.Err} {
		if !errors.Is(err, flowfabric.ErrIdempotencyConflict) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOutcomeCountsAttempts(t *testing.T) {
	id := flowfabric.NewExecutionID(1)
	state, _ := flowfabric.Project(flowfabric.CodeFailed)
	for n, want := range map[uint32]string{0: "after 0 attempts", 1: "after 1 attempt", 2: "after 2 attempts"} {
		got := newOutcomeError(engine.Snapshot{ID: id, State: state, Attempts: n}).Error()
		if got != "execution "+id.String()+" failed "+want {
			t.Errorf("%s", got)
		}
	}
}
