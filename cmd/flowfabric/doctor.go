package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

func doctorCommand(a *app) *cobra.Command {
	var audit bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a deployment is healthy, and say what to do",
		Long: `doctor looks at every node and at the records of the store: version, cluster state, function library,
role, eviction policy, memory, persistence, replication, clocks, partitions, maintenance, route tables, work
that nobody serves, sessions and quotas that a step back of the clock left in the future, commands that the
server lacks, and what the user may do. It loads nothing and writes nothing, so it also helps where nothing
else starts. --audit adds an audit of all indexes, without repairing, which reads every key.

Every check is ok, warn, fail or skip. Exit code 1 says that one has failed.`,
		Example: `  flowfabric doctor
  flowfabric doctor --audit --timeout 10m
  flowfabric doctor --json | jq '.checks[] | select(.status!="ok")'`,
		Args: cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error { return a.doctor(ctx, audit) }),
	}
	cmd.Flags().BoolVar(&audit, "audit", false, "also audit all indexes")
	return cmd
}

// status is the result of a check.
type status string

const (
	statusOK   status = "ok"
	statusWarn status = "warn"
	statusFail status = "fail"
	statusSkip status = "skip" // it could not be made
)

func (s status) cell() cell {
	return cell{string(s), map[status]style{statusOK: green, statusWarn: yellow, statusFail: red, statusSkip: faint}[s]}
}

// check is one thing that was looked at. Do says what to do about it.
type check struct {
	Name   string `json:"check"`
	Status status `json:"status"`
	Node   string `json:"node,omitempty"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"`
}

// checkup is the answer of doctor.
type checkup struct {
	Healthy bool    `json:"healthy"` // nothing has failed
	Checks  []check `json:"checks"`
}

func (c *checkup) add(name string, s status, node, found, do string) {
	c.Checks = append(c.Checks, check{name, s, node, found, do})
}

func (c *checkup) worst() (failed, warned int) {
	for _, k := range c.Checks {
		switch k.Status {
		case statusFail:
			failed++
		case statusWarn:
			warned++
		}
	}
	return failed, warned
}

func (a *app) doctor(ctx context.Context, audit bool) error {
	cfg, err := a.engineConfig(mustExist)
	if err != nil {
		return err
	}
	d, err := engine.Diagnose(ctx, cfg)
	if err != nil {
		return err
	}
	c := examine(d)
	if audit {
		a.audit(ctx, &c, d)
	}
	failed, warned := c.worst()
	c.Healthy = failed == 0
	if err := a.show(c, func(p *page) {
		rows := make([][]any, len(c.Checks))
		for i, k := range c.Checks {
			rows[i] = []any{k.Status.cell(), k.Name, k.Node, k.Found}
		}
		p.table([]string{"", "CHECK", "NODE", "FOUND"}, rows)
		for _, k := range c.Checks {
			if k.Do != "" && k.Status != statusOK {
				p.say("\n%s: %s", k.Name, k.Do)
			}
		}
	}); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%w: %s failed, %s", errUnhealthy, count(failed, "check"), count(warned, "warning"))
	}
	return nil
}

// audit compares indexes and records, if the library on the servers is the one of this program: opening the store would
// replace an older one, which a doctor does not do.
func (a *app) audit(ctx context.Context, c *checkup, d engine.Diagnosis) {
	const name = "drift"
	if !d.Store.Booted {
		c.add(name, statusSkip, "", "the store was never booted", "")
		return
	}
	for _, n := range d.Nodes {
		if !d.Embedded && n.Primary() && n.Library != engine.OwnLibrary() {
			c.add(name, statusSkip, n.Address, "it carries another function library than this program", "run 'flowfabric audit' of the version that the workers have")
			return
		}
	}
	producer, err := a.client(ctx, mustExist)
	if err != nil {
		c.add(name, statusFail, "", message(err), "")
		return
	}
	defer producer.Close()
	report, err := admin.New(producer).Audit(ctx, admin.Audit{MaxFindings: 1})
	switch v := newAudited(report); {
	case err != nil:
		c.add(name, statusFail, "", message(err), "give it more --timeout")
	case v.Sound:
		c.add(name, statusOK, "", fmt.Sprintf("indexes agree with the records of %s", count(v.Executions, "execution")), "")
	default:
		c.add(name, statusFail, "", v.summary(), "see 'flowfabric audit', and repair it with 'flowfabric audit --repair'")
	}
}

// Bounds beyond which clocks, memory and route tables are worth a word, or a failure.
const (
	skewWarn   = time.Second
	skewFail   = 30 * time.Second
	memoryWarn = 0.8
	memoryFail = 0.95
	routesWarn = 0.8
	routesFail = 0.95
)
