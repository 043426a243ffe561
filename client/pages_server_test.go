package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/clienttest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestAResultIsReadWithoutWaiting(t *testing.T) {
	clienttest.OnServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := clienttest.Submit(ctx, t, c, "tides")
		if _, err := x.ResultNow(ctx); !errors.Is(err, denied.NotTerminal) {
			t.Errorf("it waits: %v", err)
		}
		clienttest.Finish(ctx, t, e, x.ID(), "wet")
		if v, err := x.ResultNow(ctx); err != nil || v.Text != "wet" {
			t.Errorf("%+v, %v", v, err)
		}
		failed := clienttest.Submit(ctx, t, c, "tides", flowfabric.Retries(0))
		if _, err := e.FailExecution(ctx, clienttest.Claim(ctx, t, e, failed.ID()).Fence,
			engine.Failure{Category: "io", Reason: "boom"}); err != nil {
			t.Fatal(err)
		}
		if _, err := failed.ResultNow(ctx); !errors.Is(err, flowfabric.ErrFailed) {
			t.Errorf("it failed: %v", err)
		}
		if _, err := client.Attach(c, clienttest.Write, mint.ID(0)).ResultNow(ctx); !errors.Is(err,
			flowfabric.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

func TestFramesAreReadInPages(t *testing.T) {
	clienttest.OnServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := clienttest.Submit(ctx, t, c, "tides")
		if page, err := c.Execution(x.ID()).Frames(ctx, 1, stream.Range{}); err != nil || len(page) != 0 {
			t.Errorf("before it began: %v, %v", page, err)
		}
		held := clienttest.Claim(ctx, t, e, x.ID())
		var frames []stream.Frame
		for i := range 25 {
			frames = append(frames, stream.Frame{Type: "token", Payload: fmt.Append(nil, i)})
		}
		if _, err := e.AppendFrames(ctx, held.Fence, 1, frames); err != nil {
			t.Fatal(err)
		}
		var after stream.Cursor
		for read := 0; ; {
			page, err := c.Execution(x.ID()).Frames(ctx, 1, stream.Range{After: after, Limit: 10})
			must.No(t, err)
			for _, f := range page {
				if string(f.Payload) != fmt.Sprint(read) {
					t.Errorf("frame %d is %q", read, f.Payload)
				}
				read, after = read+1, f.ID
			}
			if len(page) == 0 {
				if read != 25 {
					t.Errorf("%d frames", read)
				}
				break
			}
		}
		all, err := c.Execution(x.ID()).Frames(ctx, 1, stream.Range{})
		must.No(t, err)
		for _, tc := range []struct{ after, until, first, n int }{{-1, 0, 0, 1}, {-1, 24, 0, 25}, {4, 9, 5, 5},
			{20, 24, 21, 4}, {9, 9, 0, 0}, {9, 4, 0, 0}} {
			in := stream.Range{Until: all[tc.until].ID}
			if tc.after >= 0 {
				in.After = all[tc.after].ID
			}
			page, err := c.Execution(x.ID()).Frames(ctx, 1, in)
			if err != nil || len(page) != tc.n || tc.n > 0 && string(page[0].Payload) != fmt.Sprint(tc.first) {
				t.Errorf("%+v: %d frames, %v", tc, len(page), err)
			}
		}
		if s, err := c.Execution(x.ID()).SummaryOf(ctx, 1); err != nil || s.StreamBytes != 10+15*2 || s.Version != 0 {
			t.Errorf("summary: %+v, %v", s, err)
		}
		for _, limit := range []int{-1, 10001} {
			if _, err := c.Execution(x.ID()).Frames(ctx, 1, stream.Range{Limit: limit}); !errors.Is(err,
				flowfabric.ErrInvalidInput) {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
		if _, err := c.Execution(mint.ID(0)).Frames(ctx, 1, stream.Range{}); !errors.Is(err,
			flowfabric.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

func TestTheSignalLogIsReadInPages(t *testing.T) {
	b := clienttest.NewBooth(t).Seed()
	x, token := b.Park(time.Hour)
	must.No(t, b.Signal(token))
	points, err := b.Client.Execution(x.ID()).Waitpoints(b.Ctx)
	if err != nil || len(points) == 0 {
		t.Fatalf("%v, %v", points, err)
	}
	page, total, err := b.Client.Execution(x.ID()).SignalLog(b.Ctx, points[0].ID, 0)
	if err != nil || total != 1 || len(page) != 1 || page[0].Waitpoint != points[0].ID {
		t.Errorf("%+v of %d, %v", page, total, err)
	}
	if page, total, err := b.Client.Execution(x.ID()).SignalLog(b.Ctx, points[0].ID, 1); err != nil || total != 1 ||
		len(page) != 0 {
		t.Errorf("behind the end: %+v of %d, %v", page, total, err)
	}
	if _, _, err := b.Client.Execution(x.ID()).SignalLog(b.Ctx, mint.UUID(), 0); !errors.Is(err, denied.NoWaitpoint) {
		t.Errorf("nobody's waitpoint: %v", err)
	}
	if _, _, err := b.Client.Execution(x.ID()).SignalLog(b.Ctx, points[0].ID, -1); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("offset -1: %v", err)
	}
}
