package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

var flowVerbs = []verb{
	{
		use: "ls", short: "List flows by state and kind",
		long: `ls lists the flows of all partitions, newest first. It prints --limit flows, and the cursor of the
next page when there are more; --limit 0 lists all. --json prints one flow per line, and the cursor as
{"cursor":…} on stderr.`,
		example: `  flowfabric flow ls --state failed
  flowfabric flow ls --kind report --limit 0 --json | jq -r .id`,
		route: "GET /v1/flows", namespace: "?namespace", all: true,
		flags: append([]member{
			list("?state", "state", "`states`: staging, open, completed, failed, cancelled").
				oneOf("staging", "open", "completed", "failed", "cancelled"),
			text("?kind", "kind", "only this `kind`"),
			yes("?oldest", "oldest", "from the other end"),
		}, limitFlags...),
		run: long([]string{"ID", "STATE", "KIND", "MEMBERS", "ENDED", "FAILING", "CREATED", "ENDED AT"},
			func(x flowfabric.FlowSummary) []any {
				ended := 0
				for state, n := range x.Count {
					if state.Terminal() {
						ended += n
					}
				}
				return []any{x.ID.String(), styled(flowStyle(x.State), x.State), x.Kind, x.Members, ended, x.Failing,
					instant(x.CreatedAt), instant(x.EndedAt)}
			}),
	},
	{
		use: "show FLOW", short: "Show a flow: its state, its counters, and every member with its dependencies",
		long: `show prints a flow level by level: its members, their states, their dependencies and the progress
of those. --json prints the same as one value, with the ids of the members, which why, show and tail take.`,
		example: `  flowfabric flow show 3-0197f3a0-…
  flowfabric flow show 3-0197f3a0-… --json | jq -r '.nodes[] | select(.state == "waiting").id' | xargs -n1 flowfabric why`,
		route: "GET /v1/flows/{FLOW}",
		show:  told(func(p *page, _ *request, s client.FlowSnapshot) { _ = s.Text(p) }),
	},
	{
		use: "graph FLOW", short: "Draw a flow, as text, for Mermaid or for Graphviz",
		long: `graph draws a flow with the states of its members: --format mermaid for Markdown files, dot for
Graphviz. Names are escaped, so no name can break the drawing.`,
		example: `  flowfabric flow graph 3-0197f3a0-… --format mermaid
  flowfabric flow graph 3-0197f3a0-… --format dot | dot -Tsvg > flow.svg`,
		route: "GET /v1/flows/{FLOW}",
		flags: []member{text("", "format", "`text`, mermaid or dot").or("text").oneOf("text", "mermaid", "dot")},
		run:   drawFlow,
	},
	{
		use: "cancel FLOW", short: "Cancel a flow",
		long: `cancel ends a flow. --policy decides about its members: cancel_all cancels all that have not
ended, cancel_pending those that are not active, flow_only none. From then on no covered member is handed
out. --wait returns once no covered member is left. Cancelling twice is no error; the first policy and
reason stand.`,
		example: "  flowfabric flow cancel 3-0197f3a0-… --policy cancel_pending --reason 'no longer needed'",
		route:   "POST /v1/flows/{FLOW}:cancel",
		flags: []member{text("policy", "policy", "`policy`: cancel_all, cancel_pending or flow_only").or("cancel_all").
			oneOf("cancel_all", "cancel_pending", "flow_only"),
			yes("", "wait", "until nothing that the policy covers is left, or --timeout runs out")},
		run: cancelFlow,
	},
	{
		use: "replay FLOW", short: "Replay the members of a flow that did not succeed",
		long: `replay runs failed, expired, cancelled or skipped members of a flow again: all that others still
need, or with --from a node and the members that it made skipped. Succeeded members stay, and their
results are used again; but cleanup nodes, which run whatever happened before them, run again after them.
A flow that has ended is open again. The command refuses a flow that was cancelled with another policy
than flow_only: submit it again.`,
		example: `  flowfabric flow replay 3-0197f3a0-… --reason 'the model is back'
  flowfabric flow replay 3-0197f3a0-… --from fetch --from-scratch`,
		route: "POST /v1/flows/{FLOW}:replay",
		flags: []member{
			texts("nodes", "from", "only this `node`, and those behind it that were skipped; may be repeated"),
			yes("everything", "everything", "also those that nobody needs any more, such as the losers of a race"),
			yes("from_scratch", "from-scratch", "forget recorded steps and answers"),
			yes("force", "force", "also a node of --from that succeeded"),
			requestFlag("replays"),
		},
		run: replayFlow,
	},
	{
		use: "seal FLOW", short: "Close a flow to new members",
		long: `seal closes an unsealed or growing flow to new members; the flow ends once no member is left.
Sealing twice is no error. The command refuses a growing flow that has ended by itself.`,
		example: "  flowfabric flow seal 3-0197f3a0-…",
		route:   "POST /v1/flows/{FLOW}:seal", done: "sealed",
	},
}

