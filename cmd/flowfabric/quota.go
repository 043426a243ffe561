package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
)

// quotaFlags are the settings of a quota.
var quotaFlags = []member{
	whole("rate", "rate", "starts in any --window, at most 1000000; 0 is no limit"),
	millis("window_ms", "window", "period of --rate, at most 720h"),
	whole("cap", "cap", "how many hold it at once, at most 1000000; 0 is no limit"),
	millis("jitter_ms", "jitter", "spread the next tries over so much more, at most 60s"),
	text("scope", "for", "purpose, `text` for people"),
}

var quotaVerbs = []verb{
	{
		use: "ls", short: "List quotas",
		long: `ls lists all quotas: their recent starts, taken slots, and the queues that wait for them. Each
partition has one queue for every lane, kind and set of gates, with any number of executions in it; gate
ls counts those executions.`,
		example: "  flowfabric quota ls",
		route:   "GET /v1/quotas",
		run: rows([]string{"QUOTA", "RATE", "STARTED", "SLOTS", "WAIT FOR RATE", "WAIT FOR SLOTS"},
			func(q admission.QuotaRecord) []any {
				started := ""
				if q.Rate > 0 {
					started = strconv.Itoa(q.Started)
				}
				return []any{q.Name, quotaRate(q.Quota), started, slots(q), q.ForRate, q.ForSlots}
			}),
	},
	{
		use: "show NAME", short: "Show one quota: limits, holders, and the work that it holds back",
		long: `show prints a quota with the holders of its slots, the work that it blocks, and the authors of its
changes.`,
		example: "  flowfabric quota show gpu",
		route:   "GET /v1/quotas/{NAME}",
		run:     func(ctx context.Context, q *request) error { return showQuota(ctx, q, "", flowfabric.Limit{}) },
	},
	{
		use:   "limit KEY LIMIT",
		short: "Show a limit of a key: the holders of its slots, and the work that it holds back",
		long: `limit shows the running and waiting work under a key that work was submitted with (submit --limit,
flowfabric.LimitKey). Write LIMIT as in the submission: 2 (at once), 100/1m (starts in a minute), or
2,100/1m. An unused key shows nothing.`,
		example: "  flowfabric quota limit tenant-7 2",
		route:   "GET /v1/limits/{KEY}", args: map[string]member{"LIMIT": text("", "", "")},
		run: func(ctx context.Context, q *request) error {
			l, err := parseLimit(q.args[1])
			if err != nil {
				return err
			}
			for name, n := range map[string]int64{"concurrency": int64(l.Concurrency), "rate": int64(l.Rate),
				"per_ms": l.Per.Milliseconds()} {
				q.put("?"+name, n)
			}
			return showQuota(ctx, q, q.args[0], l)
		},
	},
	{
		use: "create NAME", short: "Create a quota",
		long: `create makes a quota. A name is 1..64 letters, digits, _, . and -. If the quota exists with the
same settings, nothing changes; with other settings the command fails, see update.`,
		example: `  flowfabric quota create gpu --cap 4
  flowfabric quota create mail --rate 100 --window 1m`,
		route: "PUT /v1/quotas/{NAME}", flags: quotaFlags, first: mayBoot,
		show: noted("created", quotaNote),
	},
	{
		use: "ensure NAME", short: "Create a quota if there is none of its name",
		long: `ensure makes a quota as create does. An existing quota stays as it is, even if its settings
differ. So a script may run it at each deployment, and operators change the numbers afterwards with
update.`,
		example: "  flowfabric quota ensure gpu --cap 4",
		route:   "POST /v1/quotas/{NAME}:ensure", flags: quotaFlags, first: mayBoot,
		show: ensured(quotaNote),
	},
	{
		use: "update NAME", short: "Change a quota",
		long: `update changes the given settings and keeps the others. Running work keeps its slots, also above a
lower cap. Work that waits for the quota is checked again. If somebody else changes the quota at the same
time, one of the two commands fails.`,
		example: "  flowfabric quota update gpu --cap 8",
		route:   "PUT /v1/quotas/{NAME}", flags: quotaFlags,
		run: func(ctx context.Context, q *request) error {
			var was admission.QuotaRecord
			if err := q.get(ctx, &was, "/v1/quotas/*", q.args[0]); err != nil {
				return err
			}
			return update(ctx, q, was.Quota, was.Revision, quotaNote)
		},
	},
	{
		use: "rm NAME", short: "Remove a quota",
		long: `rm deletes a quota and its slots. Executions that have it as a gate wait; they go on within 30 s
after somebody makes a quota of that name again. The command refuses a quota that is attached to scopes
(gate ls): detach it first, or work created in those scopes waits too.`,
		example: "  flowfabric quota rm gpu",
		route:   "DELETE /v1/quotas/{NAME}",
		flags:   []member{yes("", "force", "also one that is attached to scopes")},
		run: func(ctx context.Context, q *request) error {
			return removeGate(ctx, q, "quota", func(a admin.AttachedGates) []string { return a.Quotas })
		},
	},
}

