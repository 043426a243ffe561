package suspend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
)

// Reason says why an execution waits, as dashboards show it: one of the constants, or paused_by_policy,
// paused_by_budget, step_boundary, manual_pause, or waiting_for_children, which is the default of waits for children.
type Reason string

// The reasons. The default is ReasonSignal.
const (
	ReasonSignal     Reason = "waiting_for_signal"
	ReasonApproval   Reason = "waiting_for_approval"
	ReasonCallback   Reason = "waiting_for_callback"
	ReasonToolResult Reason = "waiting_for_tool_result"
	ReasonReview     Reason = "waiting_for_operator_review"
)

// Behaviour is what happens when a wait lasts longer than [Within] allows. No retry policy applies.
type Behaviour string

// The behaviours. The default is Fail.
const (
	// the execution fails (dead letter), category suspension_timeout
	Fail   Behaviour = "fail"
	Cancel Behaviour = "cancel"      // it is cancelled
	Expire Behaviour = "expire"      // it expires
	Resume Behaviour = "auto_resume" // the handler goes on; the wait returns ErrWaitTimeout
	// Resume, and the waitpoints that Pending opened stay open for the next wait on their keys
	Remind Behaviour = "auto_resume_open"
	// it goes on waiting, for an operator's review; signals still resume it
	Escalate Behaviour = "escalate"
	Notice   Behaviour = "auto_resume_with_timeout_signal" // Resume, and Result.Signals has one signal named __timeout
)

type options struct {
	within    time.Duration
	behaviour Behaviour
	reason    Reason
	delay     time.Duration
	named     string
	key       string
	question  *Question
}

// Option changes a wait.
type Option func(*options)

// Within bounds the wait: 1 ms to ten years from the moment the execution suspends, by the server's clock. Default,
// and what 0 means: for ever.
func Within(d time.Duration) Option { return func(o *options) { o.within = d } }

// OnTimeout says what happens after [Within]. Default [Fail].
func OnTimeout(b Behaviour) Option { return func(o *options) { o.behaviour = b } }

// Because says why the execution waits. Default [ReasonSignal].
func Because(r Reason) Option { return func(o *options) { o.reason = r } }

// ResumeAfter keeps the execution back for up to 30 days after it was resumed. Default 0.
func ResumeAfter(d time.Duration) Option { return func(o *options) { o.delay = d } }

// Named makes [Await], and only that, wait for a signal of this name, 1..128 bytes. Default: any.
func Named(signal string) Option { return func(o *options) { o.named = signal } }

// At makes [Await] and [Ask], and only these, wait on the waitpoint of this key, 1..256 bytes, instead of the one
// that is called like the wait: for a second wait on a waitpoint that an earlier one has left open ([Remind]).
func At(key string) Option { return func(o *options) { o.key = key } }

// Task is the part of a handler's task that waits name it by; *handler.Task is one. Other tasks cannot wait.
type Task interface{ ID() flowfabric.ExecutionID }

// waits is what package handler knows of the waits of one task.
type waits interface {
	// Ask takes a wait's name for this run of the handler and returns what it was answered, nil if it was not.
	Ask(ctx context.Context, name string) (*Result, error)
	// Want notes that this run asked for a wait that has no answer yet.
	Want(name string)
	// Last is what ended the last suspension, nil if there was none.
	Last() *Result
	// Pending opens the waitpoint of a key, the first time, and returns its token.
	Pending(ctx context.Context, key string, life time.Duration) (Token, error)
	// Close closes the waitpoint of a key that Pending opened.
	Close(ctx context.Context, key string) error
	// Receipt takes the next receipt of a mailbox for this run and returns its name, under which it waits, too, and
	// what that wait was answered, nil if it was not.
	Receipt(ctx context.Context, mailbox string) (name string, answer *Result, err error)
	// Take hands out up to limit messages, those of an earlier run if the receipt was recorded. Without any, why is
	// recorded as the reason, unless it is ""; an earlier run's reason is returned.
	Take(ctx context.Context, name, mailbox string, limit int, why string) ([]Message, string, error)
}

func waitsOf(t Task) (waits, error) {
	if w, ok := waithook.Of(t).(waits); ok {
		return w, nil
	}
	return nil, fmt.Errorf("%w: only a *handler.Task can wait, not a %T", flowfabric.ErrInvalidInput, t)
}

