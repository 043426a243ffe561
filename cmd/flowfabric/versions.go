package main

import (
	"cmp"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

var versionsVerb = verb{
	use: "versions", short: "Show versions of the application: their workers, and what each still holds",
	long: `versions shows for each version of the application (runtime.Config.AppVersion) the live workers and
the executions that they run, and the suspended, delayed and waiting executions that the version claimed
last. A version without workers and without work is not shown. Look at OLDEST before you stop a version:
it says when it claimed the first of those. ls --version lists them.`,
	example: `  flowfabric versions --all-namespaces
  flowfabric ls --version 12 --limit 0`,
	route: "GET /v1/versions", namespace: "?namespace", all: true,
	show: told(func(p *page, _ *request, v apiv1.Versions) {
		rows := make([][]any, len(v.Items))
		for i, x := range v.Items {
			rows[i] = []any{cmp.Or(x.Version, "(none)"), x.Workers, x.Active, x.Suspended, x.Delayed, x.Waiting,
				instant(x.OldestAt), instant(x.Since), instant(x.SeenAt), join(",", x.Kinds...)}
		}
		p.table([]string{"VERSION", "WORKERS", "ACTIVE", "SUSPENDED", "DELAYED", "WAITING", "OLDEST", "SINCE", "SEEN",
			"KINDS"}, rows)
		for _, state := range v.More {
			p.say("only 10,000 %s executions were looked at; the count may be too low", state)
		}
		if v.Missing != "" {
			p.say("not counted: %s", v.Missing)
		}
	}),
}
