package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// settingFlags are the settings of a gate: of its amounts, its starts, and how much runs at once.
var settingFlags = []member{
	texts("", "limit", "hard limit of an amount, `dimension=number`, at least 1; may be repeated"),
	texts("", "soft", "soft limit of an amount, `dimension=number`; 0 is none; may be repeated"),
	text("", "mode", "strict refuses usage above a hard limit, warn only counts it").or("strict"),
	text("on_hard", "on-hard",
		"action for an execution with a refused report: reject (its handler decides), fail, block (it waits), "+
			"or ask (a person for more)",
	).or("reject"),
	text("", "on-soft", "allow, or warn: log when a soft limit is exceeded").or("allow"),
	millis("reset_ms", "reset", "begin a new period of the amounts this often, 1s to ten years; 0 is never"),
	list("refund", "refund", "refund the usage of executions with these outcomes: failed,cancelled,expired"),
	yes("strict", "strict-dimensions", "refuse reports of dimensions without limits"),
	whole("rate", "rate", "starts in any --window, at most 1000000; 0 is no limit"),
	millis("window_ms", "window", "period of --rate, at most 720h"),
	millis("jitter_ms", "jitter", "spread the next tries over so much more, at most 60s"),
	whole("concurrency", "concurrency", "how many run at once, at most 1000000; 0 is no limit"),
	text("parent", "parent",
		"`NAME` of the gate above it, where its usage counts, too; at most eight are above each other"),
	text("scope", "for", "purpose, `text` for people"),
	list("", "per-minute", "of a service: how much calls may use in a minute, `dimension=number`, at least 2"),
	list("", "burst", "of a service: how much of --per-minute may come at once, at most half; 0 is a fortieth"),
	whole("", "calls", "of a service: how many calls are made at once, at most 1000000; 0 is no limit"),
	millis("", "patience", "of a service: how long a call waits for its turn in its slot, at most 60s; 0 is 2s"),
	list("", "weight", "of a service: how namespaces share it, `namespace=number`, 1..1000; others have 1"),
}

