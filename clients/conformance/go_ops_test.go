package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func (p *play) handle(ctx context.Context, t *handler.Task, ops []object, known object) (bool, any, error) {
	for _, raw := range ops {
		name, do := first(raw, operations)
		op := object{}
		for key, v := range raw {
			if key != "then" {
				op[key] = p.fill(v, known)
			}
		}
		if name == "return" {
			return true, op[name], nil
		}
		if then, ok := raw["then"].([]any); ok {
			met := name == "if_attempt" && number(op[name]) == int(t.Attempt())
			if pair, ok := op[name].([]any); ok {
				met = plain(pair[0]) == plain(pair[1])
			}
			if met {
				var inner []object
				for _, one := range then {
					inner = append(inner, one.(object))
				}
				if done, out, err := p.handle(ctx, t, inner, known); done || err != nil {
					return done, out, err
				}
			}
			continue
		}
		got, err := do(&task{p, t, ctx}, op[name], op)
		if err != nil {
			return false, nil, err
		}
		if as, ok := raw["as"].(string); ok {
			switch got.(type) {
			case *handler.Reservation:
				known[as] = got
			default:
				known[as] = plain(got)
			}
		}
	}
	return false, nil, nil
}

type task struct {
	*play
	*handler.Task
	ctx context.Context
}

type doing func(t *task, arg any, op object) (any, error)

// quiet makes an operation of one that answers nothing.
func quiet(do func(t *task, arg any, op object) error) doing {
	return func(t *task, arg any, op object) (any, error) { return nil, do(t, arg, op) }
}

