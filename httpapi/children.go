package httpapi

import (
	"cmp"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type childrenBody struct {
	leased
	Wait     string      `json:"wait" jsonschema:"its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the outcomes under it"`
	Mode     string      `json:"mode,omitempty" jsonschema:"all (default): until all have ended; first; success: until one has succeeded, or all have ended; fail_fast: until one did not succeed, or all have ended"`
	Cancel   bool        `json:"cancel_remaining,omitempty" jsonschema:"cancel those that are open when the wait is over"`
	Leave    bool        `json:"leave,omitempty" jsonschema:"let them run on when this execution ends before them"`
	Children []nodeBody  `json:"children,omitempty" jsonschema:"up to 1000, each after those that it depends on. A name stands for the same child in every run, with the same input. Required without others"`
	Others   []otherBody `json:"others,omitempty" jsonschema:"executions that somebody else made and that are waited for like children, up to 1000 with these. Nobody cancels those without cancel"`
	ending
}

type otherBody struct {
	Name      string `json:"name" jsonschema:"in this wait: 1..64 bytes, unlike those of the children"`
	Execution string `json:"execution" jsonschema:"its id, in any partition. One that does not exist or was purged is refused"`
	Cancel    bool   `json:"cancel,omitempty" jsonschema:"cancel it, with its flow, if it is open when the wait is over, or when this execution ends before"`
}

type childrenAnswer struct {
	Parked   bool                    `json:"parked" jsonschema:"the lease is given up; a later claim brings the outcomes"`
	Answer   *suspend.Result         `json:"answer,omitempty" jsonschema:"what ended a wait with a condition or a limit at once"`
	Outcomes map[string]childOutcome `json:"outcomes,omitempty" jsonschema:"by the name of the child; enough had ended: go on, under the same lease"`
}

type childOutcome struct {
	ID      string              `json:"id"`
	Outcome string              `json:"outcome,omitempty" jsonschema:"completed, failed, cancelled, expired or skipped; empty: it has not ended"`
	Result  *flowfabric.Payload `json:"result,omitempty" jsonschema:"of one that completed; left out when those before it have 1 MiB together"`
}

// waitChildren makes children and parks the execution until they have ended.
func (c *call) waitChildren(f flowfabric.Fence, b *childrenBody) (*childrenAnswer, error) {
	if err := printable("/wait", b.Wait); err != nil {
		return nil, err
	}
	if n := len(b.Children) + len(b.Others); n < 1 || n > maxNodes {
		return nil, invalid("/children", "there are %d with others, want 1..%d", n, maxNodes)
	}
	modes := map[string]flow.ChildrenOption{"": flow.All(), "all": flow.All(), "first": flow.First(),
		"success": flow.FirstSuccess(), "fail_fast": flow.FailFast()}
	mode, ok := modes[b.Mode]
	if !ok {
		return nil, invalid("/mode", "it is %.32q, want all, first, success or fail_fast", b.Mode)
	}
	opts := []flow.ChildrenOption{mode}
	if b.Cancel {
		opts = append(opts, flow.CancelRemaining())
	}
	if b.Leave {
		opts = append(opts, flow.Leave())
	}
	s, err := c.h.client.Execution(f.Execution).Get(c.ctx())
	if err != nil {
		return nil, err
	}
	set, nodes := flow.Children(b.Wait, opts...), map[string]flow.Source[[]byte]{}
	for i := range b.Children {
		n, place := &b.Children[i], fmt.Sprintf("/children/%d", i)
		options, err := n.options(c, place, nodes)
		if err != nil {
			return nil, err
		}
		if nodes[n.Name] != nil {
			return nil, invalid(place+"/name", "another child is called %.64q", n.Name)
		}
		nodes[n.Name] = flow.Child(set, n.Name, handler.Define[[]byte, []byte](n.Kind), n.input(), options...)
	}
	var others []flowfabric.ExecutionID
	for i, o := range b.Others {
		id, err := flowfabric.ParseExecutionID(o.Execution)
		if err != nil {
			return nil, invalid(fmt.Sprintf("/others/%d/execution", i), "%v", err)
		}
		flow.Other(set, o.Name, anything, id)
		others = append(others, id)
	}
	q, err := set.Plan(flowplan.Parent{Execution: f.Execution, Continues: s.Continues,
		Namespace: s.Route.Namespace}).Request()
	if err != nil {
		return nil, err
	}
	until, err := b.until()
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		if err := c.seeAll(others); err != nil {
			return nil, err
		}
		if q.Others, err = c.h.conn.Engine.CheckOthers(c.ctx(), f.Execution, others); err != nil {
			return nil, problemOf(err) // of one of them, and not of the lease
		}
		for i, o := range b.Others {
			q.Others[i].Node, q.Others[i].Cancel = o.Name, o.Cancel
		}
	}
	for _, batch := range engine.Batches(q.Children) {
		part := q
		part.Children = batch
		made, err := c.h.conn.Engine.MakeChildren(c.ctx(), f, part)
		if err != nil || made.Over {
			return c.childrenAnswer(made, err)
		}
	}
	if err := c.h.conn.Engine.WaitForOthers(c.ctx(), f, q); err != nil {
		return nil, err
	}
	return c.childrenOr(f, q, until)
}

