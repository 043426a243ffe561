package client

import (
	"context"
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func (f *fakeStore) ReadAttemptStream(_ context.Context, id flowfabric.ExecutionID,
	_ uint32) (engine.StreamMeta, error) {
	s, err := f.ReadExecution(context.Background(), id)
	return engine.StreamMeta{Attempts: s.Attempts}, err
}

func (f *fakeStore) ReadSummary(_ context.Context, _ flowfabric.ExecutionID, attempt uint32) (stream.Summary, error) {
	return stream.Summary{Attempt: attempt, Version: 1}, f.ask("summary")
}

func TestSummaryOfWhichAttempt(t *testing.T) {
	f := newFake()
	c := f.client(t)
	ctx := t.Context()
	id := mint.ID(1)
	if _, err := c.Execution(id).Summary(ctx); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	f.end(id, codes.Completed, "")
	ended := f.ended[id]
	ended.Attempts = 3
	f.ended[id] = ended
	if s, err := c.Execution(id).Summary(ctx); err != nil || s.Attempt != 3 {
		t.Errorf("%+v, %v, want the newest", s, err)
	}
	if _, err := c.Execution(id).SummaryOf(ctx, 0); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("of attempt 0: %v", err)
	}
	for want := uint32(1); want <= 3; want++ {
		s, err := c.Execution(id).SummaryOf(ctx, want)
		if err != nil || s.Attempt != want || s.Version != 1 {
			t.Errorf("%+v, %v, want attempt %d", s, err, want)
		}
	}
	c.Close()
	if _, err := c.Execution(id).Summary(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// ReadLog and ReadSignals answer nothing.
func (f *fakeStore) ReadLog(context.Context, engine.LogRange) ([]stream.Frame, error) {
	return nil, nil
}

func (f *fakeStore) ReadSignals(context.Context, flowfabric.ExecutionID, flowfabric.UUID,
	int) ([]suspend.StoredSignal, int, error) {
	return nil, 0, nil
}
