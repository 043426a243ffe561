// Package joblog keeps what handlers log in the store: it makes lines of log records, bounded in size, and sends them
// in batches, beside what the handler does.
//
//	Task.Logger ─▶ Handler ─┬─▶ the worker's own handler
//	                        └─▶ Writer: bounded ── 200 ms, 100 lines, 64 KiB ──▶ ff_append_log
//
// Logging never waits for the store. What cannot be sent in time is dropped and counted: the next line that is stored
// says how many are missing before it. The end of a run sends what is left, before the attempt is settled.
package joblog

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// The levels that lines are stored with. Off is none: nothing is kept.
const (
	Debug = "debug"
	Info  = "info"
	Warn  = "warn"
	Error = "error"
	Off   = "off"
)

// Levels are the levels of lines, the lowest first.
var Levels = []string{Debug, Info, Warn, Error}

// levels are the lowest level of package slog that is told as each of Levels.
var levels = map[string]slog.Level{Debug: slog.LevelDebug, Info: slog.LevelInfo, Warn: slog.LevelWarn,
	Error: slog.LevelError}

// LevelOf is the least level that a name keeps; false for a name that is none of Levels, Off among them.
func LevelOf(name string) (slog.Level, bool) {
	l, ok := levels[name]
	return l, ok
}

// Valid tells whether a name is one of Levels, or Off.
func Valid(name string) bool { return name == Off || slices.Contains(Levels, name) }

// nameOf is the level that a record is stored with.
func nameOf(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return Debug
	case l < slog.LevelWarn:
		return Info
	case l < slog.LevelError:
		return Warn
	}
	return Error
}

// mark ends what was cut.
const mark = "…"

const maxName = 128 // bytes of an attribute's name

// Attr is an attribute of a line: its name, with dots for groups, and its value as JSON.
type Attr struct {
	Name  string
	Value json.RawMessage
}

// Fill sets message and attributes of a line, cut so that Text has at most limits.MaxLogLine bytes. Attributes that do
// not fit are cut if they are texts, else replaced by the mark; when nothing fits any more, an attribute named by the
// mark says how many were left out.
func Fill(line *stream.LogLine, message string, attrs []Attr) {
	const room = 64 // for what Text has around message and attributes, and for the attribute that tells of others
	message, size := fitting(strings.ToValidUTF8(message, "\uFFFD"), limits.MaxLogLine/2)
	line.Message, line.Attributes = message, nil
	if len(attrs) == 0 {
		return
	}
	left := limits.MaxLogLine - size - room
	out := make([]byte, 0, 128)
	out = append(out, '{')
	for i, a := range attrs {
		name, _ := fitting(strings.ToValidUTF8(a.Name, "\uFFFD"), maxName)
		quoted, value := quote(name), a.Value
		space := left - len(out) - len(quoted) - 2
		if len(value) > space {
			value = shortened(value, space)
		}
		if i > 0 {
			out = append(out, ',')
		}
		if value == nil {
			out = append(append(out, quote(mark)...), ':')
			out = append(out, quote(strconv.Itoa(len(attrs)-i)+" more")...)
			break
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	line.Attributes = append(out, '}')
}

// shortened is a value that does not fit, nil if nothing of it does.
func shortened(value json.RawMessage, space int) json.RawMessage {
	if space < len(quote(mark)) {
		return nil
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return quote(mark)
	}
	text, _ = fitting(text, space)
	return quote(text)
}

// fitting cuts a text so that it takes at most so many bytes as JSON, and tells how many it takes.
func fitting(text string, most int) (string, int) {
	if size := len(text) + 2; size <= most && plain(text) {
		return text, size
	}
	size := len(quote(text))
	if size <= most {
		return text, size
	}
	for keep := min(len(text), most); ; keep = keep * 7 / 8 {
		for keep > 0 && !utf8.RuneStart(text[keep-1]) {
			keep--
		}
		keep = max(keep-1, 0) // what begins there may be cut through
		short := text[:keep] + mark
		if size = len(quote(short)); size <= most || keep == 0 {
			return short, size
		}
	}
}

// plain tells whether a text is the same in JSON.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func quote(text string) json.RawMessage {
	quoted, _ := json.Marshal(text) // a string never fails
	return quoted
}

// stored is a line as it is stored.
type stored struct {
	Message    string          `json:"m,omitempty"`
	Attributes json.RawMessage `json:"a,omitempty"`
}

// Text is what is stored of message and attributes; nothing of a line without either.
func Text(line stream.LogLine) []byte {
	if line.Message == "" && line.Attributes == nil {
		return nil
	}
	text, err := json.Marshal(stored{line.Message, line.Attributes})
	if err != nil { // attributes that somebody made by hand
		text, _ = json.Marshal(stored{Message: line.Message})
	}
	return text
}

// Read sets message and attributes of a line from what is stored of them.
func Read(line *stream.LogLine, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	line.Message, line.Attributes = s.Message, s.Attributes
	return nil
}
