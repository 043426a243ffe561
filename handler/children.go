package handler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// children is what waits for children know while a handler runs: how those of earlier runs ended. Safe for concurrent
// use.
type children struct {
	t *Task // whose mutex guards what follows

	answers map[string]*answer  // by the name of the wait
	asked   map[string]struct{} // names of this run
	wanted  string              // the wait that this run asked for
}

// answer is how the children of a wait ended, or why that cannot be read.
type answer struct {
	outcomes []engine.ChildOutcome
	byID     map[flowfabric.ExecutionID]int // places among outcomes; nil until one is asked for
	err      error
}

// childWait, returned by a handler, asks to wait for children.
type childWait struct {
	wait  engine.ChildWait
	until *waitwords.Wanted // a suspension with the children in its condition
}

func (e *childWait) Error() string { return "wait for children " + e.wait.Name }

// recorded keeps what a claim brought.
func (c *children) recorded(wait string, value []byte) {
	outcomes, err := engine.DecodeChildren(c.t.ID().Partition(), value)
	c.keep(wait, answer{outcomes: outcomes, err: err})
}

func (c *children) keep(wait string, a answer) {
	if c.answers == nil {
		c.answers = map[string]*answer{}
	}
	c.answers[wait] = &a
}

// begin opens a run: names may be used again.
func (c *children) begin() {
	c.wanted = ""
	clear(c.asked)
}

// ask takes the name of a wait for this run, 1..128 bytes of printable ASCII, and returns how its children ended;
// answered is false if it was not answered yet. ErrInvalidInput for a name out of bounds, one that was used in this
// run, or inside a step; code task_consumed after the handler returned.
func (c *children) ask(ctx context.Context, wait string) (outcomes []engine.ChildOutcome, answered bool, err error) {
	if err := waitwords.CheckName(wait); err != nil {
		return nil, false, err
	}
	if step := c.t.insideStep(ctx); step != "" {
		return nil, false, fmt.Errorf("%w: waiting inside step %s; a step runs without stopping",
			flowfabric.ErrInvalidInput, step)
	}
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	switch {
	case c.t.ended:
		return nil, false, fmt.Errorf("%w: the handler has returned", denied.TaskConsumed)
	case c.t.barred != nil:
		return nil, false, c.t.barred
	}
	if _, twice := c.asked[wait]; twice {
		return nil, false, fmt.Errorf(
			"%w: the name was already used in this run; names are unique (number those of a loop)",
			flowfabric.ErrInvalidInput)
	}
	if c.asked == nil {
		c.asked = map[string]struct{}{}
	}
	c.asked[wait] = struct{}{}
	if a, answered := c.answers[wait]; answered {
		return a.outcomes, true, a.err
	}
	return nil, false, nil
}

// outcome is how a child had ended when its wait was over; known is false for one that the wait did not have. over is
// false while this run has not seen the end of the wait. A fork knows a child by its name: the wait was that of the
// execution that it was made of, and so was the child.
func (c *children) outcome(wait string, id flowfabric.ExecutionID,
	node string) (o engine.ChildOutcome, over, known bool) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	a := c.answers[wait]
	if _, asked := c.asked[wait]; !asked || a == nil || a.err != nil {
		return o, false, false
	}
	if a.byID == nil {
		a.byID = make(map[flowfabric.ExecutionID]int, len(a.outcomes))
		for i, o := range a.outcomes {
			a.byID[o.ID] = i
		}
	}
	i, known := a.byID[id]
	if !known {
		i = slices.IndexFunc(a.outcomes, func(o engine.ChildOutcome) bool { return o.Node == node })
		known = i >= 0
	}
	if known {
		o = a.outcomes[i]
	}
	return o, true, known
}

// want returns the error by which a handler asks to wait for children.
func (c *children) want(q engine.ChildWait, until *waitwords.Wanted) error {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.wanted = q.Name
	return &childWait{wait: q, until: until}
}

// answered notes that enough children had ended at once: another run follows under the same hold.
func (c *children) answered(wait string, outcomes []engine.ChildOutcome) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.keep(wait, answer{outcomes: outcomes})
}

// readResult reads the result of a child's attempt, nil if it is empty.
func (t *Task) readResult(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, error) {
	if t.cfg.Results == nil {
		return nil, fmt.Errorf("read the result of %s: %w: the task has no reader of results", id,
			flowfabric.ErrInvalidInput)
	}
	result, _, err := t.cfg.Results.ReadResult(ctx, id, attempt)
	return result, err
}

// checkOthers tells of executions that the handler did not make how those ended that have; an error for one that
// cannot be waited for.
func (t *Task) checkOthers(ctx context.Context, ids []flowfabric.ExecutionID) ([]engine.ChildOutcome, error) {
	if t.cfg.Results == nil {
		return nil, fmt.Errorf(
			"%w: this task runs without a server and cannot wait for executions that it did not make; use package fftest",
			flowfabric.ErrInvalidInput)
	}
	return t.cfg.Results.CheckOthers(ctx, t.ID(), ids)
}

// inherited tells of the tags that the library gives the children of an execution.
func inherited(key string) bool {
	return strings.HasPrefix(key, limits.TraceTags) || key == limits.DepthTag
}

// inherits adds the tags by which the execution's trace goes on, and how many agents are above it, to those of a child,
// which are not changed. A child of an agent has its own depth.
func (t *Task) inherits(tags map[string]string) map[string]string {
	copied := false
	for k, v := range t.cfg.Claim.Tags {
		if !inherited(k) || k == limits.DepthTag && tags[k] != "" {
			continue
		}
		if !copied {
			tags, copied = maps.Clone(tags), true
			if tags == nil {
				tags = map[string]string{}
			}
		}
		tags[k] = v
	}
	return tags
}

// unused lists the waits that were answered and that this run did not ask for. The task is locked.
func (c *children) unused() []string {
	var unused []string
	for wait := range c.answers {
		if _, ok := c.asked[wait]; !ok {
			unused = append(unused, "children "+wait)
		}
	}
	return unused
}
