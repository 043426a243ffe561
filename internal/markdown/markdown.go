// Package markdown reads the Markdown of strangers into nodes: paragraphs, headings, lists, quotes, code, emphasis and
// links. Everything else, such as HTML, images and tables, stays text. It reads what dashboard/assets/markdown.js
// reads, and a test of tools/browser holds both against each other.
//
//	text ── Parse ──▶ []Node ── Template, which escapes all text ──▶ the page
//
// A node holds text and never markup, so a text has no way to become markup. A link leads to a web or mail address
// only, and its place is told if its words do not have it. The functions have no state: call them concurrently.
package markdown

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longest  = 20000 // bytes; a longer text is shown as it is
	deepest  = 6     // levels of quotes, and of emphasis
	maxWords = 500   // bytes of the words of a link
	maxTo    = 1000  // bytes of an address
)

// Node is a piece of a page.
type Node struct {
	Kind  string // text, p, head, pre, hr, quote, ul, ol, li, code, strong, em or a
	Text  string // of text, pre and code
	To    string // of a: its address
	Place string // of a: where that is, unless its words say it
	Start int    // of ol: its first number
	Nodes []Node // what is within the others
}

// Template defines "markdown", which writes nodes. Parse it into an html/template.
const Template = `{{define "markdown"}}{{range .}}
{{- if eq .Kind "text"}}{{.Text}}
{{- else if eq .Kind "code"}}<code>{{.Text}}</code>
{{- else if eq .Kind "strong"}}<strong>{{template "markdown" .Nodes}}</strong>
{{- else if eq .Kind "em"}}<em>{{template "markdown" .Nodes}}</em>
{{- else if eq .Kind "a"}}<a href="{{.To}}" target="_blank" rel="noopener noreferrer nofollow" title="{{.To}}">
{{- template "markdown" .Nodes}}</a>{{with .Place}} <span class="dim">({{.}})</span>{{end}}
{{- else if eq .Kind "p"}}<p class="pre">{{template "markdown" .Nodes}}</p>
{{- else if eq .Kind "head"}}<p class="strong">{{template "markdown" .Nodes}}</p>
{{- else if eq .Kind "pre"}}<pre tabindex="0" aria-label="code">{{.Text}}</pre>
{{- else if eq .Kind "hr"}}<hr>
{{- else if eq .Kind "quote"}}<blockquote>{{template "markdown" .Nodes}}</blockquote>
{{- else if eq .Kind "ul"}}<ul>{{template "markdown" .Nodes}}</ul>
{{- else if eq .Kind "ol"}}<ol start="{{.Start}}">{{template "markdown" .Nodes}}</ol>
{{- else if eq .Kind "li"}}<li>{{template "markdown" .Nodes}}</li>
{{- end}}{{end}}{{end}}`

// Parse reads a text. One of more than 20,000 bytes is one paragraph, as it is.
func Parse(text string) []Node {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) > longest {
		return []Node{{Kind: "p", Nodes: []Node{plain(text)}}}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return blocks(strings.Split(text, "\n"), 0)
}

func plain(text string) Node { return Node{Kind: "text", Text: visible(text)} }

