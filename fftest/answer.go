package fftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Answer is an action from outside on an execution: by a sender who signals or sends a message, a program that
// publishes an event, or an operator. Build it with [Signal], [Publish], [Approve], [Resume], [Send] or [Stop] and give
// it with [Answered], [Tell] or [Execution.Answer]. Immutable.
type Answer struct {
	do        deed
	waitpoint string
	token     suspend.Token
	act       []flowfabric.ActOption // of a resumption, or a stop
	payload   any
	event     client.Event
	told      bool // by Tell, which waits for nobody to expect the event
	opts      []client.SignalOption
	sending   []client.SendOption
	approval  []client.ApproveOption
	after     time.Duration
}

// operator is who approves and resumes if nobody says.
var operator = flowfabric.By("fftest")

type deed uint8

const (
	signalKey deed = iota + 1
	signalToken
	approve
	resume
	send
	stop
	publish
)

// unwaited tells whether the answer is given without looking whether the execution waits: what comes early is kept.
func (a Answer) unwaited() bool {
	return a.do == signalToken || a.do == send || a.do == stop || a.do == publish && a.told
}

// Signal answers the wait on the waitpoint of this key as somebody who holds its token. With a token that the handler
// handed out, see handler.Task.Pending, it does not wait for the execution to suspend: what comes early is kept.
// Payload and opts (the signal's name, its source, an idempotency key) are those of [client.Client.Signal].
func Signal[Waitpoint string | suspend.Token](to Waitpoint, payload any, opts ...client.SignalOption) Answer {
	if token, ok := any(to).(suspend.Token); ok {
		return Answer{do: signalToken, token: token, payload: payload, opts: opts}
	}
	return Answer{do: signalKey, waitpoint: any(to).(string), payload: payload, opts: opts}
}

// Publish publishes an event, see [client.Client.Publish], when the execution waits for one of its subject, see
// handler.Task.Expect; by [Tell] at once, as a program that does not know who expects it. One that does not match goes
// to nobody, which is no mistake.
func Publish(event client.Event) Answer { return Answer{do: publish, event: event} }

// Approve answers the wait on the waitpoint of this key as an operator, who needs no token: "fftest", unless
// flowfabric.By says who.
func Approve(waitpoint string, payload any, opts ...client.ApproveOption) Answer {
	return Answer{do: approve, waitpoint: waitpoint, payload: payload, approval: opts}
}

// Resume lets the execution go on without a signal, whatever it waits for, as an operator: "fftest", unless
// flowfabric.By says who.
func Resume(opts ...flowfabric.ActOption) Answer { return Answer{do: resume, act: opts} }

// Send puts a message into a mailbox of the execution, see [client.Execution.Send], from "fftest" unless flowfabric.By
// says who. It does not wait for the execution to wait for one. What comes early is kept.
func Send(mailbox string, payload any, opts ...client.SendOption) Answer {
	return Answer{do: send, waitpoint: mailbox, payload: payload, sending: opts}
}

// Stop ends what the execution says, see [client.Execution.Stop], as "fftest" unless flowfabric.By says who. It does
// not wait for the execution to suspend, and one that comes too late is no mistake.
func Stop(opts ...flowfabric.ActOption) Answer { return Answer{do: stop, act: opts} }

// After puts an answer off until d of virtual time after the execution suspended; for [Send], [Stop], a [Signal] with a
// token and a [Publish] of [Tell], after it is given.
func (a Answer) After(d time.Duration) Answer {
	a.after = d
	return a
}

// words says what the answer is, without its token.
func (a Answer) words() string {
	switch a.do {
	case signalKey:
		return "signal on waitpoint " + a.waitpoint
	case signalToken:
		return "signal with token " + a.token.String()
	case approve:
		return "approval of waitpoint " + a.waitpoint
	case resume:
		return "resumption"
	case send:
		return "message to mailbox " + a.waitpoint
	case stop:
		return "stop"
	case publish:
		return "event " + a.event.Subject
	}
	return "an empty answer; build it with Signal, Publish, Approve, Resume, Send or Stop"
}

// Answered is fn with people around it who answer its waits: each answer is given when the execution has suspended on
// the waitpoint of its key, one after another in this order; one whose wait is over before its time has come stays
// for the next suspension on that key. It serves [Run], [New] and what the setup of [Crashes] returns. An answer that
// is left when the execution has ended, or that is refused, fails the test.
func Answered[In, Out any](fn func(context.Context, *handler.Task, In) (Out, error),
	answers ...Answer) func(context.Context, *handler.Task, In) (Out, error) {
	if fn == nil {
		return nil // reported by handler.Bind
	}
	return func(ctx context.Context, t *handler.Task, in In) (Out, error) {
		if p, _ := runOf(ctx); p != nil {
			p.env.answered(t.ID(), answers)
		}
		return fn(ctx, t, in)
	}
}

