package engine

import (
	"context"
	"sync"
	"time"
)

// gateFacts remembers for a while what gates said of themselves: which one is above them, and that they count no
// amounts, so that a spend need not ask those each time. It may be used concurrently.
type gateFacts struct {
	mu        sync.Mutex
	by        map[string]gateFact
	estimates map[labelled]map[string]int64
}

// labelled is a label of calls at a gate.
type labelled struct{ gate, label string }

type gateFact struct {
	parent  string
	ignores bool
	until   time.Time
}

// gateFactsFor is how long something is believed; maxGateFacts bounds how many gates are remembered.
const (
	gateFactsFor = 10 * time.Second
	maxGateFacts = 4096
)

func (g *gateFacts) note(name, parent string, ignores bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil || len(g.by) >= maxGateFacts {
		g.by = map[string]gateFact{}
	}
	g.by[name] = gateFact{parent: parent, ignores: ignores, until: time.Now().Add(gateFactsFor)}
}

func (g *gateFacts) read(name string) (gateFact, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.by[name]
	return f, ok && time.Now().Before(f.until)
}

// forget makes what was heard of a gate unheard: it was changed.
func (g *gateFacts) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, name)
}

// learn remembers what calls of a label use, as a gate said last.
func (g *gateFacts) learn(gate, label, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.estimates == nil || len(g.estimates) >= maxGateFacts {
		g.estimates = map[labelled]map[string]int64{}
	}
	g.estimates[labelled{gate, label}] = amountsOf(text)
}

// EstimateOf is what nine of ten calls of a label used of a gate, by dimension, as it was last heard of; empty: that is
// not known. The caller changes nothing of it.
func (e *Engine) EstimateOf(gate, label string) map[string]int64 {
	e.gateFacts.mu.Lock()
	defer e.gateFacts.mu.Unlock()
	return e.gateFacts.estimates[labelled{gate, label}]
}

// AboveGate tells which gate is above another one, "" if none, and whether that one counts amounts, as it was heard of
// in the last ten seconds; else the gate is read. denied.NoGate.
func (e *Engine) AboveGate(ctx context.Context, gate string) (parent string, counts bool, err error) {
	if f, known := e.gateFacts.read(gate); known {
		return f.parent, !f.ignores, nil
	}
	g, err := e.ReadGate(ctx, gate, 0, 0, 0)
	if err != nil {
		return "", false, err
	}
	e.gateFacts.note(gate, g.Parent, !g.CountsAmounts())
	return g.Parent, g.CountsAmounts(), nil
}
