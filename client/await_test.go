package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var echo = handler.Define[string, string]("echo")

// waiting runs a test on virtual time with a client over a fake store that holds one waiting execution.
func waiting(t *testing.T, test func(t *testing.T, f *fakeStore, c *Client, e *Execution[string])) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.client(t)
		e, err := Submit(t.Context(), c, echo, "hi")
		must.No(t, err)
		test(t, f, c, e)
		c.Close()
	})
}

type outcome struct {
	value string
	err   error
	took  time.Duration
	done  bool
}

func result(wg *sync.WaitGroup, ctx context.Context, e *Execution[string]) *outcome {
	o, began := &outcome{}, time.Now()
	wg.Go(func() { o.value, o.err = e.Result(ctx); o.took, o.done = time.Since(began), true })
	synctest.Wait()
	return o
}

func TestResultsShareASubscriptionAndDoNotPoll(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, c *Client, e *Execution[string]) {
		var wg sync.WaitGroup
		var waits []*outcome
		for range 5 {
			waits = append(waits, result(&wg, t.Context(), e))
		}
		if n := f.publish(e.ID(), "R2b 1"); n != 1 || f.subCalls != 1 {
			t.Errorf("%d subscriptions from %d calls for 5 waits, want 1", n, f.subCalls)
		}
		synctest.Wait()
		if f.reads != 10 {
			t.Errorf("%d reads, want two for each wait and none for a retry", f.reads)
		}
		f.end(e.ID(), codes.Completed, `"done"`)
		f.publish(e.ID(), "T1 1")
		wg.Wait()
		for _, w := range waits {
			if w.value != "done" || w.err != nil || w.took != 0 {
				t.Errorf("%+v, want done at once", w)
			}
		}
		if f.reads != 10 {
			t.Errorf("%d reads: the event says all a snapshot would", f.reads)
		}
		synctest.Wait()
		if n := f.publish(e.ID(), "T1 1"); n != 0 || len(c.waits.topics) != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

func TestResultOfAnEndedExecutionSubscribesToNothing(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
		f.end(e.ID(), codes.Completed, `"done"`)
		if v, err := e.Result(t.Context()); v != "done" || err != nil || f.subCalls != 0 || f.reads != 1 {
			t.Errorf("%q, %v after %d reads and %d subscriptions", v, err, f.reads, f.subCalls)
		}
	})
}

func TestResultSurvivesALostEvent(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
		var wg sync.WaitGroup
		w := result(&wg, t.Context(), e)
		f.end(e.ID(), codes.Completed, `"done"`) // nobody is told
		wg.Wait()
		if w.value != "done" || w.err != nil || w.took > link.Recheck+link.Recheck/10 {
			t.Errorf("%+v, want done within about %s", w, link.Recheck)
		}
	})
}

func TestResultSurvivesALostConnection(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
		var wg sync.WaitGroup
		w := result(&wg, t.Context(), e)
		f.end(e.ID(), codes.Completed, `"done"`)
		f.disconnect()
		wg.Wait()
		if w.value != "done" || w.err != nil || w.took > time.Second {
			t.Errorf("%+v, want done as soon as the subscription stands again", w)
		}
	})
}

func TestResultSurvivesAnAbsentServer(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
		f.readErr = func() error { return fmt.Errorf("%w: down", flowfabric.ErrTransport) }
		var wg sync.WaitGroup
		// timed: virtual time
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := result(&wg, t.Context(), e)
		hurried := result(&wg, ctx, e)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !errors.Is(hurried.err, context.DeadlineExceeded) || !errors.Is(hurried.err, flowfabric.ErrTransport) {
			t.Errorf("%v, want the deadline and what kept the wait from ending", hurried.err)
		}
		if w.done {
			t.Errorf("an absent server ended a wait: %v", w.err)
		}
		f.Mu.Lock()
		f.readErr = nil
		f.Mu.Unlock()
		f.end(e.ID(), codes.Completed, `"done"`)
		wg.Wait()
		if w.value != "done" || w.err != nil {
			t.Errorf("%+v, want done", w)
		}
	})
}

