package steady

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Definitions of the work.
var (
	plain    = handler.Define[string, string]("plain")
	flaky    = handler.Define[string, string]("flaky", handler.Retry(3, 50*time.Millisecond, time.Second))
	hopeless = handler.Define[string, string]("hopeless", handler.Retry(1, 50*time.Millisecond, time.Second))
	tokens   = handler.Define[string, string]("tokens")
	approval = handler.Define[string, string]("approval")
	mail     = handler.Define[string, string]("mail")
	parent   = handler.Define[string, string]("parent")
	loop     = handler.Define[int, int]("loop")
	joined   = handler.Define[string, string]("joined")
	other    = handler.Define[flowfabric.ExecutionID, string]("other")
	first    = flow.Input[string]{Name: "first"}
	second   = flow.Input[string]{Name: "second"}
)

const (
	frames = 20
	links  = 4
	wide   = 3
)

// bindings are the handlers of the worker. Children are kept for as long as everything else.
func bindings(keep time.Duration) []handler.Binding {
	return []handler.Binding{
		handler.Bind(plain, func(_ context.Context, _ *handler.Task, in string) (string, error) { return in, nil }),
		handler.Bind(flaky, func(_ context.Context, t *handler.Task, in string) (string, error) {
			if t.Retries() < 2 {
				return "", errors.New("not yet")
			}
			return in, nil
		}),
		handler.Bind(hopeless, func(context.Context, *handler.Task, string) (string, error) {
			return "", errors.New("never")
		}),
		handler.Bind(tokens, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			for i := range frames {
				if err := t.Frame(ctx, "token", fmt.Sprint(i, " ")); err != nil {
					return "", err
				}
			}
			return in, t.Summary(ctx, map[string]int{"frames": frames})
		}),
		handler.Bind(approval, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			answer, err := handler.Await[string](ctx, t, "approval", suspend.Within(time.Second),
				suspend.OnTimeout(suspend.Resume))
			if errors.Is(err, flowfabric.ErrWaitTimeout) {
				return in + " unanswered", nil
			}
			return in + answer, err
		}),
		handler.Bind(mail, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			return handler.Receive[string](ctx, t, "letters")
		}),
		handler.Bind(parent, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			set := flow.Children("parts")
			var parts []*flow.ChildNode[string]
			for i := range wide {
				parts = append(parts, flow.Child(set, fmt.Sprint(i), plain, fmt.Sprint(i), flowfabric.Retention(keep)))
			}
			if err := t.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			var all strings.Builder
			for _, part := range parts {
				text, err := handler.ChildResult(ctx, t, part)
				if err != nil {
					return "", err
				}
				all.WriteString(text)
			}
			return all.String(), nil
		}),
		handler.Bind(loop, func(_ context.Context, _ *handler.Task, n int) (int, error) {
			if n < links {
				return 0, handler.Continue(n + 1)
			}
			return n, nil
		}),
		handler.Bind(joined, func(_ context.Context, t *handler.Task, in string) (string, error) {
			a, _, err := handler.Given(t, first)
			b, _, err2 := handler.Given(t, second)
			return a + b + in, errors.Join(err, err2)
		}),
		handler.Bind(other, func(ctx context.Context, t *handler.Task, id flowfabric.ExecutionID) (string, error) {
			set := flow.Children("others")
			waited := flow.Other(set, "it", plain, id)
			if err := t.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			return handler.ChildResult(ctx, t, waited)
		}),
	}
}

// only is the kind of work that producers make, or all.
func (s *steady) only() (kinds, error) {
	all := s.work()
	if s.Only == "" {
		return all, nil
	}
	work, ok := all[s.Only]
	if !ok {
		return nil, fmt.Errorf("steady: -only %q: want one of %s", s.Only, slices.Sorted(maps.Keys(all)))
	}
	return kinds{s.Only: work}, nil
}

// work is what producers do: each makes one piece, waits for its end and checks that.
func (s *steady) work() kinds {
	keep, c := flowfabric.Retention(s.Keep), s.client
	return kinds{
		"plain":   func(ctx context.Context, name string) error { return echo(ctx, c, plain, name, keep) },
		"retried": func(ctx context.Context, name string) error { return echo(ctx, c, flaky, name, keep) },
		"delayed": func(ctx context.Context, name string) error {
			return echo(ctx, c, plain, name, keep, flowfabric.Delay(time.Second))
		},
		"limited": func(ctx context.Context, name string) error {
			return echo(ctx, c, plain, name, keep, flowfabric.LimitKey("account", flowfabric.Limit{Concurrency: 1}))
		},
		"key":      s.keyed,
		"failed":   s.fails,
		"cancel":   s.cancels,
		"frames":   s.streams,
		"approved": s.approves,
		"timeout": func(ctx context.Context, name string) error {
			return expect(ctx, c, approval, name, name+" unanswered", keep)
		},
		"mail":     s.mails,
		"children": func(ctx context.Context, name string) error { return expect(ctx, c, parent, name, "012", keep) },
		"continue": func(ctx context.Context, _ string) error { return expect(ctx, c, loop, 0, links, keep) },
		"flow":     s.flows,
		"other":    s.awaits,
	}
}

