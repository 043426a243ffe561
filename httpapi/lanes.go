package httpapi

import (
	"strings"

	"github.com/flowfabric/flowfabric-go/admin"
)

type laneList admin.Page[admin.Lane]

// asked is the namespace that the query names, and the page.
func (c *call) asked() (string, paging, error) {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return "", page, q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	return namespace, page, err
}

func (c *call) lanes() (laneList, error) {
	namespace, page, err := c.asked()
	if err != nil {
		return laneList{}, err
	}
	list, err := c.h.admin.Lanes(c.ctx(), namespace)
	out, err := cut(page, list, err, func(l admin.Lane) string { return keyOf(l.Namespace, l.Name) })
	return laneList(out), err
}

type queueList admin.Page[admin.Queue]

func (c *call) queues() (queueList, error) {
	namespace, page, err := c.asked()
	if err != nil {
		return queueList{}, err
	}
	list, err := c.h.admin.Queues(c.ctx(), namespace)
	out, err := cut(page, list, err, func(q admin.Queue) string {
		return keyOf(q.Namespace, q.Lane, q.Kind, strings.Join(q.Capabilities, ","), q.Drift)
	})
	return queueList(out), err
}

type laneBody struct {
	admin.LaneChange
	why
}

func (c *call) setLane(b *laneBody) (err error) {
	if b.Namespace, err = c.namespace(b.Namespace); err != nil {
		return err
	}
	return c.h.admin.SetLane(c.ctx(), c.r.PathValue("key"), b.LaneChange, c.act(b.why)...)
}
