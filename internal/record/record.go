// Package record reads and writes the string that holds one execution. It is the twin of lua/lib/record.lua, which
// says what the fields mean; a test holds the two together over random records. The engine reads inputs and results
// with it, the checks of internal/invariant whole records. Only a function on the server ever writes one, but for
// tests that damage them.
package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Inline is how many bytes an input or a result may have that is part of the record.
const Inline = 1024

// Words are the fields in the record's first words, "-" where they are absent; n is the number of the last attempt.
var words = []string{"s", "ss", "cl", "e", "n", "en", "rz", "la", "st", "ty", "rc", "lc", "r", "ct", "pr", "po",
	"pd", "in"}

// named are the fields that follow with their names, in this order.
var named = strings.Fields(
	"ta du tr to dl rt fl nd g wt ip dd fa sb so tg ca cr fc cb cs lr rq rv ds pu pc tt wp uw sg rw gq mb sd rs ab " +
		"gx gs gn ge lk rd rx aw fo bs fr tn sp bz ky")

// Record is one execution as it is stored.
type Record struct {
	Fields map[string]string // by their short names; absent ones are not there
	Input  string            // if it has at most Inline bytes
	Result string            // likewise, of the last attempt
}

var escape = strings.NewReplacer(" ", "%s", "\n", "%n", "\t", "%t", "\r", "%r", "\v", "%v", "\f", "%f", "%", "%%")

func word(text string) string {
	switch text {
	case "":
		return "%e"
	case "-":
		return "%-"
	}
	return escape.Replace(text)
}

var meanings = map[byte]string{'s': " ", 'n': "\n", 't': "\t", 'r': "\r", 'v': "\v", 'f': "\f", '%': "%", '-': "-",
	'e': ""}

func meaning(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '%' && i+1 < len(word) {
			if text, ok := meanings[word[i+1]]; ok {
				b.WriteString(text)
				i++
				continue
			}
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

// Decode reads a record.
func Decode(text string) (Record, error) {
	line, body, ok := strings.Cut(text, "\n")
	list := strings.Split(line, " ")
	if !ok || len(list) < len(words) {
		return Record{}, fmt.Errorf("no record of an execution: %.40q", text)
	}
	r := Record{Fields: make(map[string]string, len(list))}
	for i, name := range words {
		if list[i] != "-" {
			r.Fields[name] = meaning(list[i])
		}
	}
	for _, pair := range list[len(words):] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !slices.Contains(named, name) {
			return Record{}, fmt.Errorf("a record has a field %.40q", pair)
		}
		r.Fields[name] = meaning(value)
	}
	if op, slot, ok := strings.Cut(r.Fields["lr"], ",,,"); ok && len(op) == 1 {
		r.Fields["lr"] = strings.Join([]string{op, list[3], list[4], slot}, ",")
	}
	size, err := r.inline("in")
	if err != nil {
		return Record{}, err
	}
	rest, err := r.inline("rz")
	if err != nil {
		return Record{}, err
	}
	if size+rest != len(body) {
		return Record{}, fmt.Errorf("a record has %d bytes behind its fields, they say %d", len(body), size+rest)
	}
	r.Input, r.Result = body[:size], body[size:]
	return r, nil
}

// inline is how many bytes of the body belong to a field that says how large a payload is.
func (r Record) inline(field string) (int, error) {
	text, ok := r.Fields[field]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("field %s of a record is %.40q", field, text)
	}
	if n > Inline {
		return 0, nil
	}
	return n, nil
}

// Encode writes a record.
func (r Record) Encode() string {
	var b strings.Builder
	for i, name := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if v, ok := r.Fields[name]; ok {
			b.WriteString(word(v))
		} else {
			b.WriteByte('-')
		}
	}
	for _, name := range named {
		if v, ok := r.Fields[name]; ok {
			b.WriteString(" " + name + "=" + word(v))
		}
	}
	return b.String() + "\n" + r.Input + r.Result
}

// Attempt is the number of the current or last attempt, 0 before the first.
func (r Record) Attempt() uint32 {
	n, _ := strconv.ParseUint(r.Fields["n"], 10, 32) // one that cannot be read counts as none
	return uint32(n)
}
