package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

type budgetList admin.Page[admission.BudgetRecord]

type budgetBody struct {
	admission.Budget
	Revision uint64 `json:"revision,omitempty" jsonschema:"of the budget that is to be changed, as it was read; 0: make it, unless it is there as the body says"`
	why
}

type budgetEnsure struct {
	admission.Budget
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

func (c *call) budgets() error {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return q.err
	}
	list, err := c.h.admin.Budgets(c.ctx())
	out, err := cut(page, list, err, func(b admission.BudgetRecord) string { return b.Name })
	return c.answerOr(err, budgetList(out))
}

func (c *call) budget() error {
	name := c.r.PathValue("key")
	return c.showBudget(http.StatusOK, name)
}

func (c *call) showBudget(status int, name string) error {
	b, err := c.h.admin.GetBudget(c.ctx(), name)
	if err != nil {
		return err
	}
	return c.answerJSON(status, b)
}

func (c *call) putBudget() error {
	name := c.r.PathValue("key")
	var body budgetBody
	if err := c.body(&body); err != nil {
		return err
	}
	if err := named(&body.Name, name); err != nil {
		return err
	}
	if err := c.h.admin.PutBudget(c.ctx(), body.Budget, c.change(body.why,
		flowfabric.IfRevision(body.Revision))...); err != nil {
		return err
	}
	return c.showBudget(http.StatusOK, name)
}

// ensureBudget makes a budget, or answers the one that is there, whatever it says.
func (c *call) ensureBudget() error {
	name := c.r.PathValue("key")
	var body budgetEnsure
	if err := c.body(&body); err != nil {
		return err
	}
	if err := named(&body.Name, name); err != nil {
		return err
	}
	_, missing := c.h.admin.GetBudget(c.ctx(), name)
	err := c.h.admin.PutBudget(c.ctx(), body.Budget, c.change(body.why, flowfabric.IfNew())...)
	made := err == nil && errors.Is(missing, flowfabric.ErrNotFound)
	if err != nil && !errors.Is(err, flowfabric.ErrConflict) {
		return err
	}
	return c.showBudget(madeStatus(made), name)
}

// madeStatus is the status of an answer about what was made, or was there.
func madeStatus(made bool) int {
	if made {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (c *call) removeBudget() error {
	return c.remove("budget", denied.NoBudget, c.h.admin.RemoveBudget)
}

// remove forgets what the path names, a budget or quota; none is why there may be nothing to forget.
func (c *call) remove(what string, none error,
	do func(context.Context, string, ...flowfabric.ActOption) (bool, error)) error {
	reason, err := c.reason()
	if err == nil {
		name, removed := c.r.PathValue("key"), false
		if removed, err = do(c.ctx(), name, c.act(reason)...); err == nil && !removed {
			err = fmt.Errorf("remove %s %q: %w", what, name, none)
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

func (c *call) adjustBudget() error {
	name := c.r.PathValue("key")
	var b adjustBody
	if err := c.body(&b); err != nil {
		return err
	}
	used, err := c.h.admin.AdjustBudget(c.ctx(), name, b.Amounts, c.act(why{b.Reason})...)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, apiv1.Used{Used: used})
}

type resetBody struct {
	Move bool `json:"move,omitempty" jsonschema:"the next period begins a whole interval after this; else when it would have anyway"`
	why
}

func (c *call) resetBudget() error {
	var b resetBody
	if err := c.body(&b); err != nil {
		return err
	}
	period, left, err := c.h.admin.ResetBudget(c.ctx(), c.r.PathValue("key"), b.Move, c.act(b.why)...)
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
	u := admission.Usage{Budget: c.r.PathValue("key"), Key: b.Key, Amounts: b.Amounts}
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

func (c *call) refundBudget() error {
	name := c.r.PathValue("key")
	var b refundBody
	if err := c.body(&b); err != nil {
		return err
	}
	id, err := flowfabric.ParseExecutionID(b.Execution)
	if err != nil {
		return invalid("/execution", "%.80q is not an execution id", b.Execution)
	}
	returned, err := c.h.admin.RefundBudget(c.ctx(), name, id, c.act(b.why)...)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, apiv1.Returned{Returned: returned})
}
