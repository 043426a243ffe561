package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

var publishVerb = verb{
	use: "publish SUBJECT", short: "Publish an event, which starts and resumes executions",
	long: `publish reports that something has happened. Each trigger of the subject whose filter the data matches
starts one execution, with the data as its input, and each execution that waits for such an event goes on. With
--id a repeat within a day does nothing again; other data under the same id is refused.`,
	example: `  flowfabric publish order.paid --data '{"order":{"id":17,"state":"paid"}}' --id payment-77
  flowfabric publish cache.stale`,
	route: "POST /v1/events:publish", namespace: "namespace",
	args: map[string]member{"SUBJECT": text("subject", "", "")},
	flags: []member{text("", "data", "`JSON`, @file, or - for stdin, at most 64 KiB").or("null"),
		text("id", "id", "`id` of the event, at most 256 bytes").or("a new one")},
	run: func(ctx context.Context, q *request) error {
		if q.cmd.Flags().Changed("data") {
			data, err := q.app.read("--data", q.text("data"))
			if err == nil {
				data, err = compact("--data", data)
			}
			if err != nil {
				return usage("%v", err)
			}
			q.body["data"] = json.RawMessage(data)
		}
		var p client.Published
		if err := q.do(ctx, &p); err != nil {
			return err
		}
		return q.app.show(p, func(page *page) {
			if p.Duplicate {
				page.say("event %s: duplicate, nothing started (%s, %s the first time)", p.ID,
					count(p.Starts, "execution"), count(p.Resumes, "wait"))
				return
			}
			page.say("event %s: %s, %s (published)", p.ID, count(p.Starts, "execution"), count(p.Resumes, "wait"))
		})
	},
}

var triggerVerbs = []verb{
	{
		use: "list", short: "List triggers, by subject and name", example: "  flowfabric triggers list",
		route: "GET /v1/triggers", namespace: "?namespace",
		run: rows([]string{"SUBJECT", "NAME", "WHERE", "KIND", "LANE", "MATCHED", "LAST", "REFUSED"},
			func(t apiv1.Trigger) []any {
				return []any{t.Subject, t.Name, filterText(t.Where), t.Kind, t.Lane, t.Matched, instant(t.LastAt),
					triggerTrouble(t)}
			}),
	},
	{
		use: "put NAME", short: "Create or change a trigger",
		long: `put makes or replaces a trigger, which starts an execution for each event that is published with its
subject and matches all of --where. Names are those of one subject. Putting the same trigger again changes
nothing.`,
		example: `  flowfabric triggers put ship --subject order.paid --kind ship --where order.state=paid
  flowfabric triggers put alert --subject order.paid --kind alert --where order.vip=true --lane urgent`,
		route: "PUT /v1/triggers/{NAME}", namespace: "namespace", first: mayBoot,
		flags: slices.Concat([]member{
			text("subject", "subject", "`subject` of the events, required"),
			text("kind", "kind", "`kind` of work, required"),
			{to: "where", flag: "where", kind: whereKind,
				usage: "`field=value` of the data, as order.id=7; a value that is no JSON is a string; may be repeated"},
		}, startFlags),
		needed: [][]string{{"subject"}, {"kind"}},
		show: told(func(p *page, q *request, set struct {
			Name    string `json:"name"`
			Already bool   `json:"already"`
		}) {
			p.say("trigger %s: %s", set.Name, outcome("put", set.Already, nil))
		}),
	},
	{
		use: "remove NAME", short: "Forget a trigger",
		long:    `remove deletes a trigger. Events that were published before still start what it said.`,
		example: "  flowfabric triggers remove ship --subject order.paid",
		route:   "DELETE /v1/triggers/{NAME}", namespace: "?namespace",
		flags:  []member{text("?subject", "subject", "`subject` of its events, required")},
		needed: [][]string{{"subject"}}, done: "removed",
	},
}

// whereKind are values of fields: JSON, or else strings.
var whereKind = kind{textsKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
	out := map[string]json.RawMessage{}
	for _, text := range said(flags, name) {
		field, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usage("--%s %q, want field=value", name, text)
		}
		if !json.Valid([]byte(value)) {
			quoted, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			value = string(quoted)
		}
		out[field] = json.RawMessage(value)
	}
	return out, nil
}}

// filterText is a filter as --where takes it.
func filterText(where map[string]any) string {
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(where)) {
		value, err := json.Marshal(where[field])
		if err != nil {
			value = []byte(fmt.Sprint(where[field]))
		}
		parts = append(parts, field+"="+string(value))
	}
	return strings.Join(parts, " ")
}

// triggerTrouble is why a trigger did not start something.
func triggerTrouble(t apiv1.Trigger) cell {
	switch {
	case t.Error != "":
		return styled(red, "unreadable")
	case t.Refused != "":
		return styled(yellow, t.Refused+" "+instant(t.RefusedAt))
	}
	return styled(normal, "")
}
