package maintain

import (
	"context"
	"errors"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// expected looks for waits for events of this partition's subjects that are over: a worker that had lost its lease
// registered them late. Such a wait would be told of an event for nothing. What a notice in an outbox is about to tell
// is no damage.
func (p *part) expected(ctx context.Context) {
	var over []engine.Expected
	for _, x := range p.allExpected(ctx) {
		if !p.takes(ctx, x) {
			over = append(over, x)
		}
	}
	if over = p.unannounced(ctx, over); len(over) == 0 {
		return
	}
	still := p.allExpected(ctx)
	over = slices.DeleteFunc(over, func(x engine.Expected) bool { return !slices.Contains(still, x) })
	for batch := range slices.Chunk(over, auditBatch) {
		var found []flowfabric.Finding
		for _, x := range batch {
			found = append(found, flowfabric.Finding{Partition: p.id, Kind: engine.FindingPhantom, Index: "ew",
				Member: x.Execution.String(), Detail: "it waits for an event no more", Repaired: p.cfg.Repair,
				Repairable: true})
		}
		var err error
		if p.cfg.Repair {
			_, err = p.cfg.Engine.ForgetExpected(ctx, p.id, batch)
		}
		p.found(found, err)
	}
}

// allExpected lists all waits for events of the partition's subjects.
func (p *part) allExpected(ctx context.Context) (all []engine.Expected) {
	for p.out.Err == nil {
		list, err := p.cfg.Engine.Expected(ctx, p.id, len(all))
		if p.unreadable("expected", "", err) || len(list) == 0 {
			p.failed(err)
			break
		}
		p.failed(err)
		all = append(all, list...)
		p.pause(ctx)
	}
	return all
}

// takes tells whether the waitpoint of a wait is open.
func (p *part) takes(ctx context.Context, x engine.Expected) bool {
	if p.out.Err != nil || x.Execution.Partition() >= p.cfg.Engine.Partitions() {
		return p.out.Err != nil
	}
	r, err := p.cfg.Engine.ReadSuspension(ctx, x.Execution)
	if errors.Is(err, flowfabric.ErrNotFound) || errors.Is(err, flowfabric.ErrResultPurged) {
		return false
	}
	if p.unreadable("u", ids.UUID(x.Execution).String(), err) {
		return true
	}
	p.failed(err)
	for _, w := range r.Waitpoints {
		if w.ID == x.Waitpoint {
			return w.Open()
		}
	}
	return err != nil
}

// unannounced are those of which no outbox says that they are over.
func (p *part) unannounced(ctx context.Context, over []engine.Expected) []engine.Expected {
	read := map[uint16]bool{}
	for _, x := range slices.Clone(over) {
		from := x.Execution.Partition()
		if read[from] || from >= p.cfg.Engine.Partitions() {
			continue
		}
		read[from] = true
		for after := ""; p.out.Err == nil; {
			entries, _, err := p.cfg.Engine.ReadOutbox(ctx, from, after)
			if p.failed(err); len(entries) == 0 {
				break
			}
			for _, entry := range entries {
				over = slices.DeleteFunc(over, func(x engine.Expected) bool { return slices.Contains(entry.Forget, x) })
			}
			after = entries[len(entries)-1].ID
		}
	}
	return over
}
