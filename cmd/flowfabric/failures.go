package main

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// failuresVerb has the flags of ls that choose among what failed.
var failuresVerb = verb{
	use: "failures", short: "Show groups of failures that look alike, the largest group first",
	long: `failures groups the executions that failed by kind, category and the shape of their messages. In
a shape, what differs from one failure to the next is a placeholder: <n>, <id>, <text>, <path> or <time>.
It counts the newest 10,000 failures. KEY names a group: ls --shape KEY lists its executions,
and bulk replay --shape KEY replays them.`,
	example: `  flowfabric failures --since 2h
  flowfabric ls --shape 5d2f0a9c17be4e83 --newest
  flowfabric bulk replay --shape 5d2f0a9c17be4e83 --dry-run`,
	route: "GET /v1/failures", namespace: "?namespace", all: true,
	flags: slices.Concat([]member{
		text("?version", "version", "only what a worker of this `version` of the application claimed last"),
		since("?since", "since",
			"only what failed from this `time` on: 2026-01-31T17:00:00Z, or 2h for two hours ago"),
		since("?until", "until", "only what failed before this `time`"),
	}, slices.DeleteFunc(slices.Clone(filterFlags), func(m member) bool {
		return !slices.Contains([]string{"category", "lane", "kind"}, m.flag)
	})),
	show: told(func(p *page, _ *request, v apiv1.Failures) {
		rows := make([][]any, len(v.Items))
		for i, g := range v.Items {
			example := ""
			if len(g.Examples) > 0 {
				example = g.Examples[0].String()
			}
			rows[i] = []any{g.Key, g.Count, g.Kind, cmp.Or(string(g.Category), "none"), instant(g.FirstAt),
				instant(g.LastAt), g.Shape, example}
		}
		p.table([]string{"KEY", "COUNT", "KIND", "CATEGORY", "FIRST", "LAST", "SHAPE", "EXAMPLE"}, rows)
		if v.More {
			p.say("older failures, before %s, are not counted; --until lists them", instant(v.From))
		}
	}),
}
