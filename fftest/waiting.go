package fftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A wait looks whether the environment may nap: at first after little time, then after twice as much each time. No
// lease time is a multiple of these, so that the worker is not stopped in the very instant of a renewal.
const (
	firstTurn = 37 * time.Millisecond
	lastTurn  = 2368 * time.Millisecond
)

// Sleep lets virtual time pass, like time.Sleep, but an hour in which nothing is due and no handler runs costs
// nothing: the environment steps to whatever is due in its store, of whatever origin.
func (w *Env) Sleep(d time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), max(d, 0))
	defer cancel()
	for turn := firstTurn; ctx.Err() == nil; turn = min(2*turn, lastTurn) {
		idle, err := w.nap(ctx, flowfabric.ExecutionID{}, d, nil)
		switch {
		case idle.napped:
			turn = firstTurn
		case err != nil && ctx.Err() == nil:
			w.t.Fatalf("fftest: %v", err)
		default:
			pause(ctx, turn)
		}
	}
}

// await returns when an execution has ended.
func (w *Env) await(ctx context.Context, id flowfabric.ExecutionID) error {
	return w.wait(ctx, id, "ended", func(ctx context.Context) (bool, error) {
		_, err := w.client.Execution(id).Result(ctx)
		_, ended := errors.AsType[*client.OutcomeError](err)
		if ended || err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}, func(ctx context.Context) (bool, error) {
		s, err := w.client.Execution(id).Get(ctx)
		return err != nil || s.State.Terminal(), nil // the look tells what is wrong
	})
}

// until returns when a condition is met, which is looked at between turns and before a nap.
func (w *Env) until(ctx context.Context, id flowfabric.ExecutionID, met func(context.Context) (bool, error)) error {
	return w.wait(ctx, id, "come so far", func(turn context.Context) (bool, error) {
		ok, err := met(ctx)
		if !ok && err == nil {
			<-turn.Done()
		}
		return ok, err
	}, met)
}

// wait lets time pass in turns until look is satisfied, which has one turn each time. It does not nap when met says
// that look will be.
func (w *Env) wait(ctx context.Context, id flowfabric.ExecutionID, what string, look,
	met func(context.Context) (bool, error)) error {
	length := firstTurn
	for patience := w.Patience; ; length = min(2*length, lastTurn) {
		began := time.Now()
		idle, err := w.nap(ctx, id, patience, met)
		if err != nil {
			return err
		}
		if idle.napped {
			length = firstTurn
		}
		if !idle.counts {
			began = time.Now()
		}
		turn, cancel := context.WithTimeout(ctx, length)
		stop := context.AfterFunc(w.journal.weary, cancel) // a handler that is run again at once lets no time pass
		done, err := look(turn)
		stop()
		cancel()
		if done || err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if w.journal.weary.Err() != nil {
			return fmt.Errorf(
				"a handler was run more than %d times: does it return handler.Delay for ever? %s has not %s", maxRuns,
				id, what)
		}
		if patience -= time.Since(began); patience <= 0 {
			return w.impatient(ctx, id, what)
		}
	}
}

// impatient says what an execution is stuck in.
func (w *Env) impatient(ctx context.Context, id flowfabric.ExecutionID, what string) error {
	s, err := w.client.Execution(id).Get(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s has not %s after %s of virtual time: it is %s", id, what, w.Patience, s.State.Public)
	if s.Attempts > 0 {
		text += fmt.Sprintf(", attempt %d", s.Attempts)
	}
	if s.State.Public == flowfabric.Suspended {
		u, err := w.client.Execution(id).Suspension(ctx)
		if err != nil {
			return err
		}
		text += fmt.Sprintf(", and waits (%s) for somebody to answer; open waitpoints: %q", u.Reason, openOf(u))
	}
	return errors.New(text)
}

// openOf are the keys of the waitpoints of a suspension that take signals.
func openOf(u suspend.Record) (open []string) {
	for _, p := range u.Waitpoints {
		if p.Open() {
			open = append(open, p.Key)
		}
	}
	slices.Sort(open)
	return open
}

// refused is why an answer was not taken, and which waits are open.
func (w *Env) refused(ctx context.Context, id flowfabric.ExecutionID, a Answer, err error) string {
	text := fmt.Sprintf("fftest: %s: %v", a.words(), err)
	if u, failed := w.client.Execution(id).Suspension(ctx); failed == nil {
		text += fmt.Sprintf("; open waitpoints: %q", openOf(u))
	}
	return text
}

// nap stops the worker until the next due time if nothing happens before and that is far away, for at most limit,
// unless met is, which may be nil: a worker with nothing to do costs real time. id is the execution that is waited
// for, if it is one.
func (w *Env) nap(ctx context.Context, id flowfabric.ExecutionID, limit time.Duration,
	met func(context.Context) (bool, error)) (idle rest, err error) {
	if !w.enter(ctx) {
		return rest{}, nil
	}
	defer w.give()
	poked, wanted := w.poked()
	if wanted { // somebody is about to do something to the worker
		return rest{}, nil
	}
	look, err := w.outlook(ctx)
	if err != nil || !look.quiet {
		return rest{}, err
	}
	// What the worker had asked for by then may have been done between two of the reads. It is through when time has
	// passed.
	if !pause(ctx, settleTime) {
		return rest{}, nil
	}
	if look, err = w.outlook(ctx); err != nil || !look.quiet {
		return rest{}, err
	}
	counts, err := w.counts(ctx, id, look)
	if err != nil {
		return rest{}, err
	}
	until := look.due
	if end := time.Now().Add(limit); until.IsZero() || counts && end.Before(until) {
		until = end
	}
	if end, bounded := ctx.Deadline(); bounded && end.Before(until) {
		until = end
	}
	if time.Until(until) < longNap {
		return rest{}, nil
	}
	if met != nil { // since all is quiet, whatever changes it from now on ends the nap
		if now, err := met(ctx); now || err != nil {
			return rest{}, err
		}
	}
	select {
	case <-poked: // what was just submitted is about to be run by the worker
		return rest{}, nil
	default:
	}
	w.stopWorker()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-poked:
	case <-ctx.Done():
	}
	return rest{napped: true, counts: counts}, w.startWorker()
}

// enter takes the turn without a hurry: false if ctx ended before.
func (w *Env) enter(ctx context.Context) bool {
	select {
	case w.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// rest is what became of a nap; counts says that patience is used up by it.
type rest struct{ napped, counts bool }
