package runtime

import (
	"context"
	"log/slog"
)

// jobLog adds what identifies an execution to every record, but only when there is one: most executions log
// nothing, and attributes cost more than the rest of their bookkeeping.
type jobLog struct {
	slog.Handler
	job *job
}

// logger carries the attributes execution, attempt, kind, lane and worker.
func (j *job) logger() *slog.Logger { return &j.slog }

func (l *jobLog) attrs() []slog.Attr {
	f, route := l.job.held.Fence(), l.job.route
	return []slog.Attr{
		slog.String("execution", f.Execution.String()), slog.Uint64("attempt", uint64(f.Attempt)),
		slog.String("kind", route.Kind), slog.String("lane", route.Lane),
	}
}

// Handle, WithAttrs and WithGroup implement [slog.Handler]. The attributes come before a group, never inside it.
func (l *jobLog) Handle(ctx context.Context, r slog.Record) error {
	return l.Handler.WithAttrs(l.attrs()).Handle(ctx, r)
}

func (l *jobLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.Handler.WithAttrs(append(l.attrs(), attrs...))
}

func (l *jobLog) WithGroup(name string) slog.Handler {
	return l.Handler.WithAttrs(l.attrs()).WithGroup(name)
}
