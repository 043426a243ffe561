package model

import (
	"regexp"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Complete ends the execution with a result of so many bytes.
func (p *Partition) Complete(id string, f Fence, result int) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if result > limits.MaxPayload {
		return answer("payload_too_large")
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	x, refused, holder := p.refuse(id, f)
	switch {
	case x != nil && x.Code == "T1" && f == x.Held:
		return answer(Already)
	case !holder:
		return refused
	}
	x.end(p.Now, "ended_success", "", "")
	p.finish(x, "T1", "attempt_success")
	return answer(OK)
}

// CompleteAndClaim is a completion that claims in the same call; neither depends on the other's outcome.
func (p *Partition) CompleteAndClaim(id string, f Fence, result int, q ClaimRequest) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if q.invalid() {
		return answer("invalid_input")
	}
	r := p.Complete(id, f, result)
	next := p.Claim(q)
	r.Next = &next
	return r
}

var category = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// Failure is why an attempt failed.
type Failure struct {
	Category, Reason string
	Permanent        bool
	After            int64 // pause in ms instead of the policy's, -1 = the policy's
}

// Fail ends the attempt; the stored policy decides between a retry and the end.
func (p *Partition) Fail(id string, f Fence, why Failure) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if !category.MatchString(why.Category) || len(why.Reason) > limits.MaxReason || why.After < -1 ||
		why.After > maxAhead {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		switch slot, ok := x.released("f", f); {
		case !ok:
			return refused
		case slot == "failed":
			return answer(Already, "failed", "", number(p.Now))
		default:
			return answer(Already, "retry", slot, number(p.Now))
		}
	}
	timeout := why.Category == "attempt_timeout" && x.TimeoutAt != 0 && x.TimeoutAt <= p.Now
	x.Released = &Release{Op: "f", By: f}
	if at, retried := p.fail(x, why, timeout); retried {
		x.Released.Slot = number(at)
		return answer(OK, "retry", number(at), number(p.Now))
	}
	x.Released.Slot = "failed"
	return answer(OK, "failed", "", number(p.Now))
}

// fail ends the attempt of an active execution, for its holder or because it took too long.
func (p *Partition) fail(x *Execution, why Failure, timeout bool) (at int64, retried bool) {
	x.end(p.Now, "ended_failure", why.Category, why.Reason)
	x.Category = why.Category
	retry := x.Policy.Retry
	listed := len(retry.Categories) == 0 || slices.Contains(retry.Categories, flowfabric.Category(why.Category))
	closed, end := "attempt_failure", Code("T2")
	if why.Category == "attempt_timeout" {
		closed = "expired"
	}
	if timeout {
		end = "T4"
	}
	if why.Permanent || why.Category == "permanent" || !listed || x.Retries >= retry.MaxRetries {
		p.finish(x, end, closed)
		return 0, false
	}
	at = p.Now + why.After
	if why.After < 0 {
		at = p.Now + pause(retry, x.Retries)
	}
	x.Retries++
	p.disarm(x)
	x.close(closed)
	if at > p.Now {
		x.DelayUntil = at
		p.move(x, "R2b")
	} else {
		p.move(x, "R1t")
	}
	return at, true
}

// Delay puts the attempt aside for some ms, and no retry is consumed.
func (p *Partition) Delay(id string, f Fence, ms int64) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if ms < 0 || ms > maxAhead {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		if slot, ok := x.released("d", f); ok {
			return answer(Already, slot)
		}
		return refused
	}
	at := p.Now + ms
	x.Released = &Release{Op: "d", By: f, Slot: number(at)}
	p.pause(x)
	if ms > 0 {
		x.DelayUntil = at
		p.move(x, "R2ai")
	} else {
		p.move(x, "R1i")
	}
	return answer(OK, number(at))
}

