package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxNodes is how many nodes a flow of one request has.
const maxNodes = limits.MaxHTTPNodes

type nodeBody struct {
	Name             string `json:"name"`
	flowfabric.Start `for:"node"`
	given
	After      []string          `json:"after,omitempty" jsonschema:"names of nodes that it depends on"`
	Inputs     map[string]string `json:"inputs,omitempty" jsonschema:"results that its handler is given: the name of the input, and of the node it comes from"`
	Group      string            `json:"policy,omitempty" jsonschema:"what those must come to: all (default), any or quorum must succeed; ended: all have ended, in whatever way; failed: likewise, and at least one did not succeed, else it is skipped"`
	K          int               `json:"k,omitempty" jsonschema:"of a quorum"`
	CancelRest bool              `json:"cancel_rest,omitempty" jsonschema:"of all, any and quorum: cancel the others once enough have succeeded, or cannot any more"`
}

// options are what a node says; nodes are those before it.
func (n *nodeBody) options(c *call, place string, nodes map[string]flow.Source[[]byte]) ([]flow.NodeOption, error) {
	if err := cmp.Or(c.start(&n.Start, place), n.check(place)); err != nil {
		return nil, err
	}
	opts := []flow.NodeOption{flowfabric.StartWith(n.Start)}
	given := map[string]bool{}
	for name, from := range n.Inputs {
		node := nodes[from]
		if node == nil {
			return nil, invalid(place+"/inputs/"+name, "no earlier node is called %.64q", from)
		}
		given[from] = true
		opts = append(opts, flow.Input[[]byte]{Name: name}.From(node))
	}
	for i, from := range n.After {
		node := nodes[from]
		if node == nil {
			return nil, invalid(fmt.Sprintf("%s/after/%d", place, i), "no earlier node is called %.64q", from)
		}
		if !given[from] {
			given[from] = true
			opts = append(opts, flow.After(node))
		}
	}
	switch n.Group {
	case "", "all":
	case "any":
		opts = append(opts, flow.AnyOf())
	case "quorum":
		opts = append(opts, flow.Quorum(n.K))
	case "ended":
		opts = append(opts, flow.AllEnded())
	case "failed":
		opts = append(opts, flow.AnyFailed())
	default:
		return nil, invalid(place+"/policy", "it is %.32q, want all, any, quorum, ended or failed", n.Group)
	}
	if n.K != 0 && n.Group != "quorum" {
		return nil, invalid(place+"/policy", "k belongs to quorum")
	}
	if n.CancelRest {
		opts = append(opts, flow.CancelRemaining())
	}
	return opts, nil
}

// graphOf puts a flow together; at is where the nodes are in the body.
func (c *call) graphOf(kind string, all []nodeBody, at string, opts ...flow.Option) (*flow.Flow, error) {
	f := flow.New(kind, opts...)
	return f, c.addNodes(f, all, at, map[string]flow.Source[[]byte]{})
}

// existing names the nodes that new ones depend on and that the flow has already.
func existing(f *flow.Flow, all []nodeBody) map[string]flow.Source[[]byte] {
	new, out := map[string]bool{}, map[string]flow.Source[[]byte]{}
	for _, n := range all {
		new[n.Name] = true
	}
	for _, n := range all {
		for _, name := range slices.Concat(n.After, slices.Collect(maps.Values(n.Inputs))) {
			if !new[name] {
				out[name] = flow.Existing[[]byte](f, name)
			}
		}
	}
	return out
}

// addNodes adds nodes to a flow; nodes are those that they may depend on.
func (c *call) addNodes(f *flow.Flow, all []nodeBody, at string, nodes map[string]flow.Source[[]byte]) error {
	if len(all) < 1 || len(all) > maxNodes {
		return invalid(at, "there are %d, want 1..%d", len(all), maxNodes)
	}
	for i := range all {
		n, place := &all[i], fmt.Sprintf("%s/%d", at, i)
		opts, err := n.options(c, place, nodes)
		if err != nil {
			return err
		}
		if nodes[n.Name] != nil {
			return invalid(place+"/name", "another node is called %.64q", n.Name)
		}
		nodes[n.Name] = flow.Add(f, n.Name, handler.Define[[]byte, []byte](n.Kind), n.input(), opts...)
	}
	return nil
}
