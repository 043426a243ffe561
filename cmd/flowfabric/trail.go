package main

import (
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func init() { trail.Program = "cli" }

var trailVerb = verb{
	use: "trail", short: "List changes with their authors, the newest first",
	long: `trail prints one line for each change that was made with this command, over the HTTP API, or with
the packages client and admin: time, change, author, source and reason. Each partition keeps about the
newest 10,000 changes. Changes of one execution are in its history, too. --namespace filters only when it
is given. --json prints one change per line, and the cursor of the next page as {"cursor":…} on stderr.`,
	example: `  flowfabric trail --since 24h
  flowfabric trail --on lane --name default
  flowfabric trail --changed-by anna --limit 20`,
	route: "GET /v1/trail", namespace: "?namespace",
	flags: append([]member{
		text("?by", "changed-by", "only changes by this `name`"),
		text("?on", "on",
			"only changes of this `kind` of thing: execution, executions, flow, lane, schedule, gate, scope, worker, partition or 'token key'"),
		text("?name", "name", "only changes of what has this id or `name`"),
		since("?since", "since", "only from this `time` on: 2026-01-31T17:00:00Z, or 2h for two hours ago"),
		since("?until", "until", "only before this `time`"),
	}, limitFlags...),
	run: long(nil, func(c admin.Change) []any { return []any{c.String()} }),
}
