package contract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/lua"
)

// Type is what a slot may hold. The types, with bounds in brackets, of which the lower one is 0 and the upper one the
// largest that the type has unless they are said:
//
//	n(1..9)       a whole number in decimal, without sign and leading zeros
//	rows(1..9)    the same; so many rows follow
//	ms(1..9)      the same, a duration in milliseconds
//	instant       the same, milliseconds since 1970
//	flag          0 or 1
//	int           a whole number that may be negative
//	score         a number as sorted sets have it
//	scan          the cursor of a scan, a whole number
//	when          an instant, or + and milliseconds from now
//	bytes(1..9)   so many bytes
//	ascii(1..9)   so many bytes of printable ASCII
//	line(1..9)    so many bytes without control characters
//	name(9)       1 to so many bytes of printable ASCII without braces, neither . nor ..
//	label         1 to 64 letters, digits, _ . and -, a letter or digit first
//	dimension     1 to 64 lower-case letters, digits, _ and ., a letter first
//	service       likewise, and /: the name of a gate of a service
//	gate          a service, or a limit of a key: @<at once>.<starts>.<window, ms>@<key>
//	uuid          a UUID in lower case
//	id            36 bytes
//	ref           the partition and the id of an execution, as in 12.uuid
//	tag           the key of a tag
//	kid           the name of a token key
//	hex(16)       so many hexadecimal digits
//	object(9)     a JSON object of at most so many bytes
//	a|b           one of these texts
//	enum(x.y)     a key of the table y in lua/lib/x.lua
//	code          the code of a state, as in W1 or S3i
//	text          anything; who reads it knows its form
type Type struct {
	Name   string
	Lo, Hi int64
	Words  []string // of an enum
	Table  string   // whose keys the words are, "" for none
}

const whole = 1<<53 - 1

