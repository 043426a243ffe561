package httpapi

import (
	"encoding/json"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/waits"
)

// expectBody is what handler.Task.Expect takes.
type expectBody struct {
	leased
	Key     string                     `json:"key" jsonschema:"1..128 bytes of printable ASCII: the wait on it gets the event. Each takes one event; number those of a loop"`
	Subject string                     `json:"subject" jsonschema:"of the event, in the namespace of the execution; at most 128 bytes"`
	Where   map[string]json.RawMessage `json:"where,omitempty" jsonschema:"fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most 8. Default: every event of the subject"`
}

// wanted is what a worker expects.
func (b *expectBody) wanted() (x engine.Expectation, err error) {
	if err := printable("/key", b.Key); err != nil {
		return x, err
	}
	if err := trigger.CheckSubject(b.Subject); err != nil {
		return x, invalid("/subject", "%v", err)
	}
	where := make(map[string]any, len(b.Where))
	for path, value := range b.Where {
		where[path] = value
	}
	x.Text = b.Subject
	if x.Terms, err = trigger.Filter(where); err != nil {
		return x, invalid("/where", "%v", err)
	}
	return x, nil
}

// expectEvent does what a run of a handler in Go does: it opens the waitpoint and registers it, unless the event has
// come. The step of the waitpoint tells which.
func (c *call) expectEvent(f flowfabric.Fence, b *expectBody) (*nothing, error) {
	x, err := b.wanted()
	if err != nil {
		return nil, err
	}
	s, err := c.h.client.Execution(f.Execution).Get(c.ctx())
	if err != nil {
		return nil, err
	}
	x.Namespace = s.Route.Namespace
	claim := engine.Claim{Fence: f}
	step, recorded, err := c.h.conn.Engine.Waitpoint(c.ctx(), f.Execution, b.Key)
	if err != nil {
		return nil, err
	}
	if recorded {
		// of nobody: the server judges the lease first
		if _, err := c.h.conn.Engine.CloseWaitpoint(c.ctx(), f, mint.UUID()); !errors.Is(err, denied.NoWaitpoint) {
			return nil, err
		}
		claim.Steps = map[string][]byte{engine.StepWaitpoint + b.Key: step}
	}
	run := waits.New(waits.Config{Claim: claim, Keyring: c.h.conn.Keyring, Opener: c.h.conn.Engine})
	err = c.h.seeds.Known(c.ctx(), func() error { return run.Expect(c.ctx(), b.Key, x) })
	switch {
	case errors.Is(err, denied.TooManyExpected):
		p := problemOf(err)
		p.Field = "/where"
		return nil, p
	case errors.Is(err, flowfabric.ErrInvalidInput):
		return nil, invalid("/key", "%v", err)
	}
	return nil, err
}
