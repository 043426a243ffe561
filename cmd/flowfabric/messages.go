package main

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func sendCommand(a *app) *cobra.Command {
	var key string
	var raw bool
	cmd := &cobra.Command{
		Use:   "send ID MAILBOX [PAYLOAD]",
		Short: "Send a message to an execution",
		Long: `send puts a message into a mailbox of an execution that has not ended. The handler receives it when it
asks for one; until then it is kept. Who sends it (--by) goes with it. PAYLOAD is JSON, @file, or - for
stdin, at most 64 KiB (default null).`,
		Example: `  flowfabric send 3-0197f3a0-… user '"make it shorter"'
  flowfabric send 3-0197f3a0-… tool @result.json --key call-17 --by anna`,
		Args: between(2, "ID", "MAILBOX", "PAYLOAD"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			by, err := a.who()
			if err != nil {
				return err
			}
			payload, err := a.payload(args[2:], raw)
			if err != nil {
				return err
			}
			opts := []client.SendOption{flowfabric.By(by)}
			if key != "" {
				opts = append(opts, flowfabric.IdempotencyKey(key))
			}
			return a.with(ctx, func(c *client.Client) error {
				s, err := c.Send(ctx, id, args[1], payload, opts...)
				if err != nil {
					return err
				}
				return a.show(sent{id, s}, func(p *page) {
					again := ""
					if s.Duplicate {
						again = "; it had been sent before"
					}
					p.say("%s: message %d (%d not yet received%s)", id.String(), s.Number, s.Waiting, again)
				})
			})
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "idempotency `key`: a repeated message with the same key counts once")
	cmd.Flags().BoolVar(&raw, "raw", false, "PAYLOAD is bytes, not JSON")
	return cmd
}

// payload is that of an argument that may be missing.
func (a *app) payload(args []string, raw bool) (any, error) {
	value := "null"
	if len(args) > 0 {
		value = args[0]
	} else if raw {
		return nil, usage("--raw needs a PAYLOAD")
	}
	data, err := a.read("PAYLOAD", value)
	if err != nil || raw {
		return data, err
	}
	if data, err = compact("PAYLOAD", data); err != nil {
		return nil, usage("%v, and bytes that are no JSON need --raw", err)
	}
	return json.RawMessage(data), nil
}

// sent is what became of a message to an execution.
type sent struct {
	ID flowfabric.ExecutionID `json:"id"`
	client.Sent
}

func messagesCommand(a *app) *cobra.Command {
	var after uint64
	cmd := &cobra.Command{
		Use:   "messages ID",
		Short: "List messages to an execution that nobody has received",
		Long: `messages lists what was sent to the mailboxes of an execution and what its handler has not received yet,
up to 100 messages and 128 KiB. With --json the payloads are there in full.`,
		Example: `  flowfabric messages 3-0197f3a0-…
  flowfabric messages 3-0197f3a0-… --after 100 --json`,
		Args: exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.with(ctx, func(c *client.Client) error {
				m, err := c.Messages(ctx, id, after)
				if err != nil {
					return err
				}
				rows := make([][]any, len(m.Messages))
				for i, x := range m.Messages {
					rows[i] = []any{x.Number, x.Mailbox, instant(x.SentAt), x.By, glimpse(x)}
				}
				return a.show(mailboxes{id, m}, func(p *page) {
					p.say("%d of %s not yet received, %s", m.Waiting, count(int(m.Total), "message"),
						count(m.Bytes, "byte"))
					if len(rows) > 0 {
						p.table([]string{"NUMBER", "MAILBOX", "SENT", "BY", "PAYLOAD"}, rows)
					}
				})
			})
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "only messages behind this `number`")
	return cmd
}

// mailboxes are those of an execution.
type mailboxes struct {
	ID flowfabric.ExecutionID `json:"id"`
	client.Mailboxes
}

// glimpse is the beginning of a payload.
func glimpse(m suspend.Message) string {
	const most = 60
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
