package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type waitpointBody struct {
	leased
	Key    string `json:"key" jsonschema:"1..128 bytes of printable ASCII; the same key has the same token in every run"`
	LifeMs int64  `json:"life_ms,omitempty" jsonschema:"until the execution waits for it: 1000..7 days, default 1 day"`
}

type closeWaitpointBody struct {
	leased
	Key string `json:"key" jsonschema:"of a waitpoint that was opened and that nothing waits for"`
}

type waitpointToken struct {
	Token string `json:"token" jsonschema:"its bearer may answer: pass it on inside a step. Empty when the waitpoint is closed"`
}

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

// conditionBody has exactly one of its forms. Members of a group may be groups once.
type conditionBody struct {
	conditionLeaf
	All      []conditionGroup `json:"all,omitempty" jsonschema:"all of these"`
	Any      []conditionGroup `json:"any,omitempty" jsonschema:"one of these"`
	Mailbox  string           `json:"mailbox,omitempty" jsonschema:"a message of this mailbox, for receive to take …"`
	Number   int              `json:"number,omitempty" jsonschema:"… under this number"`
	Operator bool             `json:"operator,omitempty" jsonschema:"only an operator resumes it"`
	Timeout  bool             `json:"timeout,omitempty" jsonschema:"only the time does"`
}

type conditionGroup struct {
	conditionLeaf
	All []conditionLeaf `json:"all,omitempty"`
	Any []conditionLeaf `json:"any,omitempty"`
}

type conditionLeaf struct {
	Signal string   `json:"signal,omitempty" jsonschema:"a signal on the waitpoint of this key"`
	Named  string   `json:"named,omitempty" jsonschema:"of this name only; with signal or count"`
	Count  int      `json:"count,omitempty" jsonschema:"so many signals …"`
	Of     []string `json:"of,omitempty" jsonschema:"… on the waitpoints of these keys"`
	By     string   `json:"by,omitempty" jsonschema:"… counted as waitpoints (default), signals or sources"`

	Message string `json:"message,omitempty" jsonschema:"a message in this mailbox, which stays there for receive to take"`
}

type suspendAnswer struct {
	Suspended bool            `json:"suspended" jsonschema:"the lease is given up; a later claim brings the answer"`
	Answer    *suspend.Result `json:"answer,omitempty" jsonschema:"signals came early and suffice: go on, under the same lease"`
}

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

// signing makes a call that needs the partition to know a token key. A store that was flushed knows none: then ours
// are declared, and the call is made again. A partition that signs with another key of ours says so, and the call is
// made with that.
func (c *call) signing(partition uint16, make func() error) error {
	ring := c.h.conn.Keyring
	for try := 0; ; try++ {
		err := make()
		if ring == nil || try == 3 {
			return err
		}
		refusal, ok := errors.AsType[*flowfabric.Error](err)
		switch {
		case errors.Is(err, denied.NoTokenKeys):
			if err := ring.Seed(c.ctx(), c.h.conn.Engine); err != nil {
				return err
			}
		case ok && errors.Is(err, denied.KidNotCurrent) && ring.Has(denied.Slot(refusal, 0)):
			ring.Use(partition, denied.Slot(refusal, 0))
		default:
			return err
		}
	}
}

