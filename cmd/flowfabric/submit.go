package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

var submitVerb = verb{
	use: "submit KIND", short: "Create an execution",
	long: `submit creates one execution of a kind of work and prints its id. Any worker that handles the kind
may run it. The input is JSON; --raw sends the bytes as they are. The command does not know the defaults
of the program's own definition of the kind: a flag that is left out gets the default of FlowFabric (lane
"default", priority 0, 3 retries, no timeout).

With --key a second submit of the same input returns the first execution, and a different input is
refused. With --unique a second submit returns the first execution until that has ended. With --debounce a
later submit replaces the input of the first execution, as long as no worker has it, and delays it by
--delay again. With --wait the id goes to stderr at once, and stdout is for the result. With --wait and
--tail the exit code is 8 when the execution ends without a result. When --timeout expires, the execution
goes on.`,
	example: `  flowfabric submit write-article --input '{"Topic":"tides"}'
  flowfabric submit import --input @big.json --lane batch --delay 10m --tag team.name=data
  flowfabric submit summarise --input @page.json --gate acme --gate gpu
  flowfabric submit refresh --input '"acme"' --unique acme --key-window 1h
  flowfabric submit reindex --input '{"Shop":7}' --debounce shop-7 --delay 10s --debounce-max 5m
  jq -c .order order.json | flowfabric submit ship --input - --key order-17 --wait`,
	route: "POST /v1/executions", namespace: "namespace", first: mayBoot, lasting: true, mute: true,
	args: map[string]member{"KIND": text("kind", "", "")},
	flags: slices.Concat(inputFlags("input: `JSON`, @file, or - for stdin, at most 1 MiB"), startFlags, onceFlags,
		[]member{yes("", "wait", "wait for the end and print the result"),
			yes("", "tail", "follow its output until the end")}),
	exclusive: append(onceExclusive, []string{"wait", "tail"}),
	run:       submit,
}

// submitted is the answer of submit.
type submitted struct {
	apiv1.Submitted
	Kind string `json:"kind"`
	*ended
}

func submit(ctx context.Context, q *request) error {
	a := q.app
	if err := q.input(); err != nil {
		return err
	}
	if _, debounced := q.body["debounce_key"]; debounced {
		if delay, _ := q.body["delay_ms"].(int64); delay <= 0 {
			return usage("--debounce needs --delay: for how long each submit puts the execution off")
		}
		q.body["debounce_ms"] = q.body["delay_ms"]
		delete(q.body, "delay_ms")
	}
	sending := ctx
	if !q.cmd.Flags().Changed("timeout") {
		var cancel context.CancelFunc
		sending, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	out := submitted{Kind: q.args[0]}
	if err := q.do(sending, &out.Submitted); err != nil {
		return err
	}
	id, err := executionID(out.ID)
	if err != nil {
		return err
	}
	switch {
	case q.said("tail"):
		if err := a.show(out, func(p *page) { p.say("%s", out.ID) }); err != nil {
			return err
		}
		end, err := a.tail(q.follow(ctx, id), id, false)
		if err == nil && end != nil {
			return end
		}
		return submittedAs(id, err)
	case q.said("wait"):
		if !a.json { // where stdout is for the result
			fmt.Fprintln(a.err, "submitted", out.ID)
		}
		end, err := q.wait(ctx, id)
		if err != nil {
			return submittedAs(id, err)
		}
		out.ended = &end
		if shown := a.show(out, func(p *page) {
			if end.Output != nil {
				payloadText(p, *end.Output)
			}
		}); shown != nil {
			return shown
		}
		return submittedAs(id, end.err(id))
	}
	return a.show(out, func(p *page) { p.say("%s", out.ID) })
}

// wait asks for the end of an execution until it has come.
func (q *request) wait(ctx context.Context, id flowfabric.ExecutionID) (end ended, err error) {
	for {
		q.door.prefer = "wait=60"
		err := q.get(ctx, &end, "/v1/executions/*/result", id.String())
		q.door.prefer = ""
		if err == context.Canceled {
			err = fmt.Errorf("wait for %s: %w", id, err)
		}
		if err != nil || q.door.status != http.StatusAccepted {
			return end, err
		}
	}
}

// err is an end without a result as an error.
func (e ended) err(id flowfabric.ExecutionID) error {
	if e.State == string(flowfabric.Completed) {
		return nil
	}
	out := &client.OutcomeError{ID: id, State: flowfabric.PublicState(e.State), Reason: e.Reason, By: e.By,
		Source: e.Source, Attempts: e.Attempts}
	if e.Failure != nil {
		out.Category, out.Reason = e.Failure.Category, e.Failure.Message
	}
	return out
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
	if !json.Valid(data) || !utf8.Valid(data) {
		return nil, usage("%s is not JSON; a text needs quotes of its own: '\"text\"'", name)
	}
	return json.Marshal(json.RawMessage(data))
}

// ended is how an execution ended.
type ended struct{ apiv1.Result }

// canceller says who cancelled something, else what kind of source did.
func canceller(by, source string) string {
	if by != "" {
		return "by " + by
	}
	return source
}

// payloadText writes a payload as it is when it is JSON. Of any other, lines that a terminal might obey are quoted.
func payloadText(p *page, payload flowfabric.Payload) {
	if json.Valid(payload) {
		p.Write(bytes.TrimSpace(payload))
		p.WriteByte('\n')
		return
	}
	for _, line := range textLines(sealed.Text(payload)) {
		p.say("%s", line)
	}
}
