package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	startFlags
	input           string
	raw, wait, tail bool
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
	f.add(cmd)
	f.addOnce(cmd)
	flags.BoolVar(&f.wait, "wait", false, "wait for the end and print the result")
	flags.BoolVar(&f.tail, "tail", false, "follow its output until the end")
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
	start, err := f.start(cmd)
	if err != nil {
		return err
	}
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
	execution, err := client.Submit(sending, c, handler.Define[[]byte, []byte](kind), input,
		flowfabric.StartWith(start))
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
