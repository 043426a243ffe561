package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// laneStates are the verbs that change the state of a lane.
func laneState(name, short string, state flowfabric.LaneState, long string) verb {
	return verb{
		use: name + " LANE", short: short,
		long: long +
			"\nThe change applies to every partition. The command names a partition that did not answer; repeat it.",
		example: "  flowfabric lane " + name + " batch --by anna",
		route:   "POST /v1/lanes/{LANE}:set", namespace: "namespace",
		run: func(ctx context.Context, q *request) error {
			q.body["state"] = state
			return setLane(ctx, q)
		},
	}
}

var laneVerbs = []verb{
	{
		use: "list", short: "List lanes",
		long:    "list shows the lanes that have work or settings.",
		example: "  flowfabric lane list",
		route:   "GET /v1/lanes", namespace: "?namespace", all: true,
		run: rows([]string{"NAMESPACE", "LANE", "STATE", "WAITING", "KEEPS", "AGEING", "WEIGHT", "SINCE", "BY"},
			func(l admin.Lane) []any {
				return []any{l.Namespace, l.Name, laneCell(l.State, l.Mixed), l.Waiting, keeps(l.Retention),
					span(time.Duration(l.Ageing)), limitCell(int64(l.Weight), ""), instant(l.Since), l.By}
			}),
	},
	laneState("pause", "Accept work but dispatch none", flowfabric.LanePaused,
		`pause makes a lane accept work and dispatch none. Running work goes on.`),
	laneState("resume", "Accept and dispatch work again", flowfabric.LaneActive,
		`resume makes a paused, draining or disabled lane accept and dispatch work again.`),
	laneState("drain", "Refuse new work and dispatch the rest", flowfabric.LaneDraining,
		`drain makes a lane dispatch its waiting work and refuse new submissions.`),
	laneState("disable", "Neither accept nor dispatch work", flowfabric.LaneDisabled,
		`disable stops a lane: it refuses submissions and dispatches nothing. Waiting work stays, and
running work goes on. The command prints how much work waits in the lane.`),
	{
		use: "retention LANE DURATION...", short: "Set how long a lane keeps ended executions",
		long: `retention sets how long a lane keeps executions that end from now on, unless their own policy sets
a retention: whole seconds, up to ten years. 0 is the default: 24h for completed ones and 336h for all
others. failed=336h sets it for one outcome: completed, failed, cancelled or expired.`,
		example: `  flowfabric lane retention batch 72h
  flowfabric lane retention batch completed=1h failed=720h`,
		route: "POST /v1/lanes/{LANE}:set", namespace: "namespace",
		args: map[string]member{"DURATION": {to: "retention_s", kind: retentionKind}},
		run:  setLane,
	},
	{
		use: "set LANE", short: "Set a namespace's weight in a lane, and its ageing",
		long: `set changes the given settings of a lane and keeps the others. --weight is the share of the
namespace (--namespace): while several namespaces have work in the lane, each gets its weight's part of the
claims, however much it has waiting. --ageing is the waiting time that outweighs one step of priority, for
work that becomes claimable from now on; 0 is the default, no ageing. The change applies to every partition;
you may repeat the command.`,
		example: `  flowfabric lane set batch --weight 4 --namespace blue
  flowfabric lane set batch --ageing 10m`,
		route: "POST /v1/lanes/{LANE}:set", namespace: "namespace",
		flags: []member{whole("weight", "weight", "`1..1000`; 0 is the usual weight, 1"),
			millis("ageing_ms", "ageing", "of waiting that outweighs one step of priority, at most 24h")},
		needed: [][]string{{"weight", "ageing"}},
		run:    setLane,
	},
}

// setLane changes a lane and shows it as it then is.
func setLane(ctx context.Context, q *request) error {
	if err := changedPartly(q.do(ctx, nil)); err != nil {
		return err
	}
	find := *q
	find.verb, find.path = verb{route: "GET /v1/lanes"}, "/v1/lanes"
	if named := q.body["namespace"]; named != nil {
		find.put("?namespace", named)
	}
	lanes, _, err := pages[admin.Lane](ctx, &find)
	if err != nil {
		return err
	}
	name := q.args[0]
	for _, l := range lanes {
		if l.Name == name {
			return q.app.show(l, func(p *page) {
				p.say("lane %s is %s, keeps ended executions for %s%s; %d waiting", l.Name, string(l.State),
					keeps(l.Retention), order(l), l.Waiting)
			})
		}
	}
	return q.app.show(admin.Lane{Namespace: q.app.namespace, Name: name, State: flowfabric.LaneActive}, func(p *page) {
		p.say("lane %s is active, keeps ended executions for %s; nothing waiting", name, keeps(flowfabric.Retentions{}))
	})
}

// changedPartly says of a refusal in how many partitions something was changed.
func changedPartly(err error) error {
	if no, ok := errors.AsType[*refusal](err); ok && partly(err) {
		no.Detail = fmt.Sprintf("changed in %d of %s, repeat it for the others: %s", no.Total-no.Failed,
			count(no.Total, "partition"), no.Detail)
	}
	return err
}

// order is what a lane was told of who comes next, if it was.
func order(l admin.Lane) string {
	text := ""
	if l.Ageing > 0 {
		text += fmt.Sprintf(", counts %s of waiting as a step of priority", span(time.Duration(l.Ageing)))
	}
	if l.Weight > 0 {
		text += fmt.Sprintf(", gives namespace %s the weight %d", l.Namespace, l.Weight)
	}
	return text
}
