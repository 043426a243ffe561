package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// losing is a server whose answers get lost: every call is made, and the first answers to each of its kind do not
// arrive.
type losing struct {
	store
	lose   int // how many of each kind
	lost   map[string]int
	refuse error  // of every create call but those whose answer is lost
	stuck  func() // the backlog is not worked off: a call that tries does this instead
}

func (l *losing) loses(call string, err error) error {
	if err == nil && l.lost[call] < l.lose {
		l.lost[call]++
		return fmt.Errorf("%s: %w: the reply is lost", call, flowfabric.ErrTransport)
	}
	return err
}

func (l *losing) CreateFlow(ctx context.Context, q engine.NewFlow) (engine.FlowCreated, error) {
	if l.refuse != nil && l.lost["create"] == l.lose {
		return engine.FlowCreated{}, l.refuse
	}
	out, err := l.store.CreateFlow(ctx, q)
	return out, l.loses("create", err)
}

func (l *losing) StageFlow(ctx context.Context, id flowfabric.FlowID, revision *uint64,
	members []engine.FlowMember) (engine.FlowCreated, error) {
	out, err := l.store.StageFlow(ctx, id, revision, members)
	return out, l.loses("stage "+members[0].Node, err)
}

func (l *losing) SealFlow(ctx context.Context, id flowfabric.FlowID, mode engine.SealMode, members,
	edges int) (flowfabric.FlowState, bool, error) {
	state, more, err := l.store.SealFlow(ctx, id, mode, members, edges)
	return state, more, l.loses("seal", err)
}

func (l *losing) DrainFlows(ctx context.Context, partition uint16) (bool, error) {
	if l.stuck != nil {
		l.stuck()
		return true, fmt.Errorf("drain: %w", flowfabric.ErrPartitionFrozen)
	}
	return l.store.DrainFlows(ctx, partition)
}

// lossy is a client of an embedded server, of 2 partitions, through a server that loses answers.
func lossy(t *testing.T, l *losing) (context.Context, *Client) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: testserver.Embedded(t), Partitions: 2,
		Logger: quiet})
	must.No(t, err)
	l.store, l.lost = e, map[string]int{}
	c := newClient(Config{URL: "redis://lossy", Logger: quiet}.withDefaults(), l, noTails{}, nil, e.Close)
	t.Cleanup(c.Close)
	return ctx, c
}

func wide(n int) *flow.Flow {
	f := flow.New("wide")
	def := handler.Define[string, string]("work", flowfabric.Retries(0))
	root := flow.Add(f, "root", def, "x")
	for i := range n {
		flow.Add(f, fmt.Sprint("n", i), def, "x", flow.After(root))
	}
	return f
}

