package main

import "time"

// filterFlags choose executions, for ls and bulk.
var filterFlags = []member{
	list("?state", "state",
		"`states`: waiting_children, waiting, waiting_gate, held, delayed, suspended, active, completed, failed, cancelled, expired, skipped, or ended for the last five",
	).
		oneOf("waiting_children", "waiting", "waiting_gate", "held", "delayed", "suspended",
			"active", "completed", "failed", "cancelled", "expired", "skipped", "ended"),
	list("?category", "category",
		"only with one of these failure `categories`: of the end, or of the last failed attempt"),
	text("?error", "error", "only with this `text` in the message of that failure, in any case of letters"),
	text("?shape", "shape",
		"only this group of failures, by the `key` that flowfabric failures prints, or by the shape of its message"),
	text("?version", "version",
		"only what a worker of this `version` of the application claimed last; without --state what has not ended"),
	since("?since", "since",
		"only from this `time` on: 2026-01-31T17:00:00Z, or 2h for two hours ago. It is the time of the end, or "+
			"that of the creation for open executions and in lists in the order of creation"),
	since("?until", "until", "only before this `time`, in the same sense as --since"),
	text("?flow", "flow", "only members of this flow, by its `id`"),
	text("?lane", "lane", "only this `lane`"),
	text("?kind", "kind", "only this `kind`"),
	tagged("?tag", "tag",
		"only with this `key=value`; may be repeated; quick for keys of the index (flowfabric index set)"),
	text("?held_by", "held-by", "only executions that this `worker` instance or session holds"),
	yes("?newest", "newest",
		"newest first: by creation with the index (flowfabric index set); without it each state in reverse, ended "+
			"executions by their end, and lists with completed ones by their purge"),
}

// moment reads a time, or how long ago it was by this machine's clock.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("%s %q, want a time like 2026-01-31T17:00:00Z, or 2h for two hours ago", flag, text)
	}
	return t, nil
}
