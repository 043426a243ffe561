package admin

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// ErrAuditIncomplete is the error of a partition that moved, or whose server was away, while it was audited. What was
// found of it is in the report.
var ErrAuditIncomplete = maintain.ErrAuditIncomplete

// Audit says what [Admin.Audit] looks at. The zero value looks at everything and writes nothing.
type Audit struct {
	Repair     bool          // repairs what the records tell how to repair, in the call that finds it
	Partitions []uint16      // default all, and those of budgets and quotas
	Pause      time.Duration // rest between two calls, so that an audit of a busy store takes less of it; default 0
	// MaxFindings bounds the findings that the report keeps; the counts are complete. Default 1,000.
	MaxFindings int
	// OnFinding is told every finding as it comes, from the goroutine of Audit. Those of a partition whose audit had
	// to be begun anew may come twice. Default nobody is told.
	OnFinding func(Finding)
}

// Finding is one difference between an index and the records of a partition.
type Finding struct {
	Partition  uint16
	Kind       string
	Index      string // "delayed", "q:7", "h:<session>", … or the area of a record ("x": an execution)
	Member     string // execution, execution:waitpoint, session, route …
	Detail     string
	Repaired   bool // in the call that found it
	Repairable bool // it was, or would be
}

// AuditReport is what an audit found.
type AuditReport struct {
	// Sound: every partition was audited to its end and nothing is wrong any more. A retention that changed, and is
	// applied to what had ended before, is no damage.
	Sound      bool
	Began      time.Time
	Took       time.Duration
	Partitions []AuditedPartition      // in order
	Executions map[flowfabric.Code]int // that were seen, by state
	Kinds      map[string]int          // findings by kind, those of budgets and quotas included
	Repaired   int
	Repairable int // was not repaired, and would be with Audit.Repair
	Lost       int // nothing tells how to repair them
	Busy       int // flows of more than 100 members that changed all the time, so that their counters were not compared

	Budgets, Quotas, Holds int   // that were looked at; holds were asked about
	GatesErr               error // why budgets and quotas were not audited to their end

	Findings []Finding // the first of them, by partition, then those of budgets and quotas
}

// AuditedPartition is what an audit found in one partition.
type AuditedPartition struct {
	Partition                  uint16
	Executions                 map[flowfabric.Code]int
	Kinds                      map[string]int
	Repaired, Repairable, Lost int
	Busy                       int
	// Err says why the partition was not audited to its end: flowfabric.ErrPartitionFrozen (thaw it first), code
	// partition_missing, or [ErrAuditIncomplete] after three tries that a moving slot or a failover ended.
	Err error
}

// Audit lists all keys of every primary once, derives from the records what each index must say, reports every
// difference, and with how.Repair repairs it in the same pass. It may run while everything else does, and from
// several processes: each comparison and repair is one atomic call over at most 100 items, so a sound store has no
// findings under load, and nothing that others write is lost.
//
// What it repairs is what can be derived; a lost or broken record (kind "record") is only reported. An ended
// execution is filed again when its lane's retention has changed since (kind "retention"). It needs memory for some
// hundred ids a partition, and for those of at most half a million executions at a time where counts of a route do
// not agree.
//
// Errors: that of ctx, with the report so far; flowfabric.ErrInvalidInput for a partition that the store does not
// have; client.ErrClosed. What is wrong with a partition is in the report.
func (a *Admin) Audit(ctx context.Context, how Audit) (AuditReport, error) {
	if err := a.conn.Closed(); err != nil {
		return AuditReport{}, fmt.Errorf("audit: %w", err)
	}
	cfg := maintain.AuditConfig{Engine: a.conn.Engine, Repair: how.Repair, Partitions: how.Partitions, Pause: how.Pause,
		MaxFindings: how.MaxFindings}
	if how.OnFinding != nil {
		cfg.OnFinding = func(f engine.Finding) { how.OnFinding(newFinding(f)) }
	}
	r, err := maintain.Audit(ctx, cfg)
	out := AuditReport{Sound: r.Sound(), Began: r.Began, Took: r.Took, Executions: r.Executions, Kinds: r.Kinds,
		Repaired: r.Repaired, Repairable: r.Repairable, Lost: r.Lost, Busy: r.Busy, Budgets: r.Gates.Budgets,
		Quotas: r.Gates.Quotas, Holds: r.Gates.Holds, GatesErr: r.Gates.Err}
	for _, p := range r.Partitions {
		out.Partitions = append(out.Partitions,
			AuditedPartition{p.Partition, p.Executions, p.Kinds, p.Repaired, p.Repairable, p.Lost, p.Busy, p.Err})
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, newFinding(f))
	}
	return out, err
}

func newFinding(f engine.Finding) Finding {
	return Finding{f.Partition, f.Kind, f.Index, f.Member, f.Detail, f.Repaired, f.Repairable}
}
