package handler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/codes"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

func pointer(d time.Duration) *time.Duration { return &d }

func TestClassify(t *testing.T) {
	boom := errors.New("boom")
	fail := func(category, reason string) handler.Outcome {
		return handler.Outcome{Kind: codes.OutcomeFail,
			Failure: handler.Failure{Category: flowfabric.Category(category), Reason: reason}}
	}
	permanent := func(o handler.Outcome) handler.Outcome { o.Failure.Permanent = true; return o }
	after := func(o handler.Outcome, d time.Duration) handler.Outcome { o.Failure.RetryAfter = pointer(d); return o }
	abandon := handler.Outcome{Kind: codes.OutcomeAbandon}
	release := handler.Outcome{Kind: codes.OutcomeRelease}
	for _, tc := range []struct {
		name  string
		cause error // ends the context; nil: it lives
		lost  error // what the lease says
		err   error
		want  handler.Outcome
	}{
		{name: "error", err: boom, want: fail("handler_error", "boom")},
		{name: "no error", err: nil, want: fail("handler_error", "the handler failed without an error")},
		{name: "permanent", err: handler.Permanent(boom), want: permanent(fail("handler_error", "boom"))},
		{name: "permanent, wrapped", err: fmt.Errorf("call: %w", handler.Permanent(boom)),
			want: permanent(fail("handler_error", "call: boom"))},
		{name: "retry after", err: handler.RetryAfter(1500*time.Microsecond, boom),
			want: after(fail("handler_error", "boom"), 2*time.Millisecond)},
		{name: "retry after, past", err: handler.RetryAfter(-time.Second, boom),
			want: after(fail("handler_error", "boom"), 0)},
		{name: "retry after, far", err: handler.RetryAfter(1<<62, boom),
			want: after(fail("handler_error", "boom"), limits.MaxBackoff)},
		{name: "category", err: handler.Category("rate_limited", boom), want: fail("rate_limited", "boom")},
		{name: "all three", err: handler.Category("rate_limited",
			handler.RetryAfter(time.Second, handler.Permanent(boom))), want: permanent(fail("rate_limited", "boom"))},
		{name: "category and pause", err: handler.RetryAfter(time.Second, handler.Category("rate_limited", boom)),
			want: after(fail("rate_limited", "boom"), time.Second)},
		{name: "bad category", err: handler.Category("no spaces", boom),
			want: fail("handler_error",
				`invalid_input: a value is not valid: category "no spaces" has byte 0x20 at 2, want letters, digits or _.:-: boom`)},
		{name: "delay", err: handler.Delay(time.Minute),
			want: handler.Outcome{Kind: codes.OutcomeDelay, Delay: time.Minute}},
		{name: "delay, wrapped", err: fmt.Errorf("not yet: %w", handler.Delay(1)),
			want: handler.Outcome{Kind: codes.OutcomeDelay, Delay: time.Millisecond}},
		{name: "delay, past", err: handler.Delay(-1), want: handler.Outcome{Kind: codes.OutcomeDelay}},
		{name: "delay, far", err: handler.Delay(1 << 62),
			want: handler.Outcome{Kind: codes.OutcomeDelay, Delay: limits.MaxDelay}},
		{name: "continue", err: handler.Continue(7),
			want: handler.Outcome{Kind: codes.OutcomeContinue, Input: []byte("7")}},
		{name: "continue, wrapped", err: fmt.Errorf("on: %w", handler.Continue("x")),
			want: handler.Outcome{Kind: codes.OutcomeContinue, Input: []byte(`"x"`)}},
		{name: "continue wins over delay", err: errors.Join(handler.Delay(time.Second), handler.Continue(7)),
			want: handler.Outcome{Kind: codes.OutcomeContinue, Input: []byte("7")}},
		{name: "cancel wins over continue", err: errors.Join(handler.Continue(7), handler.Cancel("no")),
			want: handler.Outcome{Kind: codes.OutcomeCancel, Reason: "no"}},
		{name: "continue with what does not encode", err: handler.Continue(func() {}),
			want: permanent(fail("handler_error", "continue: json: unsupported type: func()"))},
		{name: "cancel", err: handler.Cancel("obsolete"),
			want: handler.Outcome{Kind: codes.OutcomeCancel, Reason: "obsolete"}},
		{name: "cancel wins", err: errors.Join(handler.Permanent(boom), handler.Cancel("obsolete")),
			want: handler.Outcome{Kind: codes.OutcomeCancel, Reason: "obsolete"}},

		{name: "canceled, context lives", err: fmt.Errorf("inner: %w", context.Canceled),
			want: fail("handler_error", "inner: context canceled")},
		{name: "draining", cause: flowfabric.ErrDraining, err: context.Canceled, want: release},
		{name: "draining, cause returned", cause: flowfabric.ErrDraining, err: flowfabric.ErrDraining, want: release},
		{name: "draining, foreign error", cause: flowfabric.ErrDraining, err: errors.New("rpc error: code = Canceled"),
			want: release},
		{name: "draining, marked because of it", cause: flowfabric.ErrDraining,
			err: handler.Permanent(context.Canceled), want: release},
		{name: "draining, described", cause: flowfabric.ErrDraining,
			err: handler.Category("llm", handler.RetryAfter(1, boom)), want: release},
		{name: "draining, decided", cause: flowfabric.ErrDraining, err: handler.Permanent(boom),
			want: permanent(fail("handler_error", "boom"))},
		{name: "lease lost", cause: flowfabric.ErrLeaseLost, err: handler.Permanent(boom), want: abandon},
		{name: "cancelled", cause: flowfabric.ErrCancelled, err: context.Canceled, want: abandon},
		{name: "deadline", cause: flowfabric.ErrDeadline, err: context.Canceled, want: abandon},
		{name: "timeout here", cause: flowfabric.ErrAttemptTimeout, err: context.DeadlineExceeded,
			want: fail("attempt_timeout", "context deadline exceeded")},
		{name: "timeout by the server", cause: flowfabric.ErrAttemptTimeout, lost: flowfabric.ErrAttemptTimeout,
			err: context.Canceled, want: abandon},
		{name: "lost unnoticed", lost: flowfabric.ErrLeaseLost, err: boom, want: abandon},
		{name: "over budget", cause: flowfabric.ErrOverBudget, err: context.Canceled,
			want: fail("budget_exceeded", "context canceled")},
		{name: "foreign timeout", cause: context.DeadlineExceeded, err: context.DeadlineExceeded,
			want: fail("attempt_timeout", "context deadline exceeded")},
		{name: "foreign cause", cause: boom, err: context.Canceled, want: fail("handler_error", "context canceled")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if tc.cause != nil {
				cancel(tc.cause)
			}
			task := newTask(tasks.Config{Lease: fixedLease{tc.lost}})
			got := handler.Classify(ctx, task, tc.err)
			if got.Err == nil {
				t.Error("Outcome.Err is nil")
			}
			if show(got) != show(tc.want) {
				t.Errorf("got  %s\nwant %s", show(got), show(tc.want))
			}
		})
	}
}

