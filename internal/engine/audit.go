package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/google/uuid"
)

// The kinds of a [Finding].
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

// Finding is one difference between an index of a partition and its records.
type Finding struct {
	Partition  uint16
	Kind       string
	Index      string // "delayed", "q:7", "h:<session>", … or the area of a record ("x": the core of an execution)
	Member     string // execution, execution:waitpoint, session, route …
	Detail     string
	Repaired   bool // it was repaired in the call that found it
	Repairable bool // it was, or would be
}

// Audited is what an audit read of one execution. The code is "" for one that is gone.
type Audited struct {
	Code    flowfabric.Code
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
type AuditedKey struct {
	Area string
	ID   uuid.UUID
	Of   string
}

// RouteUse is how many executions a route counts, and what was seen of it; see [Engine.AuditRoutes].
type RouteUse struct {
	Route, Stored, Low, High int64
}

// RouteCount is the state of the counts at one instant.
type RouteCount struct {
	Now              int64 // ms
	Purged, Recounts int64
	Uses             map[int64]int64
	Compared         bool
}

// AuditExecutions compares up to 100 executions of a partition with the indexes, and with repair puts the indexes
// right in the same call (lua/operate/ff_audit_executions.lua). It answers for the first of them, at least one; the
// caller brings the others again. Safe at any time. ErrPartitionFrozen; ErrInvalidInput for no ids or more than 100.
func (e *Engine) AuditExecutions(ctx context.Context, partition uint16, repair bool,
	ids []uuid.UUID) (list []Audited, found []Finding, err error) {
	args := make([]string, 0, 3+len(ids))
	args = append(args, protocol, flagText(repair), strconv.Itoa(len(ids)))
	for _, id := range ids {
		args = append(args, id.String())
	}
	r, err := e.call(ctx, fnAuditExecutions, partition, args...)
	if err != nil {
		return nil, nil, err
	}
	r.number()
	list = make([]Audited, r.Count(3))
	for i := range list {
		list[i].Code = flowfabric.Code(r.Text())
		route, created := r.Text(), r.Text()
		list[i].Route, _ = strconv.ParseUint(route, 10, 64)
		list[i].Created, _ = strconv.ParseInt(created, 10, 64)
	}
	if r.Err == nil && (len(list) == 0 || len(list) > len(ids)) {
		r.Stop("%d of %d executions", len(list), len(ids))
	}
	found = r.findings(partition)
	return list, found, r.fail()
}

// IndexPage is a part of an index: what follows the cursor of the page before, "" for the first.
type IndexPage struct {
	Index, Cursor string
	Limit         int // 1..100 entries
}

// AuditIndex looks at one page of an index from its own side (lua/operate/ff_audit_index.lua, which lists the
// indexes) and returns the cursor of the next, "" after the last. Safe at any time: an entry is only removed, or
// added, when the records say so at that instant. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditIndex(ctx context.Context, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []Finding, err error) {
	if partition >= e.Partitions() {
		return "", 0, nil, fmt.Errorf("%s: %w: partition %d of %d", fnAuditIndex.name, flowfabric.ErrInvalidInput,
			partition, e.Partitions())
	}
	return e.auditIndex(ctx, e.roots[partition], partition, repair, page)
}

// AuditGates is AuditIndex for a partition of budgets or of quotas: the index budgets or quotas, or bd:<budget> or
// qd:<quota>, which is the definition of one. denied.PartitionMissing where there never was any.
func (e *Engine) AuditGates(ctx context.Context, budgets bool, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []Finding, err error) {
	roots := e.quotas
	if budgets {
		roots = e.budgets
	}
	if int(partition) >= len(roots) {
		return "", 0, nil, fmt.Errorf("%w: partition %d of %d", flowfabric.ErrInvalidInput, partition, len(roots))
	}
	return e.auditIndex(ctx, roots[partition], partition, repair, page)
}

// GatePartitions are how many partitions of budgets and of quotas there are.
func (e *Engine) GatePartitions() (budgets, quotas uint16) {
	return uint16(len(e.budgets)), uint16(len(e.quotas))
}

func (e *Engine) auditIndex(ctx context.Context, root string, partition uint16, repair bool,
	page IndexPage) (next string, checked int, found []Finding, err error) {
	r, err := e.run(ctx, e.client, fnAuditIndex, []string{root},
		[]string{protocol, flagText(repair), page.Index, page.Cursor, strconv.Itoa(page.Limit)})
	if err != nil {
		return "", 0, nil, err
	}
	next, checked = r.Text(), r.Int()
	found = r.findings(partition)
	return next, checked, found, r.fail()
}

// AuditKeys looks at up to 100 keys of executions (lua/operate/ff_audit_keys.lua): whose execution is gone is an
// orphan, and removed with repair. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditKeys(ctx context.Context, partition uint16, repair bool, list []AuditedKey) ([]Finding, error) {
	args := make([]string, 0, 3+3*len(list))
	args = append(args, protocol, flagText(repair), strconv.Itoa(len(list)))
	for _, k := range list {
		args = append(args, k.Area, k.ID.String(), k.Of)
	}
	r, err := e.call(ctx, fnAuditKeys, partition, args...)
	if err != nil {
		return nil, err
	}
	found := r.findings(partition)
	return found, r.fail()
}

