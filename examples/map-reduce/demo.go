package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// slots is how many parts are counted at once.
const slots = 8

// errOver ends the demo's worker once there is nothing left to do.
var errOver = errors.New("everything is counted")

// job is one run with all that takes part in it.
type job struct {
	options
	board  *board
	client *client.Client
	flow   *client.Flow // nil before it was submitted
}

// outcome is what it came to.
type outcome struct {
	flow    client.FlowSnapshot
	ranking Ranking
	took    time.Duration // from the submission to the end of the flow
}

// demo connects, starts a worker, submits the flow, and prints what came of it.
func demo(ctx context.Context, o options, stdout io.Writer) error {
	url, release, err := embedded.Resolve(ctx, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	intro(stdout, o, url)
	o.url = url
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: o.log})
	if err != nil {
		return err
	}
	defer c.Close()
	j := &job{options: o, board: &board{out: stdout}, client: c}
	return j.run(ctx)
}

// intro tells a stranger what is going to be seen.
func intro(out io.Writer, o options, url string) {
	fmt.Fprintf(out,
		"FlowFabric: %d nodes count the words of one part of some old books each, %d at once. The node reduce adds\n",
		parts, slots)
	fmt.Fprintf(out,
		"them up as soon as %d are counted: a few may be missing, and those that are not done by then are cancelled.\n",
		enough)
	server := "as given" // its URL may hold a password
	if o.url == embedded.URL {
		server = url + ", embedded in this program, in memory, for development only"
	}
	fmt.Fprintf(out, "Server: %s.\n\n", server)
}

// run is the job, with a worker beside it. When the worker cannot go on, everything ends with its reason.
func (j *job) run(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	var worker conc.WaitGroup
	worker.Go(func() {
		if err := j.work(ctx); err != nil {
			cancel(err)
		}
	})
	out, err := j.mapReduce(ctx)
	interrupted := err != nil && outer.Err() != nil
	if interrupted {
		err = j.takeBack(outer)
	}
	cancel(errOver)
	worker.Wait() // the handler of the part that was cancelled has returned then
	switch cause := context.Cause(ctx); {
	case interrupted && err == nil:
		j.board.line("stopped", "You interrupted it, so the flow was cancelled.")
		return nil
	case err != nil && !interrupted && !errors.Is(cause, errOver):
		return cause
	case err != nil:
		return err
	}
	return j.conclude(out)
}

// work is the worker.
func (j *job) work(ctx context.Context) error {
	return runtime.Run(ctx,
		runtime.Config{URL: j.url, Concurrency: slots, Logger: j.log, DrainTimeout: 3 * time.Second},
		runtime.Provide(CountWords, NewCounter), runtime.Handle(Reduce, reduce),
		fx.Supply(Tokenizer{j.pace}, Heard(j.heard)))
}

// heard shows how an attempt to count a part ended.
func (j *job) heard(part int, err error) {
	switch {
	case err == nil:
		j.board.counted(part)
	case errors.Is(err, errBusy):
		j.board.line("retry", "%s: %v; it is tried again.", nodeName(part), err)
	case errors.Is(err, errDamaged):
		j.board.line("failed", "%s: %v; no retry would help.", nodeName(part), err)
	case errors.Is(err, flowfabric.ErrCancelled):
		j.board.line("cancelled", "%s was cut off; its context ended because of this: %v.", nodeName(part), err)
	}
}

// mapReduce submits the flow, waits for its end, and takes the typed result of its last node.
func (j *job) mapReduce(ctx context.Context) (out outcome, err error) {
	texts, err := split()
	if err != nil {
		return out, err
	}
	f, last := mapReduce(texts, Query{j.top, j.letters})
	begin := time.Now()
	if j.flow, err = client.SubmitFlow(ctx, j.client, f); err != nil {
		return out, err
	}
	if out.flow, err = j.flow.Wait(ctx); err != nil {
		return out, err
	}
	out.took = time.Since(begin)
	out.ranking, err = client.NodeResult(ctx, j.flow, last)
	return out, err
}

// conclude prints the result and what became of the nodes.
func (j *job) conclude(out outcome) error {
	r := out.ranking
	var missing []string
	for _, number := range r.Missing {
		missing = append(missing, nodeName(number))
	}
	j.board.line("reduce", "was given %d of %d counts, all but %s: %d words. The most frequent of %d letters or more:",
		r.Parts, parts, strings.Join(missing, " and "), r.Words, j.letters)
	j.board.chart(r.Top)
	var states []string
	for state, n := range out.flow.Count {
		states = append(states, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(states)
	j.board.line("flow", "%s after %s; nodes: %s.", out.flow.State, out.took.Round(100*time.Millisecond),
		strings.Join(states, ", "))
	if j.text {
		fmt.Fprintln(j.board.out)
		if err := out.flow.Text(j.board.out); err != nil {
			return err
		}
	}
	if j.mermaid {
		fmt.Fprintf(j.board.out, "\nAs a Mermaid diagram, for a Markdown file or https://mermaid.live:\n\n")
		return out.flow.Mermaid(j.board.out)
	}
	return nil
}

// takeBack cancels the flow: nobody is left who could run it.
func (j *job) takeBack(ctx context.Context) error {
	if j.flow == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := j.flow.Cancel(ctx, flowfabric.CancelAll, flowfabric.Reason("the demo was interrupted"))
	if errors.Is(err, flowfabric.ErrTerminal) {
		return nil
	}
	return err
}
