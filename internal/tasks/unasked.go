package tasks

import "context"

type unasked struct{}

// Unasked marks spends that nobody asked for: where no gate counts them, there is nothing to warn of.
func Unasked(ctx context.Context) context.Context { return context.WithValue(ctx, unasked{}, true) }

// IsUnasked reports that mark.
func IsUnasked(ctx context.Context) bool { return ctx.Value(unasked{}) != nil }