func TestOutcomesOfResult(t *testing.T) {
	for _, x := range []struct {
		code  codes.Code
		want  error
		state flowfabric.PublicState
		why   string
	}{
		{codes.Failed, flowfabric.ErrFailed, flowfabric.Failed, "boom"},
		{codes.CancelN, flowfabric.ErrCancelled, flowfabric.Cancelled, "no need"},
		{codes.Expired, flowfabric.ErrExpired, flowfabric.Expired, "boom"},
		{codes.SkippedN, flowfabric.ErrSkipped, flowfabric.Skipped, "boom"},
	} {
		waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
			var wg sync.WaitGroup
			w := result(&wg, t.Context(), e)
			f.end(e.ID(), x.code, "")
			f.publish(e.ID(), string(x.code)+" 1")
			wg.Wait()
			o, ok := errors.AsType[*OutcomeError](w.err)
			if !ok || !errors.Is(w.err, x.want) || o.ID != e.ID() || o.State != x.state || o.Reason != x.why ||
				o.Attempts != 1 {
				t.Errorf("%s: %v (%+v)", x.code, w.err, o)
			}
		})
	}
}

func TestResultNotFoundAndPurged(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, c *Client, e *Execution[string]) {
		if _, err := Attach(c, echo, mint.ID(1)).Result(t.Context()); !errors.Is(err,
			flowfabric.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}
		f.end(e.ID(), codes.Completed, "")
		if _, err := e.Result(t.Context()); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("%v, want ErrResultPurged", err)
		}
		raw := handler.Define[string, []byte]("echo")
		if b, err := Attach(c, raw, e.ID()).Result(t.Context()); len(b) != 0 || err != nil {
			t.Errorf("%q, %v; want an empty raw result", b, err)
		}
		f.end(e.ID(), codes.Completed, "{")
		if _, err := e.Result(t.Context()); err == nil || errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("%v, want the codec's error", err)
		}
		if b, err := c.Execution(e.ID()).Result(t.Context()); string(b) != "{" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestEndsOfAWait(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, c *Client, e *Execution[string]) {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled, closed := result(&wg, ctx, e), result(&wg, t.Context(), e)
		why := errors.New("shutting down")
		cancel(why)
		synctest.Wait()
		if !errors.Is(cancelled.err, context.Canceled) || !errors.Is(cancelled.err, why) || closed.done {
			t.Errorf("%v, other done %t", cancelled.err, closed.done)
		}
		c.Close()
		wg.Wait()
		if !errors.Is(closed.err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", closed.err)
		}
		if _, err := e.Result(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		if _, err := Submit(t.Context(), c, echo, "x"); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		if _, err := SubmitMany(t.Context(), c, echo, []string{"x"}); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

func TestCancelNamesTheState(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
		var got engine.Cancellation
		var why string
		f.cancel = func(ctx context.Context, _ flowfabric.ExecutionID, c engine.Cancellation) (bool, error) {
			note, _ := trail.Parse(strings.TrimPrefix(trail.Of(ctx), "\x1f"))
			got, why = c, note.Why
			return true, nil
		}
		if err := e.Cancel(t.Context(), flowfabric.Reason("why")); err != nil || got.Source != engine.CancelOperator ||
			why != "why" {
			t.Errorf("%v, %+v", err, got)
		}
		f.cancel = func(context.Context, flowfabric.ExecutionID, engine.Cancellation) (bool, error) {
			return false, denied.New("fake", "execution_not_active", "T2", "1", "0", "")
		}
		err := e.Cancel(t.Context(), flowfabric.Reason("why"))
		if !errors.Is(err, flowfabric.ErrTerminal) || err.Error() != "cancel "+e.ID().String()+": "+
			flowfabric.ErrTerminal.Error()+": it is failed" {
			t.Errorf("%v", err)
		}
	})
}

func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"T1 2", "T1", "R1f 1", "S1 1", "", "T1 99999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if s, awaited := parseEvent(message); s.completed && (!awaited || !strings.HasPrefix(message, "T1")) {
			t.Errorf("%q is a completion", message)
		}
	})
}
