package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// errLost is what a caller sees of a call that was lost, or whose answer was.
var errLost = errors.New("no answer")

// calls is the way of all calls to the engine: what goes wrong there, and the journal of it. All calls of the engine
// are in this file and in calls_operate_test.go.
type calls struct {
	faults  int // in a hundred calls, of each kind; 0 none
	late    []late
	journal []string
	hash    hash.Hash
}

// late is a copy of a call that is still under way.
type late struct {
	turns int
	what  string
	call  func() (string, error)
}

func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf("%4d %9.3f ", w.steps, w.now.Sub(time.UnixMilli(begin)).Seconds()) + fmt.Sprintf(format,
		args...)
	w.journal = append(w.journal, line)
	fmt.Fprintln(w.hash, line)
}

// call carries a call out, unless it is lost on its way. do returns what the journal says of the answer.
func (w *world) call(p uint16, who, what string, do func() (string, error)) error {
	what = who + " " + what
	if w.faults > 0 {
		switch n := w.r.IntN(100); {
		case n < w.faults:
			w.log("%s: lost", what)
			return errLost
		case n < 2*w.faults:
			_ = w.carry(p, what, "answer lost: ", do)
			return errLost
		case n < 3*w.faults:
			w.late = append(w.late, late{w.r.IntN(8), what, do})
		}
	}
	return w.carry(p, what, "", do)
}

func (w *world) carry(p uint16, what, mark string, do func() (string, error)) error {
	w.touched[p] = true
	answer, err := do()
	if err != nil {
		answer = cmp.Or(flowfabric.CodeOf(err), err.Error())
	}
	w.log("%s: %s%s", what, mark, cmp.Or(answer, "ok"))
	if err != nil && (flowfabric.CodeOf(err) == "" || errors.Is(err, denied.Script) || errors.Is(err, denied.Reply) ||
		errors.Is(err, flowfabric.ErrInvalidInput) || errors.Is(err, flowfabric.ErrCorrupt)) {
		w.wrong("%s: %v", what, err)
	}
	return err
}

// arrive carries out the copies of calls that were under way long enough.
func (w *world) arrive() {
	kept := w.late[:0]
	for _, l := range w.late {
		if l.turns--; l.turns > 0 {
			kept = append(kept, l)
			continue
		}
		w.touched = [partitions]bool{true, true}
		_ = w.carry(0, l.what, "again, late: ", l.call)
	}
	w.late = kept
}

// short is what the journal calls an execution.
func short(id [18]byte) string { return fmt.Sprintf("%d.%.8s", id[1], ids.UUID(id)) }

func already(yes bool, err error) (string, error) {
	if yes {
		return "already", err
	}
	return "", err
}

func (w *world) create(who string, x engine.NewExecution, how string) error {
	p := x.ID.Partition()
	return w.call(p, who, "submits "+short(x.ID)+how, func() (string, error) {
		out, err := w.e.CreateExecutions(w.ctx, p, []engine.NewExecution{x})
		if err == nil {
			err = out[0].Err
		}
		if err != nil {
			return "", err
		}
		w.created(out[0].ID).lone = true
		if out[0].ID != x.ID {
			return "is " + short(out[0].ID), nil
		}
		return already(out[0].Duplicate, nil)
	})
}

func (w *world) createFlow(who string, q engine.NewFlow) error {
	return w.call(q.ID.Partition(), who, "creates flow "+short(q.ID)+" "+string(q.Mode), func() (string, error) {
		out, err := w.e.CreateFlow(w.ctx, q)
		if err == nil {
			w.flow(q.ID)
			w.joined(q.Members)
		}
		return already(out.Already, err)
	})
}

func (w *world) stageFlow(who string, id flowfabric.FlowID, members []engine.FlowMember) error {
	return w.call(id.Partition(), who, "stages in "+short(id), func() (string, error) {
		out, err := w.e.StageFlow(w.ctx, id, nil, members)
		if err == nil {
			w.joined(members)
		}
		return already(out.Already, err)
	})
}

func (w *world) sealFlow(who string, id flowfabric.FlowID, members, edges int) error {
	return w.call(id.Partition(), who, "seals "+short(id), func() (string, error) {
		_, _, err := w.e.SealFlow(w.ctx, id, engine.SealClosed, members, edges)
		return "", err
	})
}

func (w *world) cancelFlow(who string, id flowfabric.FlowID, policy flowfabric.CancellationPolicy) error {
	return w.call(id.Partition(), who, "cancels flow "+short(id)+" "+string(policy), func() (string, error) {
		out, err := w.e.CancelFlow(w.ctx, id, policy)
		return already(out.Already, err)
	})
}