func TestSubmitFlowThoughAnswersAreLost(t *testing.T) {
	l := &losing{lose: 2}
	ctx, c := lossy(t, l)
	for _, opts := range [][]FlowOption{nil, {flowfabric.IdempotencyKey("k")}} {
		l.lost = map[string]int{}
		fl, err := SubmitFlow(ctx, c, wide(250), opts...)
		if err != nil || len(l.lost) != 4 { // three batches, the first with the header, and seal
			t.Fatalf("%v, %v", l.lost, err)
		}
		s, err := fl.Snapshot(ctx)
		if err != nil || len(s.Nodes) != 251 || s.Edges != 250 || s.State != flowfabric.FlowOpen ||
			s.Count[flowfabric.Waiting] != 1 {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
	}
}

// A flow of at most 100 members takes one call. If its answer is lost, the repeat finds the flow released, as another
// submit would.
func TestSubmitFlowInOneCall(t *testing.T) {
	l := &losing{lose: 1}
	ctx, c := lossy(t, l)
	for _, opts := range [][]FlowOption{nil, {flowfabric.IdempotencyKey("k")}} {
		l.lost = map[string]int{}
		fl, err := SubmitFlow(ctx, c, wide(99), opts...)
		if err != nil || fmt.Sprint(l.lost) != "map[create:1]" || fl.Duplicate() != (opts != nil) {
			t.Fatalf("%v, %v", l.lost, err)
		}
		s, err := fl.Snapshot(ctx)
		if err != nil || len(s.Nodes) != 100 || s.Edges != 99 || s.State != flowfabric.FlowOpen ||
			s.Count[flowfabric.Waiting] != 1 {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
	}
	if _, err := SubmitFlow(ctx, c, wide(98), flowfabric.IdempotencyKey("k")); !errors.Is(err, denied.FlowConflict) {
		t.Errorf("another definition under the key: %v", err)
	}
}

// A unique flow is the only one of its key until it has ended. One that was cut short is completed by a submit of the
// same definition; another definition leads to it and changes nothing.
func TestSubmitUniqueFlow(t *testing.T) {
	ctx, c := lossy(t, &losing{})
	whole, err := SubmitFlow(ctx, c, wide(9), flowfabric.Key{Text: "whole", WhileActive: true})
	if err != nil || whole.Duplicate() {
		t.Fatal(err)
	}
	for _, f := range []*flow.Flow{wide(9), wide(3)} {
		again, err := SubmitFlow(ctx, c, f, flowfabric.Key{Text: "whole", WhileActive: true})
		if err != nil || again.ID() != whole.ID() || !again.Duplicate() {
			t.Errorf("%+v, %v, want %s", again, err, whole.ID())
		}
	}
	q, err := c.newFlowSubmission([]FlowOption{flowfabric.Key{Text: "cut", WhileActive: true}})
	must.No(t, err)
	id := c.flowID(wide(150), &q)
	plan, err := c.plan(wide(150), id, q)
	must.No(t, err)
	if _, err := c.store.CreateFlow(ctx, engine.NewFlow{ID: id, Namespace: "default", Kind: plan.Kind,
		Digest: plan.Digest, Members: engine.Batches(plan.Members)[0], Key: q.taken}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		f         *flow.Flow
		duplicate bool
		state     flowfabric.FlowState
	}{{wide(9), true, flowfabric.FlowStaging}, {wide(150), false, flowfabric.FlowOpen},
		{wide(150), true, flowfabric.FlowOpen}} {
		fl, err := SubmitFlow(ctx, c, tc.f, flowfabric.Key{Text: "cut", WhileActive: true})
		if err != nil || fl.ID() != id || fl.Duplicate() != tc.duplicate {
			t.Fatalf("%+v, %v, want %s", fl, err, id)
		}
		if r, err := fl.Describe(ctx); err != nil || r.State != tc.state {
			t.Errorf("%s, %v, want %s", r.State, err, tc.state)
		}
	}
	for what, opts := range map[string][]FlowOption{
		"two keys":     {flowfabric.Key{Text: "a", WhileActive: true}, flowfabric.IdempotencyKey("a")},
		"an empty key": {flowfabric.Key{WhileActive: true}},
		"a long key":   {flowfabric.Key{Text: strings.Repeat("k", 257), WhileActive: true}},
		"a window":     {flowfabric.Key{Text: "a", WhileActive: true, Window: time.Hour}},
		"a debounce":   {flowfabric.Key{Text: "a", Debounce: time.Hour}},
		"a bound":      {flowfabric.Key{Text: "a", DebounceMax: time.Hour}}} {
		if _, err := SubmitFlow(ctx, c, wide(3), opts...); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A repeat that the server refuses before it runs says nothing about the try before it, whose answer was lost.
func TestSubmitFlowIsRefusedAfterALostAnswer(t *testing.T) {
	l := &losing{lose: 1}
	ctx, c := lossy(t, l)
	c.cfg.SubmitTimeout = time.Second
	l.refuse = fmt.Errorf("create: %w", flowfabric.ErrOutOfMemory)
	_, err := SubmitFlow(ctx, c, wide(9), flowfabric.IdempotencyKey("k"))
	if unknown, ok := errors.AsType[*UnknownOutcomeError](err); !ok || !errors.Is(err, flowfabric.ErrOutOfMemory) {
		t.Fatalf("%v", err)
	} else if s, err := c.Flow(unknown.Flow).Snapshot(ctx); err != nil || s.State != flowfabric.FlowOpen {
		t.Errorf("%+v, %v", s.FlowRecord, err)
	}
	l.lost["create"] = 1
	if _, err := SubmitFlow(ctx, c, wide(9)); !errors.Is(err, flowfabric.ErrOutOfMemory) || errors.Is(err,
		flowfabric.ErrTransport) {
		t.Errorf("the first try is refused: %v", err)
	}
}

// A producer that gives up in the middle is told where to look; the next submit under the key goes on.
func TestSubmitFlowThatIsGivenUp(t *testing.T) {
	l := &losing{lose: 1}
	ctx, c := lossy(t, l)
	c.cfg.SubmitTimeout = time.Millisecond // no repeat
	var unknown *UnknownOutcomeError
	f, tries := wide(150), 0
	for ; ; tries++ {
		fl, err := SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey("k"))
		if err == nil {
			if tries != 3 || fl.ID() != unknown.Flow {
				t.Errorf("%d tries, %s, want %s", tries, fl.ID(), unknown.Flow)
			}
			break
		}
		var ok bool
		if unknown, ok = errors.AsType[*UnknownOutcomeError](err); !ok || !errors.Is(err, flowfabric.ErrTransport) {
			t.Fatalf("%v", err)
		}
	}
	if s, err := c.Flow(unknown.Flow).Snapshot(ctx); err != nil || len(s.Nodes) != 151 ||
		s.State != flowfabric.FlowOpen {
		t.Errorf("%+v, %v", s.FlowRecord, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := SubmitFlow(gone, c, f); !errors.Is(err, context.Canceled) || errors.As(err, &unknown) {
		t.Errorf("nothing was sent: %v", err)
	}
}

func TestBatches(t *testing.T) {
	member := func(edges, bytes int) engine.FlowMember {
		return engine.FlowMember{Edges: make([]engine.FlowEdge, edges),
			NewExecution: engine.NewExecution{Payload: make([]byte, bytes)}}
	}
	many := func(n int, m engine.FlowMember) (out []engine.FlowMember) {
		for range n {
			out = append(out, m)
		}
		return out
	}
	labelled := member(0, 1)
	labelled.Tags = map[string]string{}
	for i := range limits.MaxTags {
		labelled.Tags[fmt.Sprint("app.k", i)] = "v"
	}
	for what, c := range map[string]struct {
		members []engine.FlowMember
		want    string
	}{
		"tags":  {many(30, labelled), "[14 14 2]"},
		"none":  {nil, "[]"},
		"count": {many(201, member(1, 1)), "[100 100 1]"},
		"edges": {many(5, member(400, 1)), "[2 2 1]"},
		"bytes": {many(3, member(0, 500<<10)), "[2 1]"},
		"great": {many(2, member(1000, 1<<20)), "[1 1]"},
	} {
		sizes := []int{}
		for _, b := range engine.Batches(c.members) {
			sizes = append(sizes, len(b))
		}
		if got := fmt.Sprint(sizes); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}
