package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// byID is every method about one execution, by the verb its errors begin with.
func byID(a *Admin) map[string]func(context.Context, flowfabric.ExecutionID) error {
	return map[string]func(context.Context, flowfabric.ExecutionID) error{
		"explain": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_,
				err := a.Why(ctx, id)
			return err
		},
		"history of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_,
				err := a.History(ctx, id)
			return err
		},
		"replay": func(ctx context.Context, id flowfabric.ExecutionID) error {
			return a.Replay(ctx, id, Replay{})
		},
		"revoke": func(ctx context.Context, id flowfabric.ExecutionID) error { return a.Revoke(ctx, id, "") },
		"purge":  func(ctx context.Context, id flowfabric.ExecutionID) error { return a.Purge(ctx, id, 0) },
		"hold":   func(ctx context.Context, id flowfabric.ExecutionID) error { return a.Hold(ctx, id) },
		"unhold": func(ctx context.Context, id flowfabric.ExecutionID) error { return a.Unhold(ctx, id) },
		"set tags of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			return a.SetTags(ctx, id, nil, nil)
		},
		"set priority of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			return a.SetPriority(ctx, id, 1)
		},
		"resume": func(ctx context.Context, id flowfabric.ExecutionID) error {
			return a.Resume(ctx, id, Resume{}, flowfabric.By("anna"))
		},
		"reissue token of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := a.ReissueToken(ctx, id, flowfabric.UUID(known), flowfabric.By("anna"))
			return err
		},
	}
}

// An Admin of a closed client says so before it looks at anything else, and asks nobody.
func TestEveryCallAfterClose(t *testing.T) {
	f := newFake()
	a := f.admin(t)
	a.conn.Closed = func() error { return client.ErrClosed }
	ctx, id := t.Context(), mint.ID(1)
	for verb, call := range byID(a) {
		if err := call(ctx, id); !errors.Is(err, client.ErrClosed) ||
			err.Error() != fmt.Sprintf("%s %s: the client is closed", verb, id) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(ctx, flowfabric.ExecutionID{}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s, no id: %v", verb, err)
		}
	}
	for what, call := range map[string]func() error{
		"priority":  func() error { return a.SetPriority(ctx, id, -1) },
		"tombstone": func() error { return a.Purge(ctx, id, 1) },
		"keys":      func() error { _, err := a.TokenKeys(ctx); return err },
		"rotate":    func() error { _, err := a.RotateTokenKeys(ctx, Rotation{Grace: -1}); return err },
		"workers":   func() error { _, err := a.Workers(ctx); return err },
		"dead":      func() error { _, err := a.MarkWorkerDead(ctx, ""); return err },
		"set lane":  func() error { return a.SetLane(ctx, "", LaneChange{}) },
		"list":      func() error { _, err := a.ListPage(ctx, Filter{Lane: "{"}, "", -1); return err },
		"replay a flow": func() error {
			_, err := a.ReplayFlow(ctx, flowfabric.FlowID{}, FlowReplay{})
			return err
		},
	} {
		if err := call(); !errors.Is(err, client.ErrClosed) || denied.ClassOf(err) != 0 {
			t.Errorf("%s: %v, want ErrClosed", what, err)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the server was asked %v", f.asked)
	}
}

func TestTheZeroIDIsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	for verb, call := range byID(f.admin(t)) {
		err := call(t.Context(), flowfabric.ExecutionID{})
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.HasPrefix(err.Error(), verb+": ") ||
			!strings.HasSuffix(err.Error(), "the execution id is empty") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the server was asked %v", f.asked)
	}
}
