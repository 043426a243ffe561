package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// show prints the answer of a command: value as one JSON value with --json, else what text writes.
func (a *app) show(value any, text func(p *page)) error {
	if a.json {
		return a.line(value)
	}
	p := &page{colour: a.colour()}
	text(p)
	_, err := p.WriteTo(a.out)
	return err
}

// line prints value as JSON on one line.
func (a *app) line(value any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// colour tells whether styles are shown: on a terminal, unless the user said otherwise.
func (a *app) colour() bool {
	return !a.plain && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && a.terminal()
}

func (a *app) terminal() bool { return isTerminal(a.out) }

// isTerminal tells whether a person is at the other end.
func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// style is how a piece of text looks on a terminal, as the number of an escape sequence.
type style string

const (
	normal style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// cell is a piece of text with its style.
type cell struct {
	text  string
	style style
}

// styled makes a cell; plain values stand for themselves.
func styled(s style, value any) cell { return cell{fmt.Sprint(value), s} }

// page collects the text of an answer.
type page struct {
	bytes.Buffer
	colour bool
}

// put writes text in a style, on one line.
func (p *page) put(c cell) { p.paint(folded(c.text), c.style) }

// paint writes what is safe to show.
func (p *page) paint(text string, s style) {
	if p.colour && s != normal && text != "" {
		text = "\x1b[" + string(s) + "m" + text + "\x1b[0m"
	}
	p.WriteString(text)
}

// hanging is how far the further lines of a text stand in, so that they cannot pass for lines of the command.
const hanging = 4

// say writes one line. Its arguments are escaped, so that no text of others reaches the terminal as it is. Their line
// breaks stay.
func (p *page) say(format string, args ...any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = indented(v, hanging)
		case error:
			args[i] = indented(v.Error(), hanging)
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

// table writes rows under a header, in columns two spaces apart. A cell is a cell or anything that prints, and a row is
// one line.
func (p *page) table(header []string, rows [][]any) {
	all := make([][]cell, 0, len(rows)+1)
	head := make([]cell, len(header))
	for i, name := range header {
		head[i] = cell{name, bold}
	}
	all = append(all, head)
	for _, row := range rows {
		cells := make([]cell, len(row))
		for i, v := range row {
			if c, ok := v.(cell); ok {
				cells[i] = c
			} else {
				cells[i] = styled(normal, v)
			}
			if cells[i].text = folded(cells[i].text); cells[i].text == "" {
				cells[i] = cell{"-", faint}
			}
		}
		all = append(all, cells)
	}
	p.columns(all)
}

// facts writes pairs of a name and a value, without those that are empty. The line breaks of a value stay.
func (p *page) facts(pairs ...any) {
	var rows [][]cell
	for i := 0; i+1 < len(pairs); i += 2 {
		value, ok := pairs[i+1].(cell)
		if !ok {
			value = styled(normal, pairs[i+1])
		}
		if value.text != "" {
			rows = append(rows, []cell{{fmt.Sprint(pairs[i]), faint}, value})
		}
	}
	p.columns(rows)
}

// columns writes rows in columns. The last cell of a row may have several lines.
func (p *page) columns(rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(folded(c.text)))
		}
	}
	for _, row := range rows {
		begins := 0
		for i, c := range row {
			if i == len(row)-1 {
				p.paint(indented(c.text, begins), c.style)
				break
			}
			p.put(c)
			p.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(folded(c.text))+2))
			begins += widths[i] + 2
		}
		p.WriteByte('\n')
	}
}

// printable quotes what could break a line or a terminal.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// textLines splits a text of others at its line breaks, and makes each line printable. Tabs become spaces.
func textLines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(text)
	out := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range out {
		out[i] = printable(line)
	}
	return out
}

// indented is such a text whose further lines begin so many columns in.
func indented(text string, columns int) string {
	return strings.ReplaceAll(strings.Join(textLines(text), "\n"), "\n", "\n"+strings.Repeat(" ", columns))
}

// folded is a text of others on one line.
func folded(text string) string { return printable(prose.Folded(text)) }

// instant is a time for people; empty for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Words that other packages need, too.
var (
	count, span, join, ranges = prose.Count, prose.Span, prose.Join, prose.Ranges
	message, redact, shorten  = prose.Message, prose.Redact, prose.Cut
)

// redacting is a writer that redacts; what it gets is whole messages.
type redacting struct{ to io.Writer }

func (r *redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.to, redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// utc makes times of answers the same everywhere.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// flush writes what is left of a stream of text.
func (a *app) write(text string) error {
	_, err := io.WriteString(a.out, text)
	return err
}
