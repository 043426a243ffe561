package httpapi

import (
	"cmp"
	"maps"
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
	list = slices.DeleteFunc(list, func(w flowfabric.Worker) bool { return !c.serves(w) })
	out, err := cut(page, list, err, func(w flowfabric.Worker) string { return w.Instance })
	return workerList(out), err
}

// serves tells whether a worker serves a namespace that the reader may see.
func (c *call) serves(w flowfabric.Worker) bool {
	return len(c.who.Namespaces) == 0 || slices.Contains(w.Namespaces, "*") ||
		slices.ContainsFunc(w.Namespaces, c.who.may)
}

// schemas are what workers say of the kinds of a namespace.
func (c *call) schemas() (apiv1.Schemas, error) {
	q := c.query()
	kind := q.text("kind")
	if q.err != nil {
		return apiv1.Schemas{}, q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	if err != nil {
		return apiv1.Schemas{}, err
	}
	namespace = cmp.Or(namespace, c.h.conn.Namespace)
	all, err := c.h.conn.Engine.Schemas(c.ctx(), namespace)
	if kind != "" {
		maps.DeleteFunc(all, func(name string, _ apiv1.KindSchemas) bool { return name != kind })
	}
	return apiv1.Schemas{Namespace: namespace, Kinds: all}, err
}

func (c *call) markDead(b *why) (apiv1.Dead, error) {
	held, err := c.h.admin.MarkWorkerDead(c.ctx(), c.r.PathValue("session"), c.act(*b)...)
	return apiv1.Dead{Held: held}, err
}
