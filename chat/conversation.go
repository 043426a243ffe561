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

// mailbox is where what people say goes.
const mailbox = "user"

const linkTurns = 25 // answers of a link, unless the application says otherwise

// Conversation is what an execution of a kind that chats begins with, the input of its definition. [Handler] makes it,
// and [Run] makes it again when a long conversation goes on in another link. The zero value is a conversation in which
// nobody has said anything.
type Conversation struct {
	// Messages are what was said so far. If the last one is the user's, it is answered at once. Messages of the user
	// without an ID get "p1", "p2", … by their places.
	Messages []agent.Message `json:"messages,omitempty"`
	// Dropped is how many messages were said before, and are not kept any more, see [Run].
	Dropped int `json:"dropped,omitempty"`
	// Owner and ID are whose conversation it is, and what the application calls it.
	Owner string `json:"owner,omitempty"`
	ID    string `json:"id,omitempty"`
	// Data is the application's own, for its handler. It stays the same.
	Data json.RawMessage `json:"data,omitempty"`
}

// Run has an agent hold a conversation. A handler of a kind that [Handler] serves calls it, once, and returns what it
// returns:
//
//	func talk(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
//		return chat.Run(ctx, t, in, agent.Config{Model: model, Tools: tools})
//	}
//
// It is [agent.Run] with some fields set: Messages are those of the conversation, Mailbox, Conversation, Name and
// Prompt are its own. Without Continue the conversation has no end: after MaxTurns answers, here 25 unless cfg says
// otherwise, the execution goes on as the next link, with what was said as its input (handler.Continue). Of more than
// 900 KiB the oldest messages are left out, never a part of a turn of tools; a summary (Compact) stays. Give cfg Blobs,
// so that images and files need no room there, and [Config] the same. Answers of earlier links cannot be made again.
//
// With Idle the conversation ends when nobody has written for so long. A message that comes later brings it back: the
// execution is replayed (handler.MaxReplays bounds how often) and goes on as the next link.
//
// Errors: those of agent.Run; what they ask the handler to return, it must return.
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
	// Nobody has written for too long, or an operator has ended the wait. That is recorded, so a message that comes
	// later finds the same end when the execution is replayed; from there it goes on as another link.
	take, err := handler.Step(ctx, t, "rest", func(context.Context) (int, error) { return t.Takes(), nil })
	if err == nil && take != t.Takes() {
		err = handler.Continue(in.next(r.Messages))
	}
	return r, err
}

// next is the conversation that the next link begins with.
func (in Conversation) next(messages []agent.Message) Conversation {
	out := in
	out.Messages = fitting(messages, limits.MaxChatLink)
	out.Dropped += len(messages) - len(out.Messages)
	return out
}

// named gives messages of the user an ID that have none.
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

// people says that a message is one of the user, and not what a limit, a form or a summary says in their place.
func people(m agent.Message) bool {
	return m.Role == agent.User && m.From != fromSummary && m.From != limits.FromForm &&
		!strings.HasPrefix(m.From, limits.FromLimit)
}

const fromSummary = "summary" // sender of the message that stands for the beginning of a conversation

// fitting are the last messages of a conversation, as many as have room: from a message of the user on. If the last
// one alone leads to too much, it stays, and the answers behind it go with their results, the oldest first. A summary
// stays in front.
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
