package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

var (
	// The route table comes first: executions are held against it. The wake time comes last.
	tables  = []string{"types", "routeids", "root", "routes", "routelog"}
	indexes = []string{"closed", "closings", "ready", "gready", "delayed", "alarms", "parked", "blocked", "paused",
		"done", "unsuccessful", "pending", "sessions", "workers", "schedules", "scnames", "work",
		"backlog", "flows", "flowdue", "dsdue", "attached", "shares", "weights", "makers", "outbox"}

	owned = []string{"i", "t", "k", "kl", "a", "e", "u", "wp", "us", "um", "mb", "mk", "o", "f", "fm", "fd", "fl", "fs",
		"fe", "fk", "lg", "g", "gd", "m", "fi", "fo", "fc", "aw", "fx", "fu", "ft", "y", "ds", "dl", "dp", "df"}
	families = []string{"q", "ring", "gring", "turns", "h", "open", "s", "l", "w", "sc", "wk", "cr", "ct"}
	others   = []string{"", "routes", "routeids", "routelog", "ready", "delayed", "alarms", "sessions", "done",
		"unsuccessful", "pending", "kids", "digests", "parked", "routeuse", "lanes", "workers", "schedules", "scnames",
		"feed", "trail", "news", "sub", "z", "blocked", "flows", "flowdue", "backlog", "work", "fz", "gready", "closed",
		"closings", "attached", "outbox", "paused", "shares", "weights", "makers",
		"ins", "refused", "refusals", "bad", "dsdue", "sm", "cv",
		"versions", "tm", "tk", "tn", "triggers", "tr", "td", "pb", "expected", "ew", "et"}
)

// part is the audit of one partition.
type part struct {
	*audit
	id   uint16
	out  flowfabric.CheckedPartition
	kept []flowfabric.Finding
	done bool

	ids    []uuid.UUID
	single bool // one execution a call
	keys   []engine.AuditedKey
	named  map[string]bool // indexes that there is one of for each route, session …
	flows  []uuid.UUID
	lists  []flowfabric.ExecutionID // those that wait for children or others, or did
	count
}

func newPart(a *audit, id uint16) *part {
	p := &part{audit: a, id: id}
	p.reset()
	return p
}

// reset forgets an earlier try.
func (p *part) reset() {
	p.out = flowfabric.CheckedPartition{Partition: p.id, Executions: map[flowfabric.PublicState]int{},
		Kinds: map[string]int{}}
	p.kept, p.ids, p.keys, p.named, p.flows, p.lists, p.count = nil, nil, nil, map[string]bool{}, nil, nil, count{}
}

// failed keeps the first error. What will not change by trying again ends the partition.
func (p *part) failed(err error) {
	if err == nil || p.out.Err != nil {
		return
	}
	p.out.Err = err
	p.done = errors.Is(err, flowfabric.ErrPartitionFrozen) || errors.Is(err, denied.PartitionMissing)
	if errors.Is(err, flowfabric.ErrPartitionFrozen) && p.cfg.Repair {
		p.out.Err = fmt.Errorf("a frozen partition is not repaired, thaw it first: %w", err)
	}
}

// found counts findings and tells who wants to know.
func (p *part) found(list []flowfabric.Finding, err error) {
	p.tell(list, p.out.Kinds, &p.out.Repaired, &p.out.Repairable, &p.out.Lost, &p.kept)
	p.failed(err)
}

// tell counts findings where it is told to, keeps the first of them, and tells who wants to know.
func (a *audit) tell(list []flowfabric.Finding, kinds map[string]int, repaired, repairable, lost *int,
	kept *[]flowfabric.Finding) {
	for _, f := range list {
		kinds[f.Kind]++
		switch {
		case f.Repaired:
			*repaired++
		case f.Repairable:
			*repairable++
		default:
			*lost++
		}
		if len(*kept) < a.cfg.MaxFindings {
			*kept = append(*kept, f)
		}
		if a.cfg.OnFinding != nil {
			a.cfg.OnFinding(f)
		}
	}
}

// begin looks at the route table and remembers the counts.
func (p *part) begin(ctx context.Context) {
	for _, index := range tables {
		p.index(ctx, index)
	}
	p.beginCount(ctx)
}

