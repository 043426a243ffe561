package httpapi

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/failed"
)

// failures are groups of what failed. The messages are redacted before they are grouped, so that a group tells no more
// than the list.
func (c *call) failures() (apiv1.Failures, error) {
	f, err := c.filter(c.query())
	if err != nil {
		return apiv1.Failures{}, err
	}
	f.States, f.Newest, f.WithTags = []flowfabric.PublicState{flowfabric.Failed}, true, false
	var all failed.Groups
	more, err := c.look(f, failed.Most, func(x admin.Listed) {
		x.Failure.Message = c.redactorOf(x.ID, x.Route).text("failure", x.Failure.Message)
		all.Add(failed.Execution{ID: x.ID, Kind: x.Kind, EndedAt: x.EndedAt, Failure: x.Failure})
	})
	return all.All(more), err
}

// look reads up to most executions that a filter lists, and tells whether there may be more. It gives up when so many
// were looked at that few of them are listed.
func (c *call) look(f admin.Filter, most int, each func(admin.Listed)) (more bool, err error) {
	for cursor, n := "", 0; ; {
		limit := min(maxPage, most-n)
		page, err := c.h.admin.ListPage(c.ctx(), f, cursor, limit)
		if err != nil {
			return false, err
		}
		for _, x := range page.Items {
			if x.Drift == "" && c.who.may(x.Route.Namespace) {
				each(x)
			}
		}
		n += len(page.Items)
		if cursor = page.Cursor; cursor == "" || n >= most || len(page.Items) < limit {
			return cursor != "", nil
		}
	}
}
