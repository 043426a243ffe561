package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/library"
)

// The headers of the functions say what arguments they take and what they answer. Every call that scenarios make by themselves is held to
// them, so that a header cannot say what is not so. Its words:
//
//	word            one slot
//	OK 0 a|b        one slot with this text, or one of these
//	{a b}           the slots in it so many times as the word before says
//	{* a b}         the slots in it any number of times
//	[a b]           the slots in it, or nothing
//	(x or y)        one or the other, also within the other brackets
//	{as ff_x}       what ff_x answers behind its OK
//	x; y            in replies: one or the other, by the first word; "the same" is what follows the first word of x
type shape interface {
	// ends are the places behind this part of slots, if it begins at from.
	ends(slots []string, from int) []int
}

type (
	word     struct{}
	literal  []string
	repeated struct {
		part    sequence
		counted bool // the slot before tells how often; else it may be any number of times
	}
	optional struct{ part sequence }
	sequence []shape
	either   []sequence
)

func (word) ends(slots []string, from int) []int {
	if from < len(slots) {
		return []int{from + 1}
	}
	return nil
}

func (l literal) ends(slots []string, from int) []int {
	if from < len(slots) && slices.Contains(l, slots[from]) {
		return []int{from + 1}
	}
	return nil
}

func (r repeated) ends(slots []string, from int) []int {
	at := []int{from}
	if r.counted {
		n, err := strconv.Atoi(slots[from-1])
		if err != nil {
			return nil
		}
		for range n {
			if at = all(at, slots, r.part); len(at) == 0 {
				return nil
			}
		}
		return at
	}
	out := at
	for len(at) > 0 {
		at = slices.DeleteFunc(all(at, slots, r.part), func(i int) bool { return slices.Contains(out, i) })
		out = append(out, at...)
	}
	return out
}

func (o optional) ends(slots []string, from int) []int {
	return append(o.part.ends(slots, from), from)
}

func (s sequence) ends(slots []string, from int) []int {
	at := []int{from}
	for _, part := range s {
		at = all(at, slots, part)
	}
	return at
}

func (e either) ends(slots []string, from int) (out []int) {
	for _, s := range e {
		out = append(out, s.ends(slots, from)...)
	}
	return out
}

func all(from []int, slots []string, part shape) (out []int) {
	for _, i := range from {
		for _, end := range part.ends(slots, i) {
			if !slices.Contains(out, end) {
				out = append(out, end)
			}
		}
	}
	return out
}

func fits(s shape, slots []string) bool { return slices.Contains(s.ends(slots, 0), len(slots)) }

// header is what a function's header says.
type header struct {
	args    shape
	replies map[string]shape // by the first word
	errors  []string
}

var headers = sync.OnceValues(func() (map[string]header, error) {
	out := map[string]header{}
	replies := map[string]string{}
	for _, h := range library.Functions() {
		replies[h.Name] = h.Replies
	}
	for _, h := range library.Functions() {
		x := header{replies: map[string]shape{}, errors: h.Errors}
		text := h.Args
		if text == "none, no keys" {
			text = ""
		}
		p := parser{text: text, replies: replies}
		if x.args = p.all(); p.err != nil {
			return nil, fmt.Errorf("%s: arguments %q: %w", h.Name, h.Args, p.err)
		}
		first := ""
		for _, form := range strings.Split(h.Replies, ";") {
			code, rest, _ := strings.Cut(strings.TrimSpace(form), " ")
			if rest == "the same" {
				rest = first
			}
			first = rest
			p := parser{text: rest, replies: replies}
			if x.replies[code] = p.all(); p.err != nil {
				return nil, fmt.Errorf("%s: replies %q: %w", h.Name, h.Replies, p.err)
			}
		}
		out[h.Name] = x
	}
	return out, nil
})

type parser struct {
	text    string
	replies map[string]string
	err     error
}

// next is the next word or bracket, "" at the end.
func (p *parser) next() string {
	p.text = strings.TrimLeft(p.text, " ")
	if p.text == "" {
		return ""
	}
	n := strings.IndexAny(p.text, " {}[]()")
	if n < 0 {
		n = len(p.text)
	}
	n = max(n, 1)
	token := p.text[:n]
	p.text = p.text[n:]
	return token
}

func (p *parser) all() shape {
	s, end := p.parts()
	if end != "" && p.err == nil {
		p.err = fmt.Errorf("%s without its other half", end)
	}
	return s
}