var gateVerbs = []verb{
	{
		use: "ls", short: "List gates, the scopes that they are attached to, and the work that they hold back",
		long: `ls lists all gates, a row for each thing that they measure: the usage of a dimension, the starts in
the window, and what runs at once; of a service, what calls may use in a minute, and how many are made at once.
RESERVED is what of USED is set aside for calls that have not said yet what they use. QUEUES counts the queues that wait for it: each partition has one queue
for every lane, kind and set of gates, with any number of executions in it. Of a service it counts the
executions in line.

Then it lists which gates are attached to which scopes, the work that waits, and the reports that gates
have not received yet. Waiting work is shown by lane, kind and reason: how many executions wait in how many
partitions, and when the first of those partitions checks again ("due": at any moment). --json shows each
partition.

--busy shows only the gates, services and limits of keys that hold work back, the one that holds back most in front.
WAITING counts executions. Below the table are the executions that hold each of them, the first in line with what
they wait for, and those that spent most in this period.`,
		example: "  flowfabric gate ls\n  flowfabric gate ls --busy",
		route:   "GET /v1/gates",
		flags:   []member{yes("", "busy", "only what holds work back, with holders, line and spenders")},
		run: func(ctx context.Context, q *request) error {
			if q.said("busy") {
				return busyGates(ctx, q)
			}
			return listGates(ctx, q)
		},
	},
	{
		use: "show NAME", short: "Show one gate: limits, usage, users, holders, and the work that it holds back",
		long: `show prints a gate with what it measures, the work that it blocks, the holders of its slots, the
executions that spent from it last, and its audit log: the author of each change, adjustment and reset. Of a
service it prints the rates, what of them may pass now, calls under way, and the first executions in line.`,
		example: "  flowfabric gate show acme",
		route:   "GET /v1/gates/{NAME}",
		run:     func(ctx context.Context, q *request) error { return showGate(ctx, q, "", flowfabric.Limit{}) },
	},
	{
		use:   "limit KEY LIMIT",
		short: "Show a limit of a key: the holders of its slots, and the work that it holds back",
		long: `limit shows the running and waiting work under a key that work was submitted with (submit --limit,
flowfabric.LimitKey). Write LIMIT as in the submission: 2 (at once), 100/1m (starts in a minute), or
2,100/1m. An unused key shows nothing.`,
		example: "  flowfabric gate limit tenant-7 2",
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
			return showGate(ctx, q, q.args[0], l)
		},
	},
	{
		use: "create NAME", short: "Create a gate",
		long: `create makes a gate. A name is 1..64 letters, digits, _, . and -. A gate has up to three meters:
amounts (--limit, --soft), starts in a window (--rate, --window), and how much runs at once
(--concurrency). If the gate exists with the same settings, nothing changes; with other settings the
command fails, see update. A dimension without a hard limit is left out, or has a soft limit only: its
usage is counted and blocks no work. With --parent, what is reserved and used of the gate counts in the gate
above it, too, and work runs when both let it pass. The gate above exists first.

A gate with --per-minute or --calls is that of a service, such as a model: it is asked for each call, not for
each execution, and has no other meters. Its name may have slashes. --burst, --patience and --weight belong to it.`,
		example: `  flowfabric gate create acme --limit tokens=1000000 --soft tokens=800000 --reset 24h \
      --on-hard fail --refund failed,cancelled
  flowfabric gate create watch --limit cost.cents=5000 --mode warn
  flowfabric gate create llm --rate 580 --window 1m --concurrency 20
  flowfabric gate create team --limit tokens=50000 --parent acme
  flowfabric gate create openai/gpt-5 --per-minute requests=500,tokens=200000 --calls 20 --weight acme=3`,
		route: "PUT /v1/gates/{NAME}", flags: settingFlags, first: mayBoot,
		run: func(ctx context.Context, q *request) error { return putGate(ctx, q, noted("created", gateNote)) },
	},
	{
		use: "ensure NAME", short: "Create a gate if there is none of its name",
		long: `ensure makes a gate as create does. An existing gate stays as it is, even if its settings differ.
So a script may run it at each deployment, and operators change the numbers afterwards with update.`,
		example: "  flowfabric gate ensure acme --limit tokens=1000000 --reset 24h",
		route:   "POST /v1/gates/{NAME}:ensure", flags: settingFlags, first: mayBoot,
		run: func(ctx context.Context, q *request) error { return putGate(ctx, q, ensured(gateNote)) },
	},
	{
		use: "update NAME", short: "Change a gate",
		long: `update changes the given settings and keeps the others. Recorded usage stays, and running work keeps
its slots, also above a lower --concurrency. Calls in line keep their places. Work that waits for the gate is checked again. If somebody
else changes the gate at the same time, one of the two commands fails. --drop removes the limits of a
dimension, and its rate at a service; with --soft it keeps a soft limit. --weight NAMESPACE=1 takes a weight away. --parent '' takes the gate above away.`,
		example: `  flowfabric gate update acme --limit tokens=2000000
  flowfabric gate update gpu --concurrency 8`,
		route: "PUT /v1/gates/{NAME}",
		flags: append(unsaid(settingFlags),
			texts("", "drop", "forget the limits of a `dimension`; may be repeated")),
		run: func(ctx context.Context, q *request) error {
			var was admission.GateRecord
			if err := q.get(ctx, &was, "/v1/gates/*", q.args[0]); err != nil {
				return err
			}
			if err := cmp.Or(q.limits(was.Limits), q.service(was.Service)); err != nil {
				return err
			}
			return update(ctx, q, was.Gate, was.Revision)
		},
	},
	{
		use: "report NAME DIMENSION=AMOUNT...", short: "Report usage of a gate",
		long: `report adds usage to a gate, all dimensions or none. --key names the report: the same key within
a day counts once, and the answer says so. If the report would exceed a hard limit, nothing is counted and
the exit code is 4; a gate that only warns counts it. --execution records the report in the ledger of
that execution.`,
		example: "  flowfabric gate report acme tokens=1500 cost.cents=3 --key invoice-17",
		route:   "POST /v1/gates/{NAME}:report", mute: true,
		args: map[string]member{"DIMENSION=AMOUNT": amountArgs},
		flags: []member{text("key", "key", "`name` of the report, required: at most 128 bytes without spaces"),
			text("execution", "execution", "the `id` of the execution that used it")},
		needed: [][]string{{"key"}},
		run:    reportUsage,
	},
	{
		use: "adjust NAME DIMENSION=AMOUNT...", short: "Correct the usage of a gate, up or down",
		long: `adjust adds to the usage of this period; a negative amount subtracts. Usage never falls below
zero, and limits are not checked. The gate's audit log records who adjusted it and why. Running it again
adds again.`,
		example: "  flowfabric gate adjust acme tokens=-500 --reason 'counted twice'",
		route:   "POST /v1/gates/{NAME}:adjust",
		args:    map[string]member{"DIMENSION=AMOUNT": amountArgs},
		run: func(ctx context.Context, q *request) error {
			v := struct {
				changed
				apiv1.Used
			}{changed: changed{Name: q.args[0], Done: "adjusted"}}
			if err := q.do(ctx, &v.Used); err != nil {
				return err
			}
			return q.app.show(v, func(p *page) {
				p.say("gate %s adjusted, used now: %s", v.Name,
					amountsText(v.Used.Used))
			})
		},
	},
	{
		use: "raise NAME DIMENSION=AMOUNT...", short: "Raise hard limits of a gate for this period",
		long: `raise makes hard limits of a gate higher until its period ends; update changes them for good. Work that
waits and fits goes on. With --execution only that execution may exceed the limits, by these amounts: whenever
it would be refused, the limit is raised by what is lacking. A dimension without a hard limit stays as it is.
The gate's audit log records who raised it and why. Running it again raises again.`,
		example: `  flowfabric gate raise acme tokens=50000 --reason 'the launch'
  flowfabric gate raise acme tokens=50000 --execution 3-0197f3a0-…`,
		route: "POST /v1/gates/{NAME}:raise",
		args:  map[string]member{"DIMENSION=AMOUNT": amountArgs},
		flags: []member{text("execution", "execution", "the `id` of the only execution that may pass the limits")},
		run: func(ctx context.Context, q *request) error {
			v := struct {
				changed
				apiv1.Raised
			}{changed: changed{Name: q.args[0], Done: "raised"}}
			if err := q.do(ctx, &v.Raised); err != nil {
				return err
			}
			return q.app.show(v, func(p *page) {
				switch {
				case len(v.Raised.Raised) == 0:
					p.say("gate %s not raised: none of these has a hard limit", v.Name)
				case q.text("execution") != "":
					p.say("gate %s raised for %s, which may pass limits by: %s", v.Name, q.text("execution"),
						amountsText(v.Raised.Raised))
				default:
					p.say("gate %s raised, limits of this period are higher by: %s", v.Name,
						amountsText(v.Raised.Raised))
				}
			})
		},
	},
	{
		use: "reset NAME", short: "Begin a new period of a gate now",
		long: `reset sets the usage of a gate to zero and begins a new period. The next period begins at its
usual time, unless --move.`,
		example: "  flowfabric gate reset acme",
		route:   "POST /v1/gates/{NAME}:reset",
		flags:   []member{yes("move", "move", "the next period begins a whole interval from now")},
		run: func(ctx context.Context, q *request) error {
			v := struct {
				changed
				apiv1.Period
			}{changed: changed{Name: q.args[0], Done: "reset"}}
			if err := q.do(ctx, &v.Period); err != nil {
				return err
			}
			until := "it does not end by itself"
			if v.Left > 0 {
				until = "it ends at " + instant(time.Now().Add(time.Duration(v.Left)))
			}
			return q.app.show(v, func(p *page) {
				p.say("gate %s reset: period %d began, %s", v.Name,
					v.Period.Period, until)
			})
		},
	},
	{
		use: "refund NAME ID", short: "Refund the usage of an execution to a gate",
		long: `refund gives back the usage that an execution reported to a gate in this period. Reports of
earlier periods ended with them. A second refund gives back nothing.`,
		example: "  flowfabric gate refund acme 3-0197f3a0-…",
		route:   "POST /v1/gates/{NAME}:refund", args: map[string]member{"ID": text("execution", "", "")},
		run: func(ctx context.Context, q *request) error {
			var got apiv1.Returned
			if err := q.do(ctx, &got); err != nil {
				return err
			}
			done := "refunded"
			if !got.Returned {
				done = "nothing to refund"
			}
			return q.app.show(changed{Name: q.args[0], Done: done}, func(p *page) {
				p.say("gate %s: %s", q.args[0],
					done)
			})
		},
	},
	{
		use: "rm NAME", short: "Remove a gate",
		long: `rm deletes a gate, its usage, its slots and its audit log. Executions that have it wait; they go on
within 30 s after somebody makes a gate of that name again. The command refuses a gate that is attached to
scopes (gate ls): detach it first, or work created in those scopes waits too.`,
		example: "  flowfabric gate rm acme",
		route:   "DELETE /v1/gates/{NAME}",
		flags:   []member{yes("", "force", "also one that is attached to scopes")},
		run:     removeGate,
	},
	{
		use: "attach SCOPE NAME...", short: "Apply gates to everything created in a scope",
		long: `attach adds gates to a scope: everything, namespace:NAME, lane:NAME (of --namespace),
lane:NAMESPACE/NAME or tag:KEY=VALUE. They apply to executions that are created from now on; existing
executions keep their gates. The change applies to every partition. The command names a partition that did
not answer; repeat it then.`,
		example: `  flowfabric gate attach tag:app.tenant=acme acme
  flowfabric gate attach lane:gpu gpu llm --by anna`,
		route: "POST /v1/gates:attach", args: attachArgs,
		run: func(ctx context.Context, q *request) error { return attach(ctx, q, "attached", "attached to %s") },
	},
	{
		use: "detach SCOPE [NAME]...", short: "Remove gates from a scope",
		long: `detach removes gates from a scope, or all of them with --all. Executions that were created before
keep them.`,
		example: `  flowfabric gate detach tag:app.tenant=acme acme
  flowfabric gate detach lane:gpu --all`,
		route: "POST /v1/gates:detach", args: attachArgs,
		flags: []member{yes("", "all", "all that is attached to the scope")},
		run: func(ctx context.Context, q *request) error {
			if q.said("all") == (len(q.args) > 1) {
				return usage("detach: name gates after SCOPE, or use --all")
			}
			return attach(ctx, q, "detached", "detached from %s")
		},
	},
}

