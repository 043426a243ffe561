package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Steps that the library records itself: what a wait was answered, and a waitpoint that was handed out.
const (
	answerStep = unit + "a:"
	waitStep   = unit + "w:"
)

// Wait asks to suspend a held attempt until enough of some signals have come to one waitpoint, or, without one, until
// an operator or the timeout ends it. Conditions of several parts the model does not know.
type Wait struct {
	ID, Request, Name, Reason string
	Timeout                   int64 // ms, 0 = none
	Behaviour                 string
	Delay                     int64  // ms between resumption and the next claim
	Only                      string // O operator, T timeout, M, unit separator and a mailbox: there is no waitpoint
	Point                     Point
	Pending                   bool
	Need                      int
	Names                     []string // "" takes any
}

// reasons are the codes of the reasons that the model uses.
var reasons = map[string]Code{"waiting_for_signal": "S1", "waiting_for_approval": "S2", "manual_pause": "S5"}

var behaviours = []string{"fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal",
	"auto_resume_open", "escalate"}

// Suspension is the current one of an execution, or its last.
type Suspension struct {
	Wait
	By      Fence
	After   int   // number of the last step before it
	Until   int64 // 0 = for ever
	Filled  []bool
	Matched []string // the signals that the condition took, as they are kept
	Taken   []Signal // the same, as they came

	Closed                  int64
	Cause, Closer, Who, Why string
}

// ending is how a suspension ends.
type ending struct {
	reason, cause, closer, who, why string
	signal                          string // made by the timeout
	delay                           int64
}

func (x *Execution) suspended() bool { return x.Code[0] == 'S' }

// take lets the condition have a signal: a slot of its name before one that takes any, and each slot once.
func (u *Suspension) take(w Waitpoint, g *Signal) {
	slot := -1
	for i, name := range u.Names {
		if u.Filled[i] {
			continue
		}
		if name == g.Name {
			slot = i
			break
		}
		if name == "" && slot < 0 {
			slot = i
		}
	}
	if slot < 0 {
		g.effect = "no_op"
		return
	}
	u.Filled = slices.Clone(u.Filled)
	u.Filled[slot] = true
	g.effect = "appended_to_waitpoint"
	if u.met() {
		g.effect = "resume_condition_satisfied"
	}
	u.Matched, u.Taken = append(slices.Clip(u.Matched), g.stored(w)), append(slices.Clip(u.Taken), *g)
}

// met tells whether enough has come.
func (u *Suspension) met() bool {
	n := 0
	for _, filled := range u.Filled {
		if filled {
			n++
		}
	}
	return u.Only == "" && n >= u.Need
}

// outcome is what a resumption tells; its signals are in no order.
func (u *Suspension) outcome() string {
	parts := []string{strings.Join([]string{u.Name, u.Cause, u.ID, instantText(u.Closed), instantText(u.Until),
		u.Closer, u.Who, u.Why,
		number(len(u.Matched))}, unit)}
	for _, text := range slices.Sorted(slices.Values(u.Matched)) {
		parts = append(parts, number(len(text))+":"+text)
	}
	return strings.Join(parts, unit)
}

// Suspend gives up the lease until a condition is met; when what came early suffices, it is kept.
func (p *Partition) Suspend(id string, f Fence, q Wait) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if q.invalid() {
		return answer("invalid_input")
	}
	if q.Only == "T" && q.Timeout == 0 || q.Only == "" && (q.Need < 1 || q.Need > len(q.Names)) ||
		slices.ContainsFunc(q.Names, func(name string) bool { return !signalName(name) }) {
		return answer("invalid_resume_condition")
	}
	if box, waits := strings.CutPrefix(q.Only, mailboxWait); waits && !mailboxName(box) {
		return answer("invalid_resume_condition")
	}
	x := p.Executions[id]
	if x != nil && x.Suspension != nil && x.made(x.Suspension.By, f) &&
		(x.Suspension.ID == q.ID || q.Request != "" && x.Suspension.Request == q.Request) {
		return x.waits(Already)
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	w, code := p.bind(x, q)
	if code.Code != "" {
		return code
	}
	late := q.Pending && (w.State == "x" || w.State == "p" && w.Expires <= p.Now)
	u := Suspension{Wait: q, By: f, After: x.StepOrder, Filled: make([]bool, len(q.Names))}
	if q.Timeout > 0 {
		u.Until = p.Now + q.Timeout
	}
	closer := ""
	for _, g := range w.Early {
		if u.met() {
			break
		}
		u.take(w, &g)
		if closer = g.ID; w.Known[g.mark()].ID == g.ID {
			first := w.Known[g.mark()]
			first.Effect = g.effect
			w.Known = maps.Clone(w.Known)
			w.Known[g.mark()] = first
		}
	}
	if late && !u.met() { // what was accepted in time counts, if it suffices
		return answer("pending_waitpoint_expired", q.Point.Key)
	}
	if last := x.Suspension; last != nil && last.Name != "" && x.Told && x.Steps[answerStep+last.Name] == "" &&
		!x.receipted(last) {
		x.recordAt(answerStep+last.Name, last.outcome(), last.After)
	}
	if q.Only == "" {
		w.State, w.Expires, w.Suspension, w.Early = "a", u.Until, q.ID, nil
		x.put(w)
	}
	x.Suspension = &u
	if box, waits := strings.CutPrefix(q.Only, mailboxWait); u.met() || waits && len(x.heads(box, 1)) > 0 {
		x.Told, x.attempt().Run = true, 0
		p.shut(x, ending{reason: "resumed", cause: "already_satisfied", closer: closer})
		return x.waits(OK)
	}
	x.Told = false
	x.Released = &Release{Op: "u", By: f}
	p.pause(x)
	p.move(x, reasons[q.Reason])
	if at := x.alarm(); at != 0 {
		p.need(at)
	}
	return x.waits(OK)
}

