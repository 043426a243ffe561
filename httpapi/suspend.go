package httpapi

import (
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type suspendBody struct {
	leased
	Wait     string            `json:"wait,omitempty" jsonschema:"its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the answer under it. None with a mailbox"`
	Question *suspend.Question `json:"question,omitempty" jsonschema:"that people are asked. Without until, one of its choices answers the wait, on the waitpoint of the same name"`
	ending
}

// ending is how a wait ends.
type ending struct {
	Until         *conditionBody `json:"until,omitempty" jsonschema:"what ends the wait; default: a signal on the waitpoint of the same name. Of children what ends it, too, whichever comes first: mailbox and operator do not belong there, and with this, or one of the following, operators can resume the wait, and a later claim brings the answer among the waits"`
	Reason        string         `json:"reason,omitempty" jsonschema:"waiting_for_signal (default), waiting_for_approval, waiting_for_callback, waiting_for_tool_result, waiting_for_operator_review or waiting_for_children; the default with a question is waiting_for_approval, of children waiting_for_children"`
	WithinMs      int64          `json:"within_ms,omitempty" jsonschema:"how long at most, up to ten years; default for ever"`
	OnTimeout     string         `json:"on_timeout,omitempty" jsonschema:"fail (default), cancel, expire, auto_resume, auto_resume_with_timeout_signal, auto_resume_open (waitpoints that were opened before the wait stay open for the next one on their keys) or escalate"`
	ResumeAfterMs int64          `json:"resume_after_ms,omitempty" jsonschema:"pause between the end of the wait and the next run, up to 30 days"`
}

type suspendAnswer struct {
	Suspended bool            `json:"suspended" jsonschema:"the lease is given up; a later claim brings the answer"`
	Answer    *suspend.Result `json:"answer,omitempty" jsonschema:"signals came early and suffice: go on, under the same lease"`
}

// wanted is what a worker wants to wait for.
func (b *suspendBody) wanted() (*waitwords.Wanted, error) {
	if b.Until != nil && b.Until.Mailbox != "" {
		return b.message()
	}
	if err := printable("/wait", b.Wait); err != nil {
		return nil, err
	}
	cond := suspend.Signal(b.Wait)
	if b.Until != nil {
		var err error
		if cond, err = b.Until.condition("/until"); err != nil {
			return nil, err
		}
	}
	if b.Question != nil && b.Until == nil {
		cond = waits.Answered(*b.Question, b.Wait)
	}
	return b.on(b.Wait, cond)
}

// message is a wait for a message of a mailbox, which has the name of its receipt.
func (b *suspendBody) message() (*waitwords.Wanted, error) {
	u := b.Until
	if there(u.given(), u.All != nil, u.Any != nil, u.Operator, u.Timeout) != 0 {
		return nil, invalid("/until", "mailbox stands alone")
	}
	if b.Wait != "" || b.Question != nil {
		return nil, invalid("/until/mailbox", "such a wait has no name and no question")
	}
	name, err := receipted("/until", u.Mailbox, u.Number)
	if err != nil {
		return nil, err
	}
	return b.on(name, suspend.Mailbox(u.Mailbox))
}

// on is a wait for a condition, with the options of the body.
func (b *suspendBody) on(name string, cond suspend.Condition) (*waitwords.Wanted, error) {
	opts := []suspend.Option{suspend.Within(ms(b.WithinMs)), suspend.ResumeAfter(ms(b.ResumeAfterMs))}
	if b.Question != nil {
		opts = append(opts, suspend.Because(suspend.ReasonApproval), suspend.Asking(*b.Question))
	}
	if b.Reason != "" {
		opts = append(opts, suspend.Because(suspend.Reason(b.Reason)))
	}
	if b.OnTimeout != "" {
		opts = append(opts, suspend.OnTimeout(suspend.Behaviour(b.OnTimeout)))
	}
	asked := handler.On(cond, opts...)
	w, ok := errors.AsType[*waitwords.Wanted](asked)
	if !ok {
		return nil, asked
	}
	w.Name = name
	return w, nil
}

// suspendWork suspends the execution, or answers at once.
func (c *call) suspendWork(f flowfabric.Fence, b *suspendBody) (*suspendAnswer, error) {
	w, err := b.wanted()
	if err != nil {
		return nil, err
	}
	pending, err := c.pending(f, w.Keys)
	if err != nil {
		return nil, err
	}
	r, err := c.suspendedOn(f, w, pending)
	if err != nil {
		return nil, err
	}
	out := &suspendAnswer{Suspended: !r.Satisfied}
	if r.Satisfied {
		out.Answer = &r.Resume
	}
	return out, nil
}

// suspendedOn makes the call that suspends, with the waitpoints that are pending and fresh ones.
func (c *call) suspendedOn(f flowfabric.Fence, w *waitwords.Wanted,
	pending map[string]flowfabric.UUID) (r engine.Suspended, err error) {
	err = c.signed(f.Execution.Partition(), func() error {
		q := engine.Suspension{ID: mint.UUID(), Request: "api " + w.Name, Name: w.Name, Reason: w.Reason,
			Timeout: w.Within, Behaviour: w.Behaviour, ResumeDelay: w.ResumeDelay, Condition: w.Condition,
			Question: w.Question}
		for _, key := range w.Keys {
			if id, ok := pending[key]; ok {
				q.Bindings = append(q.Bindings, engine.Binding{Minted: engine.Minted{ID: id, Key: key}, Pending: true})
				continue
			}
			minted, _, err := c.h.conn.Keyring.Mint(f.Execution, key)
			if err != nil {
				return err
			}
			q.Bindings = append(q.Bindings, engine.Binding{Minted: minted})
		}
		var err error
		r, err = c.h.conn.Engine.SuspendExecution(c.ctx(), f, q)
		return err
	})
	return r, err
}

// pending finds the waitpoints among keys that were opened before and that nothing waits for yet.
func (c *call) pending(f flowfabric.Fence, keys []string) (map[string]flowfabric.UUID, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	r, err := c.h.conn.Engine.ReadSuspension(c.ctx(), f.Execution)
	if err != nil {
		return nil, err
	}
	pending := map[string]flowfabric.UUID{}
	for _, w := range r.Waitpoints {
		if w.State == "pending" {
			pending[w.Key] = w.ID
		}
	}
	return pending, nil
}