// Tell gives answers from within a fake that a handler calls: the reader of the mail with the token clicks at once.
// ctx is the handler's, or was made from it. It returns when those answers are given that need no waiting; the others
// follow in virtual time. What the handler of a dead worker tells is not heard. A signal that comes too late is no
// mistake of the test's, since a step that was repeated told twice; any other refusal fails the test.
func Tell(ctx context.Context, answers ...Answer) {
	p, id := runOf(ctx)
	if p == nil || p.dead.Load() {
		return
	}
	for _, a := range answers {
		a.told = true
		if a.unwaited() && a.after <= 0 {
			p.env.bring(p.env.life, id, a)
			continue
		}
		p.env.running.Go(func() { p.env.follow(p.env.life, id, a) })
	}
}

// Answer waits, in virtual time, until the execution waits for this answer, gives it, and returns what the server
// said. An execution that ends before, or does not get there within Patience of its [Env], ends the test, and so does
// a refusal; to test for one use [Env.Client].
func (x *Execution[Out]) Answer(a Answer) suspend.Delivered {
	w := x.env
	w.t.Helper()
	for {
		at := time.Now()
		if !a.unwaited() {
			at = x.waits(a).CreatedAt
		}
		w.Sleep(time.Until(at.Add(a.after)))
		if !a.unwaited() {
			s, err := w.client.Execution(x.ID()).Suspension(w.t.Context())
			if err == nil {
				if wanted, err := w.wanted(w.t.Context(), x.ID(), s, a); err == nil && !wanted {
					continue // answered otherwise meanwhile
				}
			}
		}
		d, err := w.deliver(w.t.Context(), x.ID(), a)
		if err != nil {
			w.t.Fatal(w.refused(w.t.Context(), x.ID(), a, err))
		}
		return d
	}
}

// AwaitSuspension waits, in virtual time, until the execution is suspended, and tells what it waits for. One that
// ends before, or does not get there within Patience of its [Env], ends the test.
func (x *Execution[Out]) AwaitSuspension() suspend.Record {
	x.env.t.Helper()
	return x.waits(Answer{do: resume})
}

// waits returns the suspension that an answer is for, once there is one.
func (x *Execution[Out]) waits(a Answer) suspend.Record {
	w := x.env
	w.t.Helper()
	var found suspend.Record
	err := w.until(w.t.Context(), x.ID(), func(ctx context.Context) (bool, error) {
		s, err := w.client.Execution(x.ID()).Suspension(ctx)
		if err != nil {
			return false, err
		}
		if s.State.Terminal() {
			return false, fmt.Errorf("it is %s", s.State)
		}
		found = s
		return w.wanted(ctx, x.ID(), s, a)
	})
	if err != nil {
		w.t.Fatalf("fftest: %s does not wait for the %s: %v", x.ID(), a.words(), err)
	}
	return found
}

// wanted reports whether a suspension waits for the answer: for an event, that none is on its way.
func (w *Env) wanted(ctx context.Context, id flowfabric.ExecutionID, s suspend.Record, a Answer) (bool, error) {
	if s.State != flowfabric.Suspended || a.do == resume {
		return s.State == flowfabric.Suspended, nil
	}
	i := slices.IndexFunc(s.Waitpoints, func(p suspend.Waitpoint) bool {
		return p.State == "active" && (p.Key == a.waitpoint || a.do == publish && p.Subject == a.event.Subject)
	})
	if i < 0 || a.do != publish {
		return i >= 0, nil
	}
	known := w.client.Link()
	partition, subject := ids.Subject(w.cfg.Partitions, cmp.Or(a.event.Namespace, known.Namespace), a.event.Subject)
	for skip := 0; ; skip += limits.MaxListed {
		list, err := known.Engine.Expected(ctx, partition, skip)
		if slices.ContainsFunc(list, func(x engine.Expected) bool {
			return x.Execution == id && x.Subject == subject
		}) {
			return true, err
		}
		if err != nil || len(list) < limits.MaxListed {
			return false, err
		}
	}
}

// answered starts the answers to an execution, once.
func (w *Env) answered(id flowfabric.ExecutionID, answers []Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.answer[id]; known {
		return
	}
	w.answer[id] = slices.Clone(answers)
	w.running.Go(func() {
		for _, a := range answers {
			if !w.follow(w.life, id, a) {
				return
			}
			w.mu.Lock()
			w.answer[id] = w.answer[id][1:]
			w.mu.Unlock()
		}
	})
}

// left lists the answers to an execution that were not given.
func (w *Env) left(id flowfabric.ExecutionID) []Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.answer[id])
}

