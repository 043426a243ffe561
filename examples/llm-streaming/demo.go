package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// errAnswered ends the demo's workers once there is nothing left to do.
var errAnswered = errors.New("all prompts are answered")

// demo connects, starts workers, asks, and prints what came of it.
func demo(ctx context.Context, o options, stdout io.Writer) error {
	model, err := newModel(o)
	if err != nil {
		return err
	}
	url, release, err := embedded.Resolve(ctx, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	intro(stdout, o, url, model.Name())
	o.url = url // an address that worker processes can reach too
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: o.log})
	if err != nil {
		return err
	}
	defer c.Close()

	prompts := make([]Prompt, len(o.prompts))
	for i, text := range o.prompts {
		prompts[i] = Prompt{Text: text, MaxTokens: o.tokens, Seed: uint64(i + 1)}
	}
	begin := time.Now()
	view := newView(stdout, o.env, prompts, o.verbose)
	results, err := answer(ctx, o, &producer{client: c, view: view}, prompts)
	view.Close()
	if err != nil {
		return err
	}
	_, live := view.(*screen)
	return summarize(stdout, prompts, results, time.Since(begin), live)
}

// answer runs the producer beside its workers. When a worker cannot go on, everything ends with its reason.
func answer(ctx context.Context, o options, p *producer, prompts []Prompt) (results []result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if o.crash {
		fleet, err := startFleet(o, (len(prompts)+1)/2, cancel)
		if err != nil {
			return nil, err
		}
		defer fleet.stop()
		p.onToken = fleet.killer(p.view)
	} else {
		var worker conc.WaitGroup
		defer worker.Wait()
		worker.Go(func() {
			if err := serve(ctx, o, runtime.Config{Concurrency: min(len(prompts), 64)}); err != nil {
				cancel(err)
			}
		})
	}
	defer cancel(errAnswered)
	if results, err = p.ask(ctx, prompts); err != nil {
		return nil, err
	}
	return results, context.Cause(ctx)
}

// intro tells a stranger what is going to be seen.
func intro(out io.Writer, o options, url, model string) {
	who := "a worker in this program answers them at once and puts out every token as a durable frame"
	then := "Each sentence is recorded as a step once it is complete, so a crash would not lose it: try -crash."
	if o.crash {
		who = fmt.Sprintf("%d worker processes share them and put out every token as a durable frame", crashWorkers)
		then = fmt.Sprintf(
			"After %d tokens of the first answer the process that holds it is killed, and another one goes on after the last recorded sentence.",
			crashAfter)
	}
	text := fmt.Sprintf(
		"FlowFabric: this program submits %s, %s, and you watch the producer tail all the streams live. %s",
		plural(len(o.prompts), "prompt"), who, then)
	for _, line := range wrap(text, plainWidth) {
		fmt.Fprintln(out, line)
	}
	server := "as given" // its URL may hold a password
	if o.url == embedded.URL {
		server = url + ", embedded in this program, in memory, for development only"
	}
	fmt.Fprintf(out, "Model: %s. Server: %s.\n\n", model, server)
}
