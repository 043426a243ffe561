package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// answerFlags are the flags of what answers a waitpoint; payload and choice say what they are by default.
func answerFlags(payload, choice string) []member {
	return []member{
		text("", "payload", "payload for the handler: `JSON`, @file, or - for stdin, at most 64 KiB"+payload),
		text("", "choice", "answer as the approval page does, with this `choice` (approve, reject, …)"+choice),
		text("", "comment", "`text` that goes with --choice"),
		text("", "arguments",
			"changed arguments of the question, all of them: `JSON`, @file, or - for stdin; with --choice"),
		text("name", "name", "`name` of the signal, which conditions tell apart (default the choice, or \"signal\")"),
		text("idempotency_key", "key", "idempotency `key`: a repeated answer with the same key counts once"),
		text("category", "category", "`word` for readers of the log"),
		text("correlation", "correlation", "`id` that the sender's own system knows it by"),
	}
}

// answer puts the payload into a request: a choice, or JSON; otherwise is the choice when neither was given.
func (q *request) answer(otherwise string) error {
	given := q.cmd.Flags().Changed
	choice, comment := q.text("choice"), q.text("comment")
	if given("choice") && choice == "" {
		return usage("--choice is empty")
	}
	if !given("choice") && !given("payload") {
		choice = otherwise
	}
	if comment != "" && choice == "" {
		return usage("--comment goes with --choice; put it into --payload otherwise")
	}
	if given("arguments") && choice == "" {
		return usage("--arguments goes with --choice; put them into --payload otherwise")
	}
	if choice != "" {
		answer := suspend.Answer{Choice: choice, Comment: comment}
		if q.door.client != nil { // else the process that serves knows
			answer.By, _ = q.app.who()
		}
		if given("arguments") {
			changed, err := contentKind.read(q.app, q.cmd.Flags(), "arguments")
			if err != nil {
				return err
			}
			answer.Arguments, _ = changed.(json.RawMessage)
		}
		q.body["payload"] = answer
		return nil
	}
	if !given("payload") {
		return nil
	}
	payload, err := contentKind.read(q.app, q.cmd.Flags(), "payload")
	q.body["payload"] = payload
	return err
}

// delivered says what became of an answer to an execution.
func (q *request) delivered(ctx context.Context, id string) error {
	var d suspend.Delivered
	if err := q.do(ctx, &d); err != nil {
		return err
	}
	return q.app.show(struct {
		ID string `json:"id"`
		suspend.Delivered
	}{id, d}, func(p *page) {
		more := "the waitpoint is closed"
		if d.Open {
			more = "the waitpoint takes more"
		}
		if d.Duplicate {
			more += "; it had been delivered before"
		}
		if d.Effect == waitwords.EffectSatisfied {
			p.say("%s: answered; it goes on (%s)", id, more)
			return
		}
		p.say("%s: %s (%s)", id, d.Effect, more)
	})
}

