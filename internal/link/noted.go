package link

import (
	"context"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// Noted has the calls that follow kept in the audit trail, as one change of what is called name.
func (a Act) Noted(ctx context.Context, action, on, name string, detail ...string) context.Context {
	return trail.With(ctx, trail.Note{Action: action, On: on, Name: name, By: a.By, Why: a.Reason,
		Detail: strings.Join(detail, ", ")})
}

// Execution is [Act.Noted] for a change of an execution.
func (a Act) Execution(ctx context.Context, action string, id flowfabric.ExecutionID,
	detail ...string) context.Context {
	return a.Noted(ctx, action, "execution", id.String(), detail...)
}

// In is [Act.Noted] for a change of something that belongs to a namespace.
func (a Act) In(ctx context.Context, namespace, action, on, name string, detail ...string) context.Context {
	return trail.With(ctx,
		trail.Note{Action: action, On: on, Name: name, Namespace: namespace, By: a.By, Why: a.Reason,
			Detail: strings.Join(detail, ", ")})
}
