package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// The kinds of a [flowfabric.Finding].
const (
	FindingMissing   = "missing"   // an entry that the records name is not there
	FindingScore     = "score"     // it is there, at another place
	FindingPhantom   = "phantom"   // an entry that no record names
	FindingRetention = "retention" // an ended execution is kept for another time than its lane says now; no damage
	FindingFlag      = "flag"      // a field that only repeats what other records say
	FindingOrphan    = "orphan"    // a key of an execution, waitpoint or session that is gone
	FindingCount     = "count"     // how many executions use a route, or a flow has in a state
	FindingRecord    = "record"    // a record is lost or broken: nothing tells what it was
	// a key that cannot be read; an audit that repairs sets it aside, under the area "bad"
	FindingDamaged = "damaged"
	FindingUnknown = "unknown" // a key of no known kind
)

// Audited is what an audit read of one execution. The code is "" for one that is gone.
type Audited struct {
	Code    codes.Code
	Route   uint64
	Created int64 // ms
}

// AuditedFlow is how far the comparison of a flow with its members has come; the zero value but for ID at first.
type AuditedFlow struct {
	ID   uuid.UUID
	Next int  // members that were looked at
	Done bool // compared to its end
	Busy bool // it changed between two calls: nothing can be said, begin anew

	version, seen string
}

// AuditedKey names a key of an execution or a flow by its area, as in lua/lib/keys.lua, and its attempt or waitpoint.
type AuditedKey = wire.AuditKeysKey

// RouteUse is how many executions a route counts, and what was seen of it; see [Engine.AuditRoutes].
type RouteUse = wire.AuditRoutesRoute

// RouteCount is the state of the counts at one instant.
type RouteCount struct {
	Now              int64 // ms
	Purged, Recounts int
	Uses             map[int]int
	Compared         bool
}

// AuditExecutions compares up to 100 executions of a partition with the indexes, and with repair puts the indexes
// right in the same call (lua/operate/ff_audit_executions.lua). It answers for the first of them, at least one; the
// caller brings the others again. Safe at any time. ErrPartitionFrozen; ErrInvalidInput for no ids or more than 100.
func (e *Engine) AuditExecutions(ctx context.Context, partition uint16, repair bool,
	ids []uuid.UUID) (list []Audited, found []flowfabric.Finding, err error) {
	q := wire.AuditExecutions{Repair: repair}
	for _, id := range ids {
		q.Executions = append(q.Executions, id.String())
	}
	r, _, err := ask[wire.AuditExecutionsReply](ctx, e, partition, q)
	if n := len(r.Executions); err == nil && (n == 0 || n > len(ids)) {
		err = unread(q.Function(), fmt.Errorf("%d of %d executions", n, len(ids)))
	}
	if err != nil {
		return nil, nil, err
	}
	for _, x := range r.Executions {
		a := Audited{Code: codes.Code(x.Code)} // what is no number counts as 0
		a.Route, _ = strconv.ParseUint(x.Route, 10, 64)
		a.Created, _ = strconv.ParseInt(x.Created, 10, 64)
		list = append(list, a)
	}
	return list, findings(partition, r.Findings), nil
}

// IndexPage is a part of an index, at most 100 entries: what follows the cursor of the page before, "" for the first.
type IndexPage = wire.AuditIndex

// AuditIndex looks at one page of an index from its own side (lua/operate/ff_audit_index.lua, which lists the
// indexes) and returns the cursor of the next, "" after the last. Safe at any time: an entry is only removed, or
// added, when the records say so at that instant. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditIndex(ctx context.Context, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []flowfabric.Finding, err error) {
	if partition >= e.Partitions() {
		return "", 0, nil, fmt.Errorf("ff_audit_index: %w: partition %d of %d", flowfabric.ErrInvalidInput,
			partition, e.Partitions())
	}
	return e.auditIndex(ctx, e.roots[partition], partition, repair, page)
}

// AuditGates is AuditIndex for a partition of gates: the index gates, or ga:<gate>, which is the definition of one.
// denied.PartitionMissing where there never was any.
func (e *Engine) AuditGates(ctx context.Context, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []flowfabric.Finding, err error) {
	if int(partition) >= len(e.gates) {
		return "", 0, nil, fmt.Errorf("%w: partition %d of %d", flowfabric.ErrInvalidInput, partition, len(e.gates))
	}
	return e.auditIndex(ctx, e.gates[partition], partition, repair, page)
}

