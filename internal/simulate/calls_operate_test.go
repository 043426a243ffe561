package simulate

import (
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func (w *world) tick(who string, p uint16, ask, leave bool) (out engine.TickReply, err error) {
	err = w.call(p, who, fmt.Sprintf("ticks %d", p), func() (string, error) {
		var r engine.TickReply
		var err error
		if ask {
			r, err = w.e.AskTick(w.ctx, p, who)
		} else {
			r, err = w.e.Tick(w.ctx, p, who, leave)
		}
		out = r
		return fmt.Sprintf("owner %t, more %t, next %s, %d in the outbox, %d schedules", r.Owner, r.More, r.Next,
			r.Outbox,
			r.Schedules), err
	})
	return out, err
}

// lossy is the engine as delivering sees it.
type lossy struct {
	*engine.Engine
	w   *world
	who string
}

func (l lossy) TrimOutbox(ctx context.Context, p uint16, entries []string) (left int, err error) {
	err = l.w.call(p, l.who, fmt.Sprintf("trims %d of outbox %d", len(entries), p), func() (string, error) {
		n, err := l.Engine.TrimOutbox(ctx, p, entries)
		left = n
		return "", err
	})
	return left, err
}

func (l lossy) TellWaiters(ctx context.Context, p uint16, items []engine.AwaitedEnd) (told int, err error) {
	err = l.w.call(p, l.who, fmt.Sprintf("tells waiters in %d", p), func() (string, error) {
		n, err := l.Engine.TellWaiters(ctx, p, items)
		told = n
		return "", err
	})
	return told, err
}

func (l lossy) NoteWaiters(ctx context.Context, p uint16, items []engine.Awaiting, look bool) (out []engine.Awaited,
	err error) {
	err = l.w.call(p, l.who, fmt.Sprintf("asks about others in %d", p), func() (string, error) {
		list, err := l.Engine.NoteWaiters(ctx, p, items, look)
		out = list
		return "", err
	})
	return out, err
}

func (l lossy) BringEvent(ctx context.Context, x *engine.Published, to engine.EventResume) error {
	return l.w.call(to.Execution.Partition(), l.who, fmt.Sprintf("brings event %s to %s", x.ID, short(to.Execution)),
		func() (string, error) { return "", l.Engine.BringEvent(ctx, x, to) })
}

func (l lossy) ForgetExpected(ctx context.Context, p uint16, items []engine.Expected) (n int, err error) {
	err = l.w.call(p, l.who, fmt.Sprintf("forgets %d waits for events in %d", len(items), p), func() (string, error) {
		out, err := l.Engine.ForgetExpected(ctx, p, items)
		n = out
		return "", err
	})
	return n, err
}

func (w *world) deliver(who string, p uint16) {
	if _, err := admit.Deliver(w.ctx, lossy{w.e, w, who}, p); err != nil && !errors.Is(err, errLost) {
		w.wrong("deliver the outbox of %d: %v", p, err)
	}
	w.touched = [partitions]bool{true, true}
}

// asked makes a call of an operator about an execution.
func (w *world) asked(who, what string, id flowfabric.ExecutionID, do func() (bool, error)) error {
	return w.call(id.Partition(), who, what+" "+short(id), func() (string, error) { return already(do()) })
}

func (w *world) hold(who string, id flowfabric.ExecutionID) error {
	return w.asked(who, "holds", id, func() (bool, error) { return w.e.HoldExecution(w.ctx, id) })
}

func (w *world) unhold(who string, id flowfabric.ExecutionID) error {
	return w.asked(who, "lets go", id, func() (bool, error) { return w.e.UnholdExecution(w.ctx, id) })
}

func (w *world) prioritise(who string, id flowfabric.ExecutionID, priority int) error {
	return w.asked(who, "prioritises", id, func() (bool, error) {
		_, _, err := w.e.ChangePriority(w.ctx, id, priority)
		return false, err
	})
}

func (w *world) postpone(who string, id flowfabric.ExecutionID, q engine.DelayChange) error {
	return w.asked(who, "postpones", id, func() (bool, error) { return w.e.SetDelay(w.ctx, id, q) })
}

func (w *world) revoke(who string, id flowfabric.ExecutionID) error {
	return w.asked(who, "revokes", id,
		func() (bool, error) { return w.e.RevokeLease(w.ctx, id, "") })
}

func (w *world) resume(who string, id flowfabric.ExecutionID, q engine.ResumeRequest) error {
	return w.asked(who, "resumes", id, func() (bool, error) {
		return w.e.ResumeExecution(trail.As(w.ctx, who, ""),
			id, q)
	})
}

func (w *world) tag(who string, id flowfabric.ExecutionID, value string) error {
	return w.asked(who, "tags", id,
		func() (bool, error) { return false, w.e.SetTags(w.ctx, id, map[string]string{"team.name": value}, nil) })
}

func (w *world) replay(who string, id flowfabric.ExecutionID, q engine.Replay) error {
	return w.asked(who, "replays", id, func() (bool, error) {
		was, err := w.e.ReplayExecution(w.ctx, id, q)
		if err == nil && !was {
			w.replayed(id)
			if q.DropSteps {
				w.forgotten(id)
			}
		}
		return was, err
	})
}

func (w *world) kill(who string, p uint16, session string) error {
	return w.call(p, who, fmt.Sprintf("declares %s dead in %d", session, p), func() (string, error) {
		return already(w.e.MarkSessionDead(trail.As(w.ctx, "", "simulated"), p, session))
	})
}

func (w *world) putSchedule(who string, q engine.SchedulePut) error {
	return w.call(w.e.SchedulePartition(q.Name), who, "schedules "+q.Name, func() (string, error) {
		out, err := w.e.PutSchedule(trail.As(w.ctx, who, ""), q)
		return already(out.Already, err)
	})
}

func (w *world) pauseSchedule(who, name string, paused bool) error {
	return w.call(w.e.SchedulePartition(name), who, fmt.Sprintf("pauses %s: %t", name, paused), func() (string, error) {
		_, was, err := w.e.PauseSchedule(trail.As(w.ctx, who, ""), name, paused, nil)
		return already(was, err)
	})
}

func (w *world) removeSchedule(who, name string) error {
	return w.call(w.e.SchedulePartition(name), who, "removes "+name, func() (string, error) {
		return already(w.e.RemoveSchedule(w.ctx, name, nil))
	})
}

func (w *world) due(p uint16) (engine.SchedulePage, error) {
	return w.e.Schedules(w.ctx, p, engine.ScheduleQuery{Due: true})
}

// fireSchedule makes a step of a schedule. An instant makes an execution once, whoever fires it.
func (w *world) fireSchedule(who string, p uint16, f engine.Firing) error {
	return w.call(p, who, "fires "+f.Name, func() (string, error) {
		out, err := w.e.FireSchedule(w.ctx, f)
		if err != nil || out.Already {
			return already(out.Already, err)
		}
		if out.Outcome == engine.FireCreated {
			if w.of[f.Item.ID] != nil {
				w.wrong("%s fired %s twice", f.Name, f.At)
			}
			w.created(f.Item.ID).lone = true
		}
		return string(out.Outcome), nil
	})
}
