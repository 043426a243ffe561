package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// inspector is the part of the engine that looks at whole partitions, and at lanes.
type inspector interface {
	SetLane(ctx context.Context, q wire.SetLane) []engine.InPartition[wire.SetLaneReply]
	SetShare(ctx context.Context, namespace, lane string, weight int) []engine.InPartition[struct{}]
	Lanes(ctx context.Context) []engine.InPartition[[]engine.Lane]
	Queues(ctx context.Context, partition uint16, namespace string, most int) ([]engine.Queue, error)
	PartitionSessions(ctx context.Context, partition uint16) ([]flowfabric.WorkerSession, error)
	ListExecutions(ctx context.Context, partition uint16, q engine.ListQuery) (engine.ListPage, error)
	DescribePartition(ctx context.Context, partition uint16) (flowfabric.Partition, error)
	FreezePartition(ctx context.Context, partition uint16) error
	ThawPartition(ctx context.Context, partition uint16) error
}

// Bounds of what lanes are told.
const (
	maxAgeing = 24 * time.Hour
	maxWeight = limits.MaxLaneWeight
)

// outcomes are those that a lane keeps for a time, in the order of the server.
var outcomes = []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
	flowfabric.Expired}

// AllNamespaces, in place of a namespace, looks at every namespace of the store.
const AllNamespaces = "*"

// namespace is the one to look at: the client's if none is named.
func (a *Admin) namespace(name string) (string, error) {
	name = cmp.Or(name, a.conn.Namespace)
	return name, valid.Name("namespace", name)
}

// within tells whether a namespace is among those to look at.
func within(asked, namespace string) bool { return asked == AllNamespaces || asked == namespace }

// Lane merges the state of a lane from all partitions.
type Lane struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	State     flowfabric.LaneState `json:"state" jsonschema:"active, paused, draining or disabled"`
	// Retention is of what ends in it and whose policy names none; 0 is the default, 24 h of what completed, else 14
	// days.
	Retention flowfabric.Retentions `json:"retention_s,omitzero" jsonschema:"seconds that it keeps what ended in it, by outcome, where it does not keep it as long as is usual: 24 h of what completed, else 14 days"`
	Since     time.Time             `json:"since,omitzero" jsonschema:"when somebody said something of it last"`
	By        string                `json:"by,omitempty" jsonschema:"author of that change"`
	Ageing    flowfabric.Millis     `json:"ageing_ms,omitempty" jsonschema:"waiting that outweighs a step of priority; absent where no waiting does"`
	Weight    int                   `json:"weight,omitempty" jsonschema:"weight of the namespace in the lane; absent for the default, 1"`
	// Mixed: partitions differ in state, retention, ageing or weight, because a change did not reach all of them;
	// making it again settles it. State, Retention and Ageing are then those of the partition whose state changed
	// last, as is Weight.
	Mixed   bool `json:"mixed,omitempty" jsonschema:"partitions differ, because a change did not reach all of them: make it again"`
	Routes  int  `json:"routes" jsonschema:"queues, over all partitions"`
	Waiting int  `json:"waiting" jsonschema:"executions"`
}