// quotaShown is a quota with what it keeps from running.
type quotaShown struct {
	admission.QuotaRecord
	Blocked []admin.ClosedRoute `json:"blocked,omitempty"`
}

// showQuota shows a quota, or what a limit counts under its key.
func showQuota(ctx context.Context, q *request, key string, l flowfabric.Limit) error {
	var v quotaShown
	if err := q.do(ctx, &v.QuotaRecord); err != nil {
		return err
	}
	var err error
	v.Blocked, err = blockedBy(ctx, q, func(c admission.Closing) bool {
		return key == "" && c.Quota == v.Name || key != "" && c.Key == key && c.PerKey == l.String()
	})
	v.Name = cmp.Or(key, v.Name)
	if shown := q.app.show(v, v.text); shown != nil {
		return shown
	}
	return err
}

// quotaRate is how often, for people.
func quotaRate(q admission.Quota) string {
	if q.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %s", q.Rate, span(time.Duration(q.Window)))
}

// quotaText is what a quota allows, for people.
func quotaText(q admission.Quota) string {
	slots := ""
	if q.Cap > 0 {
		slots = strconv.Itoa(q.Cap) + " at once"
	}
	return cmp.Or(join(", ", quotaRate(q), slots), "no limit")
}

// slots is how many of the slots are taken.
func slots(q admission.QuotaRecord) cell {
	if q.Free == nil {
		return styled(normal, q.Held)
	}
	c := styled(normal, fmt.Sprintf("%d of %d", q.Held, q.Cap))
	if *q.Free == 0 {
		c.style = yellow
	}
	return c
}

// parseLimit reads "2", "100/1m" or "2,100/1m".
func parseLimit(text string) (l flowfabric.Limit, err error) {
	for part := range strings.SplitSeq(text, ",") {
		starts, per, rate := strings.Cut(part, "/")
		n, wrong := strconv.Atoi(starts)
		if wrong == nil && rate {
			l.Rate = n
			l.Per, wrong = time.ParseDuration(per)
		} else if wrong == nil {
			l.Concurrency = n
		}
		if wrong != nil {
			return l, usage("limit %q, want like 2 (at once), 100/1m (starts in a minute) or 2,100/1m", text)
		}
	}
	return l, nil
}

func (v quotaShown) text(p *page) {
	suspect, started, revision := "", "", ""
	if v.Revision > 0 {
		revision = strconv.FormatUint(v.Revision, 10)
	}
	if v.Suspect > 0 {
		suspect = fmt.Sprintf("%d have not been heard of for a while", v.Suspect)
	}
	if v.Rate > 0 {
		started = fmt.Sprintf("%d in the window", v.Started)
	}
	p.facts("name", v.Name, "for", v.Scope, "rate", quotaRate(v.Quota), "started", started, "slots",
		slots(v.QuotaRecord), "suspect",
		suspect, "jitter", span(time.Duration(v.Jitter)), "waiting",
		fmt.Sprintf("%s for the rate, %d for slots", count(v.ForRate, "queue"), v.ForSlots),
		"revision", revision, "created", instant(v.CreatedAt), "changed by", v.ChangedBy)
	closedTable(p, "keeps from running:", v.Blocked)
	for i, h := range v.Slots {
		if i == 0 {
			p.say("\nholds:")
		}
		p.say("  %s, epoch %d", h.Execution, h.Epoch)
	}
	auditTable(p, v.Audit)
}

// quotaNote is what may not be meant with a quota.
func quotaNote(q admission.Quota) string {
	if q.Rate == 0 && q.Cap == 0 {
		return limitsNothing + ": it has neither a rate nor a cap"
	}
	return ""
}
