package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var suspensions = map[codes.Code]string{
	codes.AwaitingSignal: WhyAwaitingSignal, codes.AwaitingApproval: WhyAwaitingApproval,
	codes.AwaitingCallback: WhyAwaitingCallback, codes.AwaitingTool: WhyAwaitingTool,
	codes.PausedByOperator: WhyPausedByOperator, codes.PausedByPolicy: WhyPausedByPolicy,
	codes.AwaitingBudget: WhyAwaitingBudget, codes.AwaitingChildren: WhyAwaitingKids,
}

// purposes are the reasons of a suspension in words.
var purposes = map[string]string{
	"waiting_for_signal": "for a signal", "step_boundary": "at the boundary of a step",
	"waiting_for_approval": "for an approval", "waiting_for_callback": "for a callback",
	"waiting_for_tool_result":     "for the result of a tool",
	"waiting_for_operator_review": "for the review of an operator", "manual_pause": "as a manual pause",
	"paused_by_policy": "by a policy", "paused_by_budget": "for want of budget",
	"waiting_for_children": "to wait for children",
}

// behaviours are what a suspension's timeout does.
var behaviours = map[string]string{
	"fail": "ends it failed, without a retry", "cancel": "ends it cancelled", "expire": "ends it expired",
	"auto_resume":                     "resumes it without a signal",
	"auto_resume_open":                "resumes it without a signal, and leaves its waitpoints open for the next wait",
	"auto_resume_with_timeout_signal": `resumes it with the signal "__timeout"`,
	"escalate":                        "leaves it to an operator, without another timeout",
}

// suspended explains an execution that gave up its lease until something comes.
func suspended(f engine.Facts) account {
	a := account{reason: suspensions[f.Code], at: f.TimeoutAt}
	s := f.Suspension
	if s == nil { // somebody removed the record
		a.why = "It is suspended, but the record of its suspension is gone."
		a.next = "An operator can resume it (admin.Resume) or cancel it (client.Cancel)."
	} else {
		name := ""
		if s.Name != "" {
			name = " under the name " + quote(s.Name)
		}
		purpose := purposes[s.Reason]
		if s.Reason == "waiting_for_children" && apart(f) {
			purpose = "to wait for other executions"
		}
		a.why = fmt.Sprintf("It is suspended %s%s since %s, and needs %s.", purpose, name, moment(f, s.CreatedAt),
			inCondition(f))
		a.why += open(f)
		ofChildren := waitwords.OfChildren(s.Condition)
		if ofChildren {
			a.why += " " + listed(f, "child", "children") + "." + asking(f)
		}
		claimable, operator := "It becomes claimable"+after(s), ", or an operator resumes it (admin.Resume)."
		a.next = claimable + " once an operator resumes it (admin.Resume)."
		switch {
		case s.Condition == waitwords.ChildrenCondition && apart(f):
			a.next = claimable + " when it is told that enough of them have ended, which the ticks of the partitions " +
				"do soon after that, or once an operator resumes it (admin.Resume)."
		case s.Condition == waitwords.ChildrenCondition:
			a.next = claimable +
				" in the call that ends the last child that it needs, or once an operator resumes it (admin.Resume)."
		case ofChildren || strings.Contains(s.Condition, "\x1eM\x1f"):
			a.next = claimable + " once that has come (the end of a child, client.Signal with a waitpoint's token, " +
				"client.Approve or client.Send)" + operator
		case strings.HasPrefix(s.Condition, "M\x1f") && !strings.Contains(s.Condition, "\x1e"):
			a.next = claimable + " once one has come (client.Send)" + operator
		case slices.ContainsFunc(s.Waitpoints, func(w suspend.Waitpoint) bool { return w.Subject != "" }):
			a.next = claimable + " once that has come (client.Publish of an event that matches, client.Signal or " +
				"client.Approve)" + operator
		case s.Condition != "O" && s.Condition != "T":
			a.next = claimable + " once that has come (client.Signal with a waitpoint's token, " +
				"or client.Approve)" + operator
		}
	}
	if f.TimeoutAt.IsZero() {
		a.next += " It has no timeout."
		return a
	}
	does := behaviours["fail"]
	if s != nil && s.Behaviour != "" {
		does = behaviours[s.Behaviour]
	}
	if s != nil && s.TimeoutAt.IsZero() && slices.ContainsFunc(s.Waitpoints,
		func(w suspend.Waitpoint) bool { return w.Question != nil }) { // it is that of a question
		does = "tells it that nobody answered what was asked until then; the others stay open"
	}
	if f.TimeoutAt.After(f.Now) {
		a.timed = true
		a.next += fmt.Sprintf(" If not by %s, a tick %s.", moment(f, f.TimeoutAt), does)
		return a
	}
	a.why += " It timed out at " + moment(f, f.TimeoutAt) + "."
	a.reason, a.ticked, a.next = WhySuspensionTimeoutDue, true, "A tick "+does+", unless it is resumed before."
	return a
}

// after tells of the delay between resumption and the next claim.
func after(s *suspend.Record) string {
	if s.ResumeDelay == 0 {
		return ""
	}
	return ", " + s.ResumeDelay.String() + " later,"
}

// open names the waitpoints that take signals.
func open(f engine.Facts) string {
	keys := openKeys(f.Suspension.Waitpoints)
	var asked []string
	for _, w := range f.Suspension.Waitpoints {
		if w.Open() && w.Question != nil {
			asked = append(asked, fmt.Sprintf("%q asks %q", w.Key, w.Question.Title))
		}
	}
	var parts []string
	if len(keys) > 0 {
		parts = append(parts, fmt.Sprintf("%s of it %s open (%s)", plural(len(keys), "waitpoint"), are(len(keys)),
			quoted(keys)))
	}
	if n := f.OpenWaitpoints - len(keys); n > 0 {
		parts = append(parts, fmt.Sprintf("%s that it does not wait for %s open", plural(n, "waitpoint"), are(n)))
	}
	if len(parts) == 0 {
		return ""
	}
	if len(asked) > 0 {
		parts = append(parts, strings.Join(asked, ", "))
	}
	return " " + strings.ToUpper(parts[0][:1]) + strings.Join(parts, ", ")[1:] + "."
}

// openKeys are the keys of the waitpoints that take signals.
func openKeys(points []suspend.Waitpoint) (keys []string) {
	for _, w := range points {
		if w.Open() {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
