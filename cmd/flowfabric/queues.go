package main

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

var queuesVerb = verb{
	use: "queues", short: "Show waiting work by lane, kind and capabilities",
	long: `queues shows every queue: its waiting executions, the age of the oldest one, and how many
executions of its kind are stored in any state.`,
	example: "  flowfabric queues --all-namespaces",
	route:   "GET /v1/queues", namespace: "?namespace", all: true,
	run: rows([]string{"NAMESPACE", "LANE", "KIND", "REQUIRES", "LANE STATE", "WAITING", "OLDEST", "STORED", "DAMAGE"},
		func(q admin.Queue) []any {
			return []any{q.Namespace, q.Lane, q.Kind, join(",", q.Capabilities...), laneCell(q.State, q.Mixed),
				q.Waiting, instant(q.OldestAt), q.Stored, q.Drift}
		}),
}

// laneCell colours lanes that do not do everything.
func laneCell(s flowfabric.LaneState, mixed bool) cell {
	text := string(s)
	if mixed {
		text += " (mixed)"
	}
	switch {
	case s == flowfabric.LaneDisabled:
		return cell{text, red}
	case mixed, s != flowfabric.LaneActive:
		return cell{text, yellow}
	}
	return cell{text, normal}
}
