package httpapi

import (
	"net/http"

	"github.com/flowfabric/flowfabric-go/admin"
)

type changePage admin.Page[admin.Change]

func (c *call) changes() error {
	q := c.query()
	limit := int(q.number("limit", 1, 1000, 100))
	query := admin.TrailQuery{By: q.text("by"), On: q.text("on"), Name: q.text("name"), Since: q.instant("since"),
		Until: q.instant("until")}
	if q.err != nil {
		return q.err
	}
	var err error
	if query.Namespace, err = c.namespace(q.text("namespace")); err != nil {
		return err
	}
	page, err := c.h.admin.TrailPage(c.ctx(), query, q.text("cursor"), limit)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, changePage(page))
}
