package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
)

type flowPage admin.Page[flowfabric.FlowSummary]

func (c *call) flows() (out flowPage, err error) {
	q := c.query()
	n, oldest := int(q.number("limit", 1, maxPage, defaultPage)), q.flag("oldest")
	if q.err != nil {
		return out, q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	if err != nil {
		return out, err
	}
	f := admin.FlowQuery{Namespace: namespace, Kind: q.text("kind"), Oldest: oldest}
	for _, state := range q.list("state") {
		f.States = append(f.States, flowfabric.FlowState(state))
	}
	page, err := c.h.admin.FlowsPage(c.ctx(), f, q.text("cursor"), n)
	page.Items = slices.DeleteFunc(append([]flowfabric.FlowSummary{}, page.Items...),
		func(x flowfabric.FlowSummary) bool { return x.ID.IsZero() || x.State == "" })
	return flowPage(page), err
}

// flowOf is the flow that the path names, if the principal may see it.
func (c *call) flowOf() (*client.Flow, flowfabric.FlowRecord, error) {
	id, err := flowfabric.ParseFlowID(c.r.PathValue("id"))
	if err != nil {
		return nil, flowfabric.FlowRecord{}, invalid("id", "%.80q is not a flow id", c.r.PathValue("id"))
	}
	f := c.h.client.Flow(id)
	record, err := f.Describe(c.ctx())
	c.acting("", record.Namespace)
	if err == nil && !c.who.may(record.Namespace) ||
		errors.Is(err, flowfabric.ErrResultPurged) && len(c.who.Namespaces) > 0 {
		err = &problem{Status: http.StatusNotFound, Code: "flow_not_found",
			Detail: "the flow does not exist: it was never submitted, or it was purged"}
	}
	return f, record, err
}

func (c *call) flow() (s client.FlowSnapshot, err error) {
	f, _, err := c.flowOf()
	if err != nil {
		return s, err
	}
	return f.Snapshot(c.ctx())
}

func (c *call) graph() error {
	s, err := c.flow()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := s.Mermaid(&text); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/vnd.mermaid")
	_, err = c.w.Write(text.Bytes())
	return err
}

type flowCancel struct {
	Policy string `json:"policy,omitempty" jsonschema:"cancel_all (default), cancel_pending or flow_only"`
	why
}

func (c *call) cancelFlow(f *client.Flow, b *flowCancel) (client.FlowCancellation, error) {
	policy := cmp.Or(flowfabric.CancellationPolicy(b.Policy), flowfabric.CancelAll)
	return f.Cancel(c.ctx(), policy, c.act(b.why)...)
}

type flowReplay struct {
	admin.FlowReplay
	why
}

func (c *call) replayFlow(f *client.Flow, b *flowReplay) (admin.FlowReplayed, error) {
	r, err := c.h.admin.ReplayFlow(c.ctx(), f.ID(), b.FlowReplay, c.act(b.why)...)
	for i, n := range r.Refused {
		r.Refused[i].Why = inMembers(n.Why)
	}
	return r, err
}

func (c *call) setFlowTags(f *client.Flow, b *tagsBody) (nothing, error) {
	return nothing{}, c.h.admin.SetFlowTags(c.ctx(), f.ID(), b.Set, b.Remove, c.act(b.why)...)
}

// flowBody is a graph: each node comes after those that it depends on.
type flowBody struct {
	flowfabric.Start `for:"flow"`
	flowKeys
	Open  bool       `json:"open,omitempty" jsonschema:"it takes more nodes until it is sealed, and ends only then"`
	Nodes []nodeBody `json:"nodes" jsonschema:"1..1000, each after those that it depends on"`
}

// nodesBody are nodes that are added to a flow.
type nodesBody struct {
	Nodes []nodeBody `json:"nodes" jsonschema:"1..1000, each after those of them that it depends on; other names are of nodes that the flow has"`
}

type flowMade struct {
	ID        string            `json:"id"`
	Duplicate bool              `json:"duplicate"`
	Nodes     map[string]string `json:"nodes" jsonschema:"the executions of the nodes"`
}

func (c *call) submitFlow() error {
	var b flowBody
	if err := c.body(&b); err != nil {
		return err
	}
	if err := b.keyed(c); err != nil {
		return err
	}
	key, err := b.key()
	if err = cmp.Or(c.whole(&b.Start, ""), err); err != nil {
		return err
	}
	b.Key = key
	var how []flow.Option
	if b.Open {
		how = append(how, flow.Unsealed())
	}
	f, err := c.graphOf(b.Kind, b.Nodes, "/nodes", how...)
	if err != nil {
		return err
	}
	made, err := client.SubmitFlow(c.ctx(), c.h.client, f, flowfabric.StartWith(b.Start))
	if err != nil {
		return err
	}
	out := newFlowMade(made, f)
	c.w.Header().Set("Location", "/v1/flows/"+out.ID)
	if out.Duplicate {
		return c.answerJSON(http.StatusOK, out)
	}
	return c.answerJSON(http.StatusCreated, out)
}

// addToFlow adds nodes to a flow that takes them.
func (c *call) addToFlow(b *nodesBody) (none flowMade, err error) {
	to, record, err := c.flowOf()
	if err != nil {
		return none, err
	}
	f := flow.New(record.Kind)
	if err := c.addNodes(f, b.Nodes, "/nodes", existing(f, b.Nodes)); err != nil {
		return none, err
	}
	if err := to.Add(c.ctx(), f); err != nil {
		return none, err
	}
	return newFlowMade(to, f), nil
}

func newFlowMade(made *client.Flow, f *flow.Flow) flowMade {
	out := flowMade{ID: made.ID().String(), Duplicate: made.Duplicate(), Nodes: map[string]string{}}
	for _, name := range f.Nodes() {
		out.Nodes[name] = made.Member(name).String()
	}
	return out
}
