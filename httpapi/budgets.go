package httpapi

import (
	"context"
	"net/http"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
)

type budgetList struct {
	Items      []budget `json:"items"`
	NextCursor string   `json:"next_cursor,omitempty"`
}

// budgetSettings are what a budget is made with.
type budgetSettings struct {
	Scope    string            `json:"scope,omitempty" jsonschema:"what it is for, for people; at most 128 bytes"`
	Warn     bool              `json:"warn,omitempty" jsonschema:"it only warns: counts what passes a hard limit, and blocks nothing"`
	OnHard   string            `json:"on_hard,omitempty" jsonschema:"what happens to an execution whose spend is refused: reject (default), fail or block"`
	WarnSoft bool              `json:"warn_soft,omitempty" jsonschema:"note the crossing of a soft limit, once per period and dimension"`
	ResetMs  int64             `json:"reset_ms,omitempty" jsonschema:"a period, 1000..ten years; 0 never resets"`
	Strict   bool              `json:"strict,omitempty" jsonschema:"refuse dimensions that have no limits here; else they are counted only"`
	Refund   []string          `json:"refund,omitempty" jsonschema:"failed, cancelled, expired: what such executions used in this period is given back"`
	Limits   map[string]bounds `json:"limits,omitempty" jsonschema:"by dimension, at most 64"`
}

type bounds struct {
	Hard int64 `json:"hard,omitempty" jsonschema:"work waits when it is reached; 0: none"`
	Soft int64 `json:"soft,omitempty" jsonschema:"only warns; 0: none"`
}

type budgetBody struct {
	budgetSettings
	Revision uint64 `json:"revision,omitempty" jsonschema:"of the budget that is to be changed, as it was read; 0: make it, unless it is there as the body says"`
	why
}

type budgetEnsure struct {
	budgetSettings
	why
}

type budget struct {
	Name string `json:"name"`
	budgetSettings
	Revision    uint64           `json:"revision"`
	Used        map[string]int64 `json:"used,omitempty"`
	Refused     map[string]int64 `json:"refused,omitempty" jsonschema:"in this period, by dimension with a limit: what was to be counted, and did not fit"`
	Exhausted   []string         `json:"exhausted,omitempty" jsonschema:"dimensions without room"`
	Period      uint64           `json:"period" jsonschema:"how often it was reset"`
	PeriodBegan *time.Time       `json:"period_began,omitempty"`
	NextReset   *time.Time       `json:"next_reset,omitempty"`
	Waiting     int              `json:"waiting" jsonschema:"queues that wait for it"`
	Events      []gateEvent      `json:"events,omitempty" jsonschema:"what happened to it, the newest first; not in lists"`
	Spenders    []spender        `json:"spenders,omitempty" jsonschema:"who used of it, the newest first; not in lists"`
}

// gateEvent is something that happened to a budget or quota.
type gateEvent struct {
	At     *time.Time `json:"at,omitempty"`
	What   string     `json:"what"`
	By     string     `json:"by,omitempty"`
	Detail string     `json:"detail,omitempty"`
}

type spender struct {
	Execution string           `json:"execution"`
	At        *time.Time       `json:"at,omitempty"`
	Period    uint64           `json:"period"`
	Used      map[string]int64 `json:"used"`
}

func (s *budgetSettings) budget(name string) admission.Budget {
	b := admission.Budget{Name: name, Scope: s.Scope, Warn: s.Warn, OnHard: admission.HardAction(s.OnHard),
		WarnSoft: s.WarnSoft, Reset: ms(s.ResetMs), StrictDimensions: s.Strict, Refund: s.Refund,
		Limits: map[string]admission.Limit{}}
	for dimension, l := range s.Limits {
		b.Limits[dimension] = admission.Limit(l)
	}
	return b
}

func newBudget(b admission.BudgetRecord) budget {
	out := budget{Name: b.Name, Revision: b.Revision, Used: b.Used, Refused: b.Refused, Exhausted: b.Exhausted(),
		Period: b.Period, PeriodBegan: utc(b.PeriodBegan), NextReset: utc(b.NextReset), Waiting: b.Waiting,
		budgetSettings: budgetSettings{Scope: b.Scope, Warn: b.Warn, OnHard: string(b.OnHard), WarnSoft: b.WarnSoft,
			ResetMs: b.Reset.Milliseconds(), Strict: b.StrictDimensions, Refund: b.Refund,
			Limits: map[string]bounds{}}, Events: gateEvents(b.Audit)}
	for dimension, l := range b.Limits {
		out.Limits[dimension] = bounds(l)
	}
	for _, s := range b.Spenders {
		out.Spenders = append(out.Spenders, spender{s.Execution.String(), utc(s.At), s.Period, s.Used})
	}
	return out
}

func gateEvents(log []admission.AuditEntry) (out []gateEvent) {
	for _, e := range log {
		out = append(out, gateEvent{utc(e.At), e.What, e.By, e.Detail})
	}
	return out
}

func (c *call) budgets() error {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return q.err
	}
	list, err := c.h.admin.Budgets(c.ctx())
	if err != nil {
		return err
	}
	out := budgetList{Items: make([]budget, 0, len(list))}
	list, out.NextCursor = cut(page, list, func(b admission.BudgetRecord) string { return b.Name })
	for _, b := range list {
		out.Items = append(out.Items, newBudget(b))
	}
	return c.answerJSON(http.StatusOK, out)
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
	return c.answerJSON(status, newBudget(b))
}

func (c *call) putBudget() error {
	name := c.r.PathValue("key")
	var body budgetBody
	if err := c.body(&body); err != nil {
		return err
	}
	if err := c.h.admin.PutBudget(c.ctx(), body.budget(name), body.Revision, c.act(body.why)...); err != nil {
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
	made, err := c.h.admin.EnsureBudget(c.ctx(), body.budget(name), c.act(body.why)...)
	if err != nil {
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

func (c *call) removeBudget() error { return c.remove(c.h.admin.RemoveBudget) }

// remove forgets what the path names and belongs to no namespace.
func (c *call) remove(do func(context.Context, string, ...flowfabric.ActOption) (bool, error)) error {
	reason, err := c.reason()
	if err == nil {
		_, err = do(c.ctx(), c.r.PathValue("key"), c.act(reason)...)
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

type adjusted struct {
	Used map[string]int64 `json:"used"`
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
	return c.answerJSON(http.StatusOK, adjusted{used})
}

type resetBody struct {
	Move bool `json:"move,omitempty" jsonschema:"the next period begins a whole interval after this; else when it would have anyway"`
	why
}

func (c *call) resetBudget() error {
	var b resetBody
	err := c.body(&b)
	if err == nil {
		_, _, err = c.h.admin.ResetBudget(c.ctx(), c.r.PathValue("key"), b.Move, c.act(b.why)...)
	}
	return c.nothingToSay(err)
}

type refundBody struct {
	Execution string `json:"execution"`
	why
}

type refunded struct {
	Returned bool `json:"returned"`
}

func (c *call) refundBudget() error {
	name := c.r.PathValue("key")
	var b refundBody
	if err := c.body(&b); err != nil {
		return err
	}
	id, err := flowfabric.ParseExecutionID(b.Execution)
	if err != nil {
		return invalid("/execution", "%.80q is no id of an execution", b.Execution)
	}
	returned, err := c.h.admin.RefundBudget(c.ctx(), name, id, c.act(b.why)...)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, refunded{returned})
}
