// Package failed groups executions that failed by kind, category and the shape of their messages.
//
// The shape of a message is the message without what differs from one failure to the next. Texts in quotes become
// <text>, paths <path>, instants and durations <time>, ids <id>, and other numbers <n>. So "order 17: timeout after
// 2.5s" and "order 4711: timeout after 1m3s" have one shape, "order <n>: timeout after <time>".
package failed

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxShape is how many characters a shape has at most. A longer one is cut, and ends with "…".
const MaxShape = 200

// NoMessage is the shape of an empty message.
const NoMessage = "(no message)"

// maxLexed bounds how much of a message is looked at, in bytes: more than any message that the store keeps.
const maxLexed = 2048

// maxQuoted is how long a text in quotes is at most, in bytes. A quote that ends later is a character like any other.
const maxQuoted = 512

// Shape returns the shape of a message, in at most [MaxShape] characters. It never fails: a text of any bytes has a
// shape, which is valid UTF-8 and has no digits of ASCII.
func Shape(message string) string {
	if len(message) > maxLexed {
		message = message[:maxLexed]
	}
	l := lexer{rest: strings.ToValidUTF8(message, "\uFFFD")}
	for l.rest != "" && l.runes <= MaxShape+1 {
		l.next()
	}
	out := []rune(strings.TrimSpace(l.out.String()))
	if len(out) == 0 {
		return NoMessage
	}
	if len(out) > MaxShape {
		out = append(out[:MaxShape-1], '…')
	}
	return string(out)
}

// lexer takes a message apart from the left. before is the character in front of the rest, 0 at the beginning.
type lexer struct {
	rest   string
	before rune
	out    strings.Builder
	runes  int // of out
}

// ends are the characters, in a class of a regular expression, that end a path besides spaces.
const ends = "\"'`,;()\\[\\]{}<>|"

// The tokens that a regular expression finds at the beginning of the rest, in the order in which they are tried. No
// digit counts for its value, so that texts which differ in digits only have one shape.
var (
	instant = regexp.MustCompile(`^(\d{4}[-/]\d\d[-/]\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?)?|\d\d:\d\d:\d\d([.,]\d+)?)` +
		`( ?(Z|UTC|GMT|[+-]\d\d:?\d\d))*\b`)
	duration = regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h|d))+\b`)
	uuid     = regexp.MustCompile(`^([0-9]+-)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`)
	colons   = regexp.MustCompile(`^([0-9a-fA-F]+(:[0-9a-fA-F]*){2,}|::[0-9a-fA-F:]+)`) // of IPv6, or of hardware
	number   = regexp.MustCompile(`^\d+([.,:_]\d+)*`)
	url      = regexp.MustCompile(`^([a-zA-Z][a-zA-Z+]*://)([^\s/?#` + ends + `]+)([/?#][^\s` + ends + `]*)?`)
	mail     = regexp.MustCompile(`^[\pL\d._+-]+@[\pL\d._-]*[\pL\d]`)
	rooted   = regexp.MustCompile(`^(~|\.|\.\.|[a-zA-Z]:)?[/\\][^\s` + ends + `]+`)
	inside   = regexp.MustCompile(`^[\pL\d._-]+/[\pL\d._/-]*[\pL\d_]`) // a path that begins nowhere
	label    = regexp.MustCompile(`[^.:]+`)
	word     = regexp.MustCompile(`^[\pL\d_]+(-[\pL\d_]+)*`)
	hexes    = regexp.MustCompile(`^(\dx[0-9a-fA-F]+|[a-fA-F]{8,})$`)
	ordinal  = regexp.MustCompile(`^(\pL*)(\d{1,9})(\pL{0,3})$`)
)

// next takes one token.
func (l *lexer) next() {
	first, size := utf8.DecodeRuneInString(l.rest)
	switch begins := !inWord(l.before); {
	case unicode.IsSpace(first) || unicode.IsControl(first):
		if l.before != ' ' {
			l.put(" ")
		}
		l.rest, l.before = l.rest[size:], ' '
	case begins && l.quoted(first, size), begins && l.address(), begins && l.matched():
	case l.words():
	default:
		l.put(l.rest[:size])
		l.rest, l.before = l.rest[size:], first
	}
}

