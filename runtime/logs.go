package runtime

import (
	"context"
	"log/slog"
	"sync"

	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// logs are the lines that a job's handler logs, on their way to the store, and the handler of its task's logger: what
// the worker itself says of a job is not among them. Most handlers log nothing, so the writer is made by the first
// line. Safe for concurrent use.
type logs struct {
	job    *job
	logger slog.Logger

	mu     sync.Mutex
	writer *joblog.Writer // nil before the first line
	closed bool
}

// taskLogger is the logger of the task: that of the job, and what it is told is kept, if its kind keeps logs.
func (j *job) taskLogger() *slog.Logger {
	if j.kind == nil || !j.kind.logs {
		return j.logger()
	}
	j.lines.logger = *slog.New(&j.lines)
	return &j.lines.logger
}

// handler does the work of the slog.Handler that a job is.
func (l *logs) handler() *joblog.Handler {
	h := joblog.NewHandler(&l.job.logs, l, l.job.kind.level)
	return &h
}

// Enabled, Handle, WithAttrs and WithGroup implement [slog.Handler].
func (l *logs) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= l.job.kind.level || l.job.logs.Enabled(ctx, level)
}
func (l *logs) Handle(ctx context.Context, r slog.Record) error { return l.handler().Handle(ctx, r) }
func (l *logs) WithAttrs(attrs []slog.Attr) slog.Handler        { return l.handler().WithAttrs(attrs) }
func (l *logs) WithGroup(name string) slog.Handler              { return l.handler().WithGroup(name) }

// Add implements [joblog.Sink]. Lines of a goroutine that outlived its handler are dropped.
func (l *logs) Add(line stream.LogLine) {
	l.mu.Lock()
	if l.writer == nil && !l.closed {
		l.writer = joblog.NewWriter(l.job.jobs.ctx, l.job)
	}
	w := l.writer
	l.mu.Unlock()
	if w != nil {
		w.Add(line)
	}
}

// flush sends what there is, before a call that gives the lease up. It never fails: a log must not.
func (l *logs) flush() {
	l.mu.Lock()
	w := l.writer
	l.mu.Unlock()
	if w != nil {
		w.Flush()
	}
}

// close is flush for the last time.
func (l *logs) close() {
	l.mu.Lock()
	w, closed := l.writer, l.closed
	l.closed = true
	l.mu.Unlock()
	if w != nil && !closed {
		w.Close()
	}
}

// AppendLines implements [joblog.Appender] under the hold: nothing is sent once it is lost.
func (j *job) AppendLines(ctx context.Context, first uint64, lines []stream.LogLine) error {
	if err := j.held.Check(); err != nil {
		return err
	}
	return j.jobs.store.AppendLog(ctx, j.held.Fence(), first, lines)
}
