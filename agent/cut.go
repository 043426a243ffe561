package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxNote bounds the note behind a text that was cut, in bytes, as such and as JSON.
const maxNote = 48

// cut returns text, as valid UTF-8, if it has at most so many bytes, as such and within JSON; else its beginning, and
// a note that says how long it was. Limits below the note's length give the note.
func cut(text string, bytes, encoded int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	whole := true
	end, size := 0, 0
	for i, c := range text {
		size += encodedLen(c)
		after := i + utf8.RuneLen(c)
		if after > bytes || size > encoded {
			whole = false
			break
		}
		if after <= bytes-maxNote && size <= encoded-maxNote {
			end = after
		}
	}
	if whole {
		return text
	}
	return text[:end] + fmt.Sprintf("… (cut: %d bytes)", len(text))
}

// encodedLen is how many bytes a rune takes in a string of JSON, as encoding/json writes it.
func encodedLen(c rune) int {
	switch {
	case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
		return 2
	case c < 0x20, c == '<', c == '>', c == '&', c == '\u2028', c == '\u2029':
		return 6
	}
	return utf8.RuneLen(c)
}

func encodedText(text string) (n int) {
	for _, c := range text {
		n += encodedLen(c)
	}
	return n
}

// shortened is a message of at most so many bytes as JSON, at least 1 KiB, for readers: without what is private, and
// without bytes, and with what was thought, then its text, then its arguments, then its calls cut.
func shortened(m Message, limit int) Message {
	m.Private = nil
	if messageLen(m) <= limit {
		return m
	}
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i].Data = nil // Size says that there are some
	}
	cutTexts(m.Parts, PartReasoning, messageLen(m)-limit)
	cutTexts(m.Parts, PartText, messageLen(m)-limit)
	if m.Edited != nil && messageLen(m) > limit {
		m.Edited = &Edited{m.Edited.By, json.RawMessage(fmt.Sprintf(`"… (cut: %d bytes)"`, len(m.Edited.Arguments)))}
	}
	if messageLen(m) <= limit {
		return m
	}
	calls := m.Calls
	m.Calls = nil
	for _, c := range calls {
		c.Arguments = json.RawMessage(fmt.Sprintf(`"… (cut: %d bytes)"`, len(c.Arguments)))
		m.Calls = append(m.Calls, c)
	}
	if messageLen(m) <= limit {
		return m
	}
	half := (limit - encodedText(m.ID)) / 2
	text := cut(m.Text(), half, half) + fmt.Sprintf("… (%d calls)", len(calls))
	return Message{ID: m.ID, Role: m.Role, Parts: Text(text)}
}

// cutTexts cuts parts of a type, the last ones first, until they take over bytes less as JSON or are notes.
func cutTexts(parts []Part, of PartType, over int) {
	for i := len(parts) - 1; i >= 0 && over > 0; i-- {
		if p := &parts[i]; p.Type == of {
			n := encodedText(p.Text)
			p.Text = cut(p.Text, len(p.Text), max(n-over, maxNote))
			over -= n - encodedText(p.Text)
		}
	}
}

func messageLen(m Message) int {
	data, err := json.Marshal(m)
	if err != nil {
		return 0
	}
	return len(data)
}

const (
	minSaid = 1 << 10  // bytes that a message is cut to at most
	maxSaid = 64 << 10 // bytes of all, in the value of a step
)

// told is what the value of a step keeps of what the user said, in at most so many bytes, so that neither many
// messages nor long ones leave no room for the answer: the last ones, cut to equal shares if they are too long.
func told(messages []Message, room int) []Message {
	room = min(room, maxSaid)
	if most := max(0, room/minSaid); len(messages) > most {
		messages = messages[len(messages)-most:]
	}
	if len(messages) == 0 {
		return nil
	}
	total := 0
	kept := make([]Message, len(messages))
	for i, m := range messages {
		kept[i] = shortened(m, room)
		total += messageLen(kept[i])
	}
	for i := range kept {
		if total > room {
			kept[i] = shortened(messages[i], room/len(messages))
		}
	}
	return kept
}

// visible makes a text safe to decide by: valid UTF-8, with what controls a terminal or turns the direction of
// writing shown as an escape.
func visible(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case c < 0x20 || c == 0x7f || unicode.Is(unicode.Bidi_Control, c) || unicode.In(c, unicode.Zl, unicode.Zp) ||
			c >= 0x80 && c < 0xa0:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c) // an invalid byte comes as U+FFFD
		}
	}
	return b.String()
}

// maxQuestionEncoded leaves room in a stored question for title, choices and assignee.
const maxQuestionEncoded = limits.MaxQuestion - 1<<10
