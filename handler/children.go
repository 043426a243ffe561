package handler

import (
	"context"
	"fmt"
	"maps"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/taskhook"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
)

// children is what waits for children know while a handler runs: how those of earlier runs ended. Package flow is
// built on it, handlers use flow.Children. Safe for concurrent use.
type children struct {
	t *Task // whose mutex guards what follows

	answers map[string]answer   // by the name of the wait
	asked   map[string]struct{} // names of this run
	wanted  string              // the wait that this run asked for
}

// answer is how the children of a wait ended, or why that cannot be read.
type answer struct {
	outcomes []engine.ChildOutcome
	err      error
}

// recorded keeps what a claim brought.
func (c *children) recorded(wait string, value []byte) {
	outcomes, err := engine.DecodeChildren(c.t.ID().Partition(), value)
	c.keep(wait, answer{outcomes, err})
}

func (c *children) keep(wait string, a answer) {
	if c.answers == nil {
		c.answers = map[string]answer{}
	}
	c.answers[wait] = a
}

// begin opens a run: names may be used again.
func (c *children) begin() {
	c.wanted = ""
	clear(c.asked)
}

// Ask takes the name of a wait for this run, 1..128 bytes of printable ASCII, and returns how its children ended;
// answered is false if it was not answered yet. ErrInvalidInput for a name out of bounds, one that was used in this
// run, or inside a step; code task_consumed after the handler returned.
func (c *children) Ask(ctx context.Context, wait string) (outcomes []engine.ChildOutcome, answered bool, err error) {
	if err := validateName("wait", wait); err != nil {
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
	a, answered := c.answers[wait]
	return a.outcomes, answered, a.err
}

// Want returns the error by which a handler asks to wait for children.
func (c *children) Want(q engine.ChildWait, until *waithook.Wanted) error {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.wanted = q.Name
	return &taskhook.ChildWait{Wait: q, Until: until}
}

// Answered notes that enough children had ended at once: another run follows under the same hold.
func (c *children) Answered(wait string, outcomes []engine.ChildOutcome) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.keep(wait, answer{outcomes: outcomes})
}

// Read reads the result of a child's attempt, nil if it is empty.
func (c *children) Read(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, error) {
	if c.t.cfg.Results == nil {
		return nil, fmt.Errorf("read the result of %s: %w: the task has no reader of results", id,
			flowfabric.ErrInvalidInput)
	}
	result, _, err := c.t.cfg.Results.ReadResult(ctx, id, attempt)
	return result, err
}

// Check tells of executions that the handler did not make how those ended that have; an error for one that cannot be
// waited for.
func (c *children) Check(ctx context.Context, ids []flowfabric.ExecutionID) ([]engine.ChildOutcome, error) {
	if c.t.cfg.Results == nil {
		return nil, fmt.Errorf(
			"%w: the task works alone and can wait for nothing that it did not make; package fftest runs it",
			flowfabric.ErrInvalidInput)
	}
	return c.t.cfg.Results.CheckAwaited(ctx, c.t.ID(), ids)
}

// Upstreams reads what those that the execution depends on came to; none of an execution that is in no flow.
func (c *children) Upstreams(ctx context.Context) ([]engine.UpstreamOutcome, error) {
	if c.t.cfg.Results == nil || c.t.Node() == "" {
		return nil, nil
	}
	return c.t.cfg.Results.Upstreams(ctx, c.t.ID())
}

// Traced adds the tags by which the execution's trace goes on to those of a child, which are not changed.
func (c *children) Traced(tags map[string]string) map[string]string {
	copied := false
	for k, v := range c.t.cfg.Claim.Tags {
		if !strings.HasPrefix(k, limits.TraceTags) {
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
