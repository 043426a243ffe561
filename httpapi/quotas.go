package httpapi

import (
	"errors"
	"math"
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

type quotaList admin.Page[admission.QuotaRecord]

type quotaBody struct {
	admission.Quota
	Revision uint64 `json:"revision,omitempty" jsonschema:"of the quota that is to be changed, as it was read; 0: make it, unless it is there as the body says"`
	why
}

type quotaEnsure struct {
	admission.Quota
	why
}

func (c *call) quotas() error {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return q.err
	}
	list, err := c.h.admin.Quotas(c.ctx())
	out, err := cut(page, list, err, func(q admission.QuotaRecord) string { return q.Name })
	return c.answerOr(err, quotaList(out))
}

func (c *call) quota() error {
	name := c.r.PathValue("key")
	return c.showQuota(http.StatusOK, name)
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

func (c *call) showQuota(status int, name string) error {
	q, err := c.h.admin.GetQuota(c.ctx(), name)
	if err != nil {
		return err
	}
	return c.answerJSON(status, q)
}

func (c *call) putQuota() error {
	name := c.r.PathValue("key")
	var b quotaBody
	if err := c.body(&b); err != nil {
		return err
	}
	if err := named(&b.Name, name); err != nil {
		return err
	}
	if err := c.h.admin.PutQuota(c.ctx(), b.Quota, c.change(b.why, flowfabric.IfRevision(b.Revision))...); err != nil {
		return err
	}
	return c.showQuota(http.StatusOK, name)
}

// ensureQuota makes a quota, or answers the one that is there, whatever it says.
func (c *call) ensureQuota() error {
	name := c.r.PathValue("key")
	var b quotaEnsure
	if err := c.body(&b); err != nil {
		return err
	}
	if err := named(&b.Name, name); err != nil {
		return err
	}
	_, missing := c.h.admin.GetQuota(c.ctx(), name)
	err := c.h.admin.PutQuota(c.ctx(), b.Quota, c.change(b.why, flowfabric.IfNew())...)
	made := err == nil && errors.Is(missing, flowfabric.ErrNotFound)
	if err != nil && !errors.Is(err, flowfabric.ErrConflict) {
		return err
	}
	return c.showQuota(madeStatus(made), name)
}

func (c *call) removeQuota() error { return c.remove("quota", denied.NoQuota, c.h.admin.RemoveQuota) }

type attachBody struct {
	Scope   admission.Scope `json:"scope" jsonschema:"{} is everything"`
	Budgets []string        `json:"budgets,omitempty" jsonschema:"to detach neither these nor quotas is to detach all"`
	Quotas  []string        `json:"quotas,omitempty"`
	why
}

// attaching reads what is to be attached or detached.
func (c *call) attaching() (scope admission.Scope, gates []flowfabric.Gate, w why, err error) {
	var b attachBody
	if err := c.body(&b); err != nil {
		return scope, nil, w, err
	}
	for _, name := range b.Budgets {
		gates = append(gates, flowfabric.BudgetGate(name))
	}
	for _, name := range b.Quotas {
		gates = append(gates, flowfabric.QuotaGate(name))
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

func (c *call) gates() error {
	info, err := c.h.admin.Gates(c.ctx())
	if err != nil && info.Partitions == 0 {
		return err
	}
	return c.answerJSON(http.StatusOK, info)
}
