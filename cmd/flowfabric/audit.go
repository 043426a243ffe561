package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
)

func auditCommand(a *app) *cobra.Command {
	var repair bool
	var pause time.Duration
	var most int
	cmd := &cobra.Command{
		Use:   "audit [PARTITION...]",
		Short: "Hold every index of the store against the records, and repair it with --repair",
		Long: `audit lists all keys of every primary once and reports every difference between what records say and
what indexes say. It may run while everything else does. With --repair what can be derived is repaired in
the call that finds it; it says what it repaired. Without it nothing is written. It has no time limit
unless --timeout is given. Exit code 1 says that something is wrong (still).`,
		Example: `  flowfabric audit
  flowfabric audit 0-7 --repair
  flowfabric audit --json | jq .kinds`,
	}
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) (err error) {
			how := admin.Audit{Repair: repair, Pause: pause, MaxFindings: most} // of all partitions
			if len(args) > 0 {
				if how.Partitions, err = choose(args, false, partitionsOf(ctx, o)); err != nil {
					return err
				}
			}
			report, err := o.Audit(ctx, how)
			if err != nil {
				return err
			}
			v := newAudited(report)
			v.Repairing = repair
			if err := a.show(v, v.text); err != nil {
				return err
			}
			if !v.Sound {
				return fmt.Errorf("%w: %s", errUnhealthy, v.summary())
			}
			return nil
		})
	})
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what can be repaired")
	cmd.Flags().DurationVar(&pause, "pause", 0, "rest this long between two calls, on a busy store")
	cmd.Flags().IntVar(&most, "findings", 100, "print at most this `number` of findings; the counts are complete")
	return cmd
}

// audited is an admin.AuditReport for --json.
type audited struct {
	Sound      bool             `json:"sound"`
	Repairing  bool             `json:"repairing"`
	TookMs     int64            `json:"took_ms"`
	Partitions int              `json:"partitions"`
	Executions int              `json:"executions"`
	Kinds      map[string]int   `json:"kinds"` // findings by kind
	Repaired   int              `json:"repaired"`
	Repairable int              `json:"repairable"`
	Lost       int              `json:"lost"`
	Failed     []auditedFailure `json:"failed,omitempty"`
	GatesError string           `json:"gates_error,omitempty"` // why budgets and quotas were not audited to their end
	Findings   []finding        `json:"findings"`
	took       time.Duration
}

type auditedFailure struct {
	Partition uint16 `json:"partition"`
	Error     string `json:"error"`
}

type finding struct {
	Partition  uint16 `json:"partition"`
	Kind       string `json:"kind"`
	Index      string `json:"index"`
	Member     string `json:"member"`
	Detail     string `json:"detail,omitempty"`
	Repaired   bool   `json:"repaired"`
	Repairable bool   `json:"repairable"`
}

func newAudited(r admin.AuditReport) audited {
	v := audited{Sound: r.Sound, TookMs: r.Took.Milliseconds(), Partitions: len(r.Partitions), Kinds: r.Kinds,
		Repaired: r.Repaired, Repairable: r.Repairable, Lost: r.Lost, Findings: []finding{}, took: r.Took}
	if v.Kinds == nil {
		v.Kinds = map[string]int{}
	}
	for _, n := range r.Executions {
		v.Executions += n
	}
	for _, p := range r.Partitions {
		if p.Err != nil {
			v.Failed = append(v.Failed, auditedFailure{p.Partition, message(p.Err)})
		}
	}
	if r.GatesErr != nil {
		v.GatesError = message(r.GatesErr)
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, newFinding(f))
	}
	return v
}

func newFinding(f admin.Finding) finding { return finding(f) }

func (v audited) summary() string {
	text := fmt.Sprintf("%d repaired, %d repairable, %d lost", v.Repaired, v.Repairable, v.Lost)
	if len(v.Failed) > 0 {
		text += fmt.Sprintf(", %s not audited", count(len(v.Failed), "partition"))
	}
	if v.GatesError != "" {
		text += ", budgets and quotas not audited"
	}
	return text
}

func (v audited) text(p *page) {
	var rows [][]any
	for _, f := range v.Findings {
		what := styled(red, "lost")
		switch {
		case f.Repaired:
			what = styled(green, "repaired")
		case f.Repairable:
			what = styled(yellow, "repairable")
		}
		rows = append(rows, []any{f.Partition, f.Kind, f.Index, f.Member, what, f.Detail})
	}
	if len(rows) > 0 {
		p.table([]string{"PARTITION", "KIND", "INDEX", "MEMBER", "", "DETAIL"}, rows)
	}
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(v.Kinds)) {
		total += v.Kinds[kind]
	}
	if left := total - len(v.Findings); left > 0 {
		p.say("… and %d more (--findings)", left)
	}
	for _, f := range v.Failed {
		p.say("partition %d was not audited: %s", f.Partition, f.Error)
	}
	if v.GatesError != "" {
		p.say("budgets and quotas were not audited to their end: %s", v.GatesError)
	}
	p.say("audited %s with %s: %s", count(v.Partitions, "partition"), count(v.Executions, "execution"), v.summary())
}