// receipted tells whether a receipt says what a wait for a message was answered.
func (x *Execution) receipted(u *Suspension) bool {
	_, recorded := x.Steps[receiptStep+u.Name]
	return strings.HasPrefix(u.Only, mailboxWait) && recorded
}

func (q Wait) invalid() bool {
	return !uuid(q.ID) || len(q.Request) > 256 || len(q.Name) > 128 || reasons[q.Reason] == "" || q.Timeout < 0 ||
		q.Timeout > maxAhead || !slices.Contains(behaviours, q.Behaviour) || q.Delay < 0 || q.Delay > 2_592_000_000 ||
		q.Only == "" && (!q.Pending && q.Point.invalid() || !uuid(q.Point.ID))
}

// bind finds the pending waitpoint, or makes the fresh one.
func (p *Partition) bind(x *Execution, q Wait) (w Waitpoint, refused Reply) {
	if q.Only != "" {
		return w, refused
	}
	w, known := x.Points[q.Point.ID]
	switch {
	case q.Pending && !known:
		refused = answer("waitpoint_not_found", q.Point.Key)
	case q.Pending && (w.State == "x" || w.State == "p" && w.Expires <= p.Now) && len(w.Early) == 0:
		refused = answer("pending_waitpoint_expired", q.Point.Key)
	case q.Pending && w.State != "p" && w.State != "x":
		refused = answer("waitpoint_not_pending", q.Point.Key)
	case q.Pending && w.Key != q.Point.Key:
		refused = answer("waitpoint_key_mismatch", q.Point.Key)
	case q.Pending:
	case known:
		refused = answer("waitpoint_already_exists", q.Point.Key)
	case q.Point.Kid != Kid:
		refused = answer("kid_not_current", Kid)
	default:
		w = Waitpoint{Point: q.Point}
	}
	return w, refused
}

// waits answers what an execution waits for, or why it does not.
func (x *Execution) waits(code string) Reply {
	u := x.Suspension
	what, outcome := "suspended", ""
	if u.Cause == "already_satisfied" {
		what, outcome = "satisfied", u.outcome()
	}
	r := answer(code, what, u.ID, number(u.Until), outcome, Kid)
	if u.Only != "" {
		r.Slots = append(r.Slots, "0")
		return r
	}
	w := x.Points[u.Point.ID]
	r.Slots = append(r.Slots, "1", w.ID, w.Key, w.Kid, w.Nonce)
	return r
}

// shut closes the suspension and its waitpoint. What came before something else than a signal ended it tells nobody
// anything.
func (p *Partition) shut(x *Execution, e ending) {
	u := *x.Suspension
	u.Closed, u.Cause, u.Closer, u.Who, u.Why = p.Now, e.cause, e.closer, e.who, e.why
	if e.cause != "signal" && e.cause != "already_satisfied" {
		u.Matched = nil
		if e.signal != "" {
			u.Matched = []string{e.signal}
		}
	}
	x.Suspension = &u
	if w := x.Points[u.Point.ID]; u.Only == "" && w.State == "a" {
		p.shutPoint(x, w, "c", e.reason)
	}
}

