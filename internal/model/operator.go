package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// ChangePriority reorders an execution that has not ended; it keeps its age.
func (p *Partition) ChangePriority(id string, priority int) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.terminal():
		return notActive(x)
	}
	was, now := x.Priority, clamp(priority)
	if was == now {
		return answer(Already, number(was), number(now))
	}
	x.Priority = now
	return answer(OK, number(was), number(now))
}

// SetDelay changes until when a delayed execution waits; 0 makes it claimable.
func (p *Partition) SetDelay(id string, delay int64, request string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || !uuid(request) || delay < 0 {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.DelayRequest == request:
		return answer(Already)
	case x.terminal():
		return notActive(x)
	case delay == 0 && (strings.HasPrefix(string(x.Code), "R1") || strings.HasPrefix(string(x.Code), "G1")):
		return answer(Already)
	case !strings.HasPrefix(string(x.Code), "R2"):
		return answer("execution_not_eligible", string(x.Code))
	}
	x.DelayRequest, x.DelayUntil = request, p.Now+delay
	if delay == 0 {
		p.move(x, due[x.Code])
	} else {
		p.need(x.DelayUntil)
	}
	return answer(OK)
}

// Replay asks for an ended execution to run again.
type Replay struct {
	Request     string
	Drop, Force bool
	From        string // a step; "" = none
	By, Reason  string
}

func (x *Execution) stepless(name string) bool {
	_, recorded := x.Steps[name]
	return !recorded
}

// Replay makes an ended execution wait again, at its old age: counters of retries and
// reclaims start over, epoch, attempts and results stay, the deadline gets its original span again.
func (p *Partition) Replay(id string, q Replay) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || !uuid(q.Request) || len(q.From) > limits.MaxStepName {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	replays := 10
	if x != nil && x.Policy.MaxReplays != 0 {
		replays = max(0, x.Policy.MaxReplays)
	}
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.Request == q.Request:
		return answer(Already, string(x.Code), number(x.Replays))
	case !x.terminal():
		return answer("execution_not_terminal", string(x.Code))
	case x.Code == "T1" && !q.Force:
		return answer("replay_not_allowed")
	case q.From != "" && x.stepless(q.From):
		return answer("step_not_found", q.From)
	case x.Replays >= replays:
		return answer("max_replays_exhausted", number(replays))
	}
	if x.Key != "" && !x.Debounced {
		if holder, _ := p.holder(x.Key); holder != "" && holder != id {
			return answer("key_taken", holder)
		}
		p.Keys[x.Key] = id
	}
	x.Replays++
	x.Request = q.Request
	x.Retries, x.Reclaims, x.Ended, x.Filed = 0, 0, 0, 0
	x.Category, x.CancelledBy, x.CancelSource, x.CancelReason, x.Released = "", "", "", "", nil
	if a := x.attempt(); a != nil {
		a.Progress = Progress{}
	}
	if q.Drop {
		x.Steps, x.Covers, x.Told = map[string]string{}, nil, false
		for i := range x.Attempts {
			x.Attempts[i].Recorded = 0
		}
	} else {
		from := x.asked()
		if q.From != "" {
			from = x.Order[q.From]
		}
		if from > 0 {
			x.forget(from)
		}
		// their end closed the waitpoints that were handed out
		maps.DeleteFunc(x.Steps, func(name, _ string) bool { return strings.HasPrefix(name, waitStep) })
	}
	if x.Deadline != 0 {
		if x.Span == 0 {
			x.Span = max(1, x.Deadline-x.Created)
		}
		x.Deadline = p.Now + x.Span
		p.need(x.Deadline)
	}
	p.move(x, "R1p")
	return answer(OK, "R1p", number(x.Replays))
}

// Rewind asks for an execution to go on again from a step on.
type Rewind struct {
	Request, Step string
	Attempt       int    // 0 = any
	Message       string // "" = none
	By, Reason    string
}

// current is the attempt that an execution is in: the next one, if it waits for a replay.
func (x *Execution) current() int {
	if x.Code == "R1p" {
		return len(x.Attempts) + 1
	}
	return len(x.Attempts)
}

