package httpapi

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gateway"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type claimBody struct {
	Max      *int           `json:"max,omitempty" jsonschema:"1..100, default 1; 0 with complete or leases: take nothing"`
	WaitMs   *int64         `json:"wait_ms,omitempty" jsonschema:"how long to wait until there is some: 0..30000, default 20000"`
	Leases   []mindedBody   `json:"leases,omitempty" jsonschema:"of everything that it works on, at most 1000. They are renewed, once, and the answer comes without waiting for work when one of them is not held or has a stop, also while the claim waits"`
	Complete []completeBody `json:"complete,omitempty" jsonschema:"executions that are done, at most 100, each as in complete. They end before the claim. If one of them has not completed, the answer comes without waiting for work"`
}

type claimAnswer struct {
	Executions []claimed         `json:"executions" jsonschema:"none when the time was over"`
	Completed  []completedAnswer `json:"completed,omitempty" jsonschema:"what became of complete, in its order"`
	Leases     []leaseAnswer     `json:"leases,omitempty" jsonschema:"those of leases that are not held, or have a stop that the worker has not heard of; all others are held"`
}

// claimed is everything that a handler needs.
type claimed struct {
	flowfabric.Route
	Lease        string                             `json:"lease" jsonschema:"proves in every write that the execution is this worker's; opaque"`
	LeaseMs      int64                              `json:"lease_ms" jsonschema:"renew before that is over"`
	ID           string                             `json:"id"`
	Attempt      uint32                             `json:"attempt" jsonschema:"1 for the first"`
	AttemptType  string                             `json:"attempt_type" jsonschema:"initial, retry, reclaim, replay, continue, or resumed when the attempt goes on"`
	Continues    int                                `json:"continues,omitempty" jsonschema:"how often it went on with another input (see :continue)"`
	Takes        int                                `json:"takes,omitempty" jsonschema:"how often it was replayed or rewound"`
	Stopping     string                             `json:"stopping,omitempty" jsonschema:"the request of a stop that no run has heeded yet. See the turn of a step"`
	Priority     int                                `json:"priority"`
	CreatedAt    time.Time                          `json:"created_at,omitzero"`
	Retries      int                                `json:"retries"`
	Reclaims     int                                `json:"reclaims"`
	TimeLeftMs   int64                              `json:"time_left_ms,omitempty" jsonschema:"of the attempt's timeout; 0: none"`
	DeadlineInMs int64                              `json:"deadline_in_ms,omitempty" jsonschema:"0: none"`
	LastSequence uint64                             `json:"last_sequence" jsonschema:"of the frames that this attempt has; the next one is one more"`
	Input        flowfabric.Payload                 `json:"input"`
	InputLost    bool                               `json:"input_lost,omitempty" jsonschema:"somebody deleted it from the store; fail the execution"`
	Tags         map[string]string                  `json:"tags,omitempty"`
	Steps        map[string]flowfabric.Payload      `json:"steps,omitempty" jsonschema:"recorded by earlier runs, by name: do not run these again"`
	Waits        map[string]suspend.Result          `json:"waits,omitempty" jsonschema:"what ended the waits of earlier runs, by name"`
	Receipts     map[string]map[string]receipt      `json:"receipts,omitempty" jsonschema:"what earlier runs received, by mailbox and number"`
	Children     map[string]map[string]childOutcome `json:"children,omitempty" jsonschema:"how the children of earlier waits ended, by the names of the wait and of the child"`
	Flow         string                             `json:"flow,omitempty"`
	Node         string                             `json:"node,omitempty"`
	Inputs       map[string]flowfabric.Payload      `json:"inputs,omitempty" jsonschema:"results of upstream nodes, by the name of the input"`
}

// asked checks how much a worker wants, and how long it waits.
func (b *claimBody) asked() (most int, wait time.Duration, err error) {
	most, wait = 1, 20*time.Second
	if b.WaitMs != nil {
		wait = ms(*b.WaitMs)
	}
	if b.Max != nil {
		most = *b.Max
	}
	least := 1
	if len(b.Complete)+len(b.Leases) > 0 {
		least = 0
	}
	if most < least || most > gateway.MaxClaim {
		return 0, 0, invalid("/max", "it is %d, want %d..%d", most, least, gateway.MaxClaim)
	}
	if wait < 0 || wait > mostClaimWait {
		return 0, 0, invalid("/wait_ms", "it is %d, want 0..%d", wait.Milliseconds(), mostClaimWait.Milliseconds())
	}
	return most, wait, nil
}

func (c *call) claimWork() error {
	var b claimBody
	if err := c.body(&b); err != nil {
		return err
	}
	most, wait, err := b.asked()
	if err != nil {
		return err
	}
	inFlight := -1
	if b.Leases != nil {
		inFlight = len(b.Leases)
	}
	s, err := c.session(inFlight)
	if err != nil {
		return err
	}
	list, err := s.completions(b.Complete)
	if err != nil {
		return err
	}
	held, err := s.minding(b.Leases)
	if err != nil {
		return err
	}
	var out claimAnswer
	if out.Completed, err = c.completeAll(list); err != nil {
		return err
	}
	if len(held) == 0 && most == 0 ||
		slices.ContainsFunc(out.Completed, func(x completedAnswer) bool { return x.Code != "" }) {
		wait = 0
	}
	claims, err := c.await(s, held, &out, gateway.Request{Worker: s.id, Version: s.info.Version, Offer: s.offer,
		Max: most, Wait: wait, TTL: s.lease})
	if err != nil && len(claims) == 0 {
		return err
	}
	return c.handOut(s, claims, out)
}

