package httpapi

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// leased is in a body that proves by a lease that the execution is the worker's.
type leased struct {
	Lease string `json:"lease" jsonschema:"of the execution, as it came with the claim"`
}

func (l leased) leaseOf() string { return l.Lease }

type stepBody struct {
	leased
	Name   string          `json:"name" jsonschema:"1..128 bytes of printable ASCII, unique within the execution"`
	Value  json.RawMessage `json:"value,omitempty" jsonschema:"any JSON value, at most 256 KiB; later runs get it with the claim. Default null"`
	TookMs int64           `json:"took_ms,omitempty" jsonschema:"how long the step ran, by the worker's clock; for people"`
	Turn   string          `json:"turn,omitempty" jsonschema:"what the step is to a handler that talks, in turns: over, it ends a turn, and is refused with turn_stopped while a stop waits; stopped, it ends a turn as that stop asks, which has been heeded then; begin, it begins the next turn. Default: nothing of this"`
}

type stepAnswer struct {
	already
	Stopping string `json:"stopping,omitempty" jsonschema:"the request of a stop that waits to be heeded, or that this step has heeded"`
}

type already struct {
	Already bool `json:"already" jsonschema:"an earlier call had done it"`
}

type progressBody struct {
	leased
	Percent *int   `json:"percent,omitempty" jsonschema:"0..100"`
	Message string `json:"message,omitempty" jsonschema:"at most 1 KiB"`
}

type spendBody struct {
	leased
	Gate     string           `json:"gate" jsonschema:"one of the gates of the claim that is no limit of a key, or one above it: parent of an answer. What is counted below counts there, too, so spend there as well"`
	Sequence uint64           `json:"sequence" jsonschema:"1, 2, … for each gate under one lease; a repeat counts nothing"`
	Key      string           `json:"key,omitempty" jsonschema:"1..64 bytes of printable ASCII without spaces: the gate counts the key of an execution once within 24 h, also under another lease"`
	Amounts  map[string]int64 `json:"amounts" jsonschema:"by dimension. What is used is counted also when the lease is over"`
}

type failBody struct {
	leased
	Category     string `json:"category,omitempty" jsonschema:"1..64 bytes, for lists and alerts; default handler_error"`
	Message      string `json:"message,omitempty" jsonschema:"cut to 1 KiB"`
	Permanent    bool   `json:"permanent,omitempty" jsonschema:"no retry, whatever the policy says"`
	RetryAfterMs *int64 `json:"retry_after_ms,omitempty" jsonschema:"instead of the pause of the policy"`
	Step         string `json:"step,omitempty" jsonschema:"the step that failed, if one did; for people"`
	StepTookMs   int64  `json:"step_took_ms,omitempty" jsonschema:"how long it ran"`
}

type failAnswer struct {
	Retry     bool  `json:"retry" jsonschema:"it runs again; else it has failed for good"`
	RetryInMs int64 `json:"retry_in_ms"`
	already
}

type asideBody struct {
	leased
	DelayMs int64  `json:"delay_ms" jsonschema:"0..10 years; the same attempt goes on later, and no retry is used up"`
	Service string `json:"service,omitempty" jsonschema:"for whose turn it waits (acquire): it goes on sooner if that comes"`
}

type continueBody struct {
	leased
	Input json.RawMessage `json:"input,omitempty" jsonschema:"any JSON value, at most 1 MiB; default null. Steps, waits and retries start over; the id and the messages in mailboxes stay"`
}

type giveUpBody struct {
	leased
	Reason string `json:"reason,omitempty"`
}

// work is a write of a worker about an execution that it has: the body has the lease, and the answer is what do
// returns, nil for none.
func work[Body any, Answer any](action, name, summary, text string,
	do func(*call, flowfabric.Fence, *Body) (*Answer, error)) *route {
	write := func(c *call, body *Body) (out Answer, err error) {
		s, err := c.session(-1)
		if err != nil {
			return out, err
		}
		lease := any(body).(interface{ leaseOf() string }).leaseOf()
		f, err := s.fence("/lease", lease)
		if err != nil {
			return out, err
		}
		answer, err := do(c, f, body)
		if err = hidden(action, err); err == nil && answer != nil {
			out = *answer
			c.ends(lease, action, answer)
		}
		return out, err
	}
	return post("/v1/workers/{session}:"+action, name, summary, takes, text, write)
}

// notHeld are the refusals that tell how an execution is which the lease does not hold. They are all told as a stale
// lease: a made-up lease tells nothing of what there is.
var notHeld = []error{denied.NoExecution, flowfabric.ErrResultPurged, denied.NotActive, denied.StreamClosed,
	denied.StaleAppend}

// value is a member of a body that may be missing.
func value(v json.RawMessage) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

// turns are what a step may be to a handler that talks.
var turns = []string{"", engine.TurnOver, engine.TurnStopped, engine.TurnBegins}

func (c *call) recordStep(f flowfabric.Fence, b *stepBody) (*stepAnswer, error) {
	if err := printable("/name", b.Name); err != nil {
		return nil, err
	}
	took, err := tenYears("/took_ms", b.TookMs)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(turns, b.Turn) {
		return nil, invalid("/turn", "it is %.32q, want over, stopped or begin", b.Turn)
	}
	r, err := c.h.conn.Engine.RecordTurn(c.ctx(), f, engine.Step{Name: b.Name, Value: value(b.Value), Took: took,
		Turn: b.Turn})
	return &stepAnswer{already{r.Already}, r.Stop}, err
}

