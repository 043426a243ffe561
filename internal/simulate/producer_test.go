package simulate

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const (
	namespace = "default"
	mailbox   = "box"
	crowd     = 30 // executions after which producers make no more
)

// producer submits work and talks to it.
type producer struct {
	party
	draft *draft // a flow that is not released yet
}

// draft is a flow that a producer puts together.
type draft struct {
	id      flowfabric.FlowID
	members []engine.FlowMember
	edges   int
	staged  bool
}

func (p *producer) turn() {
	if p.again() {
		return
	}
	n := p.r.IntN(100)
	switch {
	case p.draft != nil && n < 50:
		p.finishDraft()
	case n < 45 && len(p.known) < crowd:
		p.submit()
	case n < 60 && len(p.known) < crowd && p.draft == nil:
		p.plan()
	case n < 80 && len(p.points) > 0:
		at := pick(p.world, p.points...)
		s := suspend.SentSignal{ID: flowfabric.UUID(p.uuid()), Name: pick(p.world, "go", "go", "stop"),
			SourceType: "webhook", Source: p.name, Payload: []byte("1")}
		_ = p.try(func() error { return p.signal(p.name, at, s) })
	case n < 88 && len(p.known) > 0:
		id := pick(p.world, p.known...)
		m := engine.Message{ID: flowfabric.UUID(p.uuid()), Mailbox: mailbox, Encoding: "utf8",
			Payload: []byte(p.fresh("message"))}
		_ = p.try(func() error { return p.message(p.name, id, m) })
	case n < 93 && len(p.known) > 0:
		id := pick(p.world, p.known...)
		_ = p.try(func() error { return p.cancel(p.name, id, nil) })
	case n < 95:
		p.plant()
	case n < 98 && len(p.flows) > 0:
		id := pick(p.world, p.flows...)
		policy := pick(p.world, flowfabric.CancelAll, flowfabric.CancelPending, flowfabric.CancelFlow)
		_ = p.try(func() error { return p.cancelFlow(p.name, id, policy) })
	}
}

// item is an execution to be.
func (w *world) item(partition uint16) engine.NewExecution {
	x := engine.NewExecution{ID: w.id(partition), Payload: []byte(w.fresh("input")),
		Start: flowfabric.Start{Namespace: namespace, Lane: pick(w, "default", "default", "slow"),
			Kind: pick(w, "mail", "report"), Priority: w.r.IntN(3)}}
	x.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: w.r.IntN(3), Initial: time.Second, Max: 10 * time.Second,
		Multiplier: 2}
	switch n := w.r.IntN(100); {
	case n < 15:
		x.Delay = flowfabric.Millis(w.between(time.Millisecond, 30*time.Second))
	case n < 22:
		x.Deadline = flowfabric.Millis(w.between(5*time.Second, time.Minute))
	case n < 30:
		x.Policy.AttemptTimeout = flowfabric.Millis(w.between(5*time.Second, 30*time.Second))
	case n < 35:
		x.Policy.MaxReclaims = 1
	}
	w.gated(&x)
	return x
}

func (p *producer) submit() {
	x, how := p.item(p.partition()), ""
	switch n := p.r.IntN(100); {
	case n < 15:
		text := fmt.Sprintf("key%d", p.r.IntN(3))
		var at uint16
		at, x.KeyID = ids.Keyed(partitions, namespace, x.Kind, text)
		x.ID, x.Key, how = p.id(at), &flowfabric.Key{Text: text, WhileActive: true}, " under "+text
		if p.chance(50) {
			x.Key = &flowfabric.Key{Text: text, Window: 20 * time.Second}
		}
	case n < 25:
		var at uint16
		at, x.KeyID = ids.Debounced(partitions, namespace, x.Kind, "burst")
		x.ID, how = p.id(at), " in a burst"
		x.Key = &flowfabric.Key{Text: "burst", Debounce: 3 * time.Second, DebounceMax: 20 * time.Second}
		x.Delay, x.Deadline = flowfabric.Millis(x.Key.Debounce), 0
	}
	_ = p.try(func() error { return p.create(p.name, x, how) })
}

// plan makes a flow of one shape or another, at once or in parts.
func (p *producer) plan() {
	at := p.partition()
	id := flowfabric.FlowID(mint.Join(at, p.uuid()))
	list, edges := make([]engine.FlowMember, 2+p.r.IntN(3)), 0
	for i := range list {
		list[i] = engine.FlowMember{NewExecution: p.item(at), Node: fmt.Sprintf("node%d", i),
			Policy: pick(p.world, codes.AllOf, codes.AllOf, codes.AnyOf, codes.AllEnded, codes.AnyFailed)}
		for up := range i {
			if p.chance(50) {
				list[i].Edges = append(list[i].Edges, engine.FlowEdge{From: list[up].ID, Input: fmt.Sprintf("from%d",
					up)})
				edges++
			}
		}
		if len(list[i].Edges) == 0 {
			list[i].Policy = codes.AllOf
		}
		list[i].CancelRest = list[i].Policy == codes.AnyOf && p.chance(50)
	}
	q := engine.NewFlow{ID: id, Namespace: namespace, Kind: "shape", Creator: p.name, Key: uuid.Nil, Members: list}
	if p.chance(50) {
		q.Mode = engine.SealClosed
		_ = p.try(func() error { return p.createFlow(p.name, q) })
		return
	}
	q.Members = list[:1]
	d := &draft{id: id, members: list, edges: edges}
	_ = p.try(func() error {
		err := p.createFlow(p.name, q)
		if err == nil {
			p.draft = d
		}
		return err
	})
}

// finishDraft stages the rest of a flow, or releases it.
func (p *producer) finishDraft() {
	d := p.draft
	_ = p.try(func() error {
		if !d.staged {
			err := p.stageFlow(p.name, d.id, d.members[1:])
			d.staged = err == nil
			if err != nil && err != errLost {
				p.draft = nil
			}
			return err
		}
		err := p.sealFlow(p.name, d.id, len(d.members), d.edges)
		if err != errLost {
			p.draft = nil
		}
		return err
	})
}