func (w *world) cancel(who string, id flowfabric.ExecutionID, f *flowfabric.Fence) error {
	return w.call(id.Partition(), who, "cancels "+short(id), func() (string, error) {
		c := engine.Cancellation{Source: engine.CancelOperator}
		if f != nil {
			c = engine.Cancellation{Source: engine.CancelOwner, Fence: f}
		}
		was, err := w.e.CancelExecution(w.ctx, id, c)
		if err == nil && !was {
			if f != nil {
				w.fenced(*f, "cancelled")
			}
			w.ended(id)
		}
		return already(was, err)
	})
}

func (w *world) signal(who string, at point, s suspend.SentSignal) error {
	return w.call(at.id.Partition(), who, "signals "+short(at.id), func() (string, error) {
		out, err := w.e.DeliverSignal(w.ctx, at.id, at.ID, at.Digest, s)
		return string(out.Effect), err
	})
}

func (w *world) approve(who string, at point, s suspend.SentSignal) error {
	return w.call(at.id.Partition(), who, "approves "+short(at.id), func() (string, error) {
		out, err := w.e.ApproveWaitpoint(w.ctx, at.id, at.ID.String(), s)
		return string(out.Effect), err
	})
}

func (w *world) message(who string, id flowfabric.ExecutionID, m engine.Message) error {
	return w.call(id.Partition(), who, "writes to "+short(id), func() (string, error) {
		out, err := w.e.SendMessage(w.ctx, id, m)
		return already(out.Already, err)
	})
}

// claim asks for work; reply is what came, if an answer did.
func (w *world) claim(who string, q engine.ClaimRequest) (reply engine.ClaimReply, err error) {
	if w.askers != nil {
		return w.asker(who).ClaimNext(w.ctx, q)
	}
	return lossy{w.e, w, who}.ClaimNext(w.ctx, q)
}

func (l lossy) ClaimNext(_ context.Context, q engine.ClaimRequest) (reply engine.ClaimReply, err error) {
	w := l.w
	err = w.call(q.Partition, l.who, fmt.Sprintf("claims in %d as %s #%d", q.Partition, q.Session, q.Number),
		func() (string, error) {
			r, err := w.e.ClaimNext(w.ctx, q)
			if err != nil {
				return "", err
			}
			reply = r
			text := fmt.Sprintf("%d routes,", len(r.Routes))
			for _, c := range r.Claims {
				w.claimed(c, r.Duplicate)
				text += fmt.Sprintf(" %s %s@%d", c.Type, short(c.Fence.Execution), c.Fence.Epoch)
			}
			if r.Duplicate {
				text += ", as before"
			}
			return text, nil
		})
	return reply, err
}

func (w *world) subscribe(who string, p uint16, classes []uint64) (digest string, err error) {
	err = w.call(p, who, fmt.Sprintf("serves %d in %d", classes, p), func() (string, error) {
		digest, err = w.e.SetSubscription(w.ctx, p, engine.Subscription{Classes: classes,
			Namespaces: []string{namespace}})
		return "", err
	})
	return digest, err
}

func (w *world) renew(who string, p uint16, session string, ttl time.Duration,
	processed uint64) (out engine.Renewal, err error) {
	err = w.call(p, who, fmt.Sprintf("renews %s in %d", session, p), func() (string, error) {
		r, err := w.e.RenewSession(w.ctx, p, session, ttl, processed)
		out = r
		return fmt.Sprintf("%d lost", len(r.Lost)), err
	})
	return out, err
}

func (w *world) closeSession(who string, p uint16, session string) error {
	return w.call(p, who, fmt.Sprintf("closes %s in %d", session, p), func() (string, error) {
		return "", w.e.CloseSession(w.ctx, p, session)
	})
}

// held makes a call of a holder, whose writes only the newest claim allows.
func (w *world) held(who, what string, f flowfabric.Fence, do func() (bool, error)) error {
	return w.call(f.Execution.Partition(), who, fmt.Sprintf("%s %s@%d", what, short(f.Execution), f.Epoch),
		func() (string, error) {
			was, err := do()
			if err == nil && !was {
				w.fenced(f, what)
			}
			return already(was, err)
		})
}

