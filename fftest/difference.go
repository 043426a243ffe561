package fftest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// shown is how long a value may be that a complaint shows in full.
	shown = 200
	// around is how much of a longer one is shown before the first difference, and half of what is shown after it.
	around = 40
)

// findings are the complaints of all runs of one [Crashes], by what they are about. Each is made once, with what the
// first run shows: the others show mostly the same.
type findings map[string]int

// new tells whether nothing was complained of about this yet. The nil findings keep no count.
func (f findings) new(about string) bool {
	if f != nil {
		f[about]++
	}
	return f == nil || f[about] == 1
}

// differ is two values as a complaint shows them: in full if they are short, else from shortly before the first
// difference on, behind their beginning.
func differ(format string, got, want any) (string, string) {
	a, b := fmt.Sprintf(format, got), fmt.Sprintf(format, want)
	if strings.Contains(a+b, "0xc") { // addresses say nothing
		x, errX := json.Marshal(got)
		if y, errY := json.Marshal(want); errX == nil && errY == nil {
			a, b = string(x), string(y)
		}
	}
	if len(a) <= shown && len(b) <= shown {
		return a, b
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return excerpt(a, at), excerpt(b, at)
}

// excerpt is the beginning of a text and what is around one of its bytes.
func excerpt(text string, at int) string {
	piece := func(from, to int) string { return strings.ToValidUTF8(text[from:to], "") }
	from, to := max(0, at-around), min(len(text), at+2*around)
	head, tail := "", ""
	switch {
	case from > around:
		head = piece(0, around) + " … "
	default:
		from = 0
	}
	if to < len(text) {
		tail = " …"
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	return fmt.Sprintf("%s%s%s (difference at byte %d of %d)", head, piece(from, to), tail, at+1, len(text))
}

// differList is differ for lists: of long ones it is about the first element that differs.
func differList[T any](got, want []T) (string, string) {
	quoted := func(v any) string { return fmt.Sprintf("%q", v) }
	a, b := quoted(got), quoted(want)
	if len(a) <= shown && len(b) <= shown {
		return a, b
	}
	text := func(list []T, i int) string {
		if i < len(list) {
			return quoted(list[i])
		}
		return "nothing"
	}
	at := 0
	for at < min(len(got), len(want)) && text(got, at) == text(want, at) {
		at++
	}
	a, b = differ("%s", text(got, at), text(want, at))
	place := func(list []T) string { return fmt.Sprintf(" (%d of %d)", at+1, len(list)) }
	return a + place(got), b + place(want)
}
