package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
)

const (
	maxMessageID = 128 // bytes
	maxTitle     = limits.MaxTagValue
	titleWords   = 60 // characters of a title that is the beginning of the first message
)

// Tags of an execution that is a conversation.
const (
	tagOwner = "chat.owner"
	tagID    = "chat.id"
	tagTitle = "chat.title"
)

// plain says that a text is UTF-8 without control characters.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// checkID checks the name of a conversation.
func checkID(field, id string) error {
	switch {
	case id == "" || len(id) > limits.MaxChatID || !plain(id):
		return bad(field, "%s has %d bytes, want 1..%d of UTF-8 without control characters", field, len(id),
			limits.MaxChatID)
	case id == "." || id == "..": // browsers and routers take them out of a path, however they are escaped
		return bad(field, "%s is %s, which no path can have", field, id)
	}
	return nil
}

// checkMessageID checks the id of a message.
func checkMessageID(field, id string) error {
	if id == "" || len(id) > maxMessageID || !utf8.ValidString(id) || strings.ContainsFunc(id,
		func(c rune) bool { return !unicode.IsPrint(c) }) {
		return bad(field, "%s has %d bytes, want 1..%d bytes of printable text", field, len(id), maxMessageID)
	}
	return nil
}

// keyOf is the key of the execution that is a conversation. No two pairs of owner and id have the same.
func keyOf(owner, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(owner), owner, id))
	return "chat." + hex.EncodeToString(sum[:])
}

// titled makes a title of a text: one line, cut to so many characters, at a space if there is one late enough.
func titled(text string, most int) string {
	blank := func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }
	text = strings.Join(strings.FieldsFunc(text, blank), " ")
	text = strings.ToValidUTF8(text, "\ufffd")
	if utf8.RuneCountInString(text) > most {
		cut := string([]rune(text)[:most])
		if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
			cut = cut[:at]
		}
		text = cut + "…"
	}
	for len(text) > maxTitle {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// sealed is a title as it is stored: tags are not encrypted by themselves, and a title is what people have said.
func (h *Handler) sealed(title string) string {
	return h.client.Link().Engine.Box().SealText(title, maxTitle)
}

// opened is a title that was stored.
func (h *Handler) opened(title string) string { return h.client.Link().Engine.Box().OpenText(title) }

// find is the execution of the conversation that a request names.
func (h *Handler) find(c *request) (flowfabric.ExecutionID, error) {
	id, err := h.attach(c.ctx(), keyOf(c.owner, c.id))
	if errors.Is(err, flowfabric.ErrNotFound) {
		return id, refuse(http.StatusNotFound, codeNoChat, "there is no conversation of this id")
	}
	return id, err
}

// enter enters the room of a conversation. The request leaves it when it ends.
func (h *Handler) enter(ctx context.Context, c *request, id flowfabric.ExecutionID) (*room, error) {
	m, err := h.rooms.enter(ctx, id)
	if err == nil {
		c.rooms = append(c.rooms, m)
	}
	return m, err
}

func (c *request) leave() {
	for _, m := range c.rooms {
		m.leave()
	}
}

// visit finds the conversation that a request names, and enters its room.
func (h *Handler) visit(c *request) (*room, error) {
	id, err := h.find(c)
	if err != nil {
		return nil, err
	}
	return h.enter(c.ctx(), c, id)
}

// open begins the conversation that a request names. Concurrent requests get the same one.
func (h *Handler) open(c *request, title string, fits func(Conversation) error) (flowfabric.ExecutionID, error) {
	in, opts, err := h.cfg.Begin(c.ctx(), c.q, c.owner, c.id)
	if errors.Is(err, flowfabric.ErrInvalidInput) {
		return flowfabric.ExecutionID{}, err
	}
	if err != nil {
		return flowfabric.ExecutionID{}, fmt.Errorf("chat: Config.Begin: %s", err)
	}
	in.Owner, in.ID, in.Messages = c.owner, c.id, named(in.Messages)
	if err := fits(in); err != nil {
		return flowfabric.ExecutionID{}, err
	}
	said := flowfabric.Start{Tags: h.tags}
	for i, o := range opts {
		if err := option.Apply(&said, i, o); err != nil {
			return flowfabric.ExecutionID{}, fmt.Errorf("chat: Config.Begin: %s", err)
		}
	}
	if said.Key != nil {
		return flowfabric.ExecutionID{}, errors.New("chat: Config.Begin returned a key; a conversation has its own")
	}
	tags := map[string]string{tagOwner: c.owner, tagID: c.id, tagTitle: h.sealed(title)}
	if given, ok := said.Tags[tagTitle]; ok {
		tags[tagTitle] = h.sealed(titled(given, maxTitle))
	}
	for key, value := range said.Tags {
		if tags[key] == "" && key != tagTitle {
			tags[key] = value
		}
	}
	maps.DeleteFunc(tags, func(_, value string) bool { return value == "" })
	key := keyOf(c.owner, c.id)
	id, err := h.submit(c.ctx(), in, append(opts[:len(opts):len(opts)], flowfabric.Tags(tags),
		flowfabric.IdempotencyKey(key)))
	if errors.Is(err, flowfabric.ErrConflict) { // another request has begun it with another message
		return h.attach(c.ctx(), key)
	}
	return id, err
}

// revive replays a conversation that has ended, so that it takes messages again. Its records stay. If another request
// has replayed it, nothing is left to do.
func (h *Handler) revive(ctx context.Context, id flowfabric.ExecutionID, by string) error {
	s, err := h.client.Execution(id).Get(ctx)
	switch {
	case err != nil || !s.Terminal():
		return err
	case s.Public == flowfabric.Cancelled:
		return refuse(http.StatusGone, codeEnded, "the conversation has ended: it was cancelled")
	}
	err = h.admin.Replay(ctx, id, admin.Replay{Force: true}, flowfabric.By(by), flowfabric.Reason("a message came"))
	switch {
	case errors.Is(err, flowfabric.ErrState):
		return nil
	case errors.Is(err, flowfabric.ErrLimit):
		return refuse(http.StatusGone, codeEnded, "the conversation has ended, and was brought back too often")
	}
	return err
}
