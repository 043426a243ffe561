package httpapi

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// utc is a time in an answer, nil when there is none.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

type executionPage struct {
	Items      []admin.Listed `json:"items"`
	NextCursor string         `json:"next_cursor,omitempty" jsonschema:"absent after the last page"`
}

// instance is the worker of a session.
func instance(session string) string {
	return ids.Worker(session)
}

// payload is what a program stored.
type payload = flowfabric.Payload
