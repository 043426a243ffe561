package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// errOver ends the fleet once there is nothing left to do.
var errOver = errors.New("the demo is over")

// show is one run of the demo.
type show struct {
	options
	view         *view
	acme, globex *tenant
}

// job is one execution of a tenant.
type job struct {
	*tenant
	*client.Execution[Answer]
	shown *atomic.Int64 // tokens of it that are on the screen
	done  chan struct{} // closed when it has ended and all of it is shown, or nobody follows it any more
	paid  int64         // of the budget before it
	label string        // for people
}

// demo opens both tenants, runs the fleet beside the story, and cleans up.
func demo(ctx context.Context, o options, stdout io.Writer) (err error) {
	url, release, err := embedded.Resolve(ctx, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	d := &show{options: o, view: newView(stdout),
		acme:   &tenant{Name: "acme", Book: "alice", limit: o.limit},
		globex: &tenant{Name: "globex", Book: "woods", limit: 10 * int64(o.tokens)}}
	d.intro(url)
	d.url = url
	run := strings.ToLower(rand.Text()[:6])
	for _, t := range []*tenant{d.acme, d.globex} {
		defer func() { err = errors.Join(err, t.close(ctx)) }()
		if err := t.open(ctx, d.options, run); err != nil {
			return err
		}
	}
	return d.run(ctx)
}

// intro tells a stranger what is going to be seen.
func (d *show) intro(url string) {
	d.view.say("FlowFabric: two tenants share a fleet of workers, and nothing else. Each has a budget of tokens. " +
		"One of them runs out of it in the middle of an answer, and waits; the other does not notice.")
	server := "as given" // its URL may hold a password
	if d.options.url == embedded.URL {
		server = url + ", embedded in this program, in memory, for development only"
	}
	d.view.say("Server: %s.", server)
}

// run is the story, with the fleet beside it. When the fleet cannot go on, everything ends with its reason.
func (d *show) run(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	var fleet conc.WaitGroup
	fleet.Go(func() {
		if err := d.fleet(ctx); err != nil {
			cancel(err)
		}
	})
	err := d.story(ctx)
	cancel(errOver)
	fleet.Wait()
	switch cause := context.Cause(ctx); {
	case err != nil && outer.Err() != nil:
		d.view.gap()
		d.view.say("You interrupted it.")
		return nil
	case err != nil && !errors.Is(cause, errOver):
		return cause
	}
	return err
}

// fleet is one worker that serves both tenants; there may be hundreds of them.
func (d *show) fleet(ctx context.Context) error {
	return runtime.Run(ctx, runtime.Config{URL: d.url, Logger: d.log, Namespaces: []string{d.acme.id, d.globex.id},
		DrainTimeout: -1}, runtime.Provide(Generate, NewGenerator), fx.Supply(Model{Pace: d.pace}))
}

// story is what is to be seen.
func (d *show) story(ctx context.Context) (err error) {
	var open []job
	defer func() { d.takeBack(ctx, open) }()
	ctx, cancel := context.WithCancel(ctx)
	var tails conc.WaitGroup
	defer tails.Wait()
	defer cancel()
	ask := func(label string, t *tenant, skip, tokens int) (job, error) {
		paid, _, err := t.used(ctx)
		if err != nil {
			return job{}, err
		}
		exec, err := client.Submit(ctx, t.client, Generate, Prompt{t.Book, skip, tokens})
		j := job{t, exec, new(atomic.Int64), make(chan struct{}), paid, label}
		if err == nil {
			open = append(open, j)
			tails.Go(func() { d.tail(ctx, j) })
		}
		return j, err
	}

	d.view.say("1. Both ask for %d tokens, in calls of at most %d. The budget of acme has %d, that of globex %d.",
		d.tokens, perCall, d.acme.limit, d.globex.limit)
	first, err := ask("acme", d.acme, 0, d.tokens)
	if err != nil {
		return err
	}
	other, err := ask("globex", d.globex, 0, d.tokens)
	if err != nil {
		return err
	}
	if err := d.refused(ctx, first); err != nil {
		return err
	}
	<-other.done
	d.view.gap()
	if err := d.record(ctx, first, other); err != nil {
		return err
	}

	d.view.say("2. acme asks for more. There is no room for a call, so none is made.")
	second, err := ask("acme 2", d.acme, d.tokens, d.tokens/4)
	if err != nil {
		return err
	}
	if err := d.refused(ctx, second); err != nil {
		return err
	}
	d.view.gap()

	limit := int64(3 * d.tokens)
	d.view.say("3. An operator raises the limit to %d: both go on, the first one where it was. Nothing is paid twice.",
		limit)
	if err := d.acme.raise(ctx, limit); err != nil {
		return err
	}
	<-first.done
	<-second.done
	d.view.gap()
	return d.record(ctx, first, second)
}

// tail shows an answer live until it has ended. A call whose worker died is made again, and what it said is taken back.
func (d *show) tail(ctx context.Context, j job) {
	defer close(j.done)
	var said stream.Transcript
	for event, err := range j.Tail(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				d.view.end(j.label, err.Error())
			}
			return
		}
		if said.Add(event) {
			d.view.end(j.label, "↻ a call is made again")
		}
		tokens := len(said.Frames())
		j.shown.Store(int64(tokens))
		switch {
		case event.Kind == stream.TailFrame:
			d.view.token(j.label, string(event.Frame.Payload))
		case event.Kind == stream.TailAttemptEnd && event.Reason == "attempt_success":
			d.view.end(j.label, fmt.Sprintf("✓ all %d tokens", tokens))
		case event.Kind == stream.TailAttemptEnd:
			d.view.end(j.label, fmt.Sprintf("✗ ended after %d tokens", tokens))
		}
	}
}

// record tells what is on record of jobs, and of the budgets of their tenants.
func (d *show) record(ctx context.Context, jobs ...job) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.view.say("On record:")
	for i, j := range jobs {
		seen, err := j.Get(ctx)
		if err != nil {
			return err
		}
		used, reserved, err := j.used(ctx)
		if err != nil {
			return err
		}
		d.view.note(j.label, fmt.Sprintf("%s, attempt %d", seen.State.Public, seen.Attempts))
		if i+1 < len(jobs) && jobs[i+1].tenant == j.tenant {
			continue
		}
		d.view.note("", fmt.Sprintf("budget: %d of %d tokens used, %d reserved", used, j.limit, reserved))
	}
	d.view.gap()
	return nil
}

// refused waits until a budget has no room for the next call of a job, and all that it has paid for is shown, unless
// that takes long; then it says why the job waits.
func (d *show) refused(ctx context.Context, j job) error {
	for tries := 0; ; tries++ {
		why, err := admin.New(j.client).Why(ctx, j.ID())
		if err != nil {
			return err
		}
		used, _, err := j.used(ctx)
		if err != nil {
			return err
		}
		shown := j.shown.Load()
		if why.Reason == "waiting_amount" && (used-j.paid == shown || tries > 500) {
			d.view.end(j.label, fmt.Sprintf("■ stopped after %d tokens, before the next call", shown))
			d.view.note(j.label, "why: "+j.mine(why.Sentence))
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// takeBack cancels what has not ended: nobody is left who could run it.
func (d *show) takeBack(ctx context.Context, jobs []job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, j := range jobs {
		if err := j.Cancel(ctx, flowfabric.Reason("the demo is over")); err != nil &&
			!errors.Is(err, flowfabric.ErrTerminal) && !errors.Is(err, flowfabric.ErrState) {
			d.log.Warn("not cancelled", "execution", j.Execution.ID().String(), "error", err)
		}
	}
}
