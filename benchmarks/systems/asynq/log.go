package asynq

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// log is an asynq.Logger that formats and drops, like the logs of all systems, and keeps the first error: a worker
// that lost a settlement or its connection has not done what is measured.
type log struct {
	out *slog.Logger

	mu   sync.Mutex
	kept error
}

func newLog() *log {
	return &log{out: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

func (l *log) Debug(args ...any) { l.out.Debug(fmt.Sprint(args...)) }
func (l *log) Info(args ...any)  { l.out.Info(fmt.Sprint(args...)) }
func (l *log) Warn(args ...any)  { l.keep(l.out.Warn, args) }
func (l *log) Error(args ...any) { l.keep(l.out.Error, args) }
func (l *log) Fatal(args ...any) { l.keep(l.out.Error, args) }

func (l *log) keep(write func(string, ...any), args []any) {
	text := fmt.Sprint(args...)
	write(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = errors.New("asynq: " + text)
	}
}

// first is the first warning or error, or nil.
func (l *log) first() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}
