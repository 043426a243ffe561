package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
)

func doctorCommand(a *app) *cobra.Command {
	indexes, probe := onlySmall, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a deployment is healthy, and suggest remedies",
		Long: `doctor checks every node and the records of the store: version, cluster state, function library,
role, eviction policy, memory, persistence, replication, clocks, partitions, maintenance, route tables,
work without a worker, sessions and gates that a step back of the clock left in the future, commands that
the server lacks, and the rights of the user. It loads nothing and writes nothing, so it also helps where
nothing else starts. On a store of at most 10,000 keys it also checks all indexes, like 'flowfabric
check', which reads every key. --indexes checks them on a larger store, and --indexes=false never does.

Every check is ok, warn, fail or skip. Exit code 1 means that a check failed. Exit code 0 says nothing
about skipped checks. Without the indexes the check drift is skipped, and checked_keys of --json is 0:
'flowfabric check' may then still find a wrong index.

--probe tries instead what FlowFabric needs of a server, for example of one that a provider runs: function
libraries, commands in functions, publishing. It loads a small library under a name of its own and writes
throw-away keys, and removes both. Exit code 1 means that something is refused or could not be tried.`,
		Example: `  flowfabric doctor
  flowfabric doctor --probe --url rediss://user:password@host:6379
  flowfabric doctor --indexes --timeout 10m
  flowfabric doctor --json | jq '.checks[] | select(.status!="ok")'`,
		Args: cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			if probe {
				return a.probe(ctx)
			}
			return a.doctor(ctx, indexes)
		}),
	}
	cmd.Flags().Var(&indexes, "indexes", "also check all indexes; by default of a store with at most 10,000 keys")
	cmd.Flags().Lookup("indexes").NoOptDefVal = "true"
	cmd.Flags().BoolVar(&probe, "probe", false, "try what FlowFabric needs of a server, with throw-away keys")
	cmd.MarkFlagsMutuallyExclusive("indexes", "probe")
	return cmd
}

// smallStore is how many keys are checked without being asked for it.
const smallStore = 10_000

// whether says whether a doctor checks indexes: "" = if the store is small.
type whether string

const onlySmall whether = ""

func (w *whether) String() string { return string(*w) }
func (w *whether) Type() string   { return "bool" }
func (w *whether) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*w = whether(strconv.FormatBool(on))
	return err
}

// styles are those of the results of checks.
var styles = map[doctor.Status]style{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red, doctor.Skip: faint}

func (a *app) doctor(ctx context.Context, indexes whether) error {
	cfg, err := a.engineConfig(mustExist)
	if err != nil {
		return err
	}
	d, err := doctor.Diagnose(ctx, cfg)
	if err != nil {
		return err
	}
	c := doctor.Examine(d)
	if indexes == "true" || indexes == onlySmall && c.Keys <= smallStore {
		a.indexes(ctx, &c, d)
	}
	failed, warned := c.Worst()
	if err := a.show(c, func(p *page) {
		rows := make([][]any, len(c.Checks))
		for i, k := range c.Checks {
			rows[i] = []any{cell{string(k.Status), styles[k.Status]}, k.Name, k.Node, k.Found}
		}
		p.table([]string{"", "CHECK", "NODE", "FOUND"}, rows)
		for _, k := range c.Checks {
			if k.Do != "" && k.Status != doctor.OK {
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

// probe shows what a server can do of what FlowFabric needs.
func (a *app) probe(ctx context.Context) error {
	cfg, err := a.engineConfig(mustExist)
	if err != nil {
		return err
	}
	r, err := doctor.Try(ctx, cfg)
	if r.Abilities == nil {
		return err
	}
	if err := a.show(r, func(p *page) {
		rows := make([][]any, len(r.Abilities))
		for i, k := range r.Abilities {
			rows[i] = []any{cell{string(k.Status), styles[k.Status]}, k.Name, k.Needed, k.Said}
		}
		p.table([]string{"", "ABILITY", "NEEDED FOR", "SAID"}, rows)
	}); err != nil {
		return err
	}
	if err == nil && !r.Able {
		err = fmt.Errorf("%w: %s does not do for this user all that FlowFabric needs (docs/how-to/where-it-runs.md)",
			errUnhealthy, r.Server)
	}
	return err
}

// indexes compares indexes and records, if the library on the servers is the one of this program: opening the store
// would replace an older one, which a doctor does not do.
func (a *app) indexes(ctx context.Context, c *doctor.Checkup, d doctor.Diagnosis) {
	if d.Store.Err != nil { // another check says why
		c.NotChecked(doctor.Skip, "", "the store cannot be read", "")
		return
	}
	if !d.Store.Booted {
		c.NotChecked(doctor.Skip, "", "the store was never booted", "")
		return
	}
	for _, n := range d.Nodes {
		if !d.Embedded && n.Primary() && n.Library != doctor.OwnLibrary() {
			c.NotChecked(doctor.Skip, n.Address, "it carries another function library than this program",
				"run 'flowfabric check' of the version that the workers have")
			return
		}
	}
	producer, err := a.client(ctx, mustExist)
	if err != nil {
		c.NotChecked(doctor.Fail, "", message(err), "")
		return
	}
	defer producer.Close()
	report, err := admin.New(producer).Check(ctx, admin.CheckOptions{MaxFindings: 1})
	switch {
	case err != nil:
		c.NotChecked(doctor.Fail, "", message(err), "give it more --timeout")
	case report.Sound:
		c.Checked(doctor.OK, "indexes agree with the records of "+checkedExecutions(report), "")
	default:
		c.Checked(doctor.Fail, checkSummary(report),
			"see 'flowfabric check', and repair it with 'flowfabric repair'")
	}
}
