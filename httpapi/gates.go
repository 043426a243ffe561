package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/busy"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

type gateList admin.Page[admission.GateRecord]

type gateBody struct {
	admission.Gate
	Revision uint64 `json:"revision,omitempty" jsonschema:"of the gate that is to be changed, as it was read; 0: make it, unless it is there as the body says"`
	why
}

type gateEnsure struct {
	admission.Gate
	why
}

// named checks that the name in a body, if it has one, is that of the path.
func named(said *string, name string) error {
	if *said != "" && *said != name {
		return invalid("/name", "the path says %q", name)
	}
	*said = name
	return nil
}

func (c *call) gates() error {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return q.err
	}
	list, err := c.h.admin.Gates(c.ctx())
	out, err := cut(page, list, err, func(b admission.GateRecord) string { return b.Name })
	return c.answerOr(err, gateList(out))
}

func (c *call) gate() error {
	name := c.r.PathValue("key")
	return c.showGate(http.StatusOK, name)
}

func (c *call) showGate(status int, name string) error {
	b, err := c.h.admin.GetGate(c.ctx(), name)
	if err != nil {
		return err
	}
	return c.answerJSON(status, b)
}

func (c *call) putGate() error {
	name := c.r.PathValue("key")
	var body gateBody
	if err := c.body(&body); err != nil {
		return err
	}
	if err := named(&body.Name, name); err != nil {
		return err
	}
	if err := c.h.admin.PutGate(c.ctx(), body.Gate, c.change(body.why,
		flowfabric.IfRevision(body.Revision))...); err != nil {
		return err
	}
	return c.showGate(http.StatusOK, name)
}

// ensureGate makes a gate, or answers the one that is there, whatever it says.
func (c *call) ensureGate() error {
	name := c.r.PathValue("key")
	var body gateEnsure
	if err := c.body(&body); err != nil {
		return err
	}
	if err := named(&body.Name, name); err != nil {
		return err
	}
	_, missing := c.h.admin.GetGate(c.ctx(), name)
	err := c.h.admin.PutGate(c.ctx(), body.Gate, c.change(body.why, flowfabric.IfNew())...)
	made := err == nil && errors.Is(missing, flowfabric.ErrNotFound)
	if err != nil && !errors.Is(err, flowfabric.ErrConflict) {
		return err
	}
	return c.showGate(madeStatus(made), name)
}

// madeStatus is the status of an answer about what was made, or was there.
func madeStatus(made bool) int {
	if made {
		return http.StatusCreated
	}
	return http.StatusOK
}

// removeGate forgets the gate that the path names.
func (c *call) removeGate() error {
	reason, err := c.reason()
	if err == nil {
		name, removed := c.r.PathValue("key"), false
		if removed, err = c.h.admin.RemoveGate(c.ctx(), name, c.act(reason)...); err == nil && !removed {
			err = fmt.Errorf("remove gate %q: %w", name, denied.NoGate)
		}
	}
	return c.nothingToSay(err)
}

// reason is the one in the query of a change that has no body.
func (c *call) reason() (why, error) {
	q := c.query()
	return why{q.text("reason")}, q.err
}

// nothingToSay answers a change that was made, or says why it was not.
func (c *call) nothingToSay(err error) error {
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

type adjustBody struct {
	Amounts map[string]int64 `json:"amounts" jsonschema:"by dimension, up or down. A repeat counts again"`
	Reason  string           `json:"reason,omitempty" jsonschema:"at most 256 bytes"`
}

func (c *call) adjustUsage() error {
	name := c.r.PathValue("key")
	var b adjustBody
	if err := c.body(&b); err != nil {
		return err
	}
	used, err := c.h.admin.AdjustUsage(c.ctx(), name, b.Amounts, c.act(why{b.Reason})...)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, apiv1.Used{Used: used})
}

type raiseBody struct {
	Amounts   map[string]int64 `json:"amounts" jsonschema:"by dimension, 0 or more: by how much hard limits are higher in this period. A repeat raises again"`
	Execution string           `json:"execution,omitempty" jsonschema:"the only one that may pass the limits; absent: the limits are higher for all"`
	Reason    string           `json:"reason,omitempty" jsonschema:"at most 256 bytes"`
}

func (c *call) raiseLimits() error {
	var b raiseBody
	if err := c.body(&b); err != nil {
		return err
	}
	var execution flowfabric.ExecutionID
	if b.Execution != "" {
		var err error
		if execution, err = flowfabric.ParseExecutionID(b.Execution); err != nil {
			return invalid("/execution", "%.80q is not an execution id", b.Execution)
		}
	}
	raised, err := c.h.admin.RaiseLimits(c.ctx(), c.r.PathValue("key"), b.Amounts, execution, c.act(why{b.Reason})...)
	return c.answerOr(err, apiv1.Raised{Raised: raised})
}

type resetBody struct {
	Move bool `json:"move,omitempty" jsonschema:"the next period begins a whole interval after this; else when it would have anyway"`
	why
}

