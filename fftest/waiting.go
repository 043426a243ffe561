package fftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// A wait looks whether the world may nap: at first after little time, then after twice as much each time. No lease time
// is a multiple of these, so that the worker is not stopped in the very instant of a renewal.
const (
	firstTurn = 37 * time.Millisecond
	lastTurn  = 2368 * time.Millisecond
)

// Sleep lets virtual time pass, like time.Sleep, but an hour in which all executions wait costs nothing.
func (w *World) Sleep(d time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), max(d, 0))
	defer cancel()
	for turn := firstTurn; ctx.Err() == nil; turn = min(2*turn, lastTurn) {
		idle, err := w.nap(ctx, d, nil)
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
func (w *World) await(ctx context.Context, id flowfabric.ExecutionID) error {
	err := w.wait(ctx, id, "ended", func(ctx context.Context) (bool, error) {
		_, err := w.client.RawResult(ctx, id)
		_, ended := errors.AsType[*client.OutcomeError](err)
		if ended || err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}, nil)
	if err == nil {
		w.forget(id)
	}
	return err
}

// until returns when a condition is met, which is looked at between turns and before a nap.
func (w *World) until(ctx context.Context, id flowfabric.ExecutionID, met func(context.Context) (bool, error)) error {
	return w.wait(ctx, id, "come so far", func(turn context.Context) (bool, error) {
		ok, err := met(ctx)
		if !ok && err == nil {
			<-turn.Done()
		}
		return ok, err
	}, met)
}

// wait lets time pass in turns until look is satisfied, which has one turn each time. It does not nap when met says that
// look will be.
func (w *World) wait(ctx context.Context, id flowfabric.ExecutionID, what string, look, met func(context.Context) (bool, error)) error {
	length := firstTurn
	for patience := w.Patience; ; length = min(2*length, lastTurn) {
		began := time.Now()
		idle, err := w.nap(ctx, patience, met)
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
			return fmt.Errorf("a handler was run more than %d times: does it return handler.Delay for ever? %s has not %s", maxPasses, id, what)
		}
		if patience -= time.Since(began); patience <= 0 {
			return w.impatient(ctx, id, what)
		}
	}
}

// impatient says what an execution is stuck in.
func (w *World) impatient(ctx context.Context, id flowfabric.ExecutionID, what string) error {
	s, err := w.client.Get(ctx, id)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s has not %s after %s of virtual time: it is %s, attempt %d", id, what, w.Patience, s.State.Public, s.Attempts)
	if s.State.Public == flowfabric.Suspended {
		u, err := w.client.Suspension(ctx, id)
		if err != nil {
			return err
		}
		var open []string
		for _, p := range u.Waitpoints {
			if p.State.Open() {
				open = append(open, p.Key)
			}
		}
		slices.Sort(open)
		text += fmt.Sprintf(", and waits (%s) for somebody to answer; open waitpoints: %q", u.Reason, open)
	}
	return errors.New(text)
}

// outlook is when something happens to the open executions by itself.
type outlook struct {
	quiet bool      // nothing does before due
	due   time.Time // zero: never
}

// nap stops the worker until the next due time if all that is open waits for one and that is far away, or for somebody to
// answer, for at most limit, unless met is, which may be nil: a worker with nothing to do costs real time.
func (w *World) nap(ctx context.Context, limit time.Duration, met func(context.Context) (bool, error)) (idle rest, err error) {
	w.mu.Lock()
	poked := w.poke // before looking: what changes afterwards must end the nap
	w.mu.Unlock()
	look, err := w.outlook(ctx)
	if err != nil || !look.quiet {
		return rest{}, err
	}
	until := look.due
	if until.IsZero() {
		until = time.Now().Add(limit)
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
	w.turn <- struct{}{}
	defer w.give()
	w.stopWorker()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-poked:
	case <-ctx.Done():
	}
	return rest{napped: true, counts: look.due.IsZero()}, w.startWorker()
}

