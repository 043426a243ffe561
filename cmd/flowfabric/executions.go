package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
)

// requestFlag names a request, for callers that repeat one.
func requestFlag(verb string) member {
	return member{to: "request", flag: "request", kind: uuidKind,
		usage: "`uuid` of this request: repeated with the same, it " + verb + " once"}
}

// replayFlags say what a replay forgets, and what it is of.
var replayFlags = []member{
	yes("from_scratch", "from-scratch", "forget recorded steps and answers"),
	text("from_step", "from-step", "forget the step of this `name` and everything recorded after it"),
	yes("force", "force", "also one that succeeded"),
}

// executionVerbs read and change one execution.
var executionVerbs = []verb{
	{
		use: "why ID", short: "Explain why an execution does not move, and what moves it next",
		long: `why explains the state of an execution: its queue and lane, live workers, its lease, its wait, and
the process that maintains the partition. An id without an execution is explained too, with exit code 0.
Scripts use "reason" of --json, which does not change between releases.`,
		example: `  flowfabric why 3-0197f3a0-…
  flowfabric why 3-0197f3a0-… --json | jq -r .reason`,
		route: "GET /v1/executions/{ID}/why",
		run: func(ctx context.Context, q *request) error {
			var e flowfabric.Explanation
			if err := q.do(ctx, &e); err != nil {
				return err
			}
			e.Sentence, e.Next = commandWords.Replace(e.Sentence), commandWords.Replace(e.Next)
			return q.app.show(e, func(p *page) {
				p.say("%s", e.Sentence)
				p.say("%s", e.Next)
			})
		},
	},
	{
		use: "history ID", aliases: []string{"events"}, short: "Show the history of an execution, oldest first",
		long: `history prints one line for each event: the creation, every attempt, the end, and everything
unusual (delays, hand-backs, waits, revocations, changed priorities, replays).`,
		example: "  flowfabric history 3-0197f3a0-…",
		route:   "GET /v1/executions/{ID}/history",
		run: func(ctx context.Context, q *request) error {
			var events admin.Page[json.RawMessage]
			if err := q.do(ctx, &events); err != nil {
				return err
			}
			return q.app.show(events.Items, func(p *page) {
				for _, raw := range events.Items {
					var e flowfabric.Event
					if json.Unmarshal(raw, &e) == nil {
						p.say("%s", e.Text)
					}
				}
			})
		},
	},
	{
		use: "cancel ID", short: "End an execution",
		long: `cancel ends an execution that has not ended yet. The context of a running handler ends. The
execution records your name (--by) and the reason. Cancelling twice is no error.`,
		example: "  flowfabric cancel 3-0197f3a0-… --reason 'no longer needed'",
		route:   "POST /v1/executions/{ID}:cancel", done: "cancelled",
	},
	{
		use: "stop ID", short: "Stop the current answer of an agent, and keep the agent",
		long: `stop ends the answer of an agent in mid-token. The agent begins no tool, and it keeps what it has
said and done. In a conversation it waits for the next message, else it returns. The command prints the
recorded steps of the turn. When the agent has answered already, there is nothing to stop, and that is an
error.`,
		example: "  flowfabric stop 3-0197f3a0-… --reason 'wrong question'",
		route:   "POST /v1/executions/{ID}:stop",
		show: func(q *request, answer json.RawMessage) error {
			var stopped client.Stopped
			if err := json.Unmarshal(answer, &stopped); err != nil {
				return err
			}
			return q.app.show(stopped, func(p *page) {
				if stopped.Already {
					p.say("somebody else had stopped it: %s", cmp.Or(stopped.By, "not named"))
				} else {
					p.say("stopped %s", q.args[0])
				}
				for _, step := range stopped.Done {
					p.say("done: %s", step)
				}
			})
		},
	},
	{
		use: "replay ID", short: "Run an ended execution again",
		long: `replay runs an ended execution again, under its id and with its input. It keeps recorded steps and
answers, so only the missing steps run. --from-scratch drops them all. --from-step drops one step and
everything recorded after it. A successful execution needs --force.`,
		example: "  flowfabric replay 3-0197f3a0-… --reason 'ink refilled'",
		route:   "POST /v1/executions/{ID}:replay", done: "replayed",
		flags:     append(slices.Clone(replayFlags), requestFlag("replays")),
		exclusive: [][]string{{"from-scratch", "from-step"}},
	},
	{
		use: "rewind ID", short: "Continue an execution from an earlier step",
		long: `rewind makes an execution, in any state, continue from a recorded step. The step and everything
recorded after it are forgotten. A running handler loses the execution, a wait is closed, and children that
it waits for are cancelled. No retry is used up. --message says something else before the step, as an edit
of what the user of an agent said. With --attempt the command does nothing if the execution is in another
attempt by now. The forgotten steps are printed: what they did in the world stays done.`,
		example: `  flowfabric rewind 3-0197f3a0-… --step 'model 2'
  flowfabric rewind 3-0197f3a0-… --step 'model 2' --message 'and in euros?'`,
		route: "POST /v1/executions/{ID}:rewind",
		flags: []member{text("step", "step", "`name` of the first step that is forgotten, required"),
			whole("attempt", "attempt", "the attempt that you saw; `n` of the next one after a rewind"),
			text("message", "message", "`text` that is said in the place of what was said before the step")},
		run: func(ctx context.Context, q *request) error {
			var r client.Rewound
			if err := q.do(ctx, &r); err != nil {
				return err
			}
			return q.app.show(r, func(p *page) {
				p.say("rewound %s: attempt %d follows", q.args[0], r.Attempt)
				for _, name := range r.Dropped {
					p.say("forgotten: %s", name)
				}
			})
		},
	},
	{
		use: "fork ID", short: "Make an execution that begins with the recorded steps of another",
		long: `fork makes another execution that begins with the steps that ID has recorded, with its input or
another one. --step takes only the steps that were recorded before that one. ID itself is not changed.
Frames are not copied: readers of the fork see those of ID. The steps that the fork does not have are
listed: what they did is done, and the fork may do it again. GET /v1/executions/ID/steps and the dashboard
tell the names.`,
		example: "  flowfabric fork 3-0197f3a0-… --step 'model 4' --reason 'try the other supplier'",
		route:   "POST /v1/executions/{ID}:fork",
		flags: []member{text("step", "step", "only the steps that were recorded before the one of this `name`"),
			contentKind.of("input", "input", "another input: `JSON`, @file, or - for stdin, at most 1 MiB"),
			requestFlag("forks")},
		run: func(ctx context.Context, q *request) error {
			var f client.Forked
			if err := q.do(ctx, &f); err != nil {
				return err
			}
			return q.app.show(f, func(p *page) {
				p.say("forked %s: %s, with %s", q.args[0], f.ID, count(f.Steps, "step"))
				for _, step := range f.Left {
					p.say("left behind: %s", step)
				}
			})
		},
	},
	{
		use: "priority ID NUMBER", short: "Change the priority of an execution",
		long:    `priority moves an execution within its queue: 0..9000, higher is claimed first. Its age is kept.`,
		example: "  flowfabric priority 3-0197f3a0-… 9000",
		route:   "POST /v1/executions/{ID}:priority", done: "reprioritised",
		args: map[string]member{"NUMBER": decimal("priority", "a whole number of 0..9000")},
	},
	{
		use: "run-now ID", short: "Make a delayed execution claimable at once",
		long: `run-now makes a delayed execution claimable at once. It ends a delayed start, the pause before a
retry or after a lost worker, a delay that its handler asked for, or the pause before a resumption. It
costs no retry. If the execution is claimable already, nothing changes.`,
		example: "  flowfabric run-now 3-0197f3a0-… --reason 'the mail server is back'",
		route:   "POST /v1/executions/{ID}:run-now", done: "made claimable",
	},
	{
		use: "delay ID DURATION", short: "Change the due time of a delayed execution",
		long: `delay sets a new delay of DURATION from now for a delayed execution, longer or shorter than
before. It changes a delayed start, the pause before a retry or after a lost worker, a delay that its
handler asked for, or the pause before a resumption. 0 is run-now. The command refuses an execution that
is not delayed.`,
		example: "  flowfabric delay 3-0197f3a0-… 2h --reason 'not before the maintenance'",
		route:   "POST /v1/executions/{ID}:delay", done: "delayed",
		args: map[string]member{"DURATION": millis("delay_ms", "", "a duration such as 90s or 2h")},
	},
	{
		use: "tags ID", short: "Show, set or remove the tags of an execution",
		long: `tags sets and removes tags, all of them or none, and prints the remaining ones. A key is dotted
lower-case words, such as team.region.`,
		example: `  flowfabric tags 3-0197f3a0-…
  flowfabric tags 3-0197f3a0-… --set print.ink=refilled --remove print.waiting`,
		route: "POST /v1/executions/{ID}:tags",
		flags: []member{tagged("set", "set", "`key=value`; may be repeated"),
			texts("remove", "remove", "`key`; may be repeated")},
		run: func(ctx context.Context, q *request) error {
			if q.cmd.Flags().Changed("set") || q.cmd.Flags().Changed("remove") {
				if err := q.do(ctx, nil); err != nil {
					return err
				}
			}
			var s flowfabric.Snapshot
			if err := q.get(ctx, &s, "/v1/executions/*", q.args[0]); err != nil {
				return err
			}
			if s.Tags == nil {
				s.Tags = map[string]string{}
			}
			return q.app.show(struct {
				ID   string            `json:"id"`
				Tags map[string]string `json:"tags"`
			}{q.args[0], s.Tags}, func(p *page) {
				for _, k := range slices.Sorted(maps.Keys(s.Tags)) {
					p.say("%s=%s", k, s.Tags[k])
				}
			})
		},
	},
	{
		use: "revoke ID", short: "Take an execution away from the worker that runs it",
		long: `revoke takes the lease from a worker at once. Later writes of the worker are refused, its
handler's context ends, and the work is queued again as after a crash, which costs no retry. It does not
end the execution; cancel does.`,
		example: "  flowfabric revoke 3-0197f3a0-… --reason 'worker hangs'",
		route:   "POST /v1/executions/{ID}:revoke", done: "revoked",
		flags: []member{text("held_by", "held-by",
			"only if this `session` still holds it (show --json tells it)")},
	},
	{
		use: "purge ID", short: "Remove an ended execution for good",
		long: `purge removes an ended execution with its input, results, steps, frames and history. This
cannot be undone. Its id stays taken for --tombstone; its key is free.`,
		example: "  flowfabric purge 3-0197f3a0-…",
		route:   "POST /v1/executions/{ID}:purge", done: "purged",
		flags: []member{millis("keep_ms", "tombstone", "how long the id stays taken, 24h to ten years").or("24h0m0s")},
	},
	{
		use: "hold ID", short: "Hold an execution: no worker gets it",
		long: `hold keeps a waiting execution in its queue until unhold. The command refuses an execution that
runs, is delayed or suspended, or waits for others: revoke or cancel it, or pause its lane.`,
		example: "  flowfabric hold 3-0197f3a0-… --reason 'look at the input first'",
		route:   "POST /v1/executions/{ID}:hold", done: "held",
	},
	{
		use: "unhold ID", short: "Unhold an execution",
		long:    `unhold puts a held execution back into its queue, at its old place.`,
		example: "  flowfabric unhold 3-0197f3a0-…",
		route:   "POST /v1/executions/{ID}:unhold", done: "unheld",
	},
	{
		use: "resume ID", short: "Resume a suspended execution without an answer",
		long: `resume ends a wait without an answer. The handler gets flowfabric.ErrNoSignal; use approve to give
it an answer instead.`,
		example: "  flowfabric resume 3-0197f3a0-… --reason 'editor is on leave'",
		route:   "POST /v1/executions/{ID}:resume", done: "resumed",
		flags: []member{millis("delay_ms", "delay", "keep it back this long, at most 30 days"), requestFlag("resumes")},
	},
}
