package chat

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
)

// truth is the server's history of a conversation, for comparison with a front end's.
type truth struct {
	ids     []string          // of the messages of the user, in their order
	said    map[string]front  // those messages
	replies map[string]string // texts of the messages of the assistant, so far
	cut     bool              // there were messages before the first one
}

// truthOf is the history of a snapshot.
func truthOf(messages []message, cut bool) truth {
	t := truth{said: map[string]front{}, replies: map[string]string{}, cut: cut}
	for _, m := range messages {
		if m.role == agent.User {
			t.add(m.id, m.said)
			continue
		}
		var b strings.Builder
		for _, e := range m.events {
			if e.kind == kindText {
				b.WriteString(e.text)
			}
		}
		t.replies[m.id] = b.String()
	}
	return t
}

func (t *truth) add(id string, m agent.Message) {
	t.ids = append(t.ids, id)
	t.said[id] = front{id: id, role: agent.User, text: m.Text(), parts: m.Parts}
}

// plan is what to do with a front end's history: one of send, edit and follow is set.
type plan struct {
	send   []front // messages that are new
	edit   *front  // a message that takes the place of the one whose id is instead
	follow string  // id of a message that was sent before
	// instead is the id of the message that edit takes the place of.
	instead string
}

// compare finds the new part of a front end's history, whose last message is the user's. Replaces is the id of the
// message that the front end has changed, "" for none. A history of one message is the newest one alone. Messages that
// the front end lacks at the end are from other tabs, unless edits is true.
func (t truth) compare(history []front, replaces string, edits bool) (plan, error) {
	end := len(history) // of what should be known
	for end > 0 && history[end-1].role == agent.User && !t.has(history[end-1].id) {
		end--
	}
	fresh := history[end:]
	at := -1 // place of the last message that is known
	for i, m := range history[:end] {
		if m.role != agent.User {
			if !t.told(m) {
				return plan{}, t.differs(m.id)
			}
			continue
		}
		k := slices.Index(t.ids, m.id)
		last := i == len(history)-1
		switch {
		case k < 0 && at < 0 && t.cut: // it was said before what is kept
			continue
		case k <= at:
			return plan{}, t.differs(m.id)
		case t.same(m): // it is
		case last && (replaces == m.id || edits):
			return plan{edit: &history[i], instead: m.id}, nil
		default:
			return plan{}, t.differs(m.id)
		}
		if at = k; last {
			return plan{follow: m.id}, nil
		}
	}
	switch behind := at < len(t.ids)-1; {
	case !edits || !behind || len(history) == 1:
		return plan{send: fresh}, nil
	case len(fresh) > 1:
		return plan{}, t.differs(fresh[0].id)
	}
	return plan{edit: &fresh[0], instead: t.ids[at+1]}, nil
}

func (t truth) has(id string) bool {
	_, ok := t.said[id]
	return ok
}

// differs refuses a history.
func (t truth) differs(id string) error {
	return refuse(http.StatusConflict, codeHistory,
		"the message %.40q of the history is not as the server has it; read the conversation again", id)
}

// cutNote is what stands behind a text that was cut for readers.
var cutNote = regexp.MustCompile(`… \(cut: \d+ bytes\)$`)

// same says that server and front end have the same message of the user. Files have no bytes to compare.
func (t truth) same(m front) bool {
	known := t.said[m.id]
	if note := cutNote.FindStringIndex(known.text); note != nil && strings.HasPrefix(m.text, known.text[:note[0]]) {
		return true
	}
	return known.text == m.text && files(known.parts) == files(m.parts)
}

// told says that the front end's text of the assistant agrees with the server's. It may be shorter, if the front end
// stopped reading, or longer, if the server has cut it. A message that the server does not know is the front end's own,
// for example a greeting.
func (t truth) told(m front) bool {
	text, known := t.replies[m.id]
	if note := cutNote.FindStringIndex(text); note != nil {
		text = text[:note[0]]
	}
	return !known || strings.HasPrefix(text, m.text) || strings.HasPrefix(m.text, text)
}
