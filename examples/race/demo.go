package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// errOver ends the demo's worker once there is nothing left to do.
var errOver = errors.New("the race is over")

// meet is one race with everybody who takes part.
type meet struct {
	options
	out    io.Writer
	client *client.Client
	flow   *client.Flow // nil before it was submitted

	mu   sync.Mutex
	lost map[flowfabric.ExecutionID]string // what the losers' handlers saw
}

// outcome is what a race came to.
type outcome struct {
	flow    client.FlowSnapshot
	article Article
	losers  []loser
	took    time.Duration // from the submission to the end of the flow
}

// loser is a provider whose answer was not needed, as it is on record.
type loser struct {
	provider string
	flowfabric.Snapshot
}

// demo connects, starts a worker, lets the providers race, and prints what came of it.
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
	m := &meet{options: o, out: stdout, client: c, lost: map[flowfabric.ExecutionID]string{}}
	return m.run(ctx)
}

// intro tells a stranger what is going to be seen.
func intro(out io.Writer, o options, url string) {
	fill(out, "",
		"FlowFabric: three providers answer the same question at once, token by token. The first whole answer is published; "+
			"the others are cancelled in the middle of theirs. It is one flow: the node publish depends on any of the three.")
	server := "as given" // its URL may hold a password
	if o.url == embedded.URL {
		server = url + ", embedded in this program, in memory, for development only"
	}
	fmt.Fprintf(out, "Server: %s.\n\nQuestion: %s\n\n", server, printable(o.question))
}

// run is the race, with a worker beside it. When the worker cannot go on, everything ends with its reason.
func (m *meet) run(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	var worker conc.WaitGroup
	worker.Go(func() {
		if err := m.work(ctx); err != nil {
			cancel(err)
		}
	})
	out, err := m.race(ctx)
	interrupted := err != nil && outer.Err() != nil
	if interrupted {
		err = m.takeBack(outer)
	}
	cancel(errOver)
	worker.Wait() // the handlers of the losers have returned then
	switch cause := context.Cause(ctx); {
	case interrupted && err == nil:
		fmt.Fprintln(m.out, "\nYou interrupted it, so the race was cancelled.")
		return nil
	case err != nil && !interrupted && !errors.Is(cause, errOver):
		return cause
	case err != nil:
		return err
	}
	return m.conclude(out)
}

// work is the worker.
func (m *meet) work(ctx context.Context) error {
	return runtime.Run(ctx, runtime.Config{URL: m.url, Logger: m.log, DrainTimeout: 3 * time.Second},
		runtime.Provide(Ask, NewRacer), runtime.Handle(Publish, first),
		fx.Supply(m.options), fx.Supply(Stopped(m.stopped)))
}

// stopped is told by the handler of a loser how far it was, and why its context ended.
func (m *meet) stopped(id flowfabric.ExecutionID, tokens int, cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[id] = fmt.Sprintf("was at token %d of %d when its context ended: %v", tokens, m.tokens, cause)
}

// race submits the flow, follows the three answers, and takes the typed result of the last node.
func (m *meet) race(ctx context.Context) (out outcome, err error) {
	f, racers, publish := race(m.question, m.tokens)
	begin := time.Now()
	if m.flow, err = client.SubmitFlow(ctx, m.client, f); err != nil {
		return out, err
	}
	heads := make([]string, len(racers))
	for i, p := range providers {
		heads[i] = fmt.Sprintf("%s, out of %s", p.Name, p.Book)
	}
	t := newTrack(m.out, heads...)
	var tails conc.WaitGroup
	for i, racer := range racers {
		tails.Go(func() { m.tail(ctx, t, i, client.Attach(m.client, Ask, racer.ID(m.flow.ID()))) })
	}
	out.flow, err = m.flow.Wait(ctx)
	out.took = time.Since(begin)
	tails.Wait()
	if err != nil {
		return out, err
	}
	for i, racer := range racers {
		seen, err := m.client.Execution(racer.ID(m.flow.ID())).Get(ctx)
		if err != nil {
			return out, err
		}
		if seen.State.Public != flowfabric.Completed {
			out.losers = append(out.losers, loser{providers[i].Name, seen})
		}
	}
	out.article, err = client.NodeResult(ctx, m.flow, publish)
	return out, err
}

// tail shows one answer live, and how it ended.
func (m *meet) tail(ctx context.Context, t *track, i int, exec *client.Execution[Answer]) {
	tokens := 0
	for event, err := range exec.Tail(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				t.end(i, err.Error())
			}
			return
		}
		switch event.Kind {
		case stream.TailFrame:
			tokens++
			t.token(i, string(event.Frame.Payload))
		case stream.TailResumed: // another worker took it over and says it all again
			tokens = 0
			t.end(i, "↻ from the start")
		case stream.TailAttemptEnd:
			if event.Reason == "attempt_success" {
				t.end(i, fmt.Sprintf("✓ all %d tokens", tokens))
				continue
			}
			t.end(i, "✗ cut off")
		}
	}
}

// conclude tells what became of everybody.
func (m *meet) conclude(out outcome) error {
	fmt.Fprintf(m.out, "\nThe others, as their handlers saw it and as it is on record:\n\n")
	for _, seen := range out.losers {
		saw, ok := m.lost[seen.ID]
		if !ok { // several programs on one server share the work
			saw = "has run elsewhere, or was done with streaming"
		}
		fmt.Fprintf(m.out, "    %-8s  %s\n", seen.provider, saw)
		fmt.Fprintf(m.out, "              on record: %s, %s, %s\n", seen.State.Public, seen.CancelSource,
			seen.CancelReason)
	}
	fmt.Fprintf(m.out, "\nPublished by the node publish, which was given one answer, the one of %s:\n\n",
		out.article.By)
	fill(m.out, "    ", out.article.Headline)
	fill(m.out, "    ", out.article.Text)
	fmt.Fprintf(m.out, "\nThe flow, which ended %s after it was submitted:\n\n", out.took.Round(100*time.Millisecond))
	if err := out.flow.Text(m.out); err != nil || !m.mermaid {
		return err
	}
	fmt.Fprintf(m.out, "\nAs a Mermaid diagram, for a Markdown file or https://mermaid.live:\n\n")
	return out.flow.Mermaid(m.out)
}

// takeBack cancels the flow: nobody is left who could run it.
func (m *meet) takeBack(ctx context.Context) error {
	if m.flow == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := m.flow.Cancel(ctx, flowfabric.CancelAll, flowfabric.Reason("the demo was interrupted"))
	if errors.Is(err, flowfabric.ErrTerminal) {
		return nil
	}
	return err
}
