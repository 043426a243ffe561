package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type approvalPage struct {
	Items      []approval `json:"items"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

type approval struct {
	Execution  string      `json:"execution"`
	Namespace  string      `json:"namespace"`
	Lane       string      `json:"lane"`
	Kind       string      `json:"kind"`
	Flow       string      `json:"flow,omitempty" jsonschema:"if it is a node or a child of one"`
	Name       string      `json:"name" jsonschema:"under which the handler waits"`
	Reason     string      `json:"reason,omitempty"`
	Question   *question   `json:"question,omitempty"`
	Since      *time.Time  `json:"since,omitempty"`
	TimeoutAt  *time.Time  `json:"timeout_at,omitempty"`
	Waitpoints []waitpoint `json:"waitpoints" jsonschema:"those that are open; none if only an operator or the time ends the wait"`
}

// question is what a person is asked.
type question struct {
	Title    string   `json:"title" jsonschema:"1..200 bytes, one line of plain text"`
	Text     string   `json:"text,omitempty" jsonschema:"at most 4 KiB of plain text; line breaks are kept"`
	Choices  []choice `json:"choices,omitempty" jsonschema:"2..8; default approve and reject"`
	Assignee string   `json:"assignee,omitempty" jsonschema:"at most 128 bytes: who should answer, for lists"`
}

type choice struct {
	Name  string `json:"name" jsonschema:"1..128 bytes; an answer is a signal of this name"`
	Label string `json:"label,omitempty" jsonschema:"at most 128 bytes; default the name"`
}

func newQuestion(q *suspend.Question) *question {
	if q == nil {
		return nil
	}
	out := &question{Title: q.Title, Text: q.Text, Assignee: q.Assignee}
	for _, c := range q.Choices {
		out.Choices = append(out.Choices, choice{c.Name, cmp.Or(c.Label, c.Name)})
	}
	return out
}

// asked is the question that a worker brings, with its choices.
func (q *question) asked() suspend.Question {
	if len(q.Choices) == 0 {
		q.Choices = []choice{{"approve", "Approve"}, {"reject", "Reject"}}
	}
	out := suspend.Question{Title: q.Title, Text: q.Text, Assignee: q.Assignee}
	for _, c := range q.Choices {
		out.Choices = append(out.Choices, suspend.Choice(c))
	}
	return out
}

// until is the condition that one of the choices comes to a waitpoint.
func (q *question) until(key string) suspend.Condition {
	var names []string
	for _, c := range q.asked().Choices {
		names = append(names, c.Name)
	}
	return suspend.Signals(key, 1, names...)
}

func (c *call) approvals() error {
	q := c.query()
	n := int(q.number("limit", 1, 100, 50))
	if q.err != nil {
		return q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	if err != nil {
		return err
	}
	page, err := c.h.admin.Approvals(c.ctx(), admin.ApprovalFilter{Namespace: namespace, Lane: q.text("lane"),
		Kind: q.text("kind"), Assignee: q.text("assignee")}, q.text("cursor"), n)
	if err != nil {
		return err
	}
	out := approvalPage{Items: make([]approval, 0, len(page.Items)), NextCursor: page.Cursor}
	for _, x := range page.Items {
		out.Items = append(out.Items, newApproval(x))
	}
	return c.answerJSON(http.StatusOK, out)
}

func newApproval(x admin.Approval) approval {
	open := approval{Execution: x.ID.String(), Namespace: x.Route.Namespace, Lane: x.Route.Lane, Kind: x.Route.Kind,
		Name: x.Name, Reason: x.Reason, Question: newQuestion(x.Question), Since: utc(x.Since),
		TimeoutAt: utc(x.TimeoutAt), Waitpoints: []waitpoint{}}
	if !x.Flow.IsZero() {
		open.Flow = x.Flow.String()
	}
	for _, p := range x.Waitpoints {
		open.Waitpoints = append(open.Waitpoints, newWaitpoint(p))
	}
	return open
}

// wait answers as the list of approvals does, of one execution; a browser would report a refusal as an error where
// the answer is only that there is none.
func (c *call) wait() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	s, err := c.h.client.Get(c.ctx(), id)
	if err != nil {
		return err
	}
	r, err := c.h.client.Suspension(c.ctx(), id)
	if err != nil {
		return err
	}
	if state, _ := flowfabric.Project(r.Code); state.Public != flowfabric.Suspended {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	x := admin.Approval{ID: id, Route: s.Route, Flow: r.Flow, Name: r.Name, Reason: r.Reason, Question: r.Question,
		Since: r.CreatedAt, TimeoutAt: r.TimeoutAt}
	for _, w := range r.Waitpoints {
		if w.Open() {
			x.Waitpoints = append(x.Waitpoints, w)
		}
	}
	return c.answerJSON(http.StatusOK, newApproval(x))
}

// chosen says where the mistake is in an answer that is none of the choices of its question.
func chosen(err error) error {
	refusal, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || !strings.Contains(denied.Slot(refusal, 0), "no choice of the question") {
		return err
	}
	return invalid("/payload/choice", "%s", denied.Slot(refusal, 0))
}

// waitpointOf is the waitpoint of an id or a key that counts: of several with the key the open one, else the one that
// closed last.
func waitpointOf(r suspend.Record, which string) (found suspend.Waitpoint) {
	for _, w := range r.Waitpoints {
		if w.ID.String() == which {
			return w
		}
		if w.Key == which && (found.Key == "" || w.Open() || !found.Open() && w.ClosedAt.After(found.ClosedAt)) {
			found = w
		}
	}
	return found
}

// answered says who was first, if that is why an answer came too late; else it returns err as it is. It is
// waitpoint_closed also when the execution has ended since.
func (c *call) answered(id flowfabric.ExecutionID, which string, err error) error {
	if !errors.Is(err, denied.WaitpointClosed) && !errors.Is(err, denied.NotSignalable) {
		return err
	}
	r, failed := c.h.client.Suspension(c.ctx(), id)
	w := waitpointOf(r, which)
	if failed != nil || w.ClosedAt.IsZero() || w.CloseReason != "resumed" && w.CloseReason != "resumed_by_operator" {
		return err
	}
	detail, by := "the waitpoint was answered at "+w.ClosedAt.UTC().Format(time.RFC3339), ""
	if w.Suspension == r.ID {
		by = r.By
	}
	if list, _, failed := c.h.conn.Engine.ReadSignals(c.ctx(), id, w.ID, 0); by == "" && failed == nil {
		for _, s := range list {
			if s.Effect == waithook.EffectSatisfied {
				by = s.Source
			}
		}
	}
	if by != "" {
		detail += fmt.Sprintf(" by %s", by)
	}
	return &problem{Status: http.StatusConflict, Code: flowfabric.CodeOf(flowfabric.ErrWaitpointClosed), Detail: detail}
}
