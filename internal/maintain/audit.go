package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

const (
	auditRounds   = 3    // tries for partitions that moved or could not be reached
	auditFindings = 1000 // findings kept in a report, by default
	auditBatch    = 100  // items a call
)

// AuditConfig says what is audited. Engine is required.
type AuditConfig struct {
	Engine *engine.Engine
	// Repair repairs what the records tell how to repair, in the call that finds it. Without it nothing is written.
	Repair bool
	// Partitions to audit. Default (nil): all of the engine's, and those of gates.
	Partitions []uint16
	// Gates audits gates also when Partitions are named.
	Gates bool
	// OnFinding is told every finding as it comes, from the goroutine of Audit; it must not call Audit. Those of a
	// partition whose audit had to be begun anew may come twice. Default: nobody is told.
	OnFinding func(flowfabric.Finding)
	// MaxFindings bounds the findings that the report keeps; the counts are complete. Default 1,000.
	MaxFindings int
	// Pause is slept between two calls, so that an audit of a busy store takes less of it. Default 0.
	Pause time.Duration
}

// ErrAuditIncomplete is the error of a partition that moved, or whose server could not be reached, while it was
// audited. What was found and repaired until then holds.
var ErrAuditIncomplete = errors.New("the partition moved or could not be reached during the audit")

// sound tells whether nothing is wrong any more with what was audited to its end.
func sound(r flowfabric.CheckReport) bool {
	for _, p := range r.Partitions {
		if p.Err != nil {
			return false
		}
	}
	repairable := r.Repairable
	if !r.Repairing {
		repairable -= r.Kinds[engine.FindingRetention]
	}
	return r.GatesErr == nil && repairable == 0 && r.Lost == 0
}

// Audit lists all keys of every primary once (SCAN), derives from the records what each index must say, reports every
// difference, and with Repair repairs it in the same pass. It may run while everything else does, and from several
// processes: each comparison and repair is one atomic call over at most 100 items, so a sound store has no findings
// under load, and nothing that others write is lost. Work that became claimable again rings workers; timers wake the
// tick.
//
// What it repairs is what can be derived; a lost or broken record (kind "record") is only reported. An ended
// execution is filed again when its lane's retention has changed since (kind "retention"). Memory: some hundred ids a
// partition, and the ids of the executions of at most half a million at a time where counts of a route do not agree.
//
// A partition whose slot moves, or whose primary fails over, while it is audited is begun anew, at most twice. The
// error is that of ctx, with the report so far, or one that wraps [flowfabric.ErrConfig] or
// [flowfabric.ErrInvalidInput]; what is wrong with a partition is in the report.
func Audit(ctx context.Context, cfg AuditConfig) (flowfabric.CheckReport, error) {
	gates := cfg.Gates || cfg.Partitions == nil
	a, err := newAudit(cfg)
	if err != nil {
		return flowfabric.CheckReport{}, err
	}
	for round := 0; round < auditRounds && len(a.left()) > 0 && ctx.Err() == nil; round++ {
		primaries, err := a.cfg.Engine.Primaries(ctx)
		if err != nil {
			a.away = err
			continue
		}
		for _, p := range primaries {
			a.primary(ctx, p)
		}
	}
	r := a.report(ctx)
	if gates && ctx.Err() == nil {
		a.gates(ctx, &r)
	}
	r.Took, r.Sound = flowfabric.Millis(time.Since(a.began)), sound(r)
	return r, ctx.Err()
}

// audit is one run.
type audit struct {
	cfg   AuditConfig
	began time.Time
	parts []*part
	away  error // the last reason why a server could not be looked at
}

func newAudit(cfg AuditConfig) (*audit, error) {
	if cfg.Engine == nil {
		return nil, fmt.Errorf("maintain: %w: AuditConfig.Engine is nil", flowfabric.ErrConfig)
	}
	if cfg.MaxFindings < 0 || cfg.Pause < 0 {
		return nil, fmt.Errorf("maintain: %w: AuditConfig.MaxFindings and Pause must not be negative",
			flowfabric.ErrConfig)
	}
	cfg.MaxFindings = cmp.Or(cfg.MaxFindings, auditFindings)
	if cfg.Partitions == nil {
		for id := range cfg.Engine.Partitions() {
			cfg.Partitions = append(cfg.Partitions, id)
		}
	}
	wanted := slices.Clone(cfg.Partitions)
	slices.Sort(wanted)
	a := &audit{cfg: cfg, began: time.Now()}
	for _, id := range slices.Compact(wanted) {
		if id >= cfg.Engine.Partitions() {
			return nil, fmt.Errorf("maintain: %w: partition %d of %d", flowfabric.ErrInvalidInput, id,
				cfg.Engine.Partitions())
		}
		a.parts = append(a.parts, newPart(a, id))
	}
	return a, nil
}

// left are the partitions that have not been audited to their end, and could be.
func (a *audit) left() (list []*part) {
	for _, p := range a.parts {
		if !p.done {
			list = append(list, p)
		}
	}
	return list
}

func (a *audit) report(ctx context.Context) flowfabric.CheckReport {
	r := flowfabric.CheckReport{Repairing: a.cfg.Repair, BeganAt: a.began.UTC(),
		Partitions: make([]flowfabric.CheckedPartition, 0, len(a.parts)), Executions: map[flowfabric.PublicState]int{},
		Kinds: map[string]int{}, Findings: []flowfabric.Finding{}}
	for _, p := range a.parts {
		if !p.done {
			p.out.Err = fmt.Errorf("%w: %w", ErrAuditIncomplete, cmp.Or(ctx.Err(), p.out.Err, a.away, errMoved))
		}
		p.out.Error = prose.Message(p.out.Err)
		r.Partitions = append(r.Partitions, p.out)
		for code, n := range p.out.Executions {
			r.Executions[code] += n
		}
		for kind, n := range p.out.Kinds {
			r.Kinds[kind] += n
		}
		r.Repaired, r.Repairable, r.Lost = r.Repaired+p.out.Repaired, r.Repairable+p.out.Repairable, r.Lost+p.out.Lost
		r.Busy += p.out.Busy
		r.Findings = append(r.Findings, p.kept[:min(len(p.kept), a.cfg.MaxFindings-len(r.Findings))]...)
	}
	return r
}

var errMoved = errors.New("its slot was not in one place")