func expect[In any, Out comparable](ctx context.Context, c *client.Client, def *handler.Definition[In, Out], in In,
	want Out, opts ...client.SubmitOption) error {
	e, err := client.Submit(ctx, c, def, in, opts...)
	if err != nil {
		return err
	}
	got, err := e.Result(ctx)
	if err == nil && got != want {
		err = fmt.Errorf("%s: the result is %v, want %v", e.ID(), got, want)
	}
	return err
}

func echo(ctx context.Context, c *client.Client, def *handler.Definition[string, string], name string,
	opts ...client.SubmitOption) error {
	return expect(ctx, c, def, name, name, opts...)
}

func (s *steady) keyed(ctx context.Context, name string) error {
	opts := []client.SubmitOption{flowfabric.Retention(s.Keep),
		flowfabric.Key{Text: name, WhileActive: true, Window: s.Keep + 5*time.Second}}
	if err := echo(ctx, s.client, plain, name, opts...); err != nil {
		return err
	}
	again, err := client.Submit(ctx, s.client, plain, name, opts...)
	if err == nil && !again.Duplicate() {
		err = fmt.Errorf("%s: a second execution of the key", again.ID())
	}
	return err
}

func (s *steady) fails(ctx context.Context, name string) error {
	var outcome *client.OutcomeError
	if err := echo(ctx, s.client, hopeless, name, flowfabric.Retention(s.Keep)); !errors.As(err, &outcome) ||
		outcome.State != flowfabric.Failed {
		return fmt.Errorf("want a failure, have %w", err)
	}
	return nil
}

func (s *steady) cancels(ctx context.Context, name string) error {
	e, err := client.Submit(ctx, s.client, plain, name, flowfabric.Retention(s.Keep), flowfabric.Delay(time.Hour))
	if err != nil {
		return err
	}
	if err := e.Cancel(ctx); err != nil {
		return err
	}
	var outcome *client.OutcomeError
	if _, err := e.Result(ctx); !errors.As(err, &outcome) || outcome.State != flowfabric.Cancelled {
		return fmt.Errorf("want a cancellation, have %w", err)
	}
	return nil
}

func (s *steady) streams(ctx context.Context, name string) error {
	e, err := client.Submit(ctx, s.client, tokens, name, flowfabric.Retention(s.Keep))
	if err != nil {
		return err
	}
	n := 0
	for event, err := range e.Tail(ctx) {
		if err != nil {
			return err
		}
		if event.Kind == stream.TailFrame && event.Frame.Mode == stream.ModeDurable {
			n++
		}
	}
	if n != frames {
		return fmt.Errorf("%s: a tail saw %d frames, want %d", e.ID(), n, frames)
	}
	return nil
}

func (s *steady) approves(ctx context.Context, name string) error {
	e, err := client.Submit(ctx, s.client, approval, name, flowfabric.Retention(s.Keep))
	if err != nil {
		return err
	}
	if _, err := e.AwaitSuspension(ctx); err != nil {
		return err
	}
	_, err = e.Approve(ctx, "approval", " yes")
	got, err2 := e.Result(ctx)
	if got == name+" unanswered" { // the machine stood still for a second
		return err2
	}
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if got != name+" yes" {
		return fmt.Errorf("%s: the result is %q", e.ID(), got)
	}
	return nil
}

func (s *steady) mails(ctx context.Context, name string) error {
	e, err := client.Submit(ctx, s.client, mail, name, flowfabric.Retention(s.Keep))
	if err != nil {
		return err
	}
	if _, err := e.Send(ctx, "letters", name); err != nil {
		return err
	}
	got, err := e.Result(ctx)
	if err == nil && got != name {
		err = fmt.Errorf("%s: the letter is %q", e.ID(), got)
	}
	return err
}

func (s *steady) flows(ctx context.Context, name string) error {
	f, keep := flow.New("steady"), flowfabric.Retention(s.Keep)
	a := flow.Add(f, "a", plain, name, keep)
	b := flow.Add(f, "b", flaky, name, keep)
	end := flow.Add(f, "end", joined, "!", first.From(a), second.From(b), keep)
	flow.Add(f, "cleanup", plain, name, flow.After(a, b, end), flow.AllEnded(), keep)
	submitted, err := client.SubmitFlow(ctx, s.client, f)
	if err != nil {
		return err
	}
	if _, err := submitted.Wait(ctx); err != nil {
		return err
	}
	got, err := client.NodeResult(ctx, submitted, end)
	if err == nil && got != name+name+"!" {
		err = fmt.Errorf("%s: the result is %q", submitted.ID(), got)
	}
	return err
}

func (s *steady) awaits(ctx context.Context, name string) error {
	e, err := client.Submit(ctx, s.client, plain, name, flowfabric.Retention(s.Keep),
		flowfabric.Delay(200*time.Millisecond))
	if err != nil {
		return err
	}
	return expect(ctx, s.client, other, e.ID(), name, flowfabric.Retention(s.Keep))
}
