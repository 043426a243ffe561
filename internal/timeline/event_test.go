package timeline

import (
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// An event is one line, whatever callers have put into it.
func TestEventLines(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	const began = "2023-11-14T22:13:20.123Z "
	for want, e := range map[string]flowfabric.Event{
		"created, by billing": {Kind: EventCreated, By: "billing"},
		"created":             {Kind: EventCreated},
		"claimed: attempt 1 on w1, initial": {Kind: EventClaimed, Attempt: 1,
			Epoch: 9, Session: "w1~ab", Detail: "initial"},
		"attempt ended: attempt 2 on w1, failed (rate_limited): too many": {Kind: EventAttempt,
			Attempt: 2, Epoch: 9, Session: "w1~ab", Detail: "ended_failure rate_limited", Reason: "too many"},
		"attempt ended: attempt 2 on w1, cancelled": {Kind: EventAttempt,
			Attempt: 2, Epoch: 9, Session: "w1~ab", Detail: "ended_cancelled"},
		"ended: attempt 2 on w1, failed (handler_error)": {Kind: EventEnded,
			Attempt: 2, Epoch: 9, Session: "w1~ab", State: flowfabric.Failed, Detail: "handler_error"},
		"delayed: attempt 1 on w1, until 2023-11-14T22:14:20.123Z": {Kind: EventDelayed, Attempt: 1,
			Epoch: 9, Session: "w1~ab", Until: at.Add(time.Minute)},
		"attempt ended: attempt 4 on w1, forked": {Kind: EventAttempt,
			Attempt: 4, Epoch: 9, Session: "w1~ab", Detail: "forked"},
		"forked: attempt 4, by anna, a fork of 3-0197, before the step model 2: cheaper": {Kind: EventForked,
			Attempt: 4, By: "anna", Detail: "< 3-0197 model 2", Reason: "cheaper"},
		"attempt ended: attempt 2 on w1, continued": {Kind: EventAttempt,
			Attempt: 2, Epoch: 9, Session: "w1~ab", Detail: "continued"},
		"continued: attempt 2 on w1, with another input, 3 so far": {Kind: EventContinued,
			Attempt: 2, Epoch: 9, Session: "w1~ab", Detail: "3"},
		"skipped, what it depends on did not succeed": {Kind: EventSkipped,
			Detail: "dependency_impossible"},
		"late input, left is not given: its upstream succeeded after that was decided: 019cb000": {Kind: EventLateInput,
			Detail: "left", Reason: "019cb000"},
		"released: attempt 1 on w1": {Kind: EventReleased, Attempt: 1,
			Epoch: 9, Session: "w1~ab"},
		"revoked: attempt 1 on w1, by anna: stuck": {Kind: EventRevoked, Attempt: 1,
			Epoch: 9, Session: "w1~ab", By: "anna", Reason: "stuck"},
		"resumed: attempt 1 on w1, by anna (person), signal: reject": {Kind: EventResumed, Attempt: 1,
			Epoch: 9, Session: "w1~ab", By: "anna", Source: "person", Detail: "signal", Reason: "reject"},
		"resumed: attempt 1 on w1, by ci (client), signal": {Kind: EventResumed, Attempt: 1,
			Epoch: 9, Session: "w1~ab", By: "ci", Source: "client", Detail: "signal", Reason: "signal"},
		"priority, by anna, 0 to 9000": {Kind: EventPriority,
			By: "anna", Detail: "0 9000"},
		"replayed: attempt 1 on w1, was completed since 2023-11-14T22:12:20.123Z, by anna: tables changed": {
			Kind: EventReplayed, Attempt: 1, Epoch: 9, Session: "w1~ab", By: "anna", State: flowfabric.Completed,
			Until: at.Add(-time.Minute), Reason: "tables changed"},
		"resumed: attempt 1 on w1, by anna, operator": {Kind: EventResumed, Attempt: 1,
			Epoch: 9, Session: "w1~ab", By: "anna", Source: "operator", Detail: "operator"},
		"cancelled, by anna (operator_override): not needed": {Kind: EventCancelled, By: "anna",
			Source: "operator_override", Reason: "not needed"},
		"cancelled: attempt 1 on w1 (flow_cascade): wait_over": {Kind: EventCancelled, Attempt: 1, Session: "w1~ab",
			Source: "flow_cascade", Reason: "wait_over"},
		`cancelled, by "a\nb": "x\x1b[2J"`: {Kind: EventCancelled, By: "a\nb", Reason: "x\x1b[2J"},
	} {
		e.At = at.In(time.FixedZone("elsewhere", 3600))
		if got := Told(e).Text; got != began+want || strings.ContainsAny(got, "\r\n\x1b") {
			t.Errorf("got  %q\nwant %q", got, began+want)
		}
	}
}
