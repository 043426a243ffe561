package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// mailbox gets the messages of people.
const mailbox = "user"

const linkTurns = 25 // answers of a link, unless the application says otherwise

// Conversation is the input of an execution that is a conversation. [Handler] makes it, and [Run] makes another one
// when a long conversation continues as the next link. The zero value is an empty conversation.
type Conversation struct {
	// Messages are the messages so far. If the last one is the user's, it is answered at once. Messages of the user
	// without an ID get "p1", "p2", … by their places.
	Messages []agent.Message `json:"messages,omitempty"`
	// Dropped counts earlier messages that are not kept any more, see [Run].
	Dropped int `json:"dropped,omitempty"`
	// Owner is the user who owns the conversation, ID the application's name of it.
	Owner string `json:"owner,omitempty"`
	ID    string `json:"id,omitempty"`
	// Data is for the application's handler. It never changes.
	Data json.RawMessage `json:"data,omitempty"`
}

// Run has an agent hold a conversation. A handler of a kind that [Handler] serves calls it, once, and returns what it
// returns:
//
//	func talk(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
//		return chat.Run(ctx, t, in, agent.Config{Model: model, Tools: tools})
//	}
//
// It is [agent.Run] with some fields set: Messages are those of the conversation, and it sets Mailbox, Conversation,
// Name and Prompt. Without Continue the conversation has no end: after MaxTurns answers, by default 25, the execution
// continues as the next link, whose input is the messages so far (handler.Continue). If they exceed 900 KiB, the oldest
// ones are left out, never a part of a turn of tools; a summary (Compact) stays. Set Blobs in cfg and in [Config], so
// that images and files do not count. Answers of earlier links cannot be regenerated.
//
// With Idle the conversation ends when nobody has written for that time. A later message replays the execution
// (handler.MaxReplays bounds how often), which then continues as the next link.
//
// Errors: those of agent.Run. The handler must return the ones that end a run, as agent.Run says.
func Run(ctx context.Context, t *handler.Task, in Conversation, cfg agent.Config) (agent.Result, error) {
	in.Messages = named(in.Messages)
	cfg.Name, cfg.Prompt, cfg.Mailbox, cfg.Conversation, cfg.Messages = "", "", mailbox, true, in.Messages
	if cfg.MaxTurns == 0 {
		cfg.MaxTurns = linkTurns
	}
	own := cfg.Continue == nil
	if own {
		cfg.Continue = func(r agent.Result) error { return handler.Continue(in.next(r.Messages)) }
	}
	r, err := agent.Run(ctx, t, cfg)
	if err != nil || !own {
		return r, err
	}
	// Nobody has written for too long, or an operator has ended the wait. That is recorded, so that a replay finds the
	// same end, and continues from there as another link.
	take, err := handler.Step(ctx, t, "rest", func(context.Context) (int, error) { return t.Takes(), nil })
	if err == nil && take != t.Takes() {
		err = handler.Continue(in.next(r.Messages))
	}
	return r, err
}

// next is the input of the next link.
func (in Conversation) next(messages []agent.Message) Conversation {
	out := in
	out.Messages = fitting(messages, limits.MaxChatLink)
	out.Dropped += len(messages) - len(out.Messages)
	return out
}

// named gives an ID to messages of the user that have none.
func named(messages []agent.Message) []agent.Message {
	messages = slices.Clone(messages)
	n := 0
	for i := range messages {
		if m := &messages[i]; people(*m) {
			if n++; m.ID == "" {
				m.ID = fmt.Sprint("p", n)
			}
		}
	}
	return messages
}

// people says that a message is really of the user, and not of a limit, a form or a summary.
func people(m agent.Message) bool {
	return m.Role == agent.User && m.From != fromSummary && m.From != limits.FromForm &&
		!strings.HasPrefix(m.From, limits.FromLimit)
}

const fromSummary = "summary" // sender of the message that stands for the beginning of a conversation

// fitting returns the last messages of a conversation that fit, from a message of the user on. If its last turn alone
// is too large, the user's message stays, and answers behind it are left out with their results, the oldest first. A
// summary stays in front.
func fitting(messages []agent.Message, room int) []agent.Message {
	var front []agent.Message
	if len(messages) > 0 && messages[0].From == fromSummary {
		front, messages = messages[:1], messages[1:]
	}
	sizes, total := make([]int, len(messages)), 0
	for i, m := range messages {
		sizes[i] = sizeOf(m)
		total += sizes[i]
	}
	for _, m := range front {
		total += sizeOf(m)
	}
	first, last := 0, 0 // of what stays, and the last message of the user
	for i, m := range messages {
		if people(m) {
			last = i
		}
	}
	for total > room && first < last {
		total -= sizes[first]
		for first++; first < last && !people(messages[first]); first++ {
			total -= sizes[first]
		}
	}
	kept := append(slices.Clone(front), messages[first:]...)
	head := len(front) + 1
	for total > room && len(kept) > head+1 { // the answer that follows what the user said, and its results
		total -= sizeOf(kept[head])
		end := head + 1
		for ; end < len(kept) && kept[end].Role == agent.ToolRole; end++ {
			total -= sizeOf(kept[end])
		}
		kept = slices.Delete(kept, head, end)
	}
	return kept
}

// sizeOf is how many bytes a message takes in an input.
func sizeOf(m agent.Message) int {
	data, err := json.Marshal(m)
	if err != nil {
		return 0 // the input will not encode, which says why
	}
	return len(data) + 1
}

// invalid is the error of a configuration that is not valid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("chat: %w: %s", flowfabric.ErrInvalidInput, fmt.Sprintf(format, args...))
}