// answerVerbs bring answers and messages to executions, and list what they wait for.
var answerVerbs = []verb{
	{
		use: "waitpoints ID", short: "List the waitpoints of an execution, open and answered",
		long: `waitpoints lists the waitpoints of an execution, open ones first. It shows the signing key and a
fingerprint of each token, never the token. The question that people are asked follows, if the wait has
one.`,
		example: "  flowfabric waitpoints 3-0197f3a0-…",
		route:   "GET /v1/executions/{ID}/waitpoints",
		run:     showWaitpoints,
	},
	{
		use: "signal TOKEN", short: "Answer a waitpoint with its token",
		long: `signal sends an answer to a suspended execution. The token is the right to do so. The command
reads it from the argument, from a file (@file) or from stdin (-), and never prints it. Other users of the
machine can see an argument, and the shell's history keeps it, so prefer a file or stdin.`,
		example: `  flowfabric signal @token.txt --payload '{"paid":true}' --key charge-17
  pass show editor | flowfabric signal - --choice approve --comment 'reads well'`,
		route: "POST /v1/signals", mute: true, args: map[string]member{"TOKEN": text("", "", "")},
		flags: answerFlags(" (default null)", ""), exclusive: [][]string{{"payload", "choice"}},
		run: func(ctx context.Context, q *request) error {
			if q.args[0] == "-" && q.text("payload") == "-" {
				return usage("TOKEN and --payload cannot both come from stdin")
			}
			text, err := q.app.secret("TOKEN", q.args[0])
			if err != nil {
				return err
			}
			token, err := suspend.ParseToken(text)
			if err != nil {
				return usage("TOKEN: not a token (<partition>.<execution>.<waitpoint>.<kid>:<mac>)")
			}
			if err := q.answer(""); err != nil {
				return err
			}
			q.body["token"] = text
			return q.delivered(ctx, token.Execution().String())
		},
	},
	{
		use: "approve ID WAITPOINT", short: "Answer a waitpoint as an operator, without a token",
		long: `approve answers a waitpoint as an operator. Name the waitpoint by its id or its key. The answer
records your name (--by). The answer is {"choice":"approve","by":…}, as from the approval page. --choice
reject rejects, and --payload is for handlers that expect other JSON. --arguments changes those of the
question; what does not fit its schema is refused.`,
		example: `  flowfabric waitpoints 3-0197f3a0-…
  flowfabric approve 3-0197f3a0-… editor --by anna
  flowfabric approve 3-0197f3a0-… editor --choice reject --comment 'too long'
  flowfabric approve 3-0197f3a0-… 'approve 2.1 refund' --choice approve --arguments '{"cents":5}'
  flowfabric approve 3-0197f3a0-… payment --payload '{"paid":true}'`,
		route: "POST /v1/executions/{ID}/waitpoints/{WAITPOINT}:answer", mute: true,
		flags:     answerFlags("", " (default approve, unless there is a --payload)"),
		exclusive: [][]string{{"payload", "choice"}},
		run: func(ctx context.Context, q *request) error {
			if err := q.answer("approve"); err != nil {
				return err
			}
			return q.delivered(ctx, q.args[0])
		},
	},
	{
		use: "send ID MAILBOX [PAYLOAD]", short: "Send a message to an execution",
		long: `send puts a message into a mailbox of an execution that has not ended. The mailbox keeps it until
the handler receives it. The message carries the sender's name (--by). PAYLOAD is JSON, @file, or - for
stdin, at most 64 KiB (default null).`,
		example: `  flowfabric send 3-0197f3a0-… user '"make it shorter"'
  flowfabric send 3-0197f3a0-… tool @result.json --key call-17 --by anna`,
		route: "POST /v1/executions/{ID}/messages", mute: true,
		args: map[string]member{"MAILBOX": text("mailbox", "", ""), "PAYLOAD": text("", "", "")},
		flags: []member{text("idempotency_key", "key",
			"idempotency `key`: a repeated message with the same key counts once"),
			yes("", "raw", "PAYLOAD is bytes, not JSON")},
		run: func(ctx context.Context, q *request) error {
			if len(q.args) > 2 {
				if err := q.content("payload", "base64", "PAYLOAD", q.args[2]); err != nil {
					return err
				}
			} else if q.said("raw") {
				return usage("--raw needs a PAYLOAD")
			}
			var s client.Sent
			if err := q.do(ctx, &s); err != nil {
				return err
			}
			return q.app.show(struct {
				ID string `json:"id"`
				client.Sent
			}{q.args[0], s}, func(p *page) {
				again := ""
				if s.Duplicate {
					again = "; it had been sent before"
				}
				p.say("%s: message %d (%d not yet received%s)", q.args[0], s.Number, s.Waiting, again)
			})
		},
	},
	{
		use: "messages ID", short: "List messages to an execution that nobody has received",
		long: `messages lists the messages in the mailboxes of an execution that its handler has not received
yet, up to 100 messages and 128 KiB. --json prints the payloads in full.`,
		example: `  flowfabric messages 3-0197f3a0-…
  flowfabric messages 3-0197f3a0-… --after 100 --json`,
		route: "GET /v1/executions/{ID}/messages",
		flags: []member{whole("?after", "after", "only messages behind this `number`")},
		show: told(func(p *page, _ *request, m client.Mailboxes) {
			p.say("%d of %s not yet received, %s", m.Waiting, count(int(m.Total), "message"), count(m.Bytes, "byte"))
			rows := make([][]any, len(m.Messages))
			for i, x := range m.Messages {
				rows[i] = []any{x.Number, x.Mailbox, instant(x.SentAt), x.By, glimpse(x)}
			}
			if len(rows) > 0 {
				p.table([]string{"NUMBER", "MAILBOX", "SENT", "BY", "PAYLOAD"}, rows)
			}
		}),
	},
}

