package main

import (
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// filterFlags choose executions, for ls and bulk.
type filterFlags struct {
	f            admin.Filter
	all          bool
	states, tags []string
	since, until string
	flow         string
}

func (x *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&x.states, "state", nil,
		"`states`: waiting_children, waiting, waiting_budget, waiting_quota, held, delayed, suspended, active, completed, failed, cancelled, expired, skipped, or ended for the last five")
	flags.StringSliceVar(&x.f.Categories, "category", nil,
		"only with one of these failure `categories`: of the end, or of the last failed attempt")
	flags.StringVar(&x.f.ErrorText, "error", "",
		"only with this `text` in the message of that failure, in any case of letters")
	flags.StringVar(&x.since, "since", "",
		"only what ended, or was created if it has not ended, from this `time` on: 2026-01-31T17:00:00Z, or 2h for two hours ago")
	flags.StringVar(&x.until, "until", "", "only what ended, or was created if it has not ended, before this `time`")
	flags.StringVar(&x.flow, "flow", "", "only members of this flow, by its `id`")
	flags.StringVar(&x.f.Lane, "lane", "", "only this `lane`")
	flags.StringVar(&x.f.Kind, "kind", "", "only this `kind`")
	flags.StringArrayVar(&x.tags, "tag", nil, "only with this `key=value`; may be repeated")
	flags.StringVar(&x.f.HeldBy, "held-by", "", "only what this `worker` instance or session holds")
	flags.BoolVar(&x.f.Newest, "newest", false,
		"from the other end: of what ended, what ended last first if no completed ones are listed, else what is purged last")
	flags.BoolVar(&x.all, "all-namespaces", false, "of all namespaces")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"waiting_children", "waiting",
		"waiting_budget", "waiting_quota", "held", "delayed", "suspended", "active", "completed", "failed",
		"cancelled", "expired", "skipped", "ended"}, cobra.ShellCompDirectiveNoFileComp))
}

// filter is what was said.
func (x *filterFlags) filter(cmd *cobra.Command) (f admin.Filter, err error) {
	f = x.f
	for _, s := range x.states {
		f.States = append(f.States, flowfabric.PublicState(s))
	}
	if f.Tags, err = pairs("--tag", x.tags); err != nil {
		return f, err
	}
	if f.Since, err = moment("--since", x.since); err != nil {
		return f, err
	}
	if f.Until, err = moment("--until", x.until); err != nil {
		return f, err
	}
	if x.flow != "" {
		if f.Flow, err = flowfabric.ParseFlowID(x.flow); err != nil {
			return f, usage("--flow: %v", err)
		}
	}
	if x.all && cmd.Flags().Changed("namespace") {
		return f, usage("--all-namespaces and --namespace exclude each other")
	}
	if x.all {
		f.Namespace = admin.AllNamespaces
	}
	return f, nil
}

// moment reads a time, or how long ago it was by this machine's clock.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("%s %q, want a time like 2026-01-31T17:00:00Z, or 2h for two hours ago", flag, text)
	}
	return t, nil
}