func failing(message any, op object) error {
	category := flowfabric.Category(cmp.Or(text(op["category"]), "handler_error"))
	err := handler.Category(category, errors.New(text(message)))
	if op["permanent"] == true {
		return handler.Permanent(err)
	}
	return err
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func waiting(op object) (opts []suspend.Option) {
	o, _ := op["options"].(object)
	if n, ok := o["within_ms"]; ok {
		opts = append(opts, suspend.Within(time.Duration(number(n))*time.Millisecond))
	}
	if s := text(o["on_timeout"]); s != "" {
		opts = append(opts, suspend.OnTimeout(s))
	}
	return opts
}

var operations map[string]doing

func init() {
	operations = map[string]doing{
		"return": nil, "if": nil, "if_attempt": nil,
		"effect": func(t *task, arg any, _ object) (any, error) { return t.effect(text(arg), 1), nil },
		"count":  func(t *task, arg any, _ object) (any, error) { return t.effect(text(arg), 1), nil },
		"enter":  func(t *task, arg any, _ object) (any, error) { return t.effect("in "+text(arg), 1), nil },
		"leave":  func(t *task, arg any, _ object) (any, error) { return t.effect("in "+text(arg), -1), nil },
		"same": func(_ *task, arg any, _ object) (any, error) {
			pair := arg.([]any)
			return fmt.Sprint(pair[0]) == fmt.Sprint(pair[1]), nil
		},
		"tell": func(t *task, arg any, op object) (any, error) {
			t.mu.Lock()
			t.vars["told "+text(arg)] = op["value"]
			t.mu.Unlock()
			t.raise("told " + text(arg))
			return nil, nil
		},
		"frames": quiet(func(t *task, arg any, _ object) (err error) {
			for _, one := range arg.([]any) {
				err = cmp.Or(err, t.Frame(t.ctx, "text", text(one)))
			}
			return err
		}),
		"count_frames": quiet(func(t *task, arg any, _ object) (err error) {
			for i := range number(arg) {
				err = cmp.Or(err, t.Frame(t.ctx, "text", fmt.Sprint(i)))
			}
			return err
		}),
		"frame_json": quiet(func(t *task, arg any, _ object) error {
			payload, _ := exact{arg}.MarshalJSON()
			return t.FrameBytes(t.ctx, stream.Frame{Type: "json", Encoding: "json", Payload: payload})
		}),
		"log": quiet(func(t *task, arg any, _ object) error {
			list := arg.([]any)
			var level slog.Level
			if err := level.UnmarshalText([]byte(text(list[0]))); err != nil {
				return err
			}
			t.Logger().Log(t.ctx, level, text(list[1]), logAttributes(list[2].(object))...)
			return nil
		}),
		"progress": quiet(func(t *task, arg any, _ object) error {
			return t.Progress(t.ctx, number(arg.([]any)[0]), text(arg.([]any)[1]))
		}),
		"recorded": func(t *task, arg any, _ object) (any, error) { return t.Recorded(text(arg)), nil },
		"token": func(t *task, arg any, _ object) (any, error) {
			token, err := t.Pending(t.ctx, text(arg), time.Hour)
			return token.Reveal(), err
		},
		"close_token": quiet(func(t *task, arg any, _ object) error { return t.CloseWaitpoint(t.ctx, text(arg)) }),
		"expect_event": quiet(func(t *task, arg any, op object) error {
			where, _ := op["where"].(object)
			return t.Expect(t.ctx, text(arg), text(op["subject"]), where)
		}),
		"continue": quiet(func(_ *task, arg any, _ object) error { return handler.Continue(exact{arg}) }),
		"cancel":   quiet(func(_ *task, arg any, _ object) error { return handler.Cancel(text(arg)) }),
		"fail":     quiet(func(_ *task, arg any, op object) error { return failing(arg, op) }),
		"delay": quiet(func(_ *task, arg any, _ object) error {
			return handler.Delay(time.Duration(number(arg)) * time.Millisecond)
		}),
		"spend": quiet(func(t *task, arg any, _ object) (err error) {
			for name, n := range into[map[string]int64](arg) {
				err = cmp.Or(err, t.Spend(t.ctx, name, n))
			}
			return err
		}),
		"reserve": func(t *task, arg any, op object) (any, error) {
			r, err := t.Reserve(t.ctx, into[map[string]int64](arg))
			if over, ok := errors.AsType[*handler.OverBudgetError](err); ok && over != nil && op["refused"] == true {
				return "refused", nil
			}
			return r, err
		},
		"settle": quiet(func(t *task, arg any, op object) error {
			return arg.(*handler.Reservation).Settle(t.ctx, into[map[string]int64](op["amounts"]))
		}),
		"unreserve": quiet(func(t *task, arg any, _ object) error { return arg.(*handler.Reservation).Release(t.ctx) }),
		"acquire": quiet(func(t *task, arg any, op object) error {
			permit, err := t.Acquire(t.ctx, text(arg), into[map[string]int64](op["estimate"]))
			if err != nil {
				return err
			}
			if op["end"] == "settled" {
				return permit.Settle(t.ctx, into[map[string]int64](op["amounts"]))
			}
			return permit.Release(t.ctx)
		}),
		"step": func(t *task, arg any, op object) (any, error) {
			return handler.Step(t.ctx, t.Task, text(arg), func(context.Context) (exact, error) {
				t.effect("step "+text(arg), 1)
				if message, ok := op["fail"]; ok {
					return exact{}, failing(message, op)
				}
				return exact{op["value"]}, nil
			})
		},
		"wait": func(t *task, arg any, op object) (any, error) {
			v, err := handler.Await[exact](t.ctx, t.Task, text(arg), waiting(op)...)
			if errors.Is(err, flowfabric.ErrWaitTimeout) {
				err = nil
			}
			return object{"value": v}, err
		},
		"ask": func(t *task, arg any, op object) (any, error) {
			o := op["options"].(object)
			q := suspend.Question{Title: text(op["title"]), Text: text(o["text"])}
			for _, one := range o["choices"].([]any) {
				q.Choices = append(q.Choices, suspend.Choice{Name: text(one)})
			}
			answer, err := t.Ask(t.ctx, text(arg), q)
			return object{"name": answer.Choice}, err
		},
		"receive": func(t *task, arg any, op object) (any, error) {
			return handler.Receive[exact](t.ctx, t.Task, text(arg), waiting(op)...)
		},
		"children": func(t *task, arg any, op object) (any, error) {
			set, nodes := flow.Children(text(arg)), map[string]*flow.ChildNode[exact]{}
			for _, one := range op["list"].([]any) {
				node := one.(object)
				name, in := text(node["name"]), exact{node["input"]}
				nodes[name] = flow.Child(set, name, define(node["kind"]), in,
					flowfabric.StartWith(into[flowfabric.Start](node)))
			}
			if err := t.WaitChildren(t.ctx, set); err != nil {
				return nil, err
			}
			out := object{}
			for name, node := range nodes {
				one := object{"outcome": string(handler.ChildOutcome(t.Task, node))}
				if one["outcome"] == string(flowfabric.Completed) {
					v, err := handler.ChildResult(t.ctx, t.Task, node)
					if err != nil {
						return nil, err
					}
					one["value"] = v
				}
				out[name] = one
			}
			return out, nil
		},
		"hold": quiet(func(t *task, arg any, _ object) error {
			t.raise("reached " + text(arg))
			select {
			case <-t.flag("let " + text(arg)):
				return nil
			case <-t.ctx.Done():
				t.effect("lost "+text(arg), 1)
				return context.Cause(t.ctx)
			}
		}),
	}
}

type stepping func(p *play, arg any, op object) (any, error)

func (p *play) execution(id any) (*client.Execution[exact], error) {
	parsed, err := flowfabric.ParseExecutionID(text(id))
	return client.Attach(p.client, define("any"), parsed), err
}

// on is an operation on an execution.
func on(do func(p *play, e *client.Execution[exact], op object) (any, error)) stepping {
	return func(p *play, arg any, op object) (any, error) {
		e, err := p.execution(arg)
		if err != nil {
			return nil, err
		}
		return do(p, e, op)
	}
}

func submitting(o object) []client.SubmitOption {
	opts := []client.SubmitOption{flowfabric.StartWith(into[flowfabric.Start](o))}
	if key := text(o["idempotency_key"]); key != "" {
		opts = append(opts, flowfabric.IdempotencyKey(key))
	}
	if key := text(o["unique_key"]); key != "" {
		opts = append(opts, flowfabric.Key{Text: key, WhileActive: true})
	}
	return opts
}

func (p *play) submit(kind, input, options any) (*client.Execution[exact], object, error) {
	o, _ := options.(object)
	e, err := client.Submit(p.ctx, p.client, define(kind), exact{input}, submitting(o)...)
	if err != nil {
		return nil, nil, err
	}
	return e, object{"id": e.ID().String(), "duplicate": e.Duplicate()}, nil
}

// result is how an execution ended, as the API has it.
func (p *play) result(e *client.Execution[exact], within time.Duration) (object, error) {
	ctx, cancel := context.WithTimeout(p.ctx, within) // timed: the scenario says how long
	defer cancel()
	v, err := e.Result(ctx)
	end, ended := errors.AsType[*client.OutcomeError](err)
	switch {
	case ended:
		out := object{"state": string(end.State)}
		if end.Source != "" {
			out["reason"] = end.Reason
		} else {
			out["failure"] = object{"category": string(end.Category), "message": end.Reason}
		}
		return out, nil
	case ctx.Err() != nil:
		return nil, coded{"timed_out", err}
	case err != nil:
		return nil, err
	}
	return object{"state": "completed", "output": object{"value": v}}, nil
}

// logAttributes are those of a line, in groups where they are objects.
func logAttributes(all object) (out []any) {
	for name, value := range all {
		if group, ok := value.(object); ok {
			out = append(out, slog.Group(name, logAttributes(group)...))
		} else {
			out = append(out, slog.Any(name, exact{value}))
		}
	}
	return out
}

// until asks again and again.
func (p *play) until(met func() (bool, error)) (any, error) {
	for {
		if there, err := met(); there || err != nil {
			return nil, err
		}
		select {
		case <-p.ctx.Done():
			return nil, context.Cause(p.ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var steps map[string]stepping

func init() {
	steps = map[string]stepping{
		"submit": func(p *play, arg any, op object) (any, error) {
			_, out, err := p.submit(arg, op["input"], op["options"])
			return out, err
		},
		"submit_many": func(p *play, arg any, _ object) (any, error) {
			var out []object
			for _, one := range arg.([]any) {
				_, made, err := p.submit(member(one, "kind"), member(one, "input"), one)
				if err != nil {
					return nil, err
				}
				out = append(out, made)
			}
			return out, nil
		},
		"submit_numbers": func(p *play, arg any, op object) (any, error) {
			var inputs []exact
			for i := range number(op["count"]) {
				inputs = append(inputs, exact{i})
			}
			made, err := client.SubmitMany(p.ctx, p.client, define(arg), inputs)
			var out []object
			for _, e := range made {
				out = append(out, object{"id": e.ID().String()})
			}
			return out, err
		},
		"run": func(p *play, arg any, op object) (any, error) {
			e, _, err := p.submit(arg, op["input"], op["options"])
			if err != nil {
				return nil, err
			}
			out, err := p.result(e, time.Minute)
			if err == nil && out["state"] != "completed" {
				code := cmp.Or(text(member(out["failure"], "category")), text(out["state"]))
				err = coded{code, errors.New("it failed")}
			}
			return member(out["output"], "value"), err
		},
		"result": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			within := 50 * time.Second
			if n, ok := op["within_ms"]; ok {
				within = time.Duration(number(n)) * time.Millisecond
			}
			return p.result(e, within)
		}),
		"results": func(p *play, arg any, _ object) (any, error) {
			var out []object
			for _, one := range arg.([]any) {
				e, err := p.execution(member(one, "id"))
				if err != nil {
					return nil, err
				}
				r, err := p.result(e, time.Minute)
				if err != nil {
					return nil, err
				}
				out = append(out, r)
			}
			return out, nil
		},
		"get": on(func(p *play, e *client.Execution[exact], _ object) (any, error) {
			s, err := e.Get(p.ctx)
			out, _ := plain(s).(object)
			if out != nil {
				out["state"] = string(s.State.Public)
			}
			return out, err
		}),
		"why": on(func(p *play, e *client.Execution[exact], _ object) (any, error) {
			return p.admin.Why(p.ctx, e.ID())
		}),
		"cancel": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			return nil, e.Cancel(p.ctx, flowfabric.Reason(text(op["reason"])))
		}),
		"send": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			var opts []client.SendOption
			if key := text(member(op["options"], "idempotency_key")); key != "" {
				opts = append(opts, flowfabric.IdempotencyKey(key))
			}
			return e.Send(p.ctx, text(op["mailbox"]), exact{op["payload"]}, opts...)
		}),
		"answer": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			var payload any = exact{op["payload"]}
			if choice := text(member(op["payload"], "choice")); choice != "" {
				payload = suspend.Answer{Choice: choice}
			}
			return e.Approve(p.ctx, text(op["waitpoint"]), payload)
		}),
		"signal": func(p *play, arg any, op object) (any, error) {
			token, err := suspend.ParseToken(text(arg))
			if err != nil {
				return nil, err
			}
			return p.client.Signal(p.ctx, token, exact{op["payload"]})
		},
		"list": func(p *play, arg any, op object) (any, error) {
			kind, state, out := text(member(op["filters"], "kind")), text(member(op["filters"], "state")), []any{}
			switch arg {
			case "executions":
				f := admin.Filter{Kind: kind}
				if state != "" {
					f.States = []flowfabric.PublicState{flowfabric.PublicState(state)}
				}
				for one, err := range p.admin.List(p.ctx, f) {
					if err != nil {
						return nil, err
					}
					out = append(out, one)
				}
			case "flows":
				for one, err := range p.admin.Flows(p.ctx, admin.FlowQuery{Kind: kind}) {
					if err != nil {
						return nil, err
					}
					out = append(out, one)
				}
			case "approvals":
				page, err := p.admin.Approvals(p.ctx, admin.ApprovalFilter{Kind: kind}, "", 100)
				return page.Items, err
			}
			return out, nil
		},
		"publish": func(p *play, arg any, op object) (any, error) {
			return p.client.Publish(p.ctx, client.Event{Subject: text(arg), ID: text(member(op["options"], "id")),
				Data: exact{op["data"]}})
		},
		"follow_logs": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			out, o := []any{}, op["options"]
			for line, err := range e.Logs(p.ctx, stream.LogRange{Follow: true, Level: text(member(o, "level")),
				After: text(member(o, "after"))}) {
				if err != nil {
					return nil, err
				}
				if out = append(out, line); line.Message == text(op["upon"]) {
					p.raise("let " + text(op["lets"]))
				}
			}
			return out, nil
		}),
		"create_flow": func(p *play, arg any, op object) (any, error) {
			f, nodes := flow.New(text(arg)), map[string]*flow.Node[exact]{}
			for _, one := range op["nodes"].([]any) {
				node := one.(object)
				opts := []flow.NodeOption{flowfabric.StartWith(into[flowfabric.Start](node))}
				for _, name := range into[[]string](node["after"]) {
					if nodes[name] == nil {
						return nil, coded{"invalid_input", errors.New("a node is after one that comes later")}
					}
					opts = append(opts, flow.After(nodes[name]))
				}
				for name, from := range into[map[string]string](node["inputs"]) {
					opts = append(opts, flow.Input[exact]{Name: name}.From(nodes[from]))
				}
				switch node["policy"] {
				case "any":
					opts = append(opts, flow.AnyOf())
				case "quorum":
					opts = append(opts, flow.Quorum(number(node["k"])))
				}
				name, in := text(node["name"]), exact{node["input"]}
				nodes[name] = flow.Add(f, name, define(node["kind"]), in, opts...)
			}
			var opts []client.FlowOption
			if key := text(member(op["options"], "idempotency_key")); key != "" {
				opts = append(opts, flowfabric.IdempotencyKey(key))
			}
			made, err := client.SubmitFlow(p.ctx, p.client, f, opts...)
			if err != nil {
				return nil, err
			}
			ids := object{}
			for name := range nodes {
				ids[name] = made.Member(name).String()
			}
			return object{"id": made.ID().String(), "duplicate": made.Duplicate(), "nodes": ids}, nil
		},
		"cancel_flow": func(p *play, arg any, _ object) (any, error) {
			id, err := flowfabric.ParseFlowID(text(arg))
			if err != nil {
				return nil, err
			}
			return p.client.Flow(id).Cancel(p.ctx, flowfabric.CancelAll)
		},
		"put_schedule": func(p *play, arg any, op object) (any, error) {
			o := op["options"].(object)
			spec := schedule.Cron(text(o["cron"]), "UTC")
			if n, ok := o["every_ms"]; ok {
				spec = schedule.Every(time.Duration(number(n))*time.Millisecond, time.Time{})
			}
			return client.Schedule(p.ctx, p.client, text(arg), spec, define(op["kind"]), exact{o["input"]})
		},
		"get_schedule": func(p *play, arg any, _ object) (any, error) { return p.admin.GetSchedule(p.ctx, text(arg)) },
		"pause_schedule": func(p *play, arg any, _ object) (any, error) {
			return nil, p.admin.PauseSchedule(p.ctx, text(arg))
		},
		"resume_schedule": func(p *play, arg any, _ object) (any, error) {
			return nil, p.admin.ResumeSchedule(p.ctx, text(arg))
		},
		"delete_schedule": func(p *play, arg any, _ object) (any, error) {
			return p.admin.RemoveSchedule(p.ctx, text(arg))
		},
		"tail": on(func(p *play, e *client.Execution[exact], op object) (any, error) {
			frames, positions, end := []any{}, []string{}, ""
			var opts []client.TailOption
			if after := text(member(op["options"], "after")); after != "" {
				opts = append(opts, client.From(stream.Position(after)))
			}
			for event, err := range e.Tail(p.ctx, opts...) {
				if err != nil {
					return nil, err
				}
				switch event.Kind {
				case stream.TailFrame:
					frame := plain(event.Frame)
					positions = append(positions, string(event.Position))
					frames = append(frames, cmp.Or(member(frame, "text"), member(frame, "value")))
				case stream.TailEnd:
					end = string(event.State)
				}
			}
			return object{"frames": frames, "positions": positions, "end": end}, nil
		}),
		"effects": func(p *play, arg any, _ object) (any, error) { return p.count(text(arg)), nil },
		"same": func(_ *play, arg any, _ object) (any, error) {
			pair := arg.([]any)
			return fmt.Sprint(pair[0]) == fmt.Sprint(pair[1]), nil
		},
		"http": func(p *play, arg any, op object) (any, error) { return p.call(text(arg), op["body"]) },
		"let":  func(p *play, arg any, _ object) (any, error) { p.raise("let " + text(arg)); return nil, nil },
		"reached": func(p *play, arg any, _ object) (any, error) {
			return p.until(func() (bool, error) { return p.raised("reached " + text(arg)), nil })
		},
		"told": func(p *play, arg any, _ object) (any, error) {
			_, err := p.until(func() (bool, error) { return p.raised("told " + text(arg)), nil })
			if err != nil {
				return nil, err
			}
			return p.look("told "+text(arg), nil), nil
		},
		"until_logged": func(p *play, arg any, op object) (any, error) {
			e, err := p.execution(op["id"])
			if err != nil {
				return nil, err
			}
			return p.until(func() (bool, error) {
				for line, err := range e.Logs(p.ctx, stream.LogRange{}) {
					if err != nil || line.Message == text(arg) {
						return err == nil, err
					}
				}
				return false, nil
			})
		},
		"until_effect": func(p *play, arg any, op object) (any, error) {
			return p.until(func() (bool, error) { return p.count(text(arg)) >= number(op["is"]), nil })
		},
		"until": func(p *play, arg any, op object) (any, error) {
			what, rest, _ := strings.Cut(text(arg), " ")
			return p.until(func() (bool, error) {
				if what == "flow" {
					id, err := flowfabric.ParseFlowID(text(op["id"]))
					if err != nil {
						return false, err
					}
					s, err := p.client.Flow(id).Snapshot(p.ctx)
					return string(s.State) == rest, err
				}
				e, err := p.execution(op["id"])
				if err != nil {
					return false, err
				}
				if what == "waiting" && rest != "" {
					all, err := e.Waitpoints(p.ctx)
					return slices.ContainsFunc(all, func(w suspend.Waitpoint) bool {
						return w.Key == rest && w.State == "active"
					}), err
				}
				s, err := e.Get(p.ctx)
				return string(s.State.Public) == what, err
			})
		},
		"start":   func(p *play, arg any, op object) (any, error) { p.start(text(arg), op); return nil, nil },
		"drain":   func(p *play, arg any, _ object) (any, error) { p.workers[text(arg)].stop(); return nil, nil },
		"drained": func(p *play, arg any, _ object) (any, error) { <-p.workers[text(arg)].ended; return nil, nil },
	}
}

func (p *play) raised(name string) bool {
	select {
	case <-p.flag(name):
		return true
	default:
		return false
	}
}