// follow gives an answer when its time has come; false if the environment, or the execution, ended before.
func (w *Env) follow(ctx context.Context, id flowfabric.ExecutionID, a Answer) bool {
	if a.unwaited() {
		return w.pause(ctx, a.after) && w.bring(ctx, id, a)
	}
	stirred, settled := w.journal.stirred(), false
	for {
		s, err := w.client.Execution(id).Suspension(ctx)
		wanted := false
		if err == nil {
			wanted, err = w.wanted(ctx, id, s, a)
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			w.t.Errorf("fftest: %s: %v", a.words(), err)
			return false
		case s.State.Terminal():
			return false
		case !wanted:
			if settled {
				select {
				case <-stirred:
					stirred = w.journal.stirred() // before time passes: what is noted meanwhile is looked for again
				case <-ctx.Done():
					return false
				}
			}
			if !pause(ctx, settleTime) { // a call that was noted before may be on its way
				return false
			}
			settled = true
			continue
		}
		if wait := time.Until(s.CreatedAt.Add(a.after)); wait > 0 {
			if !w.pause(ctx, wait) {
				return false
			}
			continue // it may have been answered otherwise meanwhile
		}
		if w.bring(ctx, id, a) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// settleTime is how long a call that was sent takes at most: none at all, but time passes only when it is through.
const settleTime = time.Millisecond

// bring delivers an answer and complains about a refusal, unless it came too late. It reports whether the answer is
// spent.
func (w *Env) bring(ctx context.Context, id flowfabric.ExecutionID, a Answer) bool {
	_, err := w.deliver(ctx, id, a)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
		return false
	case errors.Is(err, denied.WaitpointClosed), errors.Is(err, denied.NotSignalable),
		errors.Is(err, denied.NotSuspended), errors.Is(err, denied.NothingToStop):
		return a.unwaited()
	}
	w.t.Error(w.refused(ctx, id, a, err))
	return true
}

// deliver makes the one call of an answer.
func (w *Env) deliver(ctx context.Context, id flowfabric.ExecutionID, a Answer) (suspend.Delivered, error) {
	switch a.do {
	case signalKey:
		token, err := w.token(ctx, id, a.waitpoint)
		if err != nil {
			return suspend.Delivered{}, err
		}
		return w.client.Signal(ctx, token, a.payload, a.opts...)
	case signalToken:
		return w.client.Signal(ctx, a.token, a.payload, a.opts...)
	case approve:
		return w.client.Execution(id).Approve(ctx, a.waitpoint, a.payload,
			append([]client.ApproveOption{operator}, a.approval...)...)
	case send:
		_, err := w.client.Execution(id).Send(ctx, a.waitpoint, a.payload, append([]client.SendOption{operator},
			a.sending...)...)
		return suspend.Delivered{}, err
	case stop:
		_, err := w.client.Execution(id).Stop(ctx, append([]flowfabric.ActOption{operator}, a.act...)...)
		return suspend.Delivered{}, err
	case publish:
		_, err := w.client.Publish(ctx, a.event)
		return suspend.Delivered{}, err
	case resume:
		return suspend.Delivered{},
			w.admin.Resume(ctx, id, admin.Resume{}, append([]flowfabric.ActOption{operator}, a.act...)...)
	}
	return suspend.Delivered{}, fmt.Errorf("%w: %s", flowfabric.ErrInvalidInput, a.words())
}

// token finds the open waitpoint of a key and makes its token again, as the worker does.
func (w *Env) token(ctx context.Context, id flowfabric.ExecutionID, key string) (suspend.Token, error) {
	stored, err := w.waits(ctx, id)
	if err != nil {
		return suspend.Token{}, err
	}
	for name, text := range stored.Waitpoints { // of lua/lib/waitpoint.lua: state, key, kid, digest, nonce, …
		p := strings.SplitN(text, "\x1f", 6)
		if len(p) != 6 {
			continue
		}
		if named, _, _ := record.Event(p[1]); named == key && (p[0] == "p" || p[0] == "a") {
			waitpoint, err := uuid.Parse(name)
			if err != nil {
				return suspend.Token{}, err
			}
			return w.keyring.Token(id, engine.Opened{ID: flowfabric.UUID(waitpoint), Key: key, Kid: p[2], Nonce: p[4]})
		}
	}
	return suspend.Token{}, fmt.Errorf("%w: %s", denied.NoWaitpoint, key)
}

// pause lets time pass until somebody answers, which the environment knows; false if ctx ended before.
func (w *Env) pause(ctx context.Context, d time.Duration) bool {
	due := time.Now().Add(d)
	w.mu.Lock()
	w.dues[due]++
	w.mu.Unlock()
	w.wake() // who naps is to know
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dues[due]--; w.dues[due] == 0 {
			delete(w.dues, due)
		}
	}()
	return pause(ctx, d)
}

// pause lets time pass; false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