// Await waits for one signal on the waitpoint called name and returns its payload, decoded from JSON (a []byte gets
// it as it is, a string also from encoding utf8). If [Pending] opened a waitpoint of that key before, it waits on
// that one; else it opens one, which operators reach by its key and outsiders through a token that admin.ReissueToken
// makes.
//
// The first run gets an error that the handler must return, wrapped or not: it is what suspends the execution, after
// the handler has returned. Slot, lease and goroutine are free while it waits. When it goes on, the handler runs
// again from the top, and this Await returns the answer. name is 1..128 bytes of printable ASCII, unique within a
// run.
//
// Errors: flowfabric.ErrWaitTimeout after [Within] with OnTimeout([Resume]); ErrNoSignal when an operator resumed the
// execution without one; ErrInvalidInput for a name, key or option out of bounds, a duplicate, a condition that cannot
// be met, or a wait inside a step; code task_consumed after the handler returned; the context's cause. On a worker
// without token keys the execution fails for good, category suspend_refused (flowfabric.ErrNoTokenKeys). A payload
// that does not decode is returned as such each time; what to do about it is the handler's decision.
func Await[T any](ctx context.Context, t Task, name string, opts ...Option) (T, error) {
	var value T
	o := applied(opts)
	cond := Signal(cmp.Or(o.key, name))
	if o.named != "" {
		cond = cond.Named(o.named)
	}
	o.named, o.key = "", ""
	r, err := wait(ctx, t, name, cond, o)
	if err != nil {
		return value, err
	}
	if len(r.Signals) == 0 {
		return value, fmt.Errorf("wait %s: %w%s", name, flowfabric.ErrNoSignal, who(r))
	}
	if value, err = Decode[T](r.Signals[0]); err != nil {
		return value, fmt.Errorf("wait %s: %w", name, err)
	}
	return value, nil
}

// who tells who resumed an execution and what they said, as far as that is known.
func who(r Result) string {
	who := ""
	if r.By != "" {
		who = " by " + r.By
	}
	if r.Reason != "" {
		who += ": " + r.Reason
	}
	return who
}

// Wait is [Await] for any condition; each key of it is a waitpoint that [Pending] opened before, or a fresh one. An
// operator who resumes the execution is an answer (Result.Cause) and no error. Errors: as Await, but for ErrNoSignal.
func Wait(ctx context.Context, t Task, name string, cond Condition, opts ...Option) (Result, error) {
	return wait(ctx, t, name, cond, applied(opts))
}

func wait(ctx context.Context, t Task, name string, cond Condition, o options) (r Result, err error) {
	defer func() { err = denied.Last(err) }()
	p, err := waitsOf(t)
	if err != nil {
		return Result{}, err
	}
	answer, err := p.Ask(ctx, name)
	if err != nil {
		return Result{}, err
	}
	if answer != nil {
		return *answer, late(name, *answer)
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	w, err := want(name, cond, o)
	if err != nil {
		return Result{}, fmt.Errorf("wait %s: %w", name, err)
	}
	p.Want(name)
	return Result{}, w
}

// late is the error of a wait that a timeout ended.
func late(name string, r Result) error {
	if r.Cause == waithook.CauseTimeout {
		return fmt.Errorf("wait %s: %w", name, flowfabric.ErrWaitTimeout)
	}
	return nil
}

// On is a wait for handlers that are state machines of their own: returned by one, it suspends the execution, and the
// next run finds the answer with [Resumed]. Nothing is kept for later runs. A condition or option that is not valid
// fails the attempt for good.
func On(cond Condition, opts ...Option) error {
	w, err := want("", cond, applied(opts))
	if err != nil {
		return err
	}
	return w
}

// Resumed tells what ended the execution's last suspension; ok is false if there was none. A timeout is an answer here.
func Resumed(t Task) (r Result, ok bool) {
	p, err := waitsOf(t)
	if err != nil {
		return Result{}, false
	}
	last := p.Last()
	if last == nil {
		return Result{}, false
	}
	return *last, true
}

// Pending opens a waitpoint before the handler waits, and returns its token to hand out; a later [Await] or [Wait] on
// the key uses it, and signals that come before that count. life, 1 s to 7 days, bounds only the time until then: the
// wait itself may last longer ([Within]). If it runs out before, the wait fails the execution for good, category
// suspend_refused. In every run, also after a crash, the same key gets the same token: hand it out inside a step, so
// that it is handed out once. A waitpoint serves one wait, or several that end with OnTimeout([Remind]) and wait on
// its key again. key is 1..128 bytes of printable ASCII. The token of a waitpoint that is closed is the zero Token if
// its key is no longer configured: nobody needs it.
//
// Errors: flowfabric.ErrNoTokenKeys when no token key is configured, or not the one that signed a waitpoint that is
// still open; ErrLimit beyond 64 open ones, and when the execution has recorded all steps that it may;
// ErrInvalidInput; ErrLeaseLost; ErrTransport; the context's cause.
func Pending(ctx context.Context, t Task, key string, life time.Duration) (token Token, err error) {
	defer func() { err = denied.Last(err) }()
	p, err := waitsOf(t)
	if err != nil {
		return Token{}, err
	}
	if err := waithook.CheckName(key); err != nil {
		return Token{}, err
	}
	if life < limits.MinWaitpointLife || life > limits.MaxWaitpointLife {
		return Token{}, fmt.Errorf(
			"%w: waitpoint %s: life until the wait begins is %v, want %v..%v (the wait may be longer, see Within)",
			flowfabric.ErrInvalidInput, key, life, limits.MinWaitpointLife, limits.MaxWaitpointLife)
	}
	return p.Pending(ctx, key, life)
}

// Close closes a waitpoint that [Pending] opened and that nothing waits for: its token is dead at once, and a signal
// that comes later is refused with flowfabric.ErrWaitpointClosed. What had come is not used. The waitpoint's step
// records it, so in later runs Close does nothing. Pending keeps returning the token, and a wait on the key fails the
// execution for good, category suspend_refused. Closing what an answered wait has closed is no error.
//
// Errors: flowfabric.ErrInvalidInput for a key that Pending has not opened in this execution, or inside a step;
// ErrLeaseLost; ErrTransport; code task_consumed after the handler returned; the context's cause.
func Close(ctx context.Context, t Task, key string) (err error) {
	defer func() { err = denied.Last(err) }()
	p, err := waitsOf(t)
	if err != nil {
		return err
	}
	return p.Close(ctx, key)
}

// Decode reads the payload of a signal or a message: JSON into T; a []byte as it is; a string as it is from encoding
// utf8. One without payload (null) decodes into pointers, interfaces, maps and slices only. The error wraps
// flowfabric.ErrInvalidInput. The answer of a wait is kept, so a handler that returns the error fails for good.
func Decode[T any, From StoredSignal | Message](from From) (T, error) {
	var s StoredSignal
	switch from := any(from).(type) {
	case StoredSignal:
		s = from
	case Message:
		s = StoredSignal{Name: from.Mailbox, Encoding: from.Encoding, Payload: from.Payload}
	}
	var value T
	switch p := any(&value).(type) {
	case *[]byte:
		*p = s.Payload
		return value, nil
	case *string:
		if s.Encoding == "utf8" {
			*p = string(s.Payload)
			return value, nil
		}
	}
	if s.Encoding != "json" {
		return value, &waithook.Undecodable{Err: fmt.Errorf("signal %q has encoding %s, which does not decode into %T",
			s.Name, s.Encoding, value)}
	}
	if string(bytes.TrimSpace(s.Payload)) == "null" && !nullable[T]() {
		return value, &waithook.Undecodable{Err: fmt.Errorf("signal %q has no payload (null), want %T", s.Name, value)}
	}
	if err := json.Unmarshal(s.Payload, &value); err != nil {
		return value, &waithook.Undecodable{Err: fmt.Errorf("payload of signal %q does not decode into %T: %w", s.Name,
			value, err)}
	}
	return value, nil
}

// nullable reports a type in which null differs from a value: a silent zero value would be an answer that nobody gave.
func nullable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}