// Rewind has an execution go on again from a recorded step on: one that has ended is replayed. Slots: the attempt, and
// the forgotten steps in their order.
func (p *Partition) Rewind(id string, q Rewind) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || !uuid(q.Request) || len(q.Step) < 1 || len(q.Step) > limits.MaxStepName || q.Step[0] == unit[0] ||
		q.Message != "" && len(q.Step) > 120 {
		return answer("invalid_input")
	}
	if len(q.Message) > limits.MaxMessage {
		return answer("payload_too_large")
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.Request == q.Request:
		return answer(Already, number(x.current()), "0")
	case q.Attempt != 0 && q.Attempt != x.current():
		return answer("attempt_changed", number(x.current()))
	}
	gone := x.since(x.Order[q.Step])
	if x.terminal() {
		gone = slices.Concat(gone, slices.DeleteFunc(x.since(0), func(name string) bool { // which a replay opens anew
			return !strings.HasPrefix(name, waitStep) || x.Order[name] >= x.Order[q.Step]
		}))
		r := p.Replay(id, Replay{Request: q.Request, Force: true, From: q.Step, By: q.By, Reason: q.Reason})
		if r.Code != OK {
			return r
		}
	} else {
		if x.stepless(q.Step) {
			return answer("step_not_found", q.Step)
		}
		p.rewind(x, id, q)
	}
	if q.Message != "" {
		by := q.By[:min(len(q.By), 64)]
		text := strings.Join([]string{"0", "edit", number(p.Now), by, "utf8", q.Message}, unit)
		x.record(receiptStep+"edit "+q.Step, unit+number(len(text))+":"+text)
	}
	return answer(OK, slices.Concat([]string{number(x.current()), number(len(gone))}, gone)...)
}

// since are the steps from a number on, in their order.
func (x *Execution) since(from int) (names []string) {
	for name := range x.Steps {
		if x.Order[name] >= from {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(x.Order[a], x.Order[b]), strings.Compare(a, b))
	})
	return names
}

func (p *Partition) rewind(x *Execution, id string, q Rewind) {
	switch x.Code {
	case "A1", "R1i", "R2ai", "R2c", "S1", "S2", "S5":
		x.end(p.Now, "rewound", "", q.Reason)
		x.close("rewound")
	}
	if x.suspended() {
		p.reopen(x)
		p.shut(x, ending{reason: "rewound", cause: "rewound"})
	}
	if x.Code == "A1" {
		p.lost(x, id, "rewound")
	}
	timed := x.TimeoutAt != 0 || x.suspended() && x.Suspension.Until != 0 || x.Code == "A3"
	x.Rewinds++
	x.Request = q.Request
	x.Retries, x.Reclaims = 0, 0
	x.Category, x.Released = "", nil
	if a := x.attempt(); a != nil {
		a.Progress = Progress{}
	}
	x.forget(x.Order[q.Step])
	for _, w := range x.Points {
		if w.open() && x.handed(w.ID) == "" {
			p.shutPoint(x, w, "c", "rewound")
		}
	}
	x.TimeoutAt, x.TimeLeft = 0, 0
	p.move(x, "R1p")
	if timed && x.Deadline != 0 {
		p.need(x.Deadline)
	}
}

// Revoke takes an execution from its holder; the tick requeues it. With a session, only
// that holder's lease is taken. A request that was applied last takes nothing again.
func (p *Partition) Revoke(id, session, request string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || len(session) > 64 {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case x.Code == "A3", x.RevokedBy == request:
		return answer(Already, "already_revoked")
	case x.Code != "A1":
		return notActive(x)
	case !p.alive(x.Held.Session):
		return answer(Already, "already_expired")
	case session != "" && session != x.Held.Session:
		return answer("stale_lease")
	}
	x.end(p.Now, "interrupted_reclaimed", "lease_revoked", "")
	x.close("lease_revoked")
	p.lost(x, id, "revoked")
	x.TimeoutAt, x.TimeLeft, x.RevokedAt, x.RevokedBy = 0, 0, p.Now, request
	p.move(x, "A3")
	p.need(x.alarm())
	return answer(OK, "revoked", x.Held.Session, number(x.Held.Epoch))
}

// SetSubscription stores the routes that a kind of worker serves.
func (p *Partition) SetSubscription(digest string, routes []int) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !hex.MatchString(digest) || len(routes) > maxRoutes {
		return answer("invalid_input")
	}
	p.Subscriptions = maps.Clone(p.Subscriptions)
	p.Subscriptions[digest] = Subscription{Routes: routes, Until: p.Now + subscriptionMs}
	return answer(OK, digest)
}