// attachArgs are a scope, which the verb reads itself, and names of gates.
var attachArgs = map[string]member{"SCOPE": text("", "", ""), "NAME": texts("gates", "", "")}

// amountArgs are arguments dimension=number.
var amountArgs = member{to: "amounts", kind: kind{textsKind.add,
	func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		values := said(flags, name)
		return amounts(name, values)
	}}}

func putGate(ctx context.Context, q *request, show func(*request, json.RawMessage) error) error {
	if err := cmp.Or(q.limits(nil), q.service(nil)); err != nil {
		return err
	}
	var answer json.RawMessage
	if err := q.do(ctx, &answer); err != nil {
		return err
	}
	return show(q, answer)
}

// limits puts what the flags of a gate say of limits and modes into a request; before is how the limits are.
func (q *request) limits(before map[string]admission.Limit) error {
	flags := q.cmd.Flags()
	read := func(name string) (map[string]int64, error) {
		values := said(flags, name)
		return amounts("--"+name, values)
	}
	hard, err := read("limit")
	if err != nil {
		return err
	}
	soft, err := read("soft")
	if err != nil {
		return err
	}
	for _, dim := range slices.Sorted(maps.Keys(hard)) {
		if hard[dim] == 0 {
			drop := ""
			if flags.Lookup("drop") != nil {
				drop = ", or forget its limits with --drop " + dim
			}
			return usage(
				"--limit %s=0 would be no limit: want at least 1; a dimension without a hard limit is left out%s", dim,
				drop)
		}
	}
	limits := maps.Clone(before)
	if limits == nil {
		limits = map[string]admission.Limit{}
	}
	if flags.Lookup("drop") != nil {
		drop := said(flags, "drop")
		for _, dim := range drop {
			delete(limits, dim)
		}
	}
	for dim, n := range hard {
		limits[dim] = admission.Limit{Hard: n, Soft: limits[dim].Soft}
	}
	for dim, n := range soft {
		limits[dim] = admission.Limit{Hard: limits[dim].Hard, Soft: n}
	}
	if len(limits) > 0 || len(before) > 0 { // none, and none before, is no change
		q.body["limits"] = limits
	}
	if refund, said := q.body["refund"].([]string); said {
		q.body["refund"] = slices.Compact(slices.Sorted(slices.Values(refund)))
	}
	for flag, x := range map[string]struct{ member, not string }{"mode": {"warn", "strict"}, "on-soft": {"warn_soft",
		"allow"}} {
		if said := q.text(flag); flags.Changed(flag) {
			if said != "warn" && said != x.not {
				return usage("--%s %q, want %s or warn", flag, said, x.not)
			}
			q.body[x.member] = said == "warn"
		}
	}
	return nil
}

