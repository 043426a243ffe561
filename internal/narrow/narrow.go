// Package narrow takes conditions along, from a door to the lists and bulk actions of package admin, that its filter
// has no field for.
package narrow

import "context"

// Filter narrows down which executions are listed. The zero value leaves all of them.
type Filter struct {
	// Shape is the shape of the message of a failure, or the key of a group of failures, as package failed makes
	// them.
	Shape string
	// Version is that of the application whose worker claimed last.
	Version string
}

type key struct{}

// With adds conditions to a call.
func With(ctx context.Context, f Filter) context.Context { return context.WithValue(ctx, key{}, f) }

// Of are the conditions of a call.
func Of(ctx context.Context) Filter {
	f, _ := ctx.Value(key{}).(Filter)
	return f
}
