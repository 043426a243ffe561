package fftest

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Run submits one input to a fresh store, lets a worker run fn on it until the execution has ended, and reports. All of
// that happens in virtual time, in a bubble of its own or, if there is one, the caller's: delays, retries and timeouts
// of hours take milliseconds. opts are those of [client.Submit].
//
// t is a *testing.T, or the call is made in a bubble. A definition, function or option that is not valid ends the
// test, and so does an execution that does not end, as [Execution.Wait] says, with a Patience of 24 h;
// everything else is in the report.
func Run[In, Out any](t testing.TB, def *handler.Definition[In, Out],
	fn func(context.Context, *handler.Task, In) (Out, error),
	in In, opts ...client.SubmitOption) *Report[Out] {
	t.Helper()
	return runWith(t, stage{journal: newJournal(crash{})}, def, fn, in, opts)
}

// Also has the worker of [Run] and [Crashes] run more kinds of work, those of children for example: bindings makes
// them, with their fakes, for each run. Their effects are held to the same as those of the handler under test, so steps
// of different executions that have effects need different names. Answer their waits with [Answered]. [Submit] does not
// take it: [New] has the bindings of an [Env].
func Also(bindings func(fx *Effects) []handler.Binding) client.SubmitOption { return also(bindings) }

type also func(fx *Effects) []handler.Binding

func (also) SubmitOption() {}

// stage is what a run takes place on: how its worker is configured, and what notes its steps.
type stage struct {
	cfg     runtime.Config
	journal *journal
}

func runWith[In, Out any](t testing.TB, on stage, def *handler.Definition[In, Out],
	fn func(context.Context, *handler.Task, In) (Out, error), in In, opts []client.SubmitOption) (r *Report[Out]) {
	t.Helper()
	bubble(t, func(inner testing.TB) {
		inner.Helper()
		bindings := []handler.Binding{handler.Bind(def, fn)}
		submitted := opts[:0:0]
		for _, opt := range opts {
			if more, ok := opt.(also); ok {
				bindings = append(bindings, more(&Effects{on.journal})...)
			} else {
				submitted = append(submitted, opt)
			}
		}
		w := newEnv(inner, on.cfg, bindings, on.journal)
		defer w.close()
		r = Submit(w, def, in, submitted...).Wait()
	})
	if r != nil {
		r.t = t
	}
	return r
}
