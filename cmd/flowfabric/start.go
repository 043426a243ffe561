package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// startFlags are the flags that say what an execution starts with.
type startFlags struct {
	of              flowfabric.Start
	retries         int
	until           string
	retention, tags []string
	limits          []string // of keys, as key=limit
	key, unique     string
	window, most    flowfabric.Millis
	debounce        string
}

// add adds the flags of what is submitted by itself, or by a schedule as well.
func (f *startFlags) add(cmd *cobra.Command) {
	flags, s := cmd.Flags(), &f.of
	span := func(to *flowfabric.Millis, name, usage string) {
		flags.DurationVar((*time.Duration)(to), name, 0, usage)
	}
	flags.StringVar(&s.Lane, "lane", limits.DefaultLane, "`lane` that it goes to")
	flags.IntVar(&s.Priority, "priority", 0, "`0..9000`, higher is claimed first")
	span(&s.Deadline, "deadline", "it expires when it has not ended after this long")
	flags.StringArrayVar(&f.tags, "tag", nil, "`key=value`, for example team.region=eu; may be repeated")
	flags.StringArrayVar(&s.Capabilities, "capability", nil, "`token` that the worker must have; may be repeated")
	flags.StringArrayVar(&s.Budgets, "budget", nil, "`name` of a budget; may be repeated")
	flags.StringArrayVar(&s.Quotas, "quota", nil, "`name` of a quota; may be repeated")
	flags.StringArrayVar(&f.limits, "limit", nil,
		"limit what runs under a `key=limit`: tenant-7=2 at once, tenant-7=100/1m starts, tenant-7=2,100/1m both; may be repeated")
	flags.IntVar(&f.retries, "retries", 3, "retries after a failed attempt, `0..1000`, with pauses of 1s to 1m")
	span(&s.AttemptTimeout, "attempt-timeout", "fails an attempt that runs longer (default none)")
	flags.StringArrayVar(&f.retention, "retention", nil, retentionUsage)
}

// addOnce adds the flags of what is submitted once.
func (f *startFlags) addOnce(cmd *cobra.Command) {
	flags, s := cmd.Flags(), &f.of
	span := func(to *flowfabric.Millis, name, usage string) {
		flags.DurationVar((*time.Duration)(to), name, 0, usage)
	}
	span(&s.Delay, "delay", "not before this long from now")
	flags.StringVar(&f.until, "delay-until", "", "not before this `time` (RFC 3339)")
	flags.StringVar(&f.key, "key", "", "idempotency `key`, at most 256 bytes")
	flags.StringVar(&f.unique, "unique", "", "`key` that only one execution has until it has ended, at most 256 bytes")
	span(&f.window, "key-window",
		"the key stays taken for this long at least, 1s to 8760h (default: --key as long as the execution is kept)")
	flags.StringVar(&f.debounce, "debounce", "",
		"`key` under which the latest input runs once none has come for --delay, at most 256 bytes")
	span(&f.most, "debounce-max", "it may run at the latest this long after the first submit (default: no bound)")
	cmd.MarkFlagsMutuallyExclusive("delay", "delay-until")
	cmd.MarkFlagsMutuallyExclusive("key", "unique", "debounce")
	cmd.MarkFlagsMutuallyExclusive("debounce", "delay-until")
}

// start is what the flags of a command say.
func (f *startFlags) start(cmd *cobra.Command) (s flowfabric.Start, err error) {
	s = f.of
	s.Retries = &f.retries
	kept, err := parseRetention(f.retention)
	if err != nil {
		return s, err
	}
	for outcome, d := range kept {
		*s.Policy.Retention.Of(outcome) = d
	}
	if s.Tags, err = pairs("--tag", f.tags); err != nil {
		return s, err
	}
	for _, text := range f.limits {
		at := strings.LastIndexByte(text, '=')
		if at < 0 {
			return s, usage("--limit %q, want key=limit", text)
		}
		limit, err := parseLimit(text[at+1:])
		if err != nil {
			return s, err
		}
		s.Limits = append(s.Limits, flowfabric.KeyLimit{Key: text[:at], Concurrency: limit.Concurrency,
			Rate: limit.Rate,
			Per:  flowfabric.Millis(limit.Per)})
	}
	if f.until != "" {
		if s.DelayUntil, err = time.Parse(time.RFC3339, f.until); err != nil {
			return s, usage("--delay-until %q is not a time like 2026-01-31T17:00:00Z", f.until)
		}
	}
	changed := cmd.Flags().Changed
	if changed("key") {
		s.IdempotencyKey = &f.key
	}
	if changed("unique") {
		s.UniqueKey = &f.unique
	}
	if changed("key-window") {
		s.KeyWindow = &f.window
	}
	if changed("debounce-max") {
		s.DebounceMax = &f.most
	}
	if changed("debounce") {
		if !changed("delay") {
			return s, usage("--debounce needs --delay: for how long each submit puts the execution off")
		}
		s.DebounceKey, s.Debounce, s.Delay = &f.debounce, s.Delay, 0
	}
	return s, nil
}