func (c *call) resetUsage() error {
	var b resetBody
	if err := c.body(&b); err != nil {
		return err
	}
	period, left, err := c.h.admin.ResetUsage(c.ctx(), c.r.PathValue("key"), b.Move, c.act(b.why)...)
	return c.answerOr(err, apiv1.Period{Period: period, Left: flowfabric.Millis(left)})
}

type usageBody struct {
	Key       string           `json:"key" jsonschema:"names the report, at most 128 bytes without spaces: repeated with the same within a day it counts once"`
	Execution string           `json:"execution,omitempty" jsonschema:"in whose ledger it goes"`
	Amounts   map[string]int64 `json:"amounts" jsonschema:"by dimension, 0 or more"`
}

// reportUsage counts what was used, by somebody who holds no lease.
func (c *call) reportUsage() error {
	var b usageBody
	if err := c.body(&b); err != nil {
		return err
	}
	u := admission.Usage{Gate: c.r.PathValue("key"), Key: b.Key, Amounts: b.Amounts}
	if b.Execution != "" {
		var err error
		if u.Execution, err = flowfabric.ParseExecutionID(b.Execution); err != nil {
			return invalid("/execution", "%.80q is not an execution id", b.Execution)
		}
	}
	said, err := c.h.admin.ReportUsage(c.ctx(), u)
	return c.answerOr(err, said)
}

type refundBody struct {
	Execution string `json:"execution"`
	why
}

func (c *call) refundUsage() error {
	name := c.r.PathValue("key")
	var b refundBody
	if err := c.body(&b); err != nil {
		return err
	}
	id, err := flowfabric.ParseExecutionID(b.Execution)
	if err != nil {
		return invalid("/execution", "%.80q is not an execution id", b.Execution)
	}
	returned, err := c.h.admin.RefundUsage(c.ctx(), name, id, c.act(b.why)...)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, apiv1.Returned{Returned: returned})
}

// limit is what a limit of a key counts.
func (c *call) limit() error {
	q := c.query()
	l := flowfabric.Limit{Concurrency: int(q.number("concurrency", 0, math.MaxInt32, 0)),
		Rate: int(q.number("rate", 0, math.MaxInt32, 0)), Per: ms(int64(q.number("per_ms", 0, math.MaxInt64, 0)))}
	if q.err != nil {
		return q.err
	}
	record, err := c.h.admin.GetLimit(c.ctx(), c.r.PathValue("key"), l)
	return c.answerOr(err, record)
}

type attachBody struct {
	Scope admission.Scope `json:"scope" jsonschema:"{} is everything"`
	Gates []string        `json:"gates,omitempty" jsonschema:"to detach none is to detach all"`
	why
}

// attaching reads what is to be attached or detached.
func (c *call) attaching() (scope admission.Scope, gates []flowfabric.Gate, w why, err error) {
	var b attachBody
	if err := c.body(&b); err != nil {
		return scope, nil, w, err
	}
	for _, name := range b.Gates {
		gates = append(gates, flowfabric.Gate(name))
	}
	return b.Scope, gates, b.why, nil
}

func (c *call) attachGates() error {
	scope, gates, w, err := c.attaching()
	if err == nil {
		err = c.h.admin.AttachGates(c.ctx(), scope, gates, c.act(w)...)
	}
	return c.nothingToSay(err)
}

func (c *call) detachGates() error {
	scope, gates, w, err := c.attaching()
	if err == nil {
		err = c.h.admin.DetachGates(c.ctx(), scope, gates, c.act(w)...)
	}
	return c.nothingToSay(err)
}

// gatedAnswer is what gates are attached to and hold back, and if asked for the gates that hold back most.
type gatedAnswer struct {
	admin.Gated
	Busy []busy.Gate `json:"busy,omitempty" jsonschema:"with busy=true: the gates, services and limits of keys that hold work back, at most fifty, the one that holds back most in front"`
}

// gated is what gates are attached to, and what they hold back.
func (c *call) gated() error {
	q := c.query()
	detailed := q.flag("busy")
	if q.err != nil {
		return q.err
	}
	info, err := c.h.admin.Gated(c.ctx())
	if err != nil && info.Partitions == 0 {
		return err
	}
	out := gatedAnswer{Gated: info}
	if detailed {
		if out.Busy, err = c.busy(info.Closed); err != nil {
			return err
		}
	}
	return c.answerJSON(http.StatusOK, out)
}

// busy are the gates that keep queues closed, or that somebody waits for in line.
func (c *call) busy(closed []admin.ClosedRoute) ([]busy.Gate, error) {
	all, err := c.h.admin.Gates(c.ctx())
	if err != nil {
		return nil, err
	}
	queues := make([]busy.Closed, len(closed))
	for i, x := range closed {
		queues[i] = busy.Closed{Gate: x.Reason.Gate, Waiting: x.Waiting, Until: x.Until, Why: x.Reason.Text}
	}
	return busy.Gates(c.ctx(), queues, all, func(ctx context.Context, name string) (admission.GateRecord, error) {
		return c.h.conn.Engine.ReadGate(ctx, name, 100, busy.First, 0)
	})
}