// content reads JSON, or with --raw bytes, into one of two members of a request.
func (q *request) content(member, raw, name, value string) error {
	data, err := q.app.read(name, value)
	if err != nil {
		return err
	}
	if q.said("raw") {
		q.body[raw] = data
		return nil
	}
	if data, err = compact(name, data); err != nil {
		return usage("%v, and bytes that are no JSON need --raw", err)
	}
	q.body[member] = json.RawMessage(data)
	return nil
}

func showWaitpoints(ctx context.Context, q *request) error {
	var found admin.Page[suspend.Waitpoint]
	if err := q.do(ctx, &found); err != nil {
		return err
	}
	var asked admin.Approval // with nothing in it if it waits for nothing
	if err := q.get(ctx, &asked, "/v1/executions/*/wait", q.args[0]); err != nil {
		return err
	}
	rows := make([][]any, len(found.Items))
	for i, w := range found.Items {
		if n := slices.IndexFunc(asked.Waitpoints, func(x suspend.Waitpoint) bool { return x.ID == w.ID }); n >= 0 {
			found.Items[i].Question = cmp.Or(asked.Waitpoints[n].Question, asked.Question)
		}
		rows[i] = []any{w.Key, w.State, w.ID, w.Signals, w.Matched, instant(w.CreatedAt), instant(w.ExpiresAt),
			instant(w.ClosedAt), w.CloseReason}
	}
	return q.app.show(found.Items, func(p *page) {
		p.table([]string{"KEY", "STATE", "WAITPOINT", "SIGNALS", "MATCHED", "CREATED", "EXPIRES", "CLOSED", "WHY"},
			rows)
		several := false
		for _, w := range asked.Waitpoints {
			if w.Question != nil {
				several = true
				showQuestion(p, w.Key, w.Question)
			}
		}
		if !several && asked.Question != nil {
			showQuestion(p, "", asked.Question)
		}
		if len(asked.Path) > 0 {
			p.facts("below", asked.Root.String()+": "+strings.Join(asked.Path, " › "))
		}
	})
}

// showQuestion shows what people are asked; key is the waitpoint, where others ask something else.
func showQuestion(p *page, key string, q *suspend.Question) {
	p.say("\n%s", q.Title)
	if q.Text != "" && q.Text != q.Title {
		for _, line := range textLines(q.Text) {
			p.say("  %s", line)
		}
	}
	var choices []string
	for _, c := range q.Choices {
		if c.Label == c.Name {
			c.Label = ""
		}
		choices = append(choices, join(": ", c.Name, c.Label))
	}
	p.facts("waitpoint", key, "choices", strings.Join(choices, ", "), "arguments", string(q.Arguments), "assignee",
		q.Assignee)
}

// glimpse is the beginning of a payload.
func glimpse(m suspend.Message) string {
	const most = 60
	if sealed.Is(m.Payload) {
		return sealed.Text(m.Payload)
	}
	if !utf8.Valid(m.Payload) || !json.Valid(m.Payload) {
		return fmt.Sprintf("(%s that are not JSON)", count(len(m.Payload), "byte"))
	}
	return excerpt(string(m.Payload), most)
}

// excerpt is a text, or its first bytes and a sign that there is more.
func excerpt(text string, most int) string {
	if short := shorten(text, most); short != text {
		return short + "…"
	}
	return text
}