func (w *world) complete(who string, f flowfabric.Fence, result string) error {
	return w.held(who, "completes", f, func() (bool, error) {
		out, _, err := w.e.CompleteExecutions(w.ctx, f.Execution.Partition(),
			[]engine.Completion{{Fence: f, Result: []byte(result)}}, nil)
		if err == nil {
			err = out[0].Err
		}
		if err != nil {
			return false, err
		}
		if !out[0].Already {
			w.ended(f.Execution)
		}
		return out[0].Already, nil
	})
}

func (w *world) fail(who string, f flowfabric.Fence, q engine.Failure) error {
	return w.held(who, "fails", f, func() (bool, error) {
		out, err := w.e.FailExecution(w.ctx, f, q)
		if err == nil && !out.Already && !out.Retry {
			w.ended(f.Execution)
		}
		return out.Already, err
	})
}

func (w *world) delay(who string, f flowfabric.Fence, d time.Duration) error {
	return w.held(who, "delays", f, func() (bool, error) { return w.e.DelayExecution(w.ctx, f, d, "") })
}

func (w *world) release(who string, f flowfabric.Fence) error {
	return w.held(who, "releases", f, func() (bool, error) { return w.e.ReleaseExecution(w.ctx, f) })
}

func (w *world) goOn(who string, f flowfabric.Fence, input string) error {
	return w.held(who, "continues", f, func() (bool, error) {
		was, err := w.e.ContinueExecution(w.ctx, f, []byte(input))
		if err == nil && !was {
			w.forgotten(f.Execution)
		}
		return was, err
	})
}

func (w *world) step(who string, f flowfabric.Fence, name, value string) error {
	return w.held(who, "records "+name+" of", f, func() (bool, error) {
		was, err := w.e.RecordStep(w.ctx, f, name, []byte(value), 0)
		if err == nil {
			w.recorded(f.Execution, name, value)
		}
		return was, err
	})
}

func (w *world) progress(who string, f flowfabric.Fence, percent int) error {
	return w.held(who, "reports progress of", f,
		func() (bool, error) { return false, w.e.UpdateProgress(w.ctx, f, percent, "") })
}

func (w *world) frames(who string, f flowfabric.Fence, first uint64, frames []stream.Frame) error {
	return w.held(who, fmt.Sprintf("appends from %d to", first), f, func() (bool, error) {
		out, err := w.e.AppendFrames(w.ctx, f, first, frames)
		return out.Duplicate, err
	})
}

func (w *world) offer(who string, f flowfabric.Fence, name string, m engine.Minted) error {
	return w.held(who, "opens a waitpoint of", f, func() (bool, error) {
		out, err := w.e.CreatePendingWaitpoint(w.ctx, f, name, m, time.Hour)
		if err == nil {
			w.pointed(f.Execution, m)
		}
		return err == nil && out.ID != m.ID, err
	})
}

// wait suspends; satisfied tells that early signals suffice.
func (w *world) wait(who string, f flowfabric.Fence, q engine.Suspension) (satisfied bool, err error) {
	err = w.held(who, "suspends", f, func() (bool, error) {
		out, err := w.e.SuspendExecution(w.ctx, f, q)
		if err == nil {
			for _, b := range q.Bindings {
				w.pointed(f.Execution, b.Minted)
			}
		}
		satisfied = out.Satisfied
		return out.Already || out.Satisfied, err
	})
	return satisfied, err
}

// children makes children of a held execution; over tells that its wait for them is over already.
func (w *world) children(who string, f flowfabric.Fence, q engine.ChildWait) (over bool, err error) {
	err = w.held(who, "makes children of", f, func() (bool, error) {
		out, err := w.e.MakeChildren(w.ctx, f, q)
		if err == nil && !out.Over {
			w.joined(q.Children)
		}
		over = out.Over
		return out.Already || out.Over, err
	})
	return over, err
}

// others has a held execution wait for executions that it did not make.
func (w *world) others(who string, f flowfabric.Fence, q engine.ChildWait, list []flowfabric.ExecutionID) error {
	return w.held(who, "waits for others in", f, func() (bool, error) {
		looked, err := w.e.CheckOthers(w.ctx, f.Execution, list)
		if err != nil {
			return false, err
		}
		for i := range looked {
			looked[i].Node = short(looked[i].ID)
		}
		q.Others = looked
		return false, w.e.WaitForOthers(w.ctx, f, q)
	})
}

func (w *world) receive(who string, f flowfabric.Fence, name, mailbox string) error {
	return w.held(who, "reads mail of", f, func() (bool, error) {
		_, recorded, err := w.e.ReceiveMessages(w.ctx, f, engine.Receiving{Name: name, Mailbox: mailbox, Limit: 2})
		return !recorded, err
	})
}