// lookEvery is how long a claim that minds leases waits at least between two looks at them.
const lookEvery = 500 * time.Millisecond

// await claims until there is work, or news of what the worker has.
func (c *call) await(s *workerSession, held []minded, out *claimAnswer, q gateway.Request) ([]gateway.Claim, error) {
	watch, end := c.watch(held)
	defer end()
	until := time.Now().Add(q.Wait)
	for {
		var err error
		if out.Leases, err = c.news(s, held); err != nil {
			return nil, err
		}
		if out.Leases != nil {
			until = time.Now()
		}
		rested := time.Now().Add(lookEvery)
		q.Watch, q.Wait = watch, time.Until(until)
		claims, err := c.h.gateway.Claim(c.ctx(), q)
		if now := time.Now(); len(claims) == 0 && err == nil && now.Before(until) && now.Before(rested) {
			// it was told of something just after it had looked
			q.Watch, q.Wait = nil, min(time.Until(until), time.Until(rested))
			claims, err = c.h.gateway.Claim(c.ctx(), q)
		}
		if len(claims) > 0 || err != nil || !time.Now().Before(until) {
			return claims, err
		}
	}
}

// handOut answers a claim. What nobody takes goes back.
func (c *call) handOut(s *workerSession, claims []gateway.Claim, out claimAnswer) error {
	out.Executions = make([]claimed, 0, len(claims))
	for i := range claims {
		x, err := c.claimed(s, &claims[i])
		if err != nil {
			c.h.gateway.Return(claims)
			return err
		}
		out.Executions = append(out.Executions, x)
	}
	text, err := json.Marshal(out)
	if err != nil {
		c.h.gateway.Return(claims)
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, err = c.w.Write(append(text, '\n'))
	if err == nil {
		err = http.NewResponseController(c.w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) || c.ctx().Err() != nil { // nobody took the answer
		c.h.gateway.Return(claims)
	}
	return nil
}

// claimed is a claim as the worker sees it.
func (c *call) claimed(s *workerSession, x *gateway.Claim) (claimed, error) {
	out := claimed{Lease: leaseText(x.Fence, c.h.timing.about(x)), LeaseMs: s.lease.Milliseconds(),
		ID:    x.Fence.Execution.String(),
		Route: x.Route, Attempt: x.Fence.Attempt,
		AttemptType: string(x.Type), Continues: x.Continues, Takes: x.Takes, Stopping: x.Stop, Priority: x.Priority,
		CreatedAt: x.CreatedAt,
		Retries:   x.Retries, Reclaims: x.Reclaims, TimeLeftMs: x.TimeLeft.Milliseconds(),
		DeadlineInMs: x.DeadlineIn.Milliseconds(),
		LastSequence: x.LastSequence,
		Input:        x.Input, InputLost: x.InputLost, Tags: x.Tags, Node: x.Node}
	if !x.Flow.IsZero() {
		out.Flow = x.Flow.String()
	}
	for name, value := range x.Inputs {
		if out.Inputs == nil {
			out.Inputs = map[string]flowfabric.Payload{}
		}
		out.Inputs[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(x.Steps)) {
		if err := out.recorded(c, x.Fence.Execution, name, x.Steps[name]); err != nil {
			return out, err
		}
	}
	if x.Resume != nil && x.Resume.Name != "" && !engine.IsReceipt(x.Resume.Name) { // receive tells of those
		out.wait(x.Resume.Name, *x.Resume)
	}
	return out, nil
}

func (out *claimed) wait(name string, answer suspend.Result) {
	if out.Waits == nil {
		out.Waits = map[string]suspend.Result{}
	}
	out.Waits[name] = answer
}

// recorded sorts a recorded step: the handler's own, or what the library keeps as one.
func (out *claimed) recorded(c *call, id flowfabric.ExecutionID, name string, value []byte) error {
	if name, ok := strings.CutPrefix(name, engine.StepReceipt); ok {
		return out.received(c, name, value)
	}
	if wait, ok := strings.CutPrefix(name, engine.StepAwait); ok {
		if engine.IsReceipt(wait) {
			return nil
		}
		r, err := engine.DecodeResume(value)
		if err == nil {
			engine.OpenResult(c.h.conn.Engine.Box(), &r)
			out.wait(wait, r)
		}
		return err
	}
	if wait, ok := strings.CutPrefix(name, engine.StepChildren); ok {
		outcomes, err := engine.DecodeChildren(id.Partition(), value)
		if err != nil {
			return err
		}
		if out.Children == nil {
			out.Children = map[string]map[string]childOutcome{}
		}
		out.Children[wait], err = c.outcomes(outcomes)
		return err
	}
	if strings.HasPrefix(name, "\x1f") { // the library's own
		return nil
	}
	if out.Steps == nil {
		out.Steps = map[string]flowfabric.Payload{}
	}
	out.Steps[name] = value
	return nil
}
