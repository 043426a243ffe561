package admin

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// CheckOptions says what [Admin.Check] and [Admin.Repair] look at. The zero value looks at everything.
type CheckOptions struct {
	Partitions []uint16      // default all, and those of gates
	Pause      time.Duration // rest between two calls, so that a check of a busy store takes less of it; default 0
	// MaxFindings bounds the findings that the report keeps; the counts are complete. Default 1,000.
	MaxFindings int
	// OnFinding gets every finding as it comes, from the goroutine of the caller. Findings of a partition that had to
	// be begun again may come twice. Default nil: nobody gets them.
	OnFinding func(flowfabric.Finding)
}

// Check lists all keys of every primary once, derives from the records what each index must say, and reports every
// difference. It writes nothing. It may run while everything else does, and from several processes: each comparison
// is one atomic call over at most 100 items, so a sound store has no findings under load. It needs memory for some
// hundred ids a partition, and for those of at most half a million executions at a time where counts of a route do
// not agree.
//
// Errors: that of ctx, with the report so far; flowfabric.ErrInvalidInput for a partition that the store does not
// have; client.ErrClosed. What is wrong with a partition is in the report.
func (a *Admin) Check(ctx context.Context, how CheckOptions) (flowfabric.CheckReport, error) {
	return a.check(ctx, "check", how, false)
}

// Repair is [Admin.Check], and repairs each difference in the call that finds it; nothing that others write is lost.
// It repairs what can be derived; it only reports a lost or broken record (kind "record"). It files an ended execution
// again when the retention of its lane has changed since (kind "retention"). Errors: those of [Admin.Check].
func (a *Admin) Repair(ctx context.Context, how CheckOptions) (flowfabric.CheckReport, error) {
	return a.check(ctx, "repair", how, true)
}

func (a *Admin) check(ctx context.Context, verb string, how CheckOptions,
	repair bool) (flowfabric.CheckReport, error) {
	if err := a.conn.Closed(); err != nil {
		return flowfabric.CheckReport{}, fmt.Errorf("%s: %w", verb, err)
	}
	return maintain.Audit(ctx, maintain.AuditConfig{Engine: a.conn.Engine, Repair: repair,
		Partitions: how.Partitions, Pause: how.Pause, MaxFindings: how.MaxFindings, OnFinding: how.OnFinding})
}
