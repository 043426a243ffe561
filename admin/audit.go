package admin

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// Audit says what [Admin.Audit] looks at. The zero value looks at everything and writes nothing.
type Audit struct {
	Repair     bool          // repairs what the records tell how to repair, in the call that finds it
	Partitions []uint16      // default all, and those of budgets and quotas
	Pause      time.Duration // rest between two calls, so that an audit of a busy store takes less of it; default 0
	// MaxFindings bounds the findings that the report keeps; the counts are complete. Default 1,000.
	MaxFindings int
	// OnFinding is told every finding as it comes, from the goroutine of Audit. Those of a partition whose audit had
	// to be begun anew may come twice. Default nobody is told.
	OnFinding func(flowfabric.Finding)
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
func (a *Admin) Audit(ctx context.Context, how Audit) (flowfabric.AuditReport, error) {
	if err := a.conn.Closed(); err != nil {
		return flowfabric.AuditReport{}, fmt.Errorf("audit: %w", err)
	}
	return maintain.Audit(ctx, maintain.AuditConfig{Engine: a.conn.Engine, Repair: how.Repair,
		Partitions: how.Partitions, Pause: how.Pause, MaxFindings: how.MaxFindings, OnFinding: how.OnFinding})
}