// visible lets control characters, and those that turn the direction of writing, be seen instead of acting.
func visible(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\t' || c == '\n':
			b.WriteRune(c)
		case c < ' ':
			b.WriteRune(0x2400 + c)
		case c == 0x7f:
			b.WriteRune(0x2421)
		case unicode.Is(unicode.Bidi_Control, c) && c != 0x61c:
			b.WriteString("⟦U+" + strings.ToUpper(strconv.FormatInt(int64(c), 16)) + "⟧")
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// line reads the text of a line, or of a paragraph.
type line struct {
	text   string
	at     int
	linked bool            // it is the words of a link, in which there is none
	deep   int             // levels of emphasis around it
	open   map[string]bool // marks that nothing closes from here on
	out    []Node
	words  strings.Builder // that are no node yet
}

func inline(text string, deep int, linked bool) []Node {
	if deep > deepest {
		return []Node{plain(text)}
	}
	l := &line{text: text, deep: deep, linked: linked, open: map[string]bool{}}
	for l.at < len(text) {
		if l.escape() || l.code() || l.link() || l.address() || l.emphasis() {
			continue
		}
		_, size := utf8.DecodeRuneInString(text[l.at:])
		l.words.WriteString(text[l.at : l.at+size])
		l.at += size
	}
	l.flush()
	return l.out
}

func (l *line) flush() {
	if l.words.Len() > 0 {
		l.out = append(l.out, plain(l.words.String()))
		l.words.Reset()
	}
}

// add puts a node behind the words, and goes on behind what it was made of.
func (l *line) add(n Node, size int) bool {
	l.flush()
	l.out = append(l.out, n)
	l.at += size
	return true
}

func (l *line) rest() string { return l.text[l.at:] }

// escape reads a character that a backslash keeps from meaning something.
func (l *line) escape() bool {
	rest := l.rest()
	if rest[0] != '\\' || len(rest) < 2 || strings.IndexByte("\\`*_[]()#+-.!>", rest[1]) < 0 {
		return false
	}
	l.words.WriteByte(rest[1])
	l.at += 2
	return true
}

func (l *line) code() bool {
	text, found := strings.CutPrefix(l.rest(), "`")
	if end := strings.IndexByte(text, '`'); found && end > 0 {
		return l.add(Node{Kind: "code", Text: visible(text[:end])}, end+2)
	}
	return false
}

// link reads [words](address).
func (l *line) link() bool {
	rest := l.rest()
	if rest[0] != '[' || l.linked || l.before() == '!' {
		return false
	}
	end := strings.IndexAny(rest[1:], "[]") + 1
	if end < 2 || end > maxWords+1 || !strings.HasPrefix(rest[end:], "](") {
		return false
	}
	to := rest[end+2:]
	size := strings.IndexFunc(to, func(c rune) bool { return unicode.IsSpace(c) || c == '(' || c == ')' })
	if size < 1 || to[size] != ')' {
		return false
	}
	place := placeOf(to[:size])
	if place == "" {
		return false
	}
	if words := rest[1:end]; strings.Contains(words, place) {
		place = ""
	}
	return l.add(Node{Kind: "a", To: to[:size], Place: visible(place), Nodes: inline(rest[1:end], l.deep+1, true)},
		end+3+size)
}

// address reads a web address that stands in a text as it is.
func (l *line) address() bool {
	rest := l.rest()
	if rest[0] != 'h' || l.linked || isWord(l.before()) {
		return false
	}
	to := rest[:min(len(rest), maxTo+1)] // one that is longer is none
	if end := strings.IndexFunc(to, endsAddress); end >= 0 {
		to = to[:end]
	}
	to = strings.TrimRight(to, ".,;:!?)]*_")
	if !strings.HasPrefix(to, "http") || placeOf(to) == "" {
		return false
	}
	return l.add(Node{Kind: "a", To: to, Nodes: []Node{plain(to)}}, len(to))
}

// emphasis reads words between two marks.
func (l *line) emphasis() bool {
	rest, mark, kind := l.rest(), "", "em"
	for _, m := range []string{"**", "__", "*", "_"} {
		if mark == "" && strings.HasPrefix(rest, m) {
			mark = m
		}
	}
	if len(mark) == 2 {
		kind = "strong"
	}
	if mark == "" || l.open[mark] || isWord(l.before()) {
		return false
	}
	text := rest[len(mark):]
	if first, _ := utf8.DecodeRuneInString(text); text == "" || unicode.IsSpace(first) {
		return false
	}
	for from := 0; ; {
		end := strings.Index(text[from:], mark)
		if end < 0 {
			l.open[mark] = true
			return false
		}
		end += from
		last, _ := utf8.DecodeLastRuneInString(text[:end])
		next, _ := utf8.DecodeRuneInString(text[end+len(mark):])
		switch {
		case end == 0:
			return false
		case unicode.IsSpace(last) || isWord(next):
			from = end + 1
		default:
			return l.add(Node{Kind: kind, Nodes: inline(text[:end], l.deep+1, l.linked)}, end+2*len(mark))
		}
	}
}

// before is the character in front.
func (l *line) before() rune {
	c, _ := utf8.DecodeLastRuneInString(l.text[:l.at])
	return c
}

func isWord(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsNumber(c)) }

func endsAddress(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("<>\"'`\\", c) }

// placeOf is the host of an address, or who gets a mail; "" for what no link may lead to.
func placeOf(to string) string {
	if len(to) > maxTo || strings.ContainsFunc(to, func(c rune) bool {
		return endsAddress(c) || unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)
	}) {
		return ""
	}
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "mailto":
		return u.Opaque
	case (u.Scheme == "http" || u.Scheme == "https") && strings.HasPrefix(to[len(u.Scheme):], "://") &&
		!strings.ContainsFunc(u.Host, func(c rune) bool { return c >= utf8.RuneSelf }): // letters that look like others
		return strings.ToLower(u.Host)
	}
	return ""
}