func applied(opts []Option) options {
	o := options{behaviour: Fail, reason: ReasonSignal}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func want(name string, cond Condition, o options) (*waithook.Wanted, error) {
	text, keys, err := cond.compile()
	if err != nil {
		return nil, err
	}
	switch {
	case o.key != "":
		return nil, fmt.Errorf("%w: the option At is for Await and Ask; name the key in the condition",
			flowfabric.ErrInvalidInput)
	case o.named != "":
		return nil, fmt.Errorf("%w: the option Named is for Await; narrow a condition with Condition.Named",
			flowfabric.ErrInvalidInput)
	case cond.op == 'T' && o.within <= 0:
		return nil, fmt.Errorf("%w: timeout_only_without_deadline: Timeout needs Within", denied.Condition)
	case o.within < 0 || o.within > limits.MaxDelay:
		return nil, fmt.Errorf("%w: Within is %v, want 1ms to ten years, or 0 for ever", flowfabric.ErrInvalidInput,
			o.within)
	case o.delay < 0 || o.delay > limits.MaxResumeDelay:
		return nil, fmt.Errorf("%w: ResumeAfter is %v, want 0..30 days", flowfabric.ErrInvalidInput, o.delay)
	}
	switch o.behaviour {
	case Fail, Cancel, Expire, Resume, Remind, Escalate, Notice:
	default:
		return nil, fmt.Errorf("%w: OnTimeout is %q, want Fail, Cancel, Expire, Resume, Remind, Notice or Escalate",
			flowfabric.ErrInvalidInput, string(o.behaviour))
	}
	switch o.reason {
	case ReasonSignal, ReasonApproval, ReasonCallback, ReasonToolResult, ReasonReview, "paused_by_policy",
		"paused_by_budget", "step_boundary", "manual_pause", "waiting_for_children":
	default:
		return nil, fmt.Errorf("%w: Because is %q, want one of the Reason constants", flowfabric.ErrInvalidInput,
			string(o.reason))
	}
	question, err := o.asked()
	if err != nil {
		return nil, err
	}
	return &waithook.Wanted{Name: name, Condition: text, Keys: keys, Question: question, Reason: string(o.reason),
		Behaviour: string(o.behaviour), Within: o.within, ResumeDelay: o.delay}, nil
}

// IsWanted reports that err asks to suspend, so that middleware does not take it for a failure.
func IsWanted(err error) bool {
	_, ok := errors.AsType[*waithook.Wanted](err)
	return ok
}

// EnvTokenKeys is the environment variable that workers and clients read token keys from by default.
const EnvTokenKeys = "FLOWFABRIC_TOKEN_KEYS"