var (
	call   = regexp.MustCompile(`^([a-z]+)(?:\(([^()]*)\))?$`)
	digits = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`)
	forms  = map[string]*regexp.Regexp{
		"int":   regexp.MustCompile(`^-?(0|[1-9][0-9]{0,15})$`),
		"score": regexp.MustCompile(`^-?[0-9.]+(e[+-]?[0-9]+)?$|^[+-]?inf$`),
		"when":  regexp.MustCompile(`^\+?(0|[1-9][0-9]{0,15})$`),
		"gate": regexp.MustCompile(
			`^([A-Za-z0-9][A-Za-z0-9_./-]{0,63}|@\d+\.\d+\.\d+@[A-Za-z0-9_.:/@+=%-]{1,128})$`),
		"dimension": regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`),
		"label":     regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`),
		"service":   regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$`),
		"uuid":      regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
		"id":        regexp.MustCompile(`(?s)^.{36}$`),
		"ref":       regexp.MustCompile(`(?s)^(0|[1-9][0-9]{0,4})\..{36}$`),
		"tag":       regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$`),
		"kid":       regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`),
		"code":      regexp.MustCompile(`^[A-Z][0-9a-z]{1,3}$`),
		"scan":      regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`),
		"flag":      regexp.MustCompile(`^[01]$`),
		"text":      regexp.MustCompile(``),
	}
	numbers = []string{"n", "rows", "ms", "instant"}
	sized   = []string{"bytes", "ascii", "line", "name", "hex", "object"}
)

func parseType(text string) (Type, error) {
	if strings.Contains(text, "|") {
		return Type{Name: "enum", Words: strings.Split(text, "|")}, nil
	}
	m := call.FindStringSubmatch(text)
	if m == nil {
		return Type{}, fmt.Errorf("%q is no type", text)
	}
	t, bounds := Type{Name: m[1], Hi: math.MaxInt64}, m[2]
	switch {
	case t.Name == "enum":
		var err error
		t.Words, err = keysOf(bounds)
		t.Name, t.Table = "enum", bounds
		return t, err
	case slices.Contains(numbers, t.Name):
		t.Hi = whole
	case slices.Contains(sized, t.Name):
		if t.Name == "name" {
			t.Lo = 1
		}
	case forms[t.Name] == nil || bounds != "":
		return Type{}, fmt.Errorf("%q is no type", text)
	}
	if bounds == "" {
		return t, nil
	}
	lo, hi, both := strings.Cut(bounds, "..")
	if !both {
		lo, hi = "", bounds
		if t.Name == "hex" {
			lo = bounds
		}
	}
	for _, x := range []struct {
		text string
		n    *int64
	}{{lo, &t.Lo}, {hi, &t.Hi}} {
		if x.text == "" {
			continue
		}
		n, err := strconv.ParseInt(x.text, 10, 64)
		if err != nil {
			return Type{}, fmt.Errorf("%q: %q is no bound", text, x.text)
		}
		*x.n = n
	}
	if t.Lo > t.Hi {
		return Type{}, fmt.Errorf("%q: nothing is between its bounds", text)
	}
	return t, nil
}

// Holds tells whether a slot is of the type.
func (t Type) Holds(slot string) bool {
	switch {
	case t.Name == "enum":
		return slices.Contains(t.Words, slot)
	case slices.Contains(numbers, t.Name):
		n, err := strconv.ParseInt(slot, 10, 64)
		return err == nil && digits.MatchString(slot) && n >= t.Lo && n <= t.Hi
	case slices.Contains(sized, t.Name):
		return int64(len(slot)) >= t.Lo && int64(len(slot)) <= t.Hi && t.spelt(slot)
	}
	return forms[t.Name].MatchString(slot)
}

// spelt tells whether a slot has only the characters of its type.
func (t Type) spelt(slot string) bool {
	switch t.Name {
	case "line":
		return !strings.ContainsFunc(slot, func(r rune) bool { return r < ' ' || r == 0x7f })
	case "ascii":
		return !strings.ContainsFunc(slot, func(r rune) bool { return r < ' ' || r > '~' })
	case "name":
		return slot != "." && slot != ".." &&
			!strings.ContainsFunc(slot, func(r rune) bool { return r < ' ' || r > '~' || r == '{' || r == '}' })
	case "hex":
		return strings.Trim(slot, "0123456789abcdef") == ""
	case "object":
		return strings.HasPrefix(slot, "{") && strings.HasSuffix(slot, "}")
	}
	return true
}

// String is the type as a header has it.
func (t Type) String() string {
	switch lo, hi := strconv.FormatInt(t.Lo, 10), strconv.FormatInt(t.Hi, 10); {
	case t.Name == "enum":
		return strings.Join(t.Words, "|")
	case t.Hi == math.MaxInt64 || t.Hi == whole && t.Lo == 0 || t.Hi == 0:
		return t.Name
	case t.Hi == whole:
		return t.Name + "(" + lo + "..)"
	default:
		return t.Name + "(" + lo + ".." + hi + ")"
	}
}

// Want is what a slot may hold, in words.
func (t Type) Want() string {
	lo, hi := strconv.FormatInt(t.Lo, 10), strconv.FormatInt(t.Hi, 10)
	span := lo + ".." + hi
	switch {
	case t.Lo == t.Hi:
		span = hi
	case t.Hi == whole || t.Hi == math.MaxInt64:
		span = "at least " + lo
	case t.Lo == 0 && slices.Contains(sized, t.Name):
		span = "at most " + hi
	}
	switch t.Name {
	case "enum":
		last := len(t.Words) - 1
		return strings.Join(t.Words[:last], ", ") + " or " + t.Words[last]
	case "n":
		if t.Lo == 0 && t.Hi == whole {
			return "a whole number"
		}
		return span
	case "ms":
		return span + " ms"
	case "bytes":
		return span + " bytes"
	case "ascii":
		return span + " bytes of printable ASCII"
	case "line":
		return span + " bytes without control characters"
	case "name":
		return span + " bytes of printable ASCII without braces"
	case "hex":
		return span + " hexadecimal digits"
	case "object":
		return "a JSON object of " + span + " bytes"
	}
	return map[string]string{"rows": span, "instant": "milliseconds since 1970", "flag": "0 or 1",
		"scan": "a cursor of an answer", "int": "a whole number",
		"score": "a number", "when": "milliseconds since 1970, or + and milliseconds from now",
		"gate":      "the name of a gate, or a limit of a key",
		"label":     "1..64 letters, digits, _ . and -, a letter or digit first",
		"service":   "1..64 letters, digits, _ . / and -, a letter or digit first",
		"dimension": "1..64 lower-case letters, digits, _ and ., a letter first", "uuid": "a UUID in lower case",
		"id": "36 bytes", "ref": "a partition and an id", "tag": "dotted lower-case parts, at most 64 bytes",
		"kid": "1..32 letters, digits, _ . and -", "code": "the code of a state", "text": "a text"}[t.Name]
}

var key = regexp.MustCompile(`\b([a-z_]+) =`)

// keysOf lists the keys of a table in lua/lib, which is written "file.table".
func keysOf(name string) ([]string, error) {
	file, table, _ := strings.Cut(name, ".")
	text, err := lua.Files.ReadFile("lib/" + file + ".lua")
	if err != nil {
		return nil, err
	}
	_, body, ok := strings.Cut(string(text), "\n"+file+"."+table+" = {")
	body, _, closed := strings.Cut(body, "}")
	if !ok || !closed {
		return nil, fmt.Errorf("lua/lib/%s.lua has no table %s", file, name)
	}
	var out []string
	for _, m := range key.FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out, nil
}
