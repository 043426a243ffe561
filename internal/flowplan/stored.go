package flowplan

import (
	"encoding/json"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Template is a flow that a schedule submits at each of its instants. It is stored as the schedule's input, and only
// Go reads it. It has no ids: [Template.Plan] gives the members those of one flow.
type Template struct {
	Version int               `json:"v"`
	Kind    string            `json:"kind"`
	Mode    engine.SealMode   `json:"mode"`
	Digest  string            `json:"digest"`
	Tags    map[string]string `json:"tags,omitempty"`
	Nodes   []templateNode    `json:"nodes"` // upstreams first
}

const templateVersion = 1

type templateNode struct {
	Name string `json:"name"`
	flowfabric.Start
	Packed     string         `json:"policy,omitempty"` // all of the policy, which Start tells in part
	Digest     string         `json:"digest,omitempty"`
	Payload    []byte         `json:"payload,omitempty"`
	Group      string         `json:"group,omitempty"`
	K          int            `json:"k,omitempty"`
	CancelRest bool           `json:"cancel_rest,omitempty"`
	Edges      []templateEdge `json:"edges,omitempty"`
}

type templateEdge struct {
	From  int    `json:"from"` // index of an earlier node
	Input string `json:"input,omitempty"`
}

// Encode makes a template of a plan: equal flows have equal bytes. Errors: flowfabric.ErrInvalidInput for a node that
// begins or ends at an instant of its own, or has more than 62 tags; ErrPayloadTooLarge above 1 MiB.
func (p Plan) Encode() ([]byte, error) {
	t := Template{Version: templateVersion, Kind: p.Kind, Mode: p.Mode, Digest: p.Digest, Tags: p.Tags}
	if len(p.Tags) > limits.MaxTags-2 {
		return nil, fmt.Errorf("%w: the flow has %d tags, want at most %d, since two are the schedule's own",
			flowfabric.ErrInvalidInput, len(p.Tags), limits.MaxTags-2)
	}
	number := make(map[flowfabric.ExecutionID]int, len(p.Members))
	for i := range p.Members {
		m := &p.Members[i]
		number[m.ID] = i
		if !m.DelayUntil.IsZero() || !m.DeadlineAt.IsZero() {
			return nil, fmt.Errorf(
				"%w: node %s: DelayUntil and DeadlineAt name one instant; a flow that recurs takes Delay and Deadline",
				flowfabric.ErrInvalidInput, m.Node)
		}
		if len(m.Tags) > limits.MaxTags-2 {
			return nil, fmt.Errorf("%w: node %s: %d tags, want at most %d, since two are the schedule's own",
				flowfabric.ErrInvalidInput, m.Node, len(m.Tags), limits.MaxTags-2)
		}
		n := templateNode{Name: m.Node, Start: m.Start, Packed: valid.PackPolicy(m.Start.Policy), Digest: m.Digest,
			Payload: m.Payload, Group: m.Policy, K: m.K, CancelRest: m.CancelRest}
		for _, e := range m.Edges {
			n.Edges = append(n.Edges, templateEdge{From: number[e.From], Input: e.Input})
		}
		t.Nodes = append(t.Nodes, n)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode flow: %w", err)
	}
	if len(text) > limits.MaxPayload {
		return nil, fmt.Errorf("%w: the flow has %d bytes as it is stored, want at most %d",
			flowfabric.ErrPayloadTooLarge, len(text), limits.MaxPayload)
	}
	return text, nil
}

// Decode reads what Encode wrote. The error wraps flowfabric.ErrInvalidInput.
func Decode(text []byte) (Template, error) {
	var t Template
	if err := json.Unmarshal(text, &t); err != nil {
		return Template{}, fmt.Errorf("%w: the stored flow is not readable: %w", flowfabric.ErrInvalidInput, err)
	}
	if t.Version != templateVersion || len(t.Nodes) == 0 {
		return Template{}, fmt.Errorf("%w: the stored flow has version %d and %d nodes", flowfabric.ErrInvalidInput,
			t.Version, len(t.Nodes))
	}
	for i, n := range t.Nodes {
		for _, e := range n.Edges {
			if e.From < 0 || e.From >= i {
				return Template{}, fmt.Errorf("%w: the stored flow has an edge from node %d to node %d",
					flowfabric.ErrInvalidInput, e.From, i)
			}
		}
	}
	return t, nil
}

// Wait is when the work of one instant begins: not before Until, which is For from now. Zero: at once. Deadlines
// count from there.
type Wait struct {
	Until time.Time
	For   time.Duration
}

// Apply makes an execution that depends on no other wait.
func (w Wait) Apply(x *engine.NewExecution, first bool) {
	if w.For <= 0 {
		return
	}
	if x.Deadline > 0 {
		x.Deadline = min(x.Deadline+flowfabric.Millis(w.For), flowfabric.Millis(limits.MaxDelay))
	}
	switch {
	case !first:
	case x.Delay > 0:
		x.Delay = min(x.Delay+flowfabric.Millis(w.For), flowfabric.Millis(limits.MaxDelay))
	default:
		x.DelayUntil = w.Until
	}
}

// Plan is one flow of the template. labels makes the tags of the flow, and of each member, of their own.
func (t Template) Plan(id flowfabric.FlowID, wait Wait,
	labels func(own map[string]string) map[string]string) (Plan, error) {
	p := Plan{Kind: t.Kind, Mode: t.Mode, Digest: t.Digest, Tags: labels(t.Tags)}
	for _, n := range t.Nodes {
		start, err := valid.Unpacked(n.Start, n.Packed)
		if err != nil {
			return Plan{}, err
		}
		start.Tags = labels(n.Tags)
		m := engine.FlowMember{Node: n.Name, Policy: n.Group, K: n.K, CancelRest: n.CancelRest,
			NewExecution: engine.NewExecution{ID: id.Member(n.Name), Start: start, Digest: n.Digest,
				Payload: n.Payload}}
		wait.Apply(&m.NewExecution, len(n.Edges) == 0)
		for _, e := range n.Edges {
			m.Edges = append(m.Edges, engine.FlowEdge{From: id.Member(t.Nodes[e.From].Name), Input: e.Input})
		}
		p.Edges += len(m.Edges)
		p.Members = append(p.Members, m)
	}
	return p, nil
}