func drawFlow(ctx context.Context, q *request) error {
	format := q.text("format")
	if !q.cmd.Flags().Changed("format") {
		format = "text"
	}
	var s client.FlowSnapshot
	draws := map[string]func(w io.Writer) error{"text": func(w io.Writer) error { return s.Text(w) },
		"mermaid": func(w io.Writer) error { return s.Mermaid(w) },
		"dot":     func(w io.Writer) error { return s.Graphviz(w) }}
	draw := draws[format]
	if draw == nil {
		return usage("--format is %q, want text, mermaid or dot", format)
	}
	if err := q.do(ctx, &s); err != nil {
		return err
	}
	if !q.app.json {
		return draw(q.app.out)
	}
	var b strings.Builder
	if err := draw(&b); err != nil {
		return err
	}
	return q.app.line(struct {
		ID     string `json:"id"`
		Format string `json:"format"`
		Graph  string `json:"graph"`
	}{q.args[0], format, b.String()})
}

// stillCancelled is how long cancel --wait waits between two looks at a flow.
const stillCancelled = 100 * time.Millisecond

func cancelFlow(ctx context.Context, q *request) error {
	v := struct {
		ID   string `json:"id"`
		Done string `json:"done"`
		client.FlowCancellation
		Left int `json:"left"`
	}{ID: q.args[0], Done: "cancelled"}
	err := q.do(ctx, &v)
	if err != nil {
		return err
	}
	for q.said("wait") {
		if v.Unended, v.Left, err = q.left(ctx, v.Policy); err != nil || v.Left == 0 {
			break
		}
		select {
		case <-ctx.Done():
			err = fmt.Errorf("cancel flow %s: %w: %s left: %w", v.ID, errPartlyCancelled,
				haveOrHas(v.Left, "member"), ctx.Err())
		case <-time.After(stillCancelled):
			continue
		}
		break
	}
	return errors.Join(q.app.show(v, func(p *page) {
		before := ""
		if v.Already {
			before = " before"
		}
		p.say("cancelled%s %s with %s: %s", before, v.ID, string(v.Policy), v.Reason)
		if v.Unended > 0 {
			p.say("%s not ended yet", haveOrHas(v.Unended, "member"))
		}
	}), err)
}

// left counts the members of a flow that have not ended, and those of them that a policy cancels.
func (q *request) left(ctx context.Context, policy flowfabric.CancellationPolicy) (unended, left int, err error) {
	var s client.FlowSnapshot
	if err := q.get(ctx, &s, "/v1/flows/*", q.args[0]); err != nil {
		return 0, 0, err
	}
	for _, n := range s.Nodes {
		if n.State.Terminal() {
			continue
		}
		unended++
		if policy == flowfabric.CancelAll || policy == flowfabric.CancelPending && n.State.Public != flowfabric.Active {
			left++
		}
	}
	return unended, left, nil
}

// replayFlow prints what became of a replay. That members were refused is an error once everything is said.
func replayFlow(ctx context.Context, q *request) error {
	v := struct {
		ID   string `json:"id"`
		Done string `json:"done"`
		admin.FlowReplayed
	}{ID: q.args[0], Done: "replayed"}
	if err := q.do(ctx, &v); err != nil {
		return err
	}
	err := q.app.show(v, func(p *page) {
		if v.Runnable+v.Blocked == 0 {
			p.say("replayed nothing of %s", v.ID)
		} else {
			p.say("replayed %s: %d can run, %d wait for others", v.ID, v.Runnable, v.Blocked)
		}
		if v.Unneeded > 0 {
			p.say("%s not needed any more; --everything replays them, too", plainly(v.Unneeded))
		}
		for _, node := range v.Kept {
			p.say("kept %s: it has completed behind a node that is replayed", node)
		}
		for _, r := range v.Refused {
			p.say("refused %s: %s", r.Node, r.Why)
		}
	})
	if err == nil && len(v.Refused) > 0 {
		r := v.Refused[0]
		err = &refusal{Problem: apiv1.Problem{Status: http.StatusConflict, Code: r.Code,
			Detail: fmt.Sprintf("node %q: %s", r.Node, r.Why)}}
	}
	return err
}

func flowStyle(s flowfabric.FlowState) style {
	switch s {
	case flowfabric.FlowCompleted:
		return green
	case flowfabric.FlowFailed:
		return red
	case flowfabric.FlowCancelled, flowfabric.FlowStaging:
		return faint
	}
	return yellow
}

func haveOrHas(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " has"
	}
	return count(n, noun) + " have"
}

func plainly(n int) string {
	if n == 1 {
		return "1 member is"
	}
	return count(n, "member") + " are"
}