// anything is a kind of which only the bytes of a result are wanted.
var anything = handler.Define[[]byte, []byte]("any")

// until is the suspension that ends with the children, or with something else.
func (b *childrenBody) until() (*waitwords.Wanted, error) {
	cond := suspend.Operator()
	if b.Until != nil {
		if b.Until.Mailbox != "" || b.Until.Operator || b.Until.Timeout {
			return nil, invalid("/until",
				"want one of signal, count, message, all and any: an operator, and within_ms, end the wait in any case")
		}
		var err error
		if cond, err = b.Until.condition("/until"); err != nil {
			return nil, err
		}
	}
	s := suspendBody{ending: b.ending}
	s.Reason = cmp.Or(b.Reason, "waiting_for_children")
	w, err := s.on(b.Wait, cond)
	if err == nil {
		w.Condition = waitwords.ChildrenOr(w.Condition)
	}
	return w, err
}

// childrenOr suspends an execution whose children are made.
func (c *call) childrenOr(f flowfabric.Fence, q engine.ChildWait, until *waitwords.Wanted) (*childrenAnswer, error) {
	pending, err := c.pending(f, until.Keys)
	if err != nil {
		return nil, err
	}
	r, err := c.suspendedOn(f, until, pending)
	if err != nil || !r.Satisfied {
		return &childrenAnswer{Parked: true}, err
	}
	q.Children = nil // asks for what was recorded
	made, err := c.h.conn.Engine.MakeChildren(c.ctx(), f, q)
	out, err := c.childrenAnswer(made, err)
	if err == nil {
		out.Answer = &r.Resume
	}
	return out, err
}

func (c *call) childrenAnswer(made engine.MadeChildren, err error) (*childrenAnswer, error) {
	if err != nil {
		return nil, err
	}
	outcomes, err := c.outcomes(made.Outcomes)
	return &childrenAnswer{Outcomes: outcomes}, err
}

// outcomes adds the results to how children ended, as far as there is room.
func (c *call) outcomes(list []engine.ChildOutcome) (map[string]childOutcome, error) {
	out, room := make(map[string]childOutcome, len(list)), 1<<20
	for _, x := range list {
		child := childOutcome{ID: x.ID.String(), Outcome: string(x.Outcome)}
		if x.Outcome == flowfabric.Completed && room > 0 {
			raw, _, err := c.h.conn.Engine.ReadResult(c.ctx(), x.ID, uint32(x.Attempt))
			if err != nil {
				return nil, err
			}
			if room -= len(raw); room >= 0 {
				p := flowfabric.Payload(raw)
				child.Result = &p
			}
		}
		out[x.Node] = child
	}
	return out, nil
}
