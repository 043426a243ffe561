package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// inspector is the part of the engine that looks at whole partitions, and at lanes.
type inspector interface {
	SetLane(ctx context.Context, namespace, lane string, change engine.LaneChange) []engine.LaneSet
	Lanes(ctx context.Context) []engine.PartitionLanes
	Queues(ctx context.Context, partition uint16) ([]engine.Queue, error)
	PartitionSessions(ctx context.Context, partition uint16) ([]engine.SessionRow, error)
	ListExecutions(ctx context.Context, partition uint16, q engine.ListQuery) (engine.ListPage, error)
	DescribePartition(ctx context.Context, partition uint16) (engine.PartitionInfo, error)
}

// maxRetention is the longest retention of a lane.
const maxRetention = 10 * 365 * 24 * time.Hour

// ScopeOption says which namespaces [Client.Lanes] and [Client.Queues] look at: [Namespace], [AllNamespaces]. Default is
// Config.Namespace.
type ScopeOption interface{ within(s *scope) }

// AllNamespaces looks at every namespace of the store.
func AllNamespaces() ScopeOption { return everywhere{} }

type everywhere struct{}

func (everywhere) within(s *scope) { s.all = true }

type scope struct {
	namespace string
	all       bool
}

func (c *Client) scope(opts []ScopeOption) (scope, error) {
	s := scope{namespace: c.cfg.Namespace}
	for _, o := range opts {
		o.within(&s)
	}
	if s.all {
		return s, nil
	}
	return s, flowfabric.ValidateName("namespace", s.namespace)
}

func (s scope) has(namespace string) bool { return s.all || s.namespace == namespace }

// LaneInfo is what the partitions know of a lane, put together.
type LaneInfo struct {
	Namespace, Name string
	State           engine.LaneState
	Retention       time.Duration // of what ends in it and whose policy names none; 0 is the default of 24 h
	Since           time.Time     // of the state; zero when nobody ever said anything
	By              string        // who said so last
	Ageing          time.Duration // what a step of priority is worth in waiting; 0: no waiting outweighs one
	Weight          int           // of the namespace in the lane, see [Client.SetShare]; 0 is the usual one, 1
	// Mixed: partitions differ in state, retention, ageing or weight, because a change did not reach all of them; making it again settles
	// it. State, Retention and Ageing are then those of the partition whose state changed last, as is Weight.
	Mixed           bool
	Routes, Waiting int             // over all partitions
	Partitions      []LanePartition // every partition that answered, in order
}

// LanePartition is a lane in one partition.
type LanePartition struct {
	Partition uint16
	engine.Lane
}

// Lanes lists the lanes of the client's namespace, or of those that the options name, by namespace and name: lanes that have
// routes, and lanes that an operator ever said something about. When partitions do not answer, the lanes are put together
// from the others, beside an error that names those.
//
// Errors: flowfabric.ErrInvalidInput before any call; ErrTransport, ErrPartitionFrozen and others by partition; [ErrClosed].
// Spec 10 §1.1, spec 50 §14.
func (c *Client) Lanes(ctx context.Context, opts ...ScopeOption) ([]LaneInfo, error) {
	s, err := c.scope(opts)
	if c.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("list lanes: %w", err)
	}
	all := c.store.Lanes(ctx)
	found, failed := map[string]*LaneInfo{}, partitionErrors{}
	var answered []uint16
	for _, p := range all {
		if p.Err != nil {
			failed.add(p.Partition, p.Err)
			continue
		}
		answered = append(answered, p.Partition)
		for _, l := range p.Lanes {
			if !s.has(l.Namespace) {
				continue
			}
			key := l.Namespace + "\x1f" + l.Name
			if found[key] == nil {
				found[key] = &LaneInfo{Namespace: l.Namespace, Name: l.Name}
			}
			found[key].Partitions = append(found[key].Partitions, LanePartition{p.Partition, l})
		}
	}
	out := make([]LaneInfo, 0, len(found))
	for _, l := range found {
		l.merge(answered)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b LaneInfo) int {
		if by := strings.Compare(a.Namespace, b.Namespace); by != 0 {
			return by
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, failed.sum("list lanes", len(all))
}

// merge sums up the partitions. One that answered and did not name the lane takes it as it is by default.
func (l *LaneInfo) merge(answered []uint16) {
	told := l.Partitions
	l.Partitions = make([]LanePartition, 0, len(answered))
	for _, p := range answered {
		x := LanePartition{p, engine.Lane{Namespace: l.Namespace, Name: l.Name, State: engine.LaneActive}}
		if len(told) > 0 && told[0].Partition == p {
			x, told = told[0], told[1:]
		}
		l.Partitions = append(l.Partitions, x)
		l.Routes += x.Routes
		l.Waiting += x.Waiting
		first := len(l.Partitions) == 1
		l.Mixed = l.Mixed || !first && x.differs(l.Partitions[0].Lane)
		if first || x.Since.After(l.Since) {
			l.State, l.Retention, l.Since, l.By = x.State, x.Retention, x.Since, x.By
			l.Ageing, l.Weight = x.Ageing, x.Weight
		}
	}
}

// differs tells whether operators said something else of a lane in another partition.
func (p LanePartition) differs(x engine.Lane) bool {
	return p.State != x.State || p.Retention != x.Retention || p.Ageing != x.Ageing || p.Weight != x.Weight
}

// LaneOption changes a call that changes a lane: [Namespace], [By].
type LaneOption interface{ lane(q *laneCall) }

type laneCall struct{ namespace, by string }

// SetLane changes a lane's state, retention or ageing, or all of them, in every partition: change.State says whether the lane accepts work and
// hands it out (engine.LaneActive, LanePaused, LaneDraining, LaneDisabled), change.Retention for how long what ends in it from
// now on is kept. A lane need not exist yet: what is submitted into it later finds it so. change.By is set from [By] or the
// client's Creator when it is empty.
//
// When it returns nil, no worker is handed anything of a lane that was paused or disabled, and nothing more is accepted into
// one that is draining or disabled (flowfabric.ErrLaneClosed); what runs already goes on. What waits stays where it is, and
// work that becomes due, is resumed, retried or replayed waits with it. Setting what is set is no error. A lane whose state is set,
// which has no work and which no worker serves, is a warning in Config.Logger.
//
// Errors: flowfabric.ErrInvalidInput for a name, state, retention (whole seconds, up to ten years), ageing (whole ms, up to 24 h) or By that is not legal,
// before any call, and for the 1,025th lane that is configured in a partition; else an error that names the partitions that
// did not do it: the others did, and the call may be repeated. [ErrClosed]. Spec 10 §1.1, design §5.
func (c *Client) SetLane(ctx context.Context, lane string, change engine.LaneChange, opts ...LaneOption) error {
	q := laneCall{namespace: c.cfg.Namespace, by: change.By}
	if q.by == "" {
		q.by = c.by()
	}
	for _, o := range opts {
		o.lane(&q)
	}
	change.By = q.by
	err := validateLane(q.namespace, lane, change)
	if c.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return fmt.Errorf("set lane %q: %w", lane, err)
	}
	var failed partitionErrors
	sets, routes := c.store.SetLane(ctx, q.namespace, lane, change), 0
	for _, s := range sets {
		if s.Err != nil {
			failed.add(s.Partition, s.Err)
		}
		routes += s.Routes
	}
	if err = failed.sum(fmt.Sprintf("set lane %q", lane), len(sets)); err == nil && routes == 0 && change.State != "" {
		c.doubtLane(ctx, q.namespace, lane)
	}
	return err
}

