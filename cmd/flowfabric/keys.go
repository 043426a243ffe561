package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var keyVerbs = []verb{
	{
		use: "list", short: "List the keys of every partition",
		long: `list shows the key that signs, until when older keys stay valid, and how many waitpoints are open
under each. --json shows each partition.`,
		example: "  flowfabric keys list",
		route:   "GET /v1/token-keys",
		run: func(ctx context.Context, q *request) error {
			listed, raw, err := pages[suspend.PartitionKeys](ctx, q)
			if raw == nil {
				return err
			}
			if shown := q.app.show(raw, func(p *page) { keysTable(p, listed) }); shown != nil {
				return shown
			}
			return err
		},
	},
	{
		use: "rotate KID", short: "Make a key sign new tokens, in every partition",
		long: `rotate makes the key of this id sign new tokens. Give it to every worker first
(FLOWFABRIC_TOKEN_KEYS, behind the one in use), then rotate, then drop the old one once the grace is over.
You may repeat it: finished partitions answer "already". A partition refuses when the tokens of its open
waitpoints are needed for longer than the grace, unless --force.`,
		example: "  FLOWFABRIC_TOKEN_KEYS=\"$OLD,$NEW\" flowfabric keys rotate k2026 --grace 72h",
		route:   "POST /v1/token-keys:rotate", args: map[string]member{"KID": text("kid", "", "")},
		flags: []member{millis("grace_ms", "grace", "how long tokens of the key before stay good").
			or(limits.DefaultKeyGrace.String()),
			yes("force", "force", "also where tokens then end before they are needed")},
		run: func(ctx context.Context, q *request) error {
			rotated, raw, err := pages[suspend.KeyRotated](ctx, q)
			if raw == nil {
				return err
			}
			done := 0
			for _, r := range rotated {
				if r.Error == "" {
					done++
				}
			}
			if shown := q.app.show(raw, func(p *page) {
				p.say("%s signs in %d of %s", q.args[0], done, count(len(rotated), "partition"))
			}); shown != nil {
				return shown
			}
			return err
		},
	},
}

// keysTable sums up the partitions: a key is one row.
func keysTable(p *page, listed []suspend.PartitionKeys) {
	type sum struct {
		fingerprints     map[string]bool
		partitions, sign int
		open             int
		until            time.Time
	}
	sums := map[string]*sum{}
	for _, part := range listed {
		for _, k := range part.Keys {
			s := sums[k.Kid]
			if s == nil {
				s = &sum{fingerprints: map[string]bool{}}
				sums[k.Kid] = s
			}
			s.fingerprints[k.Fingerprint] = true
			s.partitions++
			s.open += k.Open
			if k.Current {
				s.sign++
			}
			if k.ExpiresAt.After(s.until) {
				s.until = k.ExpiresAt
			}
		}
	}
	if len(sums) == 0 {
		p.say("no token keys: a worker with FLOWFABRIC_TOKEN_KEYS makes them known")
		return
	}
	var rows [][]any
	for _, kid := range slices.Sorted(maps.Keys(sums)) {
		s := sums[kid]
		for _, f := range slices.Sorted(maps.Keys(s.fingerprints)) {
			rows = append(rows, []any{kid, f, fmt.Sprintf("%d of %d", s.sign, len(listed)), s.partitions, s.open,
				instant(s.until)})
		}
	}
	p.table([]string{"KID", "FINGERPRINT", "SIGNS IN", "KNOWN IN", "OPEN WAITPOINTS", "GOOD UNTIL"}, rows)
}
