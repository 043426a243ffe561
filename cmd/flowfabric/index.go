package main

import (
	"context"

	"github.com/flowfabric/flowfabric-go/admin"
)

var indexVerbs = []verb{
	{
		use: "show", short: "Show by what executions can be found",
		long: `show tells whether lists of all states come in the order of creation, and which tags can be asked
for. VALUES is how many values a tag has in the partition that has most of them.`,
		example: "  flowfabric index show",
		route:   "GET /v1/index",
		run: func(ctx context.Context, q *request) error {
			var x admin.Index
			if err := q.do(ctx, &x); err != nil {
				return err
			}
			return q.app.show(x, func(p *page) { sayIndex(p, x) })
		},
	},
	{
		use: "set", short: "Say by what executions can be found, and list those that there are",
		long: `set chooses the tags that can be asked for: at most 8 keys, of which a partition keeps up to 100,000
values each. ls --tag and all other lists with such a tag read what they show, and nothing else. --all
keeps lists of all states in the order of creation, which takes about 155 bytes for each execution in
the store; --all=false does without. Executions that are there already are listed while
everything else works; the command ends when lists can use it, and may be repeated if it is cut short.
set changes what is named, and keeps the others. --tag names all keys: one that it leaves out can be asked
for no more.`,
		example: `  flowfabric index set --tag who.customer,team.region
  flowfabric index set --no-tags --all=false`,
		route: "POST /v1/index:set",
		flags: []member{yes("all", "all", "lists of all states in the order of creation"),
			list("tags", "tag", "all `keys` of tags that can be asked for"),
			yes("", "no-tags", "no tag can be asked for")},
		exclusive: [][]string{{"tag", "no-tags"}},
		run: func(ctx context.Context, q *request) error {
			if q.said("no-tags") {
				q.body["tags"] = []string{}
			}
			var x admin.Index
			if err := q.do(ctx, &x); err != nil {
				return err
			}
			return q.app.show(x, func(p *page) { sayIndex(p, x) })
		},
	},
}

func sayIndex(p *page, x admin.Index) {
	if x.All {
		p.say("lists of all states come in the order of creation")
	} else {
		p.say("lists come state by state")
	}
	for _, t := range x.Tags {
		switch {
		case !t.FullAt.IsZero():
			p.say("tag %s: more than 100,000 values since %s, so lists do without it", t.Key, instant(t.FullAt))
		case t.Ready:
			p.say("tag %s: %s", t.Key, count(t.Values, "value"))
		default:
			p.say("tag %s: what was there before is not in it yet; repeat 'flowfabric index set'", t.Key)
		}
	}
}
