package httpapi

import (
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

type workerList admin.Page[flowfabric.Worker]

func (c *call) workers() (workerList, error) {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return workerList{}, q.err
	}
	list, err := c.h.admin.Workers(c.ctx())
	if len(c.who.Namespaces) > 0 {
		list = slices.DeleteFunc(list, func(w flowfabric.Worker) bool {
			return !slices.Contains(w.Namespaces, "*") && !slices.ContainsFunc(w.Namespaces, c.who.may)
		})
	}
	out, err := cut(page, list, err, func(w flowfabric.Worker) string { return w.Instance })
	return workerList(out), err
}

func (c *call) markDead(b *why) (apiv1.Dead, error) {
	held, err := c.h.admin.MarkWorkerDead(c.ctx(), c.r.PathValue("session"), c.act(*b)...)
	return apiv1.Dead{Held: held}, err
}