// resume lets a suspended execution wait for a claim, at once or after a delay. Its attempt goes on.
func (p *Partition) resume(x *Execution, e ending) {
	x.Told = true
	if x.Suspension.Until != 0 && x.Deadline != 0 {
		p.need(x.Deadline)
	}
	p.shut(x, e)
	if e.delay > 0 {
		x.DelayUntil = p.Now + e.delay
		p.move(x, "R2c")
		return
	}
	p.move(x, "R1i")
}

// ended closes what an execution waited on when it ends.
func (p *Partition) ended(x *Execution, closed string) {
	if x.suspended() {
		e := ending{reason: "timed_out_" + x.Suspension.Behaviour, cause: "timeout"}
		switch closed {
		case "attempt_cancelled":
			e = ending{reason: "cancelled", cause: "cancelled"}
		case "expired":
			e = ending{reason: "expired:execution_deadline", cause: "deadline"}
		}
		p.shut(x, e)
	}
	for _, w := range x.Points {
		if w.open() {
			p.shutPoint(x, w, "c", "attempt_ended")
		}
	}
}

// timeout does what a suspension asked for in case it lasted too long.
func (p *Partition) timeout(x *Execution) {
	u := *x.Suspension
	switch u.Behaviour {
	case "escalate":
		u.Reason, u.Until, u.Behaviour = "waiting_for_operator_review", 0, ""
		x.Suspension = &u
		if w, known := x.Points[u.Point.ID]; known && u.Only == "" {
			w.Expires = 0
			x.put(w)
		}
		p.move(x, "S5")
		return
	case "auto_resume":
		p.resume(x, ending{reason: "timed_out_auto_resume", cause: "timeout"})
		return
	case "auto_resume_open":
		p.reopen(x)
		p.resume(x, ending{reason: "timed_out_auto_resume", cause: "timeout"})
		return
	case "auto_resume_with_timeout_signal":
		g := strings.Join([]string{u.ID, "", "", "__timeout", "", "system", "", "", "", "", number(p.Now), "json",
			"timeout", "", "0", ""}, unit)
		p.resume(x, ending{reason: "timed_out_auto_resume", cause: "timeout", signal: g})
		return
	}
	state, to := "ended_failure", map[string]Code{"fail": "T2", "cancel": "T3", "expire": "T4"}[u.Behaviour]
	if to == "T3" {
		state, x.CancelSource = "ended_cancelled", "system_timeout_policy"
	}
	x.end(p.Now, state, "suspension_timeout", "no answer within the time limit (on timeout: "+u.Behaviour+")")
	x.Category = "suspension_timeout"
	p.finish(x, to, "suspension_timeout")
}

// reopen lets the waitpoint of a suspension serve another wait, if a step keeps it. What the condition took counts
// for that one.
func (p *Partition) reopen(x *Execution) {
	u := x.Suspension
	w, known := x.Points[u.Point.ID]
	if !known || u.Only != "" || w.State != "a" || x.handed(w.ID) == "" {
		return
	}
	w.State, w.Suspension, w.Expires, w.Early, w.Known = "p", "", p.Now+604_800_000, nil, maps.Clone(w.Known)
	for _, g := range u.Taken {
		g.effect = buffered
		first := w.Known[g.mark()]
		first.Effect = g.effect
		w.Known[g.mark()] = first
		w.Early = append(w.Early, g)
	}
	x.put(w)
	p.need(w.Expires)
}

// Resumption asks to resume without a signal.
type Resumption struct {
	Expected, Request, Trigger, By, Why string
	Delay                               int64
}

// Resume is an operator's or a policy's word. A request that was applied before changes nothing.
func (p *Partition) Resume(id string, q Resumption) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || q.Expected != "" && !uuid(q.Expected) || !uuid(q.Request) ||
		q.Trigger != "operator" && q.Trigger != "auto_resume" || q.By == "" ||
		q.Delay < 0 || q.Delay > 2_592_000_000 {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.ResumeRequest == q.Request: // also if it has been suspended again since
		return answer(Already, string(x.Code), x.Suspension.ID)
	case !x.suspended():
		return answer("execution_not_suspended", string(x.Code))
	case q.Expected != "" && q.Expected != x.Suspension.ID:
		return answer("suspension_changed", x.Suspension.ID)
	}
	p.resume(x, ending{cause: "operator",
		reason: map[string]string{"operator": "resumed_by_operator", "auto_resume": "resumed"}[q.Trigger],
		who:    q.By[:min(len(q.By), limits.MaxName)], why: q.Why[:min(len(q.Why), limits.MaxReason)], delay: q.Delay})
	x.ResumeRequest = q.Request
	return answer(OK, string(x.Code), x.Suspension.ID)
}
