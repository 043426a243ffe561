package maintain

import (
	"context"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// awaited compares what executions of the partition wait for, in whatever partition, with what is known there: that
// they wait, or how those have ended. What a notice in an outbox is about to tell is no damage, so a difference
// counts if it is still there when the outboxes have nothing about it.
func (p *part) awaited(ctx context.Context) {
	for batch := range slices.Chunk(p.lists, auditBatch) {
		open, err := p.cfg.Engine.OpenAwaited(ctx, p.id, batch)
		if p.unreadable("fc", ids.UUID(batch[0]).String(), err) {
			continue
		}
		if p.failed(err); p.out.Err != nil {
			return
		}
		by := map[uint16][]engine.Awaiting{}
		for _, w := range open {
			if to := w.Awaited.Partition(); to < p.cfg.Engine.Partitions() {
				by[to] = append(by[to], w)
			}
		}
		for to, list := range by {
			for some := range slices.Chunk(list, auditBatch) {
				p.registered(ctx, to, some)
				p.pause(ctx)
			}
		}
	}
	p.lists = nil
}

// registered asks one partition, and asks again about what it does not know.
func (p *part) registered(ctx context.Context, to uint16, list []engine.Awaiting) {
	for look := range 2 {
		answers, err := p.cfg.Engine.NoteWaiters(ctx, to, list, true)
		if p.failed(err); p.out.Err != nil {
			return
		}
		var unknown []engine.Awaiting
		for i, a := range answers {
			if a.Ended || !a.Known {
				unknown = append(unknown, list[i])
			}
		}
		if look > 0 {
			p.lost(ctx, to, unknown)
			return
		}
		if list = p.silent(ctx, to, unknown); len(list) == 0 {
			return
		}
	}
}

// silent are those of which no outbox has a notice, and which are still open.
func (p *part) silent(ctx context.Context, to uint16, list []engine.Awaiting) (left []engine.Awaiting) {
	if len(list) == 0 {
		return nil
	}
	noted := map[engine.Awaiting]bool{}
	for _, partition := range []uint16{p.id, to} {
		for after := ""; ; {
			entries, _, err := p.cfg.Engine.ReadOutbox(ctx, partition, after)
			if p.failed(err); p.out.Err != nil {
				return nil
			}
			if len(entries) == 0 {
				break
			}
			for _, x := range entries {
				for _, w := range x.Awaiting {
					noted[w] = !w.Over
				}
				for _, e := range x.Ends {
					noted[e.Awaiting] = true
				}
			}
			after = entries[len(entries)-1].ID
		}
	}
	for _, w := range list {
		if !noted[w] {
			left = append(left, w)
		}
	}
	return slices.DeleteFunc(left, func(w engine.Awaiting) bool { // told meanwhile
		open, err := p.cfg.Engine.OpenAwaited(ctx, p.id, []flowfabric.ExecutionID{w.Waiter})
		p.failed(err)
		return !slices.Contains(open, w)
	})
}

// lost reports what nobody would tell any more, and with Repair has it told.
func (p *part) lost(ctx context.Context, to uint16, list []engine.Awaiting) {
	if len(list) == 0 {
		return
	}
	answers, err := p.cfg.Engine.NoteWaiters(ctx, to, list, !p.cfg.Repair)
	if p.failed(err); p.out.Err != nil {
		return
	}
	var found []flowfabric.Finding
	var ends []engine.AwaitedEnd
	for i, a := range answers {
		f := flowfabric.Finding{Partition: p.id, Kind: engine.FindingMissing, Index: "fc",
			Member: ids.UUID(list[i].Waiter).String(), Repaired: p.cfg.Repair, Repairable: true,
			Detail: fmt.Sprintf("it waits for %s, which does not know that", list[i].Awaited)}
		if a.Ended {
			f.Detail = fmt.Sprintf("it was not told how %s ended", list[i].Awaited)
			ends = append(ends, a.End)
		}
		found = append(found, f)
	}
	if p.cfg.Repair && len(ends) > 0 {
		_, err = p.cfg.Engine.TellWaiters(ctx, p.id, ends)
	}
	p.found(found, err)
}