// tenYears is a time of at most ten years.
func tenYears(field string, n int64) (time.Duration, error) {
	if n < 0 || n > limits.MaxDelay.Milliseconds() {
		return 0, invalid(field, "it is %d, want 0..10 years", n)
	}
	return ms(n), nil
}

// printable checks the name of a step or of a wait.
func printable(field, name string) error {
	if err := valid.Printable(field[1:], name, limits.MaxStepName); err != nil {
		return invalid(field, "%v", err)
	}
	return nil
}

func (c *call) reportProgress(f flowfabric.Fence, b *progressBody) (*nothing, error) {
	percent := -1
	if b.Percent != nil {
		if percent = *b.Percent; percent < 0 || percent > 100 {
			return nil, invalid("/percent", "it is %d, want 0..100", percent)
		}
	}
	return nil, c.h.conn.Engine.UpdateProgress(c.ctx(), f, percent, b.Message)
}

// spend counts whatever was used, also by a worker that has lost the execution: what is used is used. So it is not
// the lease that decides who may, but the execution: its gates, and a namespace of the token.
func (c *call) spend(f flowfabric.Fence, b *spendBody) (*admission.Reported, error) {
	if b.Sequence < 1 {
		return nil, invalid("/sequence", "it is missing: count 1, 2, … for each gate under one lease")
	}
	if err := valid.ReportKey(b.Key, limits.MaxSpendKey); err != nil {
		return nil, invalid("/key", "%v", err)
	}
	s, err := c.h.client.Execution(f.Execution).Get(c.ctx())
	if err != nil {
		return nil, err
	}
	if ok, err := c.counts(s.Route, b.Gate); err != nil {
		return nil, err
	} else if !ok {
		return nil, invalid("/gate", "%.64q is not a gate of the execution, nor above one", b.Gate)
	}
	r, err := c.h.conn.Engine.ReportUsage(c.ctx(), admission.Usage{Gate: b.Gate, Execution: f.Execution,
		Epoch: f.Epoch, Sequence: b.Sequence, Key: b.Key, Amounts: b.Amounts})
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// counts tells whether work of a route may spend of a gate: it is one of its own, or above one.
func (c *call) counts(route flowfabric.Route, gate string) (bool, error) {
	if !c.who.may(route.Namespace) {
		return false, nil
	}
	var above []string
	for _, g := range route.Gates {
		if _, _, limit := g.Limit(); !limit {
			above = append(above, g.Name())
		}
	}
	for depth := 0; len(above) > 0 && depth <= limits.MaxGateDepth; depth++ {
		if slices.Contains(above, gate) {
			return true, nil
		}
		var next []string
		for _, name := range above {
			g, err := c.h.conn.Engine.ReadGate(c.ctx(), name, 0, 0, 0)
			switch {
			case err != nil && !errors.Is(err, denied.NoGate):
				return false, err
			case err == nil && g.Parent != "" && !slices.Contains(next, g.Parent):
				next = append(next, g.Parent)
			}
		}
		above = next
	}
	return false, nil
}

func (c *call) failWork(f flowfabric.Fence, b *failBody) (*failAnswer, error) {
	if b.Category == "" {
		b.Category = causes.HandlerError
	}
	failure := engine.Failure{Category: flowfabric.Category(b.Category), Reason: b.Message, Permanent: b.Permanent}
	if b.RetryAfterMs != nil {
		if *b.RetryAfterMs < 0 {
			return nil, invalid("/retry_after_ms", "it is %d, want at least 0", *b.RetryAfterMs)
		}
		pause := ms(*b.RetryAfterMs)
		failure.RetryAfter = &pause
	}
	if b.Step != "" {
		if err := printable("/step", b.Step); err != nil {
			return nil, err
		}
	}
	took, err := tenYears("/step_took_ms", b.StepTookMs)
	if err != nil {
		return nil, err
	}
	failure.Step, failure.StepTook = b.Step, took
	r, err := c.h.conn.Engine.FailExecution(c.ctx(), f, failure)
	return &failAnswer{r.Retry, r.RetryIn.Milliseconds(), already{r.Already}}, err
}

func (c *call) delayWork(f flowfabric.Fence, b *asideBody) (*already, error) {
	delay, err := tenYears("/delay_ms", b.DelayMs)
	if err != nil {
		return nil, err
	}
	if b.Service != "" {
		if err := valid.Service("service", b.Service); err != nil {
			return nil, invalid("/service", "%v", err)
		}
	}
	before, err := c.h.conn.Engine.DelayExecution(c.ctx(), f, delay, b.Service)
	return &already{before}, err
}

func (c *call) continueWork(f flowfabric.Fence, b *continueBody) (*already, error) {
	before, err := c.h.conn.Engine.ContinueExecution(c.ctx(), f, value(b.Input))
	return &already{before}, err
}

func (c *call) cancelWork(f flowfabric.Fence, b *giveUpBody) (*already, error) {
	before, err := c.h.conn.Engine.CancelExecution(trail.As(c.ctx(), "", b.Reason), f.Execution,
		engine.Cancellation{Source: engine.CancelOwner, Fence: &f})
	return &already{before}, err
}

func (c *call) releaseWork(f flowfabric.Fence, _ *leased) (*already, error) {
	before, err := c.h.conn.Engine.ReleaseExecution(c.ctx(), f)
	return &already{before}, err
}