// Continue ends the attempt and starts the execution anew with an input of so many bytes. What it leaves of the link
// before stays until the next time.
func (p *Partition) Continue(id string, f Fence, input int) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if input > limits.MaxPayload {
		return answer("payload_too_large")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		if slot, ok := x.released("c", f); ok {
			return answer(Already, slot)
		}
		return refused
	}
	if a := x.attempt(); a.Run == f.Epoch {
		a.Recorded = a.Sequence
	}
	x.end(p.Now, "continued", "", "")
	x.close("continued")
	p.ended(x, "continued")
	for i := range x.Link {
		x.Attempts[i] = Attempt{Closed: "removed"}
	}
	x.attempt().Progress = Progress{}
	x.Links, x.Link = x.Links+1, len(x.Attempts)
	x.Released = &Release{Op: "c", By: f, Slot: number(x.Links)}
	x.Input, x.Steps, x.Told, x.Retries, x.Reclaims, x.Category = input, map[string]string{}, false, 0, 0, ""
	x.Covers, x.Rewinds = nil, 0
	p.disarm(x)
	p.move(x, "R1f")
	return answer(OK, number(x.Links))
}

// Release hands the execution back; its attempt goes on with the next claim (drain).
func (p *Partition) Release(id string, f Fence) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		if _, ok := x.released("h", f); ok {
			return answer(Already, "released")
		}
		return refused
	}
	x.Released = &Release{Op: "h", By: f}
	p.pause(x)
	p.move(x, "R1i")
	return answer(OK, "released")
}

// pause remembers what is left of the attempt's time.
func (p *Partition) pause(x *Execution) {
	if x.TimeoutAt == 0 {
		return
	}
	x.TimeLeft = max(1, x.TimeoutAt-p.Now)
	x.TimeoutAt = 0
	if x.Deadline != 0 {
		p.need(x.Deadline)
	}
}

// disarm forgets the attempt's time.
func (p *Partition) disarm(x *Execution) {
	if x.TimeoutAt != 0 && x.Deadline != 0 {
		p.need(x.Deadline)
	}
	x.TimeoutAt, x.TimeLeft = 0, 0
}

// finish ends an execution for good, whatever state it is in; one that never ran gets the n form of the code.
func (p *Partition) finish(x *Execution, to Code, closed string) {
	if len(x.Attempts) == 0 {
		to += "n"
	}
	x.close(closed)
	p.ended(x, closed)
	x.TimeoutAt, x.TimeLeft, x.Ended = 0, 0, p.Now
	p.move(x, to)
	if x.Filed = max(p.Now+p.kept(x), x.Till); p.Wake == 0 || p.Wake > x.Filed {
		p.need(x.Filed)
	}
}

// pause is the time before retry k, k = 0 for the first: initial × multiplier^k, rounded down at each step, at most
// max; fixed is always initial. The model knows no jitter.
func pause(r flowfabric.RetryPolicy, k int) int64 {
	ceiling, d := r.Max.Milliseconds(), r.Initial.Milliseconds()
	if r.Fixed {
		return d
	}
	for range k {
		if d >= ceiling {
			break
		}
		d = d * int64(r.Multiplier*1000+0.5) / 1000
	}
	return min(d, ceiling)
}

// Cancellation ends an execution. Source is owner, operator_override or flow_cascade.
type Cancellation struct{ Source, Reason, By string }

// Cancel ends an execution from any state that is not terminal, for its holder or by an override.
// A fence that is given is checked whoever asks.
func (p *Partition) Cancel(id string, f Fence, c Cancellation) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	code := incomplete(id, f)
	fenced := code == ""
	switch { // in the order of the arguments; whether a fence must be there depends on a later one
	case !fenced && code != "fence_required":
		return answer(code)
	case !slices.Contains([]string{"owner", "operator_override", "flow_cascade"}, c.Source):
		return answer("invalid_input")
	case !fenced && c.Source == "owner":
		return answer(code)
	}
	x := p.Executions[id]
	switch {
	case x == nil:
		return answer("execution_not_found")
	case strings.HasPrefix(string(x.Code), "T3"):
		return answer(Already, "cancelled")
	case x.terminal():
		return notActive(x)
	}
	if fenced {
		if _, refused, holder := p.refuse(id, f); !holder {
			return refused
		}
		c.Source = "owner"
		x.Released = &Release{Op: "x", By: f}
	}
	was := x.Code
	if x.open() {
		x.end(p.Now, "ended_cancelled", "", "")
	}
	if was == "A1" && !fenced {
		p.lost(x, id, "cancelled")
	}
	if c.Source != "operator_override" {
		c.By = ""
	}
	x.CancelledBy, x.CancelSource = c.By, c.Source
	if c.Reason != "" {
		x.CancelReason = c.Reason
	}
	p.finish(x, "T3", "attempt_cancelled")
	return answer(OK, "cancelled", string(was))
}