// index goes through one index, page by page.
func (p *part) index(ctx context.Context, index string) {
	for cursor := ""; p.out.Err == nil; {
		next, _, found, err := p.cfg.Engine.AuditIndex(ctx, p.id, p.cfg.Repair,
			engine.IndexPage{Index: index, Cursor: cursor, Limit: auditBatch})
		if p.unreadable(index, "", err) {
			return
		}
		p.found(found, err)
		if next == "" || next == cursor {
			return
		}
		cursor = next
		p.pause(ctx)
	}
}

// see sorts one key by what it is.
func (p *part) see(ctx context.Context, k engine.Key) {
	id, rest, _ := strings.Cut(k.Of, ":")
	owner, err := uuid.Parse(id)
	plain := err == nil && owner.String() == id
	switch {
	case k.Area == "x" && plain && rest == "":
		if p.ids = append(p.ids, owner); len(p.ids) == auditBatch {
			p.executions(ctx)
		}
	case k.Area == "fw" && plain && rest == "":
		p.flows = append(p.flows, owner)
	case slices.Contains(owned, k.Area) && plain && len(rest) <= 36:
		if k.Area == "fc" && rest == "" {
			p.lists = append(p.lists, mint.Join(p.id, owner))
		}
		if k.Area == "fx" {
			p.named["fx:"+k.Of] = true
		}
		if p.keys = append(p.keys, engine.AuditedKey{Area: k.Area, ID: id, Of: rest}); len(p.keys) == auditBatch {
			p.satellites(ctx)
		}
	case slices.Contains(families, k.Area) && k.Of != "" && len(k.Of) <= 330:
		p.named[k.Area+":"+k.Of] = true
	case !slices.Contains(others, k.Area):
		p.found([]flowfabric.Finding{{Partition: p.id, Kind: engine.FindingUnknown, Index: k.Area, Member: k.Of,
			Detail: "a key of no known kind"}}, nil)
	}
}

// executions compares those collected so far with the indexes.
func (p *part) executions(ctx context.Context) {
	for len(p.ids) > 0 && p.out.Err == nil {
		batch := p.ids
		if p.single {
			batch = p.ids[:1]
		}
		list, found, err := p.cfg.Engine.AuditExecutions(ctx, p.id, p.cfg.Repair, batch)
		if errors.Is(err, denied.Script) && !p.single {
			p.single = true // to find out which one it is
			continue
		}
		if p.unreadable("x", batch[0].String(), err) {
			p.ids = p.ids[1:]
			continue
		}
		p.found(found, err)
		for _, x := range list {
			if x.Code != "" {
				p.out.Executions[codes.Shown(x.Code).Public]++
				p.count.add(x)
			}
		}
		p.ids = p.ids[len(list):]
		p.pause(ctx)
	}
	p.ids, p.single = nil, false
}

// unreadable reports what makes a function raise: a key of another type than it should be. The others are still
// looked at.
func (p *part) unreadable(index, member string, err error) bool {
	if !errors.Is(err, denied.Script) {
		return false
	}
	if index == tables[0] { // it reads nothing but the root
		p.out.Err = fmt.Errorf("%w: its root is of another type: restore it: %w", flowfabric.ErrCorrupt, err)
		p.done = true
		return true
	}
	p.found([]flowfabric.Finding{{Partition: p.id, Kind: engine.FindingRecord, Index: index, Member: member,
		Detail: err.Error()}}, nil)
	return true
}

func (p *part) satellites(ctx context.Context) {
	if len(p.keys) > 0 && p.out.Err == nil {
		found, err := p.cfg.Engine.AuditKeys(ctx, p.id, p.cfg.Repair, p.keys)
		if !p.unreadable("keys", p.keys[0].Area, err) {
			p.found(found, err)
		}
		p.pause(ctx)
	}
	p.keys = nil
}

func (p *part) flush(ctx context.Context) {
	p.executions(ctx)
	p.satellites(ctx)
}

func (p *part) indexes(ctx context.Context) {
	for _, index := range indexes {
		p.index(ctx, index)
	}
	for _, rings := range []bool{true, false} { // what queues are compared with comes first
		for index := range p.named {
			if family, _, _ := strings.Cut(index, ":"); slices.Contains([]string{"ring", "gring", "turns"},
				family) == rings {
				p.index(ctx, index)
			}
		}
	}
	p.headers(ctx)
	p.awaited(ctx)
	p.expected(ctx)
	p.index(ctx, "wake")
}
