package driver

import (
	"context"
	"time"
)

type beganKey struct{}

// WithBegan gives a handler the moment at which it began in another process.
func WithBegan(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, beganKey{}, at)
}

// Began is when the handler that was given ctx began: now, unless it runs for one that began in another process.
func Began(ctx context.Context) time.Time {
	if at, ok := ctx.Value(beganKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}
