package adk

import (
	"context"
	"fmt"
	"sync"

	"github.com/sourcegraph/conc"
	"google.golang.org/adk/v2/agent"

	"github.com/flowfabric/flowfabric-go/handler"
)

// run is what is recorded of a session, by names that are the same in each run of the handler: the place and a number.
// The place is the agent, below the call of the tool that runs it. An agent does one thing after the other, so that
// its numbers do not depend on what others do at the same time.
type run struct {
	task *handler.Task

	mu     sync.Mutex
	halt   error           // ends the run: ADK would tell the model, which must not go on
	counts map[string]int  // of what each place has done
	marks  map[string]bool // see the constants
}

// Marks, with the name of a place or step behind them.
const (
	asking  = "asking "  // its model is asked
	unasked = "unasked " // its model is about to be asked, and is not ours so far
	began   = "began "   // the result of the tool is to be recorded
)

type runKey struct{}

// place is where a call is made: its path is the call of a tool, or "".
type place struct {
	run  *run
	path string
}

// placeOf is the zero place outside a session.
func placeOf(ctx context.Context) place {
	at, _ := ctx.Value(runKey{}).(place)
	return at
}

// of names an agent at this place.
func (p place) of(agent string) string {
	if p.path != "" {
		return p.path + " " + agent // a tool that is an agent has its name: what is below it begins with its step
	}
	return agent
}

// TaskFrom is the task of the handler that a tool or a callback runs in; nil outside a session. A tool may wait with it
// (handler.Await, Task.Ask, Task.WaitChildren) and returns the error: the execution is then suspended, and the tool
// runs again when it goes on. One tool of an answer may wait at a time. A tool names its own steps and waits.
func TaskFrom(ctx context.Context) *handler.Task {
	if run := placeOf(ctx).run; run != nil {
		return run.task
	}
	return nil
}

// stop ends the run with err, the first one that comes.
func (r *run) stop(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt == nil {
		r.halt = err
	}
	return err
}

func (r *run) halted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halt
}

// next counts what a place does.
func (r *run) next(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
	return r.counts[what]
}

// mark sets or removes a mark, and returns whether it was there.
func (r *run) mark(what, name string, set bool) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.marks[what+name]
	r.marks[what+name] = set
	return was
}

// each runs the calls of one answer at the same time, each at a place of its own. A panic becomes that of the handler.
func (r *run) each(ctx context.Context, calls []func(context.Context)) {
	at := placeOf(ctx)
	name := ""
	if c, ok := ctx.(agent.InvocationContext); ok {
		name = c.Agent().Name()
	}
	name = at.of(name)
	n := r.next(name + " tool")
	var all conc.WaitGroup
	for i, call := range calls {
		here := place{r, fmt.Sprintf("%s tool %d.%d", name, n, i+1)}
		all.Go(func() { call(context.WithValue(ctx, runKey{}, here)) })
	}
	all.Wait()
}
