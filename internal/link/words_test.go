package link

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

func TestRefusalsInWords(t *testing.T) {
	id := mint.ID(1)
	for _, x := range []struct {
		verb string
		err  *flowfabric.Error
		is   error
		says string
	}{
		{"revoke", denied.New("ff_revoke_lease", "execution_not_active", "R2af", "1", "0", ""), denied.NotActive,
			"execution_not_active: nobody runs it, it is delayed"},
		{"purge", denied.New("ff_purge_execution", "execution_not_terminal", "A1"), denied.NotTerminal,
			"execution_not_terminal: it is active; cancel it first"},
		{"replay", denied.New("ff_replay_execution", "replay_not_allowed",
			"it succeeded; a success is replayed only if forced"),
			denied.ReplayNotAllowed, "replay_not_allowed: it succeeded; Force replays a success"},
		{"get", denied.New("ff_read_execution", "result_purged", "T1"), flowfabric.ErrResultPurged,
			"result_purged: it was purged; it was completed"},
		{"cancel", denied.New("ff_cancel_execution", "execution_not_active", "T2", "1", "0", ""),
			flowfabric.ErrTerminal, flowfabric.ErrTerminal.Error() + ": it is failed"},
		{"get", denied.New("ff_read_execution", "execution_not_found"), flowfabric.ErrNotFound,
			denied.New("ff_read_execution", "execution_not_found").Error()},
	} {
		err := Operated(x.verb, id, x.err)
		if want := x.verb + " " + id.String() + ": " + x.says; !errors.Is(err, x.is) || err.Error() != want ||
			denied.ClassOf(err) != denied.ClassOf(x.is) || flowfabric.CodeOf(err) != flowfabric.CodeOf(x.is) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if Operated("get", id, nil) != nil {
		t.Error("nil is no error")
	}
}