// inWord tells whether a character is a part of a word.
func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (l *lexer) put(text string) {
	l.out.WriteString(text)
	l.runes += utf8.RuneCountInString(text)
}

// take replaces the next size bytes.
func (l *lexer) take(size int, by string) bool {
	l.before, _ = utf8.DecodeLastRuneInString(l.rest[:size])
	l.rest = l.rest[size:]
	l.put(by)
	return true
}

// closing are the quotes that end what a quote begins.
var closing = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '«': '»'}

// quoted takes a text in quotes. An apostrophe within a word begins and ends none.
func (l *lexer) quoted(first rune, size int) bool {
	end, is := closing[first]
	if !is {
		return false
	}
	escaped := false
	for i, r := range l.rest[size:] {
		switch at := size + i + utf8.RuneLen(r); {
		case i > maxQuoted:
			return false
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == end:
			if after, _ := utf8.DecodeRuneInString(l.rest[at:]); r == '\'' && at < len(l.rest) && inWord(after) {
				continue
			}
			return l.take(at, "<text>")
		}
	}
	return false
}

// address takes a URL: its scheme and its host stay.
func (l *lexer) address() bool {
	found := url.FindStringSubmatch(l.rest)
	if found == nil {
		return false
	}
	size, user, host, path := len(trimmed(found[0])), "", found[2], ""
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, host = "<id>@", host[at+1:]
	}
	if found[3] != "" {
		path = "/<path>"
	} else {
		host = trimmed(host)
	}
	if number.FindString(host) == host {
		host = "<n>"
	} else {
		host = label.ReplaceAllStringFunc(host, variable)
	}
	return l.take(max(size, len(found[1])), found[1]+user+host+path)
}

// matched takes what has a form of its own.
func (l *lexer) matched() bool {
	near := l.rest[:min(len(l.rest), 128)] // where forms are looked for that begin like many words
	for _, form := range []struct {
		is *regexp.Regexp
		in string
		by string
	}{{instant, near, "<time>"}, {duration, near, "<time>"}, {uuid, near, "<id>"}, {mail, near, "<id>"},
		{rooted, l.rest, "<path>"}} {
		if found := form.is.FindString(form.in); found != "" {
			return l.take(len(trimmed(found)), form.by)
		}
	}
	if found := colons.FindString(near); strings.ContainsFunc(found, unicode.IsDigit) {
		return l.take(len(found), "<id>")
	}
	if found := number.FindString(l.rest); found != "" {
		if after, _ := utf8.DecodeRuneInString(l.rest[len(found):]); !inWord(after) && after != '-' {
			return l.take(len(found), "<n>")
		}
	}
	if found := inside.FindString(near); strings.Count(found, "/") > 1 ||
		strings.ContainsFunc(found, func(r rune) bool { return r == '.' || unicode.IsDigit(r) }) {
		return l.take(len(found), "<path>")
	}
	return false
}

// trimmed is a token without the punctuation that follows it.
func trimmed(found string) string {
	if short := strings.TrimRight(found, ".:!?"); short != "" {
		return short
	}
	return found
}

// words takes a word, or several with hyphens between them.
func (l *lexer) words() bool {
	found := word.FindString(l.rest)
	return found != "" && l.take(len(found), variable(found))
}

// variable is a word with placeholders for what varies: what comes before the part with the first digit stays.
func variable(text string) string {
	for at := 0; at < len(text); {
		size := strings.IndexAny(text[at:], "-_")
		last := size < 0
		if last {
			size = len(text) - at
		}
		part := text[at : at+size]
		counted := ordinal.FindStringSubmatch(part)
		switch {
		case hexes.MatchString(part):
			return text[:at] + "<id>"
		case !strings.ContainsFunc(part, unicode.IsDigit):
		case last && counted != nil:
			return text[:at] + counted[1] + "<n>" + counted[3]
		default:
			return text[:at] + "<id>"
		}
		at += size + 1
	}
	return text
}
