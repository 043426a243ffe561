package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	input, lane        string
	key, unique        string
	window             time.Duration
	debounce           string
	most               time.Duration
	priority, retries  int
	delay, deadline    time.Duration
	attempt            time.Duration
	retention          []string
	until              string
	tags, capabilities []string
	raw, wait, tail    bool
	gated              gateFlags
	limits             limitFlags
}

func submitCommand(a *app) *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit KIND",
		Short: "Create an execution",
		Long: `submit creates one execution of a kind of work, for whatever worker has a handler for it, and
prints its id. The input is JSON, as handlers expect unless they say otherwise; --raw sends the
bytes as they are. The command does not know the defaults that the program's own definition
gives to its kind: what is not said here is the default of FlowFabric (lane "default", priority
0, 3 retries, no timeout).

With --key a second submit of the same input is answered with the first execution, and another input is
refused. With --unique a second submit is answered with the first execution until that has ended. With --debounce a
further submit replaces the input of the first execution, as long as no worker was given that, and delays
it by --delay again. With --wait the id goes to stderr at once, and stdout is for the result. With --wait and --tail the exit code is 8
when the execution ends without a result; when --timeout runs out it goes on by itself.`,
		Example: `  flowfabric submit write-article --input '{"Topic":"tides"}'
  flowfabric submit import --input @big.json --lane batch --delay 10m --tag team.name=data
  flowfabric submit summarise --input @page.json --budget acme --quota gpu
  flowfabric submit refresh --input '"acme"' --unique acme --key-window 1h
  flowfabric submit reindex --input '{"Shop":7}' --debounce shop-7 --delay 10s --debounce-max 5m
  jq -c .order order.json | flowfabric submit ship --input - --key order-17 --wait`,
		Args: exactly("KIND"),
	}
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error { return a.submit(ctx, cmd, args[0], f) })
	flags := cmd.Flags()
	flags.StringVarP(&f.input, "input", "i", "null", "input: `JSON`, @file, or - for stdin, at most 1 MiB")
	flags.BoolVar(&f.raw, "raw", false, "the input is bytes, not JSON")
	flags.StringVar(&f.lane, "lane", limits.DefaultLane, "`lane` that it goes to")
	flags.IntVar(&f.priority, "priority", 0, "`0..9000`, higher is claimed first")
	flags.DurationVar(&f.delay, "delay", 0, "not before this long from now")
	flags.StringVar(&f.until, "delay-until", "", "not before this `time` (RFC 3339)")
	flags.DurationVar(&f.deadline, "deadline", 0, "expires when it has not ended after this long")
	flags.StringVar(&f.key, "key", "", "idempotency `key`, at most 256 bytes")
	flags.StringVar(&f.unique, "unique", "", "`key` that only one execution has until it has ended, at most 256 bytes")
	flags.DurationVar(&f.window, "key-window", 0,
		"the key stays taken for this long at least, 1s to 8760h (default: --key as long as the execution is kept)")
	flags.StringVar(&f.debounce, "debounce", "",
		"`key` under which the latest input runs once none has come for --delay, at most 256 bytes")
	flags.DurationVar(&f.most, "debounce-max", 0,
		"it may run at the latest this long after the first submit (default: no bound)")
	flags.StringArrayVar(&f.tags, "tag", nil, "`key=value`, for example team.region=eu; may be repeated")
	flags.StringArrayVar(&f.capabilities, "capability", nil, "`token` that the worker must have; may be repeated")
	f.gated.add(cmd)
	f.limits.add(cmd)
	flags.IntVar(&f.retries, "retries", 3, "retries after a failed attempt, `0..1000`, with pauses of 1s to 1m")
	flags.DurationVar(&f.attempt, "attempt-timeout", 0, "fails an attempt that runs longer (default none)")
	flags.StringArrayVar(&f.retention, "retention", nil, retentionUsage)
	flags.BoolVar(&f.wait, "wait", false, "wait for the end and print the result")
	flags.BoolVar(&f.tail, "tail", false, "follow its output until the end")
	cmd.MarkFlagsMutuallyExclusive("delay", "delay-until")
	cmd.MarkFlagsMutuallyExclusive("key", "unique", "debounce")
	cmd.MarkFlagsMutuallyExclusive("debounce", "delay-until")
	cmd.MarkFlagsMutuallyExclusive("wait", "tail")
	return cmd
}

// submitted is the answer of submit.
type submitted struct {
	ID   flowfabric.ExecutionID `json:"id"`
	Kind string                 `json:"kind"`
	// --key, --unique or --debounce led to an execution that existed
	Duplicate bool `json:"duplicate"`
	Replaced  bool `json:"replaced,omitempty"` // --debounce replaced its input
	*ended
}

