package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// alone makes calls until the engine has a connection for those that are alone.
func alone(t *testing.T, e *Engine) *loneClient {
	t.Helper()
	testwait.Until(t, "a connection for calls that are alone", func() bool {
		must.No(t, look(t.Context(), e))
		return e.lone.client.Load() != nil
	})
	return e.lone.client.Load()
}

func look(ctx context.Context, e *Engine) error {
	_, err := e.DescribePartition(ctx, 1)
	return err
}

func TestLoneCallsHaveAConnection(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t)})
	if n := strings.Count(answered(t, e, "CLIENT", "LIST"), "name=flowfabric"); n != 1 {
		t.Errorf("%d connections after it was opened", n)
	}
	c := alone(t, e)
	if n := strings.Count(answered(t, e, "CLIENT", "LIST"), "name=flowfabric"); n != 2 {
		t.Errorf("%d connections after many", n)
	}
	if first, second := e.lone.begin(&e.dials), e.lone.begin(&e.dials); first != c || second != nil {
		t.Error("two calls at once have the connection, or none")
	}
	e.lone.end()
	if e.lone.begin(&e.dials) != nil {
		t.Error("a call that another one is under way beside has the connection")
	}
	e.lone.end()
	e.lone.end()
	if e.lone.begin(&e.dials) != c {
		t.Error("the next call that is alone does not have it")
	}
	e.lone.end()
}

func TestALoneCallEndsWithItsContext(t *testing.T) {
	url := testserver.Redis(t)
	cancelled, limited, other := open(t, Config{URL: url}), open(t, Config{URL: url}), open(t, Config{URL: url})
	alone(t, cancelled)
	alone(t, limited)
	do(t, other, "CLIENT", "PAUSE", "3600000", "ALL")
	ends := func(ctx context.Context, e *Engine) {
		c := e.lone.client.Load()
		if err := look(ctx, e); !errors.Is(err, flowfabric.ErrTransport) || !errors.Is(err, ctx.Err()) {
			t.Errorf("%v: %v", ctx.Err(), err)
		}
		if e.lone.client.Load() == c {
			t.Errorf("%v: a connection that was given up is used again", ctx.Err())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	ends(ctx, cancelled)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond) // timed: the server does not answer
	defer stop()
	ends(short, limited)
}

func TestLoneCallsOutliveTheirConnection(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t)})
	for range 3 {
		c := alone(t, e)
		must.No(t, c.conn.Close())
		must.No(t, look(t.Context(), e))
		if e.lone.client.Load() == c {
			t.Error("a broken connection is kept")
		}
	}
}

func TestManyCallersAndALoneConnection(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t)})
	alone(t, e)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (n+i)%20 == 0 {
					cancel()
				}
				if err := look(ctx, e); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	e.Close()
	if err := look(t.Context(), e); !errors.Is(err, flowfabric.ErrTransport) {
		t.Errorf("after Close: %v", err)
	}
}