// Lanes lists the lanes of a namespace ("" is the client's, or [AllNamespaces]) by namespace and name: lanes that
// have routes, and lanes that an operator ever said something about. When partitions do not answer, the lanes are put
// together from the others, beside an error that names those.
//
// Errors: flowfabric.ErrInvalidInput before any call; a [*PartitionsError]; client.ErrClosed.
func (a *Admin) Lanes(ctx context.Context, namespace string) ([]Lane, error) {
	namespace, err := a.namespace(namespace)
	if err = cmp.Or(a.conn.Closed(), err); err != nil {
		return nil, fmt.Errorf("list lanes: %w", err)
	}
	all := a.store.Lanes(ctx)
	found, failed := map[string][]partLane{}, partitionErrors{}
	var answered []uint16
	for _, p := range all {
		if p.Err != nil {
			failed.add(p.Partition, p.Err)
			continue
		}
		answered = append(answered, p.Partition)
		for _, l := range p.Reply {
			if !within(namespace, l.Namespace) {
				continue
			}
			key := l.Namespace + "\x1f" + l.Lane
			found[key] = append(found[key], partLane{p.Partition, l})
		}
	}
	out := make([]Lane, 0, len(found))
	for _, told := range found {
		out = append(out, merged(told, answered))
	}
	slices.SortFunc(out, func(a, b Lane) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out, failed.sum("list lanes", len(all))
}

// partLane is a lane in one partition.
type partLane struct {
	partition uint16
	engine.Lane
}

// merged puts a lane together. A partition that answered and knows nothing of it has it as lanes begin.
func merged(told []partLane, answered []uint16) Lane {
	l := Lane{Namespace: told[0].Namespace, Name: told[0].Lane.Lane}
	var head engine.Lane
	for i, p := range answered {
		x := engine.Lane{ListLanesLane: wire.ListLanesLane{State: string(flowfabric.LaneActive)}}
		if len(told) > 0 && told[0].partition == p {
			x, told = told[0].Lane, told[1:]
		}
		l.Routes += x.Routes
		l.Waiting += x.Waiting
		if i == 0 {
			head = x
		}
		l.Mixed = l.Mixed || x.State != head.State || x.Retention != head.Retention || x.Ageing != head.Ageing ||
			x.Weight != head.Weight
		if i == 0 || x.Since.After(l.Since) {
			l.State, l.Retention, l.Since, l.By = flowfabric.LaneState(x.State), x.Retention, x.Since, x.By
			l.Ageing, l.Weight = flowfabric.Millis(x.Ageing), x.Weight
		}
	}
	return l
}

// LaneChange holds the settings that [Admin.SetLane] changes. A zero field changes nothing.
type LaneChange struct {
	// default client.Config.Namespace
	Namespace string `json:"namespace,omitempty"`
	// whether the lane accepts and dispatches work
	State flowfabric.LaneState `json:"state,omitempty" jsonschema:"active, paused, draining or disabled"`
	// Retention is for how long executions are kept that end so in the lane, unless their policy says otherwise, by
	// outcome (flowfabric.Completed, Failed, Cancelled, Expired): whole seconds, at most ten years; 0 is the default,
	// 24 h of what completed and 14 days of any other. Outcomes that it does not name stay as they are. It counts for
	// what ends from now on; what has ended is kept longer when it now may be, and is otherwise purged when it would
	// have been.
	Retention RetentionChange `json:"retention_s,omitempty" jsonschema:"by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default"`
	// Ageing is how much waiting outweighs one step of priority, so that work of low priority is not passed over for
	// ever: whole milliseconds, at most 24 h; 0 is the default, no waiting does. It holds for what becomes claimable
	// from now on.
	Ageing *flowfabric.Millis `json:"ageing_ms,omitempty" jsonschema:"how much waiting outweighs a step of priority, up to a day; 0: none does"`
	// Weight of the namespace in the lane, 1..1000: of what the lane dispatches while several namespaces have work in
	// it, each gets its weight's part, whatever it has waiting. 0 is the usual weight, 1. Each partition shares by
	// itself.
	Weight *int `json:"weight,omitempty" jsonschema:"weight of the namespace in the lane, 1..1000; 0 is the default, 1"`
}

// RetentionChange is a retention by outcome. JSON has it in whole seconds: {"completed":3600}.
type RetentionChange map[flowfabric.PublicState]time.Duration

// MarshalJSON writes whole seconds.
func (c RetentionChange) MarshalJSON() ([]byte, error) {
	seconds := make(map[flowfabric.PublicState]int64, len(c))
	for outcome, d := range c {
		seconds[outcome] = int64(d / time.Second)
	}
	return json.Marshal(seconds)
}

// UnmarshalJSON reads whole seconds.
func (c *RetentionChange) UnmarshalJSON(text []byte) error {
	var seconds map[flowfabric.PublicState]int64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return fmt.Errorf("want whole seconds by outcome: %w", err)
	}
	*c = make(RetentionChange, len(seconds))
	for outcome, n := range seconds {
		d := time.Duration(n) * time.Second
		if n != int64(d/time.Second) {
			d = math.MaxInt64 // more than a duration holds: no bound allows it
		}
		(*c)[outcome] = d
	}
	return nil
}