func (e *Engine) auditIndex(ctx context.Context, root string, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []flowfabric.Finding, err error) {
	page.Repair = repair
	r, _, err := read[wire.AuditIndexReply](e.sendTo(ctx, root, page))
	return r.Cursor, r.Checked, findings(partition, r.Findings), err
}

// AuditKeys looks at up to 100 keys of executions (lua/operate/ff_audit_keys.lua): whose execution is gone is an
// orphan, and removed with repair. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditKeys(ctx context.Context, partition uint16, repair bool,
	list []AuditedKey) ([]flowfabric.Finding, error) {
	r, _, err := ask[wire.AuditKeysReply](ctx, e, partition, wire.AuditKeys{Repair: repair, Keys: list})
	return findings(partition, r.Findings), err
}

// AuditFlows compares the headers of up to 100 flows with their members, up to 100 members of each a call, and with
// repair puts the headers right (lua/operate/ff_audit_flows.lua). It answers for the first of them, at least one;
// what is not Done is brought again as it was answered. A flow of more than 100 members can only be compared while
// nothing happens to it for as long as its calls take. Safe at any time. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditFlows(ctx context.Context, partition uint16, repair bool,
	flows []AuditedFlow) (list []AuditedFlow, found []flowfabric.Finding, err error) {
	q := wire.AuditFlows{Repair: repair}
	for _, f := range flows {
		q.Flows = append(q.Flows, wire.AuditFlowsFlow{Flow: f.ID.String(), Next: f.Next,
			Version: cmp.Or(f.version, "0"), Seen: f.seen})
	}
	r, _, err := ask[wire.AuditFlowsReply](ctx, e, partition, q)
	if n := len(r.Flows); err == nil && (n == 0 || n > len(flows)) {
		err = unread(q.Function(), fmt.Errorf("%d of %d flows", n, len(flows)))
	}
	if err != nil {
		return nil, nil, err
	}
	for i, x := range r.Flows {
		list = append(list, AuditedFlow{ID: flows[i].ID, Next: max(0, x.Next), Done: x.Next == -1, Busy: x.Next == -2,
			version: x.Version, seen: x.Seen})
	}
	return list, findings(partition, r.Findings), nil
}

// AuditRoutes reads how many executions the routes of a partition count, or compares an earlier reading with what was
// seen since (lua/operate/ff_audit_routes.lua). A count is only changed by what is certain whatever happened meanwhile:
// it is never below the executions there are. Compared is false when somebody else changed the counts in between.
func (e *Engine) AuditRoutes(ctx context.Context, partition uint16, repair bool, since RouteCount,
	seen []RouteUse) (out RouteCount, found []flowfabric.Finding, err error) {
	q := wire.AuditRoutes{Repair: repair, Purged: since.Purged, Recounts: since.Recounts}
	for more := true; more; more = q.Cursor != "" || len(seen) > 0 {
		n := min(len(seen), limits.MaxClasses)
		q.Routes, seen = seen[:n], seen[n:]
		r, _, err := ask[wire.AuditRoutesReply](ctx, e, partition, q)
		if err != nil {
			return out, found, err
		}
		if n > 0 {
			q.Recounts = r.Recounts // what this call changed itself
		}
		if n > 0 || out.Uses == nil { // what came since the first page is in those of later pages
			out = RouteCount{Now: r.Now.UnixMilli(), Purged: r.Purged, Recounts: r.Recounts, Compared: r.Compared,
				Uses: map[int]int{}}
		}
		for _, x := range r.Routes {
			out.Uses[x.Route] = x.Uses
		}
		found, q.Cursor = append(found, findings(partition, r.Findings)...), r.Cursor
	}
	return out, found, nil
}

// findings are what an audit of a partition found.
func findings(partition uint16, list []wire.Finding) (out []flowfabric.Finding) {
	for _, f := range list {
		out = append(out, flowfabric.Finding{Partition: partition, Kind: f.Kind, Index: f.Index, Member: f.Member,
			Detail: f.Detail, Repaired: f.Repaired == "1", Repairable: f.Repaired == "0" || f.Repaired == "1"})
	}
	return out
}