// doubtLane warns of a lane that nobody has: no work came into it yet, and no worker serves it. It may be new, or a slip.
func (c *Client) doubtLane(ctx context.Context, namespace, lane string) {
	workers, err := c.Workers(ctx)
	if err != nil {
		return
	}
	for _, w := range workers {
		if w.Info.Serves(namespace) && slices.Contains(w.Info.Lanes, lane) {
			return
		}
	}
	c.cfg.Logger.WarnContext(ctx, "flowfabric: the lane was set, but it has no work and no worker serves it; check its name and namespace (client.Lanes, 'flowfabric lane list')",
		"lane", lane, "namespace", namespace)
}

func validateLane(namespace, lane string, change engine.LaneChange) error {
	if err := flowfabric.ValidateName("namespace", namespace); err != nil {
		return err
	}
	if err := flowfabric.ValidateName("lane", lane); err != nil {
		return err
	}
	states := []engine.LaneState{"", engine.LaneActive, engine.LanePaused, engine.LaneDraining, engine.LaneDisabled}
	if !slices.Contains(states, change.State) {
		return fmt.Errorf("%w: lane state %q, want active, paused, draining or disabled", flowfabric.ErrInvalidInput, change.State)
	}
	if change.State == "" && change.Retention == nil && change.Ageing == nil {
		return fmt.Errorf("%w: neither State nor Retention nor Ageing is set", flowfabric.ErrInvalidInput)
	}
	if a := change.Ageing; a != nil && (*a < 0 || *a > maxAgeing || *a%time.Millisecond != 0) {
		return fmt.Errorf("%w: ageing %s, want whole milliseconds, 0..24h", flowfabric.ErrInvalidInput, *a)
	}
	if k := change.Retention; k != nil && (*k < 0 || *k > maxRetention || *k%time.Second != 0) {
		return fmt.Errorf("%w: retention %s, want whole seconds, 0..10 years", flowfabric.ErrInvalidInput, *k)
	}
	return validateBy(change.By)
}

// PauseLane lets a lane accept work and hand out none, see [Client.SetLane].
func (c *Client) PauseLane(ctx context.Context, lane string, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{State: engine.LanePaused}, opts...)
}

// ResumeLane lets a lane accept and hand out work again, whatever its state was; workers that wait for it are rung.
// See [Client.SetLane].
func (c *Client) ResumeLane(ctx context.Context, lane string, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{State: engine.LaneActive}, opts...)
}

// DrainLane lets a lane hand out what it has and accept nothing, see [Client.SetLane]. A submit whose idempotency key names an
// execution that exists is answered as ever.
func (c *Client) DrainLane(ctx context.Context, lane string, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{State: engine.LaneDraining}, opts...)
}

// DisableLane lets a lane neither accept nor hand out, see [Client.SetLane].
func (c *Client) DisableLane(ctx context.Context, lane string, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{State: engine.LaneDisabled}, opts...)
}

// LaneRetention says for how long what ends in a lane is kept unless its policy says otherwise: whole seconds, up to ten
// years; 0 is the default of 24 h. It counts for what ends from now on; what has ended is kept longer when it now may be, and
// is otherwise purged when it would have been. See [Client.SetLane].
func (c *Client) LaneRetention(ctx context.Context, lane string, keep time.Duration, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{Retention: &keep}, opts...)
}
