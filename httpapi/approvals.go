package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type approvalPage admin.Page[admin.Approval]

func (c *call) approvals() (out approvalPage, err error) {
	q := c.query()
	n, asked := int(q.number("limit", 1, limits.MaxApprovals, limits.DefaultApprovals)), q.flag("asked")
	if q.err != nil {
		return out, q.err
	}
	var root flowfabric.ExecutionID
	if text := q.text("root"); text != "" {
		if root, err = flowfabric.ParseExecutionID(text); err != nil {
			return out, invalid("root", "it is %.64q, want the id of an execution", text)
		}
		if err := c.seeAll([]flowfabric.ExecutionID{root}); err != nil {
			return out, err
		}
	}
	namespace, err := c.namespace(q.text("namespace"))
	if err != nil {
		return out, err
	}
	page, err := c.h.admin.Approvals(c.ctx(), admin.ApprovalFilter{Namespace: namespace, Lane: q.text("lane"),
		Kind: q.text("kind"), Assignee: q.text("assignee"), Asked: asked, Root: root}, q.text("cursor"), n)
	page.Items = append([]admin.Approval{}, page.Items...)
	return approvalPage(page), err
}

// wait answers as the list of approvals does, of one execution; a browser would report a refusal as an error where
// the answer is only that there is none.
func (c *call) wait() error {
	id, s, err := c.existing()
	if err != nil {
		return err
	}
	r, err := c.h.client.Execution(id).Suspension(c.ctx())
	if err != nil {
		return err
	}
	if r.State != flowfabric.Suspended {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	x := admin.Approval{ID: id, Route: s.Route, Flow: r.Flow, Root: r.Root, Path: r.Path, Name: r.Name,
		Reason: r.Reason, Question: r.Question,
		Since: r.CreatedAt, TimeoutAt: r.TimeoutAt, Waitpoints: []suspend.Waitpoint{}}
	for _, w := range r.Waitpoints {
		if w.Open() {
			x.Waitpoints = append(x.Waitpoints, w)
		}
	}
	return c.answerJSON(http.StatusOK, x)
}

// chosen says where the mistake is in an answer that is none of the choices of its question, or changes arguments to
// what it does not take.
func chosen(err error) error {
	refusal, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		return err
	}
	why := denied.Slot(refusal, 0)
	if changed, ok := strings.CutPrefix(why, "arguments: "); ok {
		return invalid("/payload/arguments", "%s", changed)
	}
	if !strings.Contains(why, "no choice of the question") {
		return err
	}
	// A signal has this name when the body gave neither a choice nor a name.
	if rest, ok := strings.CutPrefix(why, "signal name: signal is no choice of the question"); ok {
		why = "the payload names no choice of the question" + rest
	}
	return invalid("/payload/choice", "%s", why)
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
	r, failed := c.h.client.Execution(id).Suspension(c.ctx())
	w := waitpointOf(r, which)
	if failed != nil || w.ClosedAt.IsZero() ||
		!slices.Contains([]string{"resumed", "resumed_by_operator", "answered"}, w.CloseReason) {
		return err
	}
	detail, by := "the waitpoint was answered at "+w.ClosedAt.UTC().Format(time.RFC3339), ""
	if w.Suspension == r.ID && w.CloseReason != "answered" {
		by = r.By
	}
	if list, _, failed := c.h.conn.Engine.ReadSignals(c.ctx(), id, w.ID, 0); by == "" && failed == nil {
		for _, s := range list {
			if s.Effect == waitwords.EffectSatisfied ||
				w.CloseReason == "answered" && s.Effect == waitwords.EffectAppended {
				by = s.Source
			}
		}
	}
	if by != "" {
		detail += fmt.Sprintf(" by %s", by)
	}
	return &problem{Status: http.StatusConflict, Code: flowfabric.CodeOf(flowfabric.ErrWaitpointClosed), Detail: detail}
}