// parts reads up to a closing bracket, which it returns.
func (p *parser) parts() (e either, end string) {
	var s sequence
	for p.err == nil {
		switch token := p.next(); token {
		case "", "}", "]", ")":
			return append(e, s), token
		case "or":
			e, s = append(e, s), nil
		case "{":
			if name, ok := strings.CutPrefix(p.text, "as "); ok {
				name, p.text, _ = strings.Cut(name, "}")
				inner := parser{text: strings.TrimPrefix(p.replies[name], "OK "), replies: p.replies}
				s = append(s, inner.all())
				p.err = inner.err
				continue
			}
			var free bool
			if p.text, free = strings.CutPrefix(p.text, "* "); !free && !counts(s) && p.err == nil {
				p.err = fmt.Errorf("nothing says how often { is repeated")
			}
			s = append(s, repeated{p.within("{", "}"), !free})
		case "[":
			s = append(s, optional{p.within("[", "]")})
		case "(":
			s = append(s, p.within("(", ")"))
		default:
			switch {
			case strings.Contains(token, "|"):
				s = append(s, literal(strings.Split(token, "|")))
			case strings.Trim(token, "0123456789") == "", strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "":
				s = append(s, literal{token})
			default:
				s = append(s, word{})
			}
		}
	}
	return e, ""
}

// counts tells whether a sequence ends with a slot that can be a number.
func counts(s sequence) bool {
	if len(s) == 0 {
		return false
	}
	switch s[len(s)-1].(type) {
	case word:
		return true
	}
	return false
}

// within is what stands before the other half of a bracket.
func (p *parser) within(open, closed string) sequence {
	part, end := p.parts()
	if end != closed && p.err == nil {
		p.err = fmt.Errorf("%s without its other half", open)
	}
	return sequence{part}
}

// shaped holds a call to the header of its function.
func (w *env) shaped(name string, args []string, a answer) {
	w.Helper()
	known, err := headers()
	w.no(err)
	h := known[name]
	if a.status == 0 {
		if !slices.Contains(h.errors, a.code) {
			w.Errorf("%s refuses with %s, which is not among the errors of its header", name, a.code)
		}
		return
	}
	if !w.hostile && !fits(h.args, args) {
		w.Errorf("%s took %.300q, which its header does not say", name, args)
	}
	reply, ok := h.replies[a.code]
	if !ok || !fits(reply, a.slots) {
		w.Errorf("%s answered %s %.2000q, which its header does not say", name, a.code, a.slots)
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		text, slots string
		want        bool
	}{
		{"a b", "1 2", true}, {"a b", "1", false}, {"a", "1 2", false}, {"", "", true}, {"", "1", false},
		{"a count {b c}", "1 2 b c b c", true}, {"a count {b c}", "1 2 b c b", false}, {"a count {b c}", "1 x b c", false}, {"count {b}", "0", true},
		{"a [b c] d", "1 2", true}, {"a [b c] d", "1 2 3 4", true}, {"a [b c] d", "1 2 3", false},
		{"count {a n {b}}", "2 x 1 b y 0", true}, {"count {a n {b}}", "2 x 2 b y 0", false},
		{"done|failed 0", "failed 0", true}, {"done|failed 0", "lost 0", false}, {"done|failed 0", "done 1", false},
		{"n {a} or N b {* a}", "1 x", true}, {"0 (n {a} or N b)", "0 N y", true}, {"n {a} or N b", "8 y", false}, {"x (y or z {* a})", "1 2 3 4", true},
		{"x {as f}", "1 n 2 c c", true}, {"x {as f}", "1 n 2 c", false}, {"[a] {* b c}", "1 2 3", true}, {"{* b c}", "1 2 3", false},
	} {
		p := parser{text: c.text, replies: map[string]string{"f": "OK n count {c}"}}
		s := p.all()
		if p.err != nil || fits(s, strings.Fields(c.slots)) != c.want {
			t.Errorf("%q fits %q: %v (%v), want %v", c.slots, c.text, !c.want, p.err, c.want)
		}
	}
	for _, text := range []string{"{a", "a]", "[a} b", "a }", "(a", "{a}"} {
		if p := (parser{text: text}); p.all() == nil || p.err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if _, err := headers(); err != nil {
		t.Error(err)
	}
}