func (c *call) openWaitpoint(f flowfabric.Fence, b *waitpointBody) (*waitpointToken, error) {
	if err := printable("/key", b.Key); err != nil {
		return nil, err
	}
	life := 24 * time.Hour
	if b.LifeMs != 0 {
		life = ms(b.LifeMs)
	}
	if life < time.Second || life > 7*24*time.Hour {
		return nil, invalid("/life_ms", "it is %d, want 1000..%d", b.LifeMs, (7 * 24 * time.Hour).Milliseconds())
	}
	var opened engine.Opened
	err := c.signing(f.Execution.Partition(), func() error {
		minted, _, err := c.h.conn.Keyring.Mint(f.Execution, b.Key)
		if err == nil {
			opened, err = c.h.conn.Engine.CreatePendingWaitpoint(c.ctx(), f, b.Key, minted, life)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	token, err := c.h.conn.Keyring.Token(f.Execution, opened)
	if err != nil {
		return nil, err
	}
	return &waitpointToken{token.Reveal()}, nil
}

// closeWaitpoint closes the waitpoint of a key; one that is closed stays so.
func (c *call) closeWaitpoint(f flowfabric.Fence, b *closeWaitpointBody) (*already, error) {
	if err := printable("/key", b.Key); err != nil {
		return nil, err
	}
	r, err := c.h.conn.Engine.ReadSuspension(c.ctx(), f.Execution)
	if err != nil {
		return nil, err
	}
	id, open := uuid.New(), false // of nobody: the server judges the lease first
	for _, w := range r.Waitpoints {
		if w.Key == b.Key && !open {
			id, open = w.ID, w.Open()
		}
	}
	before, err := c.h.conn.Engine.CloseWaitpoint(c.ctx(), f, id)
	return &already{before}, err
}

// there counts the forms that a condition has.
func there(forms ...bool) (n int) {
	for _, given := range forms {
		if given {
			n++
		}
	}
	return n
}

func (b *conditionLeaf) given() bool {
	return b.Signal != "" || b.Count != 0 || b.Of != nil || b.Message != ""
}

func (b *conditionLeaf) condition(place string) (cond suspend.Condition, err error) {
	if there(b.Signal != "", b.Count != 0 || b.Of != nil, b.Message != "") != 1 {
		return cond, invalid(place, "want one of signal, message, and count with of")
	}
	if b.Message != "" {
		if b.Named != "" || b.By != "" {
			return cond, invalid(place, "named and by do not belong to message")
		}
		return suspend.Mailbox(b.Message), nil
	}
	if cond = suspend.Signal(b.Signal); b.Signal == "" {
		by := map[string]suspend.Distinct{"": suspend.Waitpoints, "waitpoints": suspend.Waitpoints,
			"signals": suspend.SignalCount, "sources": suspend.Sources}
		distinct, ok := by[b.By]
		if !ok {
			return cond, invalid(place+"/by", "it is %.32q, want waitpoints, signals or sources", b.By)
		}
		cond = suspend.Count(b.Count, distinct, b.Of...)
	} else if b.By != "" {
		return cond, invalid(place+"/by", "it belongs to count")
	}
	if b.Named != "" {
		cond = cond.Named(b.Named)
	}
	return cond, nil
}

func (b *conditionGroup) condition(place string) (suspend.Condition, error) {
	if there(b.given(), b.All != nil, b.Any != nil) != 1 {
		return suspend.Condition{}, invalid(place, "want one of signal, count, message, all and any")
	}
	if b.given() {
		return b.conditionLeaf.condition(place)
	}
	return group(place, b.All, b.Any, (*conditionLeaf).condition)
}

func (b *conditionBody) condition(place string) (suspend.Condition, error) {
	if there(b.given(), b.All != nil, b.Any != nil, b.Operator, b.Timeout) != 1 {
		return suspend.Condition{},
			invalid(place, "want one of signal, count, message, all, any, mailbox, operator and timeout")
	}
	if b.Number != 0 {
		return suspend.Condition{}, invalid(place+"/number", "it belongs to mailbox")
	}
	switch {
	case b.Operator:
		return suspend.Operator(), nil
	case b.Timeout:
		return suspend.Timeout(), nil
	case b.given():
		return b.conditionLeaf.condition(place)
	}
	return group(place, b.All, b.Any, (*conditionGroup).condition)
}

// group is all of a list, or any of another; one of the two is there.
func group[T any](place string, all, some []T,
	member func(*T, string) (suspend.Condition, error)) (suspend.Condition, error) {
	list, name := all, "all"
	if some != nil {
		list, name = some, "any"
	}
	members := make([]suspend.Condition, len(list))
	for i := range list {
		var err error
		if members[i], err = member(&list[i], fmt.Sprintf("%s/%s/%d", place, name, i)); err != nil {
			return suspend.Condition{}, err
		}
	}
	if some != nil {
		return suspend.AnyOf(members...), nil
	}
	return suspend.AllOf(members...), nil
}

// wanted is what a worker wants to wait for.
func (b *suspendBody) wanted() (*waithook.Wanted, error) {
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
		cond = chosenBy(b.Question, b.Wait)
	}
	return b.on(b.Wait, cond)
}

// message is a wait for a message of a mailbox, which has the name of its receipt.
func (b *suspendBody) message() (*waithook.Wanted, error) {
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
func (b *suspendBody) on(name string, cond suspend.Condition) (*waithook.Wanted, error) {
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
	asked := suspend.On(cond, opts...)
	w, ok := errors.AsType[*waithook.Wanted](asked)
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
func (c *call) suspendedOn(f flowfabric.Fence, w *waithook.Wanted,
	pending map[string]uuid.UUID) (r engine.Suspended, err error) {
	err = c.signing(f.Execution.Partition(), func() error {
		q := engine.Suspension{ID: uuid.New(), Request: "api " + w.Name, Name: w.Name, Reason: w.Reason,
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
func (c *call) pending(f flowfabric.Fence, keys []string) (map[string]uuid.UUID, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	r, err := c.h.conn.Engine.ReadSuspension(c.ctx(), f.Execution)
	if err != nil {
		return nil, err
	}
	pending := map[string]uuid.UUID{}
	for _, w := range r.Waitpoints {
		if w.State == "pending" {
			pending[w.Key] = w.ID
		}
	}
	return pending, nil
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
	s, err := c.h.client.Get(c.ctx(), f.Execution)
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
	q, err := flowplan.ChildrenOf(set, f.Execution, s.Continues, s.Route.Namespace)
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
		if q.Others, err = c.h.conn.Engine.CheckAwaited(c.ctx(), f.Execution, others); err != nil {
			return nil, problemOf(err) // of one of them, and not of the lease
		}
		for i, o := range b.Others {
			q.Others[i].Node, q.Others[i].Cancel = o.Name, o.Cancel
		}
	}
	q.Park = until == nil
	batches := engine.Batches(q.Children) // the last call parks
	for i, batch := range batches {
		part := q
		part.Children, part.Park = batch, q.Park && i == len(batches)-1
		r, err := c.h.conn.Engine.WaitChildren(c.ctx(), f, part)
		if err != nil || r.Parked || r.Satisfied {
			return c.childrenAnswer(r, err)
		}
	}
	if err := c.h.conn.Engine.WaitOthers(c.ctx(), f, q); err != nil {
		return nil, err
	}
	return c.childrenOr(f, q, until)
}

// anything is a kind of which only the bytes of a result are wanted.
var anything = handler.Define[[]byte, []byte]("any")

// until is what else ends a wait for children; nil if nothing does, and it is no wait for others.
func (b *childrenBody) until() (*waithook.Wanted, error) {
	if len(b.Others) == 0 && b.ending == (ending{}) {
		return nil, nil
	}
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
		w.Condition = waithook.ChildrenOr(w.Condition)
	}
	return w, err
}

// childrenOr suspends an execution whose children are made.
func (c *call) childrenOr(f flowfabric.Fence, q engine.ChildWait, until *waithook.Wanted) (*childrenAnswer, error) {
	pending, err := c.pending(f, until.Keys)
	if err != nil {
		return nil, err
	}
	r, err := c.suspendedOn(f, until, pending)
	if err != nil || !r.Satisfied {
		return &childrenAnswer{Parked: true}, err
	}
	q.Children, q.Park = nil, true // asks for what was recorded
	kids, err := c.h.conn.Engine.WaitChildren(c.ctx(), f, q)
	out, err := c.childrenAnswer(kids, err)
	if err == nil {
		out.Answer = &r.Resume
	}
	return out, err
}

func (c *call) childrenAnswer(r engine.ChildrenReply, err error) (*childrenAnswer, error) {
	if err != nil {
		return nil, err
	}
	outcomes, err := c.outcomes(r.Outcomes)
	return &childrenAnswer{Parked: r.Parked, Outcomes: outcomes}, err
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