// AuditFlows compares the headers of up to 100 flows with their members, up to 100 members of each a call, and with
// repair puts the headers right (lua/operate/ff_audit_flows.lua). It answers for the first of them, at least one;
// what is not Done is brought again as it was answered. A flow of more than 100 members can only be compared while
// nothing happens to it for as long as its calls take. Safe at any time. ErrPartitionFrozen, ErrInvalidInput.
func (e *Engine) AuditFlows(ctx context.Context, partition uint16, repair bool,
	flows []AuditedFlow) (list []AuditedFlow, found []Finding, err error) {
	args := make([]string, 0, 3+4*len(flows))
	args = append(args, protocol, flagText(repair), strconv.Itoa(len(flows)))
	for _, f := range flows {
		args = append(args, f.ID.String(), strconv.Itoa(f.Next), cmp.Or(f.version, "0"), f.seen)
	}
	r, err := e.call(ctx, fnAuditFlows, partition, args...)
	if err != nil {
		return nil, nil, err
	}
	list = make([]AuditedFlow, r.Count(3))
	if r.Err == nil && (len(list) == 0 || len(list) > len(flows)) {
		r.Stop("%d of %d flows", len(list), len(flows))
		return nil, nil, r.fail()
	}
	for i := range list {
		next := r.number()
		list[i] = AuditedFlow{ID: flows[i].ID, Next: int(max(0, next)), Done: next == -1, Busy: next == -2,
			version: r.Text(), seen: r.Text()}
	}
	found = r.findings(partition)
	return list, found, r.fail()
}

// AuditRoutes reads how many executions the routes of a partition count, or compares an earlier reading with what was
// seen since (lua/operate/ff_audit_routes.lua). A count is only changed by what is certain whatever happened
// meanwhile: it is never below the executions there are. Compared is false when somebody else changed the counts in
// between.
func (e *Engine) AuditRoutes(ctx context.Context, partition uint16, repair bool, since RouteCount,
	seen []RouteUse) (out RouteCount, found []Finding, err error) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if len(seen) == 0 {
		return e.routeUses(ctx, partition, repair, since)
	}
	for part := range slices.Chunk(seen, limits.MaxClasses) {
		args := make([]string, 0, 6+4*len(part))
		args = append(args, protocol, flagText(repair), number(since.Purged), number(since.Recounts), "",
			strconv.Itoa(len(part)))
		for _, u := range part {
			args = append(args, number(u.Route), number(u.Stored), number(u.Low), number(u.High))
		}
		r, err := e.call(ctx, fnAuditRoutes, partition, args...)
		if err != nil {
			return out, found, err
		}
		var list []Finding
		if out, _, list, err = routeCount(r, partition); err != nil {
			return out, found, err
		}
		found = append(found, list...)
		since.Recounts = out.Recounts // what this call changed itself
	}
	return out, found, nil
}

// routeUses reads all counts; what came meanwhile is in those of later pages.
func (e *Engine) routeUses(ctx context.Context, partition uint16, repair bool,
	since RouteCount) (all RouteCount, found []Finding, err error) {
	for cursor, more := "", true; more; more = cursor != "" {
		r, err := e.call(ctx, fnAuditRoutes, partition, protocol, flagText(repair), strconv.FormatInt(since.Purged, 10),
			strconv.FormatInt(since.Recounts, 10), cursor, "0")
		if err != nil {
			return all, found, err
		}
		page, next, list, err := routeCount(r, partition)
		if err != nil {
			return all, found, err
		}
		if all.Uses == nil {
			all = page
		}
		maps.Copy(all.Uses, page.Uses)
		found, cursor = append(found, list...), next
	}
	return all, found, nil
}

func routeCount(r *reader, partition uint16) (out RouteCount, cursor string, found []Finding, err error) {
	out = RouteCount{Now: r.number(), Purged: r.number(), Recounts: r.number(), Compared: r.Flag()}
	cursor = r.Text()
	n := r.Count(2)
	out.Uses = make(map[int64]int64, n)
	for range n {
		route := r.number()
		out.Uses[route] = r.number()
	}
	found = r.findings(partition)
	return out, cursor, found, r.fail()
}

// findings reads the list that every audit ends with.
func (r *reader) findings(partition uint16) []Finding {
	var out []Finding
	for range r.Count(5) {
		f := Finding{Partition: partition, Kind: r.Text(), Index: r.Text(), Member: r.Text(), Detail: r.Text()}
		switch s := r.Text(); s {
		case "1":
			f.Repaired, f.Repairable = true, true
		case "0":
			f.Repairable = true
		case "-":
		default:
			r.Stop("slot %d is %q, want 0, 1 or -", r.At(), clip(s))
		}
		out = append(out, f)
	}
	return out
}

func flagText(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
