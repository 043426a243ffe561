package fftest

import (
	"context"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
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
	return runWith(t, stage{fx: &Effects{journal: newJournal(crash{})}}, def, fn, in, opts)
}

// Also has the worker of [Run] and [Crashes] run more kinds of work, those of children for example: bindings makes
// them, with their fakes, for each run. Their effects are held to the same as those of the handler under test, so steps
// of different executions that have effects need different names. Answer their waits with [Answered]. [Submit] does not
// take it: [New] has the bindings of an [Env].
func Also(bindings func(fx *Effects) []handler.Binding) client.SubmitOption { return also(bindings) }

type also func(fx *Effects) []handler.Binding

func (also) SubmitOption() {}

// Varying says that the runs of [Crashes] need not agree with the undisturbed one: what happens depends on the moment
// at which somebody does something, as with [Stop]. check tells what is right. That no effect is done again after its
// record holds all the same. Other runs do not take it.
func Varying() client.SubmitOption { return varying{} }

type varying struct{}

func (varying) SubmitOption() {}

// besideTime is how long after the end of an execution what runs beside it may go on.
const besideTime = time.Minute

// stage is what a run takes place on: how its worker is configured, and who is told its effects.
type stage struct {
	cfg runtime.Config
	fx  *Effects
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
				bindings = append(bindings, more(on.fx)...)
			} else if _, ok := opt.(varying); !ok {
				submitted = append(submitted, opt)
			}
		}
		w := newEnv(inner, on.cfg, bindings, on.fx.journal)
		defer w.close()
		x := Submit(w, def, in, submitted...)
		over := w.beside(x.ID(), on.fx.Beside)
		if on.fx.Beside != nil { // it may have it run again
			w.ended(x.ID())
			over()
		}
		r = x.Wait()
	})
	if r != nil {
		r.t = t
	}
	return r
}

// beside starts what runs beside an execution. over is to be called when that has ended, and returns when it is over.
func (w *Env) beside(id flowfabric.ExecutionID,
	fn func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID)) (over func()) {
	if fn == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.life)
	ended := make(chan struct{})
	w.running.Go(func() {
		defer close(ended)
		fn(ctx, w.client, id)
	})
	return func() {
		defer cancel()
		late := time.AfterFunc(besideTime, func() {
			w.t.Errorf("fftest: what runs beside the execution goes on %s after its end", besideTime)
			cancel()
		})
		defer late.Stop()
		<-ended
	}
}
