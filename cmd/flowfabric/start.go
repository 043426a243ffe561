package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// startFlags say what an execution starts with that is submitted by itself, or by a schedule.
var startFlags = []member{
	text("lane", "lane", "`lane` that it goes to").or("default"),
	whole("priority", "priority", "`0..9000`, higher is claimed first"),
	millis("deadline_ms", "deadline", "it expires when it has not ended after this long"),
	tagged("tags", "tag", "`key=value`, for example team.region=eu; may be repeated"),
	texts("capabilities", "capability", "`token` that the worker must have; may be repeated"),
	texts("gates", "gate", "`name` of a gate; may be repeated"),
	{to: "limits", flag: "limit", kind: limitKind,
		usage: "limit what runs under a `key=limit`: tenant-7=2 at once, tenant-7=100/1m starts, tenant-7=2,100/1m both; may be repeated"},
	whole("retries", "retries", "retries after a failed attempt, `0..1000`, with pauses of 1s to 1m").or("3"),
	millis("timeout_ms", "attempt-timeout", "fails an attempt that runs longer (default none)"),
	{to: "retention_s", flag: "retention", kind: retentionKind, usage: retentionUsage},
}

// onceFlags say more of what is submitted once.
var onceFlags = []member{
	millis("delay_ms", "delay", "not before this long from now"),
	timed("delay_until", "delay-until", "not before this `time` (RFC 3339)"),
	text("idempotency_key", "key", "idempotency `key`, at most 256 bytes"),
	text("unique_key", "unique", "`key` that only one execution has until it has ended, at most 256 bytes"),
	millis("key_window_ms", "key-window",
		"the key stays taken for this long at least, 1s to 8760h (default: --key as long as the execution is kept)"),
	text("debounce_key", "debounce",
		"`key` under which the latest input runs once none has come for --delay, at most 256 bytes"),
	millis("debounce_max_ms", "debounce-max",
		"it may run at the latest this long after the first submit (default: no bound)"),
}

// onceExclusive are those of them that exclude each other.
var onceExclusive = [][]string{{"delay", "delay-until"}, {"key", "unique", "debounce"}, {"debounce", "delay-until"}}

// inputFlags say what the handler gets.
func inputFlags(usage string) []member {
	input := text("", "input", usage).or("null")
	input.letter = "i"
	return []member{input, yes("", "raw", "the input is bytes, not JSON")}
}

// input puts what the handler gets into a request.
func (q *request) input() error {
	value := "null"
	if q.cmd.Flags().Changed("input") {
		value = q.text("input")
	}
	return q.content("input", "input_base64", "--input", value)
}

// limitKind are limits of keys.
var limitKind = kind{textsKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
	values := said(flags, name)
	var out []flowfabric.KeyLimit
	for _, text := range values {
		at := strings.LastIndexByte(text, '=')
		if at < 0 {
			return nil, usage("--%s %q, want key=limit", name, text)
		}
		limit, err := parseLimit(text[at+1:])
		if err != nil {
			return nil, err
		}
		out = append(out, flowfabric.KeyLimit{Key: text[:at], Concurrency: limit.Concurrency, Rate: limit.Rate,
			Per: flowfabric.Millis(limit.Per)})
	}
	return out, nil
}}

// retentionKind is how long what ended is kept, by outcome.
var retentionKind = kind{textsKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
	values := said(flags, name)
	kept, err := parseRetention(values)
	if err != nil {
		return nil, err
	}
	seconds := map[flowfabric.PublicState]int64{}
	for outcome, d := range kept {
		if d%time.Second != 0 {
			return nil, usage("retention %s, want whole seconds", d)
		}
		seconds[outcome] = int64(d / time.Second)
	}
	return seconds, nil
}}