// rest is what became of a nap; counts says that patience is used up by it.
type rest struct{ napped, counts bool }

// outlook looks at all open executions.
func (w *World) outlook(ctx context.Context) (o outlook, err error) {
	w.mu.Lock()
	ids, broken := slices.Clone(w.open), w.broken
	for at := range w.dues {
		o.sooner(at)
	}
	w.mu.Unlock()
	if broken != nil {
		return o, fmt.Errorf("the worker could not go on: %w", broken)
	}
	for i := 0; i < len(ids); i++ { // children are added behind
		id := ids[i]
		s, err := w.client.Get(ctx, id)
		if err != nil {
			return outlook{}, err
		}
		times := []time.Time{s.DeadlineAt}
		switch s.State.Public {
		case flowfabric.Delayed:
			times = append(times, s.DelayUntil)
		case flowfabric.Suspended:
			u, err := w.client.Suspension(ctx, id)
			if err != nil {
				return outlook{}, err
			}
			times = append(times, u.TimeoutAt)
		case flowfabric.WaitingChildren:
			children, err := w.children(ctx, id)
			if err != nil {
				return outlook{}, err
			}
			for _, child := range children {
				if !slices.Contains(ids, child) {
					ids = append(ids, child)
				}
			}
		case flowfabric.Waiting, flowfabric.RateLimited:
			opens, closed, err := w.reopens(ctx, s)
			if err != nil || !closed {
				return outlook{}, err
			}
			times = append(times, opens)
		default:
			if !s.State.Terminal() {
				return outlook{}, nil
			}
			w.forget(id)
			continue
		}
		o.quiet = true
		for _, at := range times {
			o.sooner(at)
		}
	}
	return o, nil
}

// reopens tells whether an execution waits for a budget or quota that has closed its route, and until when; zero: until somebody makes
// room. A budget is asked every 30 s whether it has room, which is the more often the longer it has none: it opens with its next period.
func (w *World) reopens(ctx context.Context, s engine.Snapshot) (opens time.Time, closed bool, err error) {
	if len(s.Route.Gates) == 0 {
		return opens, false, nil
	}
	p, route := keys.Of(s.ID.Partition()), strconv.FormatUint(s.Route.ID, 10)
	closings, err := w.hash(ctx, p.Closings())
	why := strings.Fields(closings[route])
	if err != nil || len(why) < 2 {
		return opens, false, err
	}
	if n, err := w.entries(ctx, p.Outbox()); err != nil || n > 0 { // it may be what makes room
		return opens, false, err
	}
	switch why[0] {
	case "budget_not_found", "quota_policy_not_found":
		return opens, true, nil
	case "budget":
		root := keys.BudgetRoot(flowfabric.GatePartition(why[1], flowfabric.DefaultBudgetPartitions))
		b, err := w.hash(ctx, keys.Partition(root).Budget(why[1]))
		if err != nil || b["nx"] == "" {
			return opens, true, err
		}
		ms, err := strconv.ParseInt(b["nx"], 10, 64)
		return time.UnixMilli(ms), true, err
	}
	return w.score(ctx, p.Closed(), route)
}

// children lists those that an execution waits for.
func (w *World) children(ctx context.Context, id flowfabric.ExecutionID) (ids []flowfabric.ExecutionID, err error) {
	hash, err := w.hash(ctx, keys.Of(id.Partition()).Children(id.UUID()))
	if err != nil {
		return nil, err
	}
	for name := range hash { // one name is that of the wait
		if child, err := flowfabric.ParseUUID(name); err == nil {
			ids = append(ids, flowfabric.MakeExecutionID(id.Partition(), child))
		}
	}
	return ids, nil
}

// sooner moves due to a time, if there is one and it is earlier.
func (o *outlook) sooner(at time.Time) {
	if !at.IsZero() && (o.due.IsZero() || at.Before(o.due)) {
		o.due = at
	}
}