func reportUsage(ctx context.Context, q *request) error {
	var r admission.Reported
	if err := q.do(ctx, &r); err != nil {
		return err
	}
	var said []string
	for _, b := range r.Breaches {
		said = append(said, breachText(b))
	}
	if shown := q.app.show(r, func(p *page) {
		counted := "counted"
		if r.Replayed {
			counted = "counted before"
		}
		if r.Applied {
			p.say("%s in gate %s: %s", counted, q.args[0],
				strings.Join(append([]string{amountsText(q.body["amounts"].(map[string]int64))}, said...), "; "))
		}
	}); shown != nil {
		return shown
	}
	if !r.Applied {
		return fmt.Errorf("report to gate %q: %w: %s", q.args[0], flowfabric.ErrOverBudget, strings.Join(said, "; "))
	}
	return nil
}

func breachText(b admission.Breach) string {
	kind := "soft"
	if b.Hard {
		kind = "hard"
	}
	return fmt.Sprintf("%s is at %d, its %s limit is %d", b.Dimension, b.Used, kind, b.Limit)
}

// limitsNothing is the note about a gate that keeps nothing from running.
const limitsNothing = "it limits nothing"

// gateNote is what may not be meant with a gate.
func gateNote(g admission.Gate) string {
	switch {
	case g.Service != nil:
		return ""
	case !g.CountsAmounts() && (g.Reset > 0 || g.StrictDimensions || len(g.Refund) > 0):
		return "it counts no amounts: it has no limits of them (--limit, --soft)"
	case g.Rate == 0 && g.Concurrency == 0 && !hasHard(g):
		return limitsNothing + ": it has no hard limit (--limit), no --rate and no --concurrency"
	}
	return ""
}

// hasHard tells whether a dimension has a hard limit.
func hasHard(g admission.Gate) bool {
	for _, l := range g.Limits {
		if l.Hard > 0 {
			return true
		}
	}
	return false
}

// amounts reads dimension=number arguments or flags.
func amounts(name string, values []string) (map[string]int64, error) {
	out := make(map[string]int64, len(values))
	for _, value := range values {
		dim, text, ok := strings.Cut(value, "=")
		if !ok || dim == "" {
			return nil, usage("%s %q, want dimension=number", name, value)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, usage("%s %s, want a whole number", name, value)
		}
		if before, twice := out[dim]; twice {
			return nil, usage("%s names %s twice, %d and %d", name, dim, before, n)
		}
		out[dim] = n
	}
	return out, nil
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