// SetLane changes a lane in every partition. It need not exist yet: what is submitted into it later finds it so.
//
// When it returns nil, no worker is handed anything of a lane that was paused or disabled, and nothing more is
// accepted into one that is draining or disabled (flowfabric.ErrLaneClosed); what runs already goes on. A submit
// whose idempotency key names an execution that exists is answered as ever. What waits stays where it is, and work
// that becomes due, is resumed, retried or replayed waits with it. A lane that is active again, whatever it was,
// wakes the workers that wait for it. Setting what is set is no error. A lane whose state is set, which has no work
// and which no worker serves, is a warning in the client's Logger.
//
// Errors: flowfabric.ErrInvalidInput for a name, field or By that is not legal, before any call, and for the 1,025th
// lane that is configured in a partition; a [*PartitionsError] that names the partitions that did not do it: the
// others did, and the call may be repeated. client.ErrClosed.
func (a *Admin) SetLane(ctx context.Context, lane string, change LaneChange, opts ...flowfabric.ActOption) error {
	verb := fmt.Sprintf("set lane %q", lane)
	namespace := cmp.Or(change.Namespace, a.conn.Namespace)
	act, err := a.act(opts)
	if err = cmp.Or(a.conn.Closed(), errors.Join(err, change.validate(namespace, lane))); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if link.Rehearsed(ctx) != nil {
		return nil
	}
	ctx = act.In(ctx, namespace, "set", "lane", lane, change.words()...)
	if change.State != "" || len(change.Retention) > 0 || change.Ageing != nil {
		if err := a.changeLane(ctx, verb, wire.SetLane{Namespace: namespace, Lane: lane, State: string(change.State),
			Retention: change.retention(), Ageing: (*time.Duration)(change.Ageing)}); err != nil {
			return err
		}
	}
	if change.Weight != nil {
		return foldAnswers(verb, a.store.SetShare(ctx, namespace, lane, *change.Weight))
	}
	return nil
}

// retention is how the server takes it: seconds of what completed, failed, was cancelled and expired, or nothing where
// it stays as it is.
func (c LaneChange) retention() string {
	if len(c.Retention) == 0 {
		return ""
	}
	parts := make([]string, 4)
	for i, outcome := range outcomes {
		if d, said := c.Retention[outcome]; said {
			parts[i] = strconv.FormatInt(int64(d/time.Second), 10)
		}
	}
	return strings.Join(parts, "/")
}

func (a *Admin) changeLane(ctx context.Context, verb string, change wire.SetLane) error {
	var failed partitionErrors
	sets, routes := a.store.SetLane(ctx, change), 0
	for _, s := range sets {
		if s.Err != nil {
			failed.add(s.Partition, s.Err)
		}
		routes += s.Reply.Routes
	}
	err := failed.sum(verb, len(sets))
	if err == nil && routes == 0 && change.State != "" && change.State != string(flowfabric.LaneActive) {
		a.doubtLane(ctx, change.Namespace, change.Lane)
	}
	return err
}

// doubtLane warns of a lane that nobody has: no work came into it yet, and no worker serves it. It may be new, or a
// slip.
func (a *Admin) doubtLane(ctx context.Context, namespace, lane string) {
	for _, p := range a.store.Workers(ctx) {
		if p.Err != nil {
			return
		}
		for _, w := range p.Reply {
			if engine.Serves(w.WorkerInfo, namespace) && slices.Contains(w.Lanes, lane) {
				return
			}
		}
	}
	a.conn.Logger.WarnContext(ctx,
		"flowfabric: the lane was set, but it has no work and no worker serves it; check its name and namespace (admin.Lanes, 'flowfabric lane list')",
		"lane", lane, "namespace", namespace)
}

func (c LaneChange) validate(namespace, lane string) error {
	if err := valid.Name("namespace", namespace); err != nil {
		return err
	}
	if err := valid.Name("lane", lane); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{flowfabric.ErrInvalidInput}, args...)...)
	}
	if !slices.Contains([]flowfabric.LaneState{"", flowfabric.LaneActive, flowfabric.LanePaused,
		flowfabric.LaneDraining, flowfabric.LaneDisabled}, c.State) {
		return bad("lane state %q, want active, paused, draining or disabled", c.State)
	}
	if c.State == "" && len(c.Retention) == 0 && c.Ageing == nil && c.Weight == nil {
		return bad("no field of the change is set, want State, Retention, Ageing or Weight")
	}
	if d := (*time.Duration)(c.Ageing); d != nil && (*d < 0 || *d > maxAgeing || *d%time.Millisecond != 0) {
		return bad("ageing %s, want whole milliseconds, 0..24h", *d)
	}
	for outcome, d := range c.Retention {
		if !slices.Contains(outcomes, outcome) {
			return bad("retention of %q, want completed, failed, cancelled or expired", string(outcome))
		}
		if d < 0 || d > limits.MaxDelay || d%time.Second != 0 {
			return bad("retention %s, want whole seconds, 0..10 years", d)
		}
	}
	if w := c.Weight; w != nil && (*w < 0 || *w > maxWeight) {
		return bad("weight %d, want 0..%d", *w, maxWeight)
	}
	return nil
}