func (a *app) submit(ctx context.Context, cmd *cobra.Command, kind string, f submitFlags) error {
	input, err := a.read("--input", f.input)
	if err != nil {
		return err
	}
	if !f.raw {
		if input, err = compact("--input", input); err != nil {
			return usage("%v, and bytes that are no JSON need --raw", err)
		}
	}
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	retry := handler.Retry(f.retries, time.Second, time.Minute)
	if f.retries == 0 {
		retry = flowfabric.Retries(0)
	}
	definition := handler.Define[[]byte, []byte](kind, retry, flowfabric.Timeout(f.attempt))
	c, err := a.client(ctx, mayBoot)
	if err != nil {
		return err
	}
	defer c.Close()
	sending := ctx
	if !cmd.Flags().Changed("timeout") {
		var cancel context.CancelFunc
		sending, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	execution, err := client.Submit(sending, c, definition, input, opts...)
	if err != nil {
		return err
	}
	out := submitted{ID: execution.ID(), Kind: kind, Duplicate: execution.Duplicate(), Replaced: execution.Replaced()}
	switch {
	case f.tail:
		if err := a.show(out, func(p *page) { p.say("%s", out.ID.String()) }); err != nil {
			return err
		}
		end, err := a.tail(ctx, c, out.ID, false)
		if err == nil && end != nil {
			return end
		}
		return submittedAs(out.ID, err)
	case f.wait:
		if !a.json { // where stdout is for the result
			fmt.Fprintln(a.err, "submitted", out.ID)
		}
		result, err := c.RawResult(ctx, out.ID)
		if end, ok := endOf(result, err); ok {
			out.ended = &end
			if shown := a.show(out, end.text); shown != nil {
				return shown
			}
		}
		return submittedAs(out.ID, err)
	}
	return a.show(out, func(p *page) { p.say("%s", out.ID.String()) })
}

// submittedError is why waiting ended for an execution that exists: --json says its id.
type submittedError struct {
	error
	id flowfabric.ExecutionID
}

func (e *submittedError) Unwrap() error { return e.error }

func submittedAs(id flowfabric.ExecutionID, err error) error {
	if err == nil {
		return nil
	}
	return &submittedError{err, id}
}

// options are those of the library; a flag that was not given says nothing.
func (f submitFlags) options(cmd *cobra.Command) ([]client.SubmitOption, error) {
	opts := []client.SubmitOption{flowfabric.Lane(f.lane), flowfabric.Priority(f.priority),
		flowfabric.Deadline(f.deadline)}
	switch debounced := cmd.Flags().Changed("debounce"); {
	case debounced && !cmd.Flags().Changed("delay"):
		return nil, usage("--debounce needs --delay: for how long each submit puts the execution off")
	case debounced:
		opts = append(opts, flowfabric.Debounce(f.debounce, f.delay))
	default:
		opts = append(opts, flowfabric.Delay(f.delay))
	}
	if cmd.Flags().Changed("debounce-max") {
		opts = append(opts, flowfabric.DebounceMax(f.most))
	}
	kept, err := parseRetention(f.retention)
	if err != nil {
		return nil, err
	}
	for outcome, d := range kept {
		opts = append(opts, flowfabric.Retention(d, outcome))
	}
	if f.until != "" {
		t, err := time.Parse(time.RFC3339, f.until)
		if err != nil {
			return nil, usage("--delay-until %q is not a time like 2026-01-31T17:00:00Z", f.until)
		}
		opts = append(opts, flowfabric.DelayUntil(t))
	}
	if cmd.Flags().Changed("key") {
		opts = append(opts, flowfabric.IdempotencyKey(f.key))
	}
	if cmd.Flags().Changed("unique") {
		opts = append(opts, flowfabric.Unique(f.unique))
	}
	if cmd.Flags().Changed("key-window") {
		opts = append(opts, flowfabric.KeyWindow(f.window))
	}
	limited, err := f.limits.options()
	if err != nil {
		return nil, err
	}
	for _, o := range limited {
		opts = append(opts, o)
	}
	tags, err := pairs("--tag", f.tags)
	if err != nil {
		return nil, err
	}
	if len(f.capabilities) > 0 {
		opts = append(opts, flowfabric.Capabilities(f.capabilities...))
	}
	return append(opts, flowfabric.Budgets(f.gated.budgets...), flowfabric.Quotas(f.gated.quotas...),
		flowfabric.Tags(tags)), nil
}

// compact is JSON as encoding/json writes it, so that an input from here and the same from a program are the same
// bytes.
func compact(name string, data []byte) ([]byte, error) {
	if !json.Valid(data) {
		return nil, usage("%s is not JSON; a text needs quotes of its own: '\"text\"'", name)
	}
	return json.Marshal(json.RawMessage(data))
}

// ended is how an execution ended.
type ended struct {
	State    flowfabric.PublicState `json:"state"`
	Result   json.RawMessage        `json:"result,omitempty"`       // if it is JSON
	Bytes    []byte                 `json:"result_bytes,omitempty"` // base64, if it is not
	Category string                 `json:"category,omitempty"`
	Reason   string                 `json:"reason,omitempty"`
	By       string                 `json:"cancelled_by,omitempty"`
	Source   string                 `json:"cancel_source,omitempty"`
}

// canceller says who cancelled something, else what kind of source did.
func canceller(by, source string) string {
	if by != "" {
		return "by " + by
	}
	return source
}

// endOf tells an end from an error that says nothing about it.
func endOf(result []byte, err error) (ended, bool) {
	if outcome, ok := errors.AsType[*client.OutcomeError](err); ok {
		return ended{State: outcome.State, Category: outcome.Category, Reason: outcome.Reason, By: outcome.By,
			Source: outcome.Source}, true
	}
	if err != nil {
		return ended{}, false
	}
	e := ended{State: flowfabric.Completed}
	if json.Valid(result) {
		e.Result = result
	} else {
		e.Bytes = result
	}
	return e, true
}

// text writes a result as it is when it is JSON. Of any other, lines that a terminal might obey are quoted.
func (e ended) text(p *page) {
	switch {
	case e.Result != nil:
		p.Write(bytes.TrimSpace(e.Result))
		p.WriteByte('\n')
	case e.Bytes != nil:
		for _, line := range textLines(string(e.Bytes)) {
			p.say("%s", line)
		}
	}
}