// show is an outcome without its error.
func show(o handler.Outcome) string {
	pause := "policy"
	if o.Failure.RetryAfter != nil {
		pause = o.Failure.RetryAfter.String()
	}
	return fmt.Sprintf("%s result=%q delay=%v category=%q reason=%q permanent=%t pause=%s cancel=%q",
		o.Kind, o.Result, o.Delay, o.Failure.Category, o.Failure.Reason, o.Failure.Permanent, pause, o.Reason)
}

func TestNilStaysNil(t *testing.T) {
	if err := errors.Join(handler.Permanent(nil), handler.RetryAfter(1, nil), handler.Category("x", nil)); err != nil {
		t.Fatalf("got %v", err)
	}
}

// A server that has not refused a value decides about it by its fence, whatever ended the context.
func TestValueStands(t *testing.T) {
	for cause, want := range map[error]string{
		flowfabric.ErrDraining:       codes.OutcomeComplete,
		flowfabric.ErrAttemptTimeout: codes.OutcomeComplete,
		flowfabric.ErrDeadline:       codes.OutcomeComplete,
		flowfabric.ErrLeaseLost:      codes.OutcomeAbandon,
		flowfabric.ErrCancelled:      codes.OutcomeAbandon,
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		out := handler.Bind(handler.Define[[]byte, []byte]("k"), handler.Plain(echo[[]byte])).Run(ctx,
			newTask(tasks.Config{}))
		if out.Kind != want {
			t.Errorf("%v: got %s, want %s", cause, out.Kind, want)
		}
	}
}

// hidden wraps a cause that its message does not mention.
type hidden struct{ cause error }

func (hidden) Error() string   { return "upload failed" }
func (h hidden) Unwrap() error { return h.cause }

type broken struct{}

func (*broken) Error() string { panic("no text") }

func TestErrorText(t *testing.T) {
	loop := &hiddenLoop{}
	loop.cause = loop
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", io.EOF, "EOF"},
		{"wrapped", fmt.Errorf("read: %w", io.EOF), "read: EOF"},
		{"hidden cause", fmt.Errorf("job: %w", hidden{fmt.Errorf("put: %w", io.EOF)}), "job: upload failed: put: EOF"},
		{"joined", errors.Join(hidden{io.EOF}, hidden{io.ErrNoProgress}),
			"upload failed\nupload failed: EOF: multiple Read calls return no data or error"},
		{"cycle", loop, "loop"},
		{"not UTF-8", errors.New("a\xffb"), "a?b"},
		{"cut at a rune", errors.New(strings.Repeat("x", 1023) + "é"), strings.Repeat("x", 1023)},
		{"at the limit", errors.New(strings.Repeat("x", 1022) + "é"), strings.Repeat("x", 1022) + "é"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := handler.ErrorText(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := handler.ErrorText(&broken{}); !strings.Contains(got, "no text") {
		t.Errorf("an Error method that panics: %q", got)
	}
	noise := strings.Repeat("\xc3\xff€", 700)
	for n := range 12 {
		if got := handler.ErrorText(errors.New(noise[n:])); len(got) > 1024 || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
		}
	}
}

type hiddenLoop struct{ cause error }

func (*hiddenLoop) Error() string   { return "loop" }
func (h *hiddenLoop) Unwrap() error { return h.cause }

type fixedLease struct{ lost error }

func (l fixedLease) Check() error      { return l.lost }
func (fixedLease) Healthy() bool       { return false }
func (fixedLease) Listen(func(string)) {}

func quiet() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}
