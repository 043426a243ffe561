package httpapi

import "github.com/flowfabric/flowfabric-go/admin"

func (c *call) index() (admin.Index, error) { return c.h.admin.Index(c.ctx()) }

type indexBody struct {
	admin.IndexChange
	why
}

func (c *call) setIndex(b *indexBody) (admin.Index, error) {
	return c.h.admin.SetIndex(c.ctx(), b.IndexChange, c.act(b.why)...)
}

func (c *call) countByState() (admin.Counts, error) {
	f, err := c.filter(c.query())
	if err != nil {
		return admin.Counts{}, err
	}
	return c.h.admin.Count(c.ctx(), f)
}
