package httpapi

import (
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
)

type changePage struct {
	Items      []changed `json:"items"`
	NextCursor string    `json:"next_cursor,omitempty" jsonschema:"for the next page; none: there is none"`
}

// changed is an entry of the audit trail.
type changed struct {
	At        *time.Time `json:"at"`
	Action    string     `json:"action" jsonschema:"the verb"`
	On        string     `json:"on" jsonschema:"to what kind of thing"`
	Name      string     `json:"name" jsonschema:"its id or name; the filter of a bulk action"`
	Namespace string     `json:"namespace,omitempty"`
	By        string     `json:"by" jsonschema:"who; for the API the name of the token; empty if nobody was named"`
	From      string     `json:"from,omitempty" jsonschema:"api, cli or go, with the address or host"`
	Why       string     `json:"why,omitempty" jsonschema:"the reason that was given"`
	Detail    string     `json:"detail,omitempty" jsonschema:"what it was set to, and the like"`
	Text      string     `json:"text" jsonschema:"all of it in a sentence"`
}

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
	out := changePage{Items: make([]changed, 0, len(page.Items)), NextCursor: page.Cursor}
	for _, x := range page.Items {
		out.Items = append(out.Items, changed{utc(x.At), x.Action, x.On, x.Name, x.Namespace, x.By, x.From, x.Why,
			x.Detail, x.String()})
	}
	return c.answerJSON(http.StatusOK, out)
}
