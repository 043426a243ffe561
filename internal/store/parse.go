package store

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// integer reads a whole number as Redis does: in the one way in which it is written.
func integer(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '+' || digits[0] == '-' || digits[0] == '0' && s != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// scan is what the commands that list in pages are told.
type scan struct {
	cursor uint64
	count  int
	match  *glob
	kind   string
}

// newScan reads the cursor.
func newScan(cursor string) (q scan, fault *reply) {
	at, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return q, &errCursor
	}
	return scan{cursor: at, count: 10}, nil
}

// options reads [MATCH pattern] [COUNT n], for SCAN also [TYPE name].
func (q *scan) options(args []string, types bool) *reply {
	for ; len(args) > 1; args = args[2:] {
		switch strings.ToUpper(args[0]) {
		case "MATCH":
			q.match = newGlob(args[1])
		case "COUNT":
			n, whole := integer(args[1])
			if !whole {
				return &errNotInteger
			}
			if n < 1 {
				return &errSyntax
			}
			q.count = int(n)
		case "TYPE":
			if !types {
				return &errSyntax
			}
			q.kind = cmp.Or(strings.ToLower(args[1]), "none")
		default:
			return &errSyntax
		}
	}
	if len(args) != 0 {
		return &errSyntax
	}
	return nil
}

// takes reports whether a page has a name.
func (q *scan) takes(name string) bool { return q.match == nil || q.match.matches(name) }

// page is the answer of a command that lists in pages: where the next one begins, and what this one has.
func page(next uint64, items []reply) reply {
	return list([]reply{text(strconv.FormatUint(next, 10)), list(items)})
}

// count reads how many a command is to take, which is not negative.
func count(arg string) (int, *reply) {
	n, whole := integer(arg)
	if !whole || n < 0 {
		return 0, &errNotPositive
	}
	return int(n), nil
}

// window turns the first and the last index of a range, of which negative ones count from the end, into the bounds of
// a slice of n.
func window(first, last string, n int) (from, to int, fault *reply) {
	a, whole1 := integer(first)
	b, whole2 := integer(last)
	if !whole1 || !whole2 {
		return 0, 0, &errNotInteger
	}
	if a < 0 {
		a = max(a+int64(n), 0)
	}
	if b < 0 {
		b += int64(n)
	}
	b = min(b, int64(n)-1)
	if a > b {
		return 0, 0, nil
	}
	return int(a), int(b) + 1, nil
}

// arity is the error of a command that takes its arguments in pairs.
func arity(c *call) reply {
	return functions.Error("ERR wrong number of arguments for '" + strings.ToLower(c.args[0]) + "' command")
}

// glob is a pattern: * any text, ? any byte, [a-c] and [^a-c] one of some bytes, \x the byte x.
type glob struct {
	pattern string
	prefix  string // what all that match begin with
	rest    bool   // anything may follow it, and nothing else is asked
}

func newGlob(pattern string) *glob {
	g := &glob{pattern: pattern, prefix: pattern}
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		g.prefix = pattern[:i]
		g.rest = strings.Trim(pattern[i:], "*") == ""
	}
	return g
}

func (g *glob) matches(name string) bool {
	return strings.HasPrefix(name, g.prefix) && (g.rest || globbed(g.pattern[len(g.prefix):], name[len(g.prefix):]))
}

// globbed matches by going back to the last star, so that it takes at most the product of the two lengths.
func globbed(p, s string) bool {
	star, after, behind := false, "", "" // the pattern behind the last star, and the text it has not taken
	for {
		switch {
		case p != "" && p[0] == '*':
			p = p[1:]
			star, after, behind = true, p, s
			continue
		case p == "" && s == "":
			return true
		case p != "" && s != "":
			if rest, same := one(p, s[0]); same {
				p, s = rest, s[1:]
				continue
			}
		}
		if !star || behind == "" {
			return false
		}
		behind = behind[1:]
		p, s = after, behind
	}
}

// one matches one byte with the head of a pattern, and returns the rest of the pattern.
func one(p string, b byte) (rest string, same bool) {
	switch {
	case p[0] == '?':
		return p[1:], true
	case p[0] == '\\' && len(p) > 1:
		return p[2:], p[1] == b
	case p[0] != '[':
		return p[1:], p[0] == b
	}
	p = p[1:]
	not := strings.HasPrefix(p, "^")
	if not {
		p = p[1:]
	}
	for found := false; ; {
		switch {
		case p == "":
			return "", found != not
		case p[0] == ']':
			return p[1:], found != not
		case p[0] == '\\' && len(p) > 1:
			found = found || p[1] == b
			p = p[2:]
		case len(p) > 2 && p[1] == '-':
			found = found || min(p[0], p[2]) <= b && b <= max(p[0], p[2])
			p = p[3:]
		default:
			found = found || p[0] == b
			p = p[1:]
		}
	}
}
