package httpapi

import (
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

type serviceCallBody struct {
	leased
	Service  string           `json:"service" jsonschema:"the name of its gate, such as openai/gpt-5"`
	Call     uint64           `json:"call" jsonschema:"its number: 1, 2, … under one lease, whatever the service. Ask again for the same call under the same number"`
	Estimate map[string]int64 `json:"estimate,omitempty" jsonschema:"by dimension, at most 8: what the call will use at most or about. Of requests it is 1 unless it says more. The same when it has ended"`
}

type acquireBody struct {
	serviceCallBody
	WaitedMs int64 `json:"waited_ms,omitempty" jsonschema:"how long the worker has waited for this call, since it asked for it first, at most an hour"`
}

type acquireAnswer struct {
	Admitted bool              `json:"admitted" jsonschema:"make the call, then end-call. A repeat answers so again"`
	Stay     bool              `json:"stay,omitempty" jsonschema:"not yet: ask again in retry_ms. Else delay the execution by retry_ms, with the service"`
	Retry    flowfabric.Millis `json:"retry_ms,omitzero"`
	Place    int               `json:"place,omitempty" jsonschema:"in line, from 1"`
	Waiting  int               `json:"waiting,omitempty" jsonschema:"executions in line"`
}

type endCallBody struct {
	serviceCallBody
	How          string           `json:"how" jsonschema:"settled: it was made. released: it was certainly not made. refused: the service answered that there are too many calls (status 429)"`
	Used         map[string]int64 `json:"used,omitempty" jsonschema:"by dimension, of one that settled; absent: as much as was estimated"`
	RetryAfterMs int64            `json:"retry_after_ms,omitempty" jsonschema:"of one that was refused: when the service wants to be asked again, at most an hour; 0: it did not say"`
}

// ends are how calls end.
var ends = map[string]engine.CallEnd{"settled": engine.CallSettled, "released": engine.CallReleased,
	"refused": engine.CallRefused}

// estimated checks amounts of a call.
func estimated(field string, amounts map[string]int64) error {
	if n := len(amounts); n > limits.MaxServiceDimensions {
		return invalid(field, "there are %d dimensions, want at most %d", n, limits.MaxServiceDimensions)
	}
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		if err := valid.Dimension("dimension", dim); err != nil {
			return invalid(field, "%v", err)
		}
		if n := amounts[dim]; n < 0 || n > maxCount {
			return invalid(field+"/"+dim, "it is %d, want 0..%d", n, int64(maxCount))
		}
	}
	return nil
}

// upToAnHour is a number of milliseconds.
func upToAnHour(field string, n int64) error {
	if n < 0 || n > 3_600_000 {
		return invalid(field, "it is %d, want 0..3600000", n)
	}
	return nil
}

// serviceCall reads what a call to a service is, and whose it is.
func (c *call) serviceCall(f flowfabric.Fence, b serviceCallBody) (x engine.ServiceCall, s flowfabric.Snapshot,
	err error) {
	if err := valid.Service("service", b.Service); err != nil {
		return x, s, invalid("/service", "%v", err)
	}
	if b.Call < 1 || b.Call > maxCount {
		return x, s, invalid("/call", "it is %d: count 1, 2, … under one lease", b.Call)
	}
	if err := estimated("/estimate", b.Estimate); err != nil {
		return x, s, err
	}
	if s, err = c.had("call", f); err != nil {
		return x, s, err
	}
	return engine.ServiceCall{Service: b.Service, Fence: f, Number: b.Call, Namespace: s.Route.Namespace,
		Priority: s.Priority, Since: s.CreatedAt, Estimate: b.Estimate}, s, nil
}

// acquire asks for the turn of a call. It needs the lease: whoever lost it makes no calls.
func (c *call) acquire(f flowfabric.Fence, b *acquireBody) (*acquireAnswer, error) {
	if err := upToAnHour("/waited_ms", b.WaitedMs); err != nil {
		return nil, err
	}
	x, s, err := c.serviceCall(f, b.serviceCallBody)
	if err != nil {
		return nil, err
	}
	if !holds(f, s) {
		return nil, stale("call", f)
	}
	x.Waited = ms(b.WaitedMs)
	turn, err := c.h.conn.Engine.Acquire(c.ctx(), x)
	if err != nil {
		return nil, err
	}
	return &acquireAnswer{Admitted: turn.Admitted, Stay: turn.Stay, Retry: flowfabric.Millis(turn.Retry),
		Place: turn.Place, Waiting: turn.Waiting}, nil
}

// endCall says how a call ended, also when the lease is over.
func (c *call) endCall(f flowfabric.Fence, b *endCallBody) (*already, error) {
	how, ok := ends[b.How]
	if !ok {
		return nil, invalid("/how", "it is %.40q, want settled, released or refused", b.How)
	}
	if how != engine.CallSettled && b.Used != nil {
		return nil, invalid("/used", "a call that was %s used nothing", b.How)
	}
	if how != engine.CallRefused && b.RetryAfterMs != 0 {
		return nil, invalid("/retry_after_ms", "the service has not refused the call")
	}
	if err := estimated("/used", b.Used); err != nil {
		return nil, err
	}
	if err := upToAnHour("/retry_after_ms", b.RetryAfterMs); err != nil {
		return nil, err
	}
	x, _, err := c.serviceCall(f, b.serviceCallBody)
	if err != nil {
		return nil, err
	}
	if x.Used, x.Pause = b.Used, ms(b.RetryAfterMs); how == engine.CallSettled && b.Used == nil {
		x.Used = b.Estimate
	}
	before, err := c.h.conn.Engine.EndCall(c.ctx(), x, how)
	return &already{before}, err
}
