package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/narrow"
)

// bulkTime is how long one request of a bulk action works, about.
const bulkTime = 20 * time.Second

type bulkBody struct {
	Action   string `json:"action" jsonschema:"replay, cancel, purge, run_now, priority, hold or unhold"`
	Priority *int   `json:"priority,omitempty" jsonschema:"of action priority, which needs it: 0..9000, higher first"`
	admin.Replay
	kept
	admin.BulkOptions
	why
}

// action is what a bulk request does to each.
func (b *bulkBody) action(c *call) (admin.BulkAction, error) {
	switch {
	case b.Action == "priority" && b.Priority == nil:
		return admin.BulkAction{}, absent("/priority")
	case b.Action != "priority" && b.Priority != nil:
		return admin.BulkAction{}, invalid("/priority", "it belongs to action priority")
	case b.Action != "purge" && b.KeepMs != 0:
		return admin.BulkAction{}, invalid("/keep_ms", "it belongs to action purge")
	case b.Action != "replay" && b.Replay != (admin.Replay{}):
		return admin.BulkAction{}, invalid("/action", "from_scratch, from_step and force belong to replay")
	}
	switch b.Action {
	case "replay":
		return admin.BulkAction{Replay: &b.Replay}, nil
	case "cancel":
		return admin.BulkAction{Cancel: true}, nil
	case "run_now":
		return admin.BulkAction{RunNow: true}, nil
	case "priority":
		return admin.BulkAction{Priority: b.Priority}, nil
	case "hold":
		return admin.BulkAction{Hold: true}, nil
	case "unhold":
		return admin.BulkAction{Unhold: true}, nil
	case "purge":
		if !slices.Contains(root, c.who.Role) {
			return admin.BulkAction{}, &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/action",
				Detail: "purge wants an admin"}
		}
		return admin.BulkAction{Purge: new(ms(b.KeepMs))}, nil
	}
	return admin.BulkAction{},
		invalid("/action", "it is %.32q, want replay, cancel, purge, run_now, priority, hold or unhold", b.Action)
}

func (c *call) bulk(b *bulkBody) (r admin.BulkResult, err error) {
	f, err := c.filter(c.query())
	if err != nil {
		return r, err
	}
	if shape := narrow.Of(c.ctx()).Shape; (f.ErrorText != "" || shape != "") && c.h.cfg.Redact != nil {
		field := "error"
		if shape != "" {
			field = "shape"
		}
		return r, invalid(field, "messages of failures are redacted here, so a bulk action cannot choose by them")
	}
	action, err := b.action(c)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), bulkTime)
	defer cancel()
	r, err = c.h.admin.Bulk(ctx, f, action, b.BulkOptions, c.act(b.why)...)
	if err != nil && (c.ctx().Err() != nil || ctx.Err() == nil) {
		return r, err
	}
	for i, text := range r.Texts {
		r.Texts[i] = inMembers(text)
	}
	return r, nil
}
