package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
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
	d.view.say(
		"FlowFabric: two tenants share a fleet of workers, and nothing else. Each has a budget of tokens. One of them runs out " +
			"of it in the middle of an answer; the other does not notice.")
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
	ask := func(t *tenant, skip, tokens int) (job, error) {
		exec, err := client.Submit(ctx, t.client, Generate, Prompt{t.Book, skip, tokens})
		if err == nil {
			open = append(open, job{t, exec})
		}
		return job{t, exec}, err
	}

	d.view.say("1. Both ask for %d tokens. The budget of acme has %d, that of globex %d.", d.tokens, d.acme.limit,
		d.globex.limit)
	first, err := ask(d.acme, 0, d.tokens)
	if err != nil {
		return err
	}
	other, err := ask(d.globex, 0, d.tokens)
	if err != nil {
		return err
	}
	d.follow(ctx, 1, first, other)
	if err := d.record(ctx, first, other); err != nil {
		return err
	}

	d.view.say("2. acme asks for more. With an empty budget nothing is begun.")
	second, err := ask(d.acme, d.tokens, d.tokens/4)
	if err != nil {
		return err
	}
	if err := d.refused(ctx, second); err != nil {
		return err
	}

	limit := int64(3 * d.tokens)
	d.view.say(
		"3. An operator raises the limit to %d: what waits runs at once. The answer that was cut off is replayed.",
		limit)
	if err := d.acme.raise(ctx, limit); err != nil {
		return err
	}
	d.follow(ctx, 1, second)
	if err := admin.New(first.client).Replay(ctx, first.ID(), admin.Replay{}, flowfabric.Reason("the limit was raised"),
		flowfabric.By("operator")); err != nil {
		return err
	}
	d.follow(ctx, 2, first)
	return d.record(ctx, first)
}

// follow shows the answers of jobs live, from an attempt on, until all have ended.
func (d *show) follow(ctx context.Context, attempt uint32, jobs ...job) {
	var tails conc.WaitGroup
	for _, j := range jobs {
		tails.Go(func() { d.tail(ctx, attempt, j) })
	}
	tails.Wait()
	d.view.gap()
}

func (d *show) tail(ctx context.Context, attempt uint32, j job) {
	tokens := 0
	for event, err := range j.Tail(ctx) {
		switch {
		case err != nil:
			if ctx.Err() == nil {
				d.view.end(j.Name, err.Error())
			}
			return
		case event.Attempt < attempt:
		case event.Kind == stream.TailFrame:
			tokens++
			d.view.token(j.Name, string(event.Frame.Payload))
		case event.Kind == stream.TailResumed: // another worker took it over and says it all again
			tokens = 0
			d.view.end(j.Name, "↻ from the start")
		case event.Kind == stream.TailAttemptEnd && event.Reason == "attempt_success":
			d.view.end(j.Name, fmt.Sprintf("✓ all %d tokens", tokens))
		case event.Kind == stream.TailAttemptEnd:
			d.view.end(j.Name, fmt.Sprintf("✗ stopped after %d tokens", tokens))
		}
	}
}

// record tells what is on record of jobs that have ended, and of the budgets of their tenants.
func (d *show) record(ctx context.Context, jobs ...job) error {
	d.view.say("On record:")
	for _, j := range jobs {
		seen, err := j.Get(ctx)
		if err != nil {
			return err
		}
		used, err := j.used(ctx)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s in attempt %d", seen.State.Public, seen.Attempts)
		if seen.Failure.Category != "" {
			text = fmt.Sprintf("%s: %s, and not retried", seen.State.Public, seen.Failure.Category)
		}
		d.view.note(j.Name, text)
		d.view.note("", fmt.Sprintf("budget: %d of %d tokens used", used, j.limit))
		if seen.State.Public == flowfabric.Failed {
			text, err := j.stored(ctx)
			if err != nil {
				return err
			}
			d.view.note("", "what it streamed is still there: …"+text[max(0, len(text)-40):])
		}
	}
	d.view.gap()
	return nil
}

// stored reads what a job has streamed, after its end.
func (j job) stored(ctx context.Context) (text string, err error) {
	for event, err := range j.Tail(ctx) {
		if err != nil {
			return text, err
		}
		switch event.Kind {
		case stream.TailFrame:
			text += string(event.Frame.Payload)
		case stream.TailAttempt, stream.TailResumed: // what was said before is said again
			text = ""
		}
	}
	return printable(text), nil
}

// refused waits until a worker has been told that there is no budget for the job, and says why it does not run.
func (d *show) refused(ctx context.Context, j job) error {
	for {
		why, err := admin.New(j.client).Why(ctx, j.ID())
		if err != nil {
			return err
		}
		if why.Reason == "waiting_budget" {
			d.view.note(j.Name, "why: "+j.mine(why.Sentence))
			d.view.gap()
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
