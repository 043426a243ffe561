package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// words parses text as arguments.
func words(text string) (Sequence, error) {
	p := parser{text: text, groups: map[string]string{"pair": "a:n b:n", "loop": "loop"}}
	p.replies = func(string) (Sequence, error) { return words("n:n rows:rows {c:n}") }
	return p.all()
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		text, slots string
		want        bool
	}{
		{"a:n b:n", "1 2", true}, {"a:n b:n", "1", false}, {"a:n", "1 2", false}, {"", "", true}, {"", "1", false},
		{"a:n rows:rows {b:text c:text}", "1 2 b c b c", true}, {"rows:rows {b:text c:text}", "2 b c b", false},
		{"rows:rows {b:text}", "x b", false}, {"rows:rows {b:n}", "0", true}, {"rows:rows(0..1) {b:n}", "2 1 1", false},
		{"rows:rows {b:n}", "9007199254740991 1", false},
		{"a:n [b:n c:n] d:n", "1 2", true}, {"a:n [b:n c:n] d:n", "1 2 3 4", true},
		{"a:n [b:n c:n] d:n", "1 2 3", false},
		{"rows:rows {a:text n:rows {b:text}}", "2 x 1 b y 0", true},
		{"rows:rows {a:text n:rows {b:text}}", "2 x 2 b y 0", false},
		{"done|failed 0", "failed 0", true}, {"done|failed 0", "lost 0", false}, {`"done" 0`, "done 0", true},
		{"n:rows {a:n} or N b:text {* a:text}", "1 2", true}, {"0 (n:rows {a:text} or N b:text)", "0 N y", true},
		{"n:rows {a:text} or N b:text", "8 y", false}, {"x:n (y:n or z:n {* a:n})", "1 2 3 4", true},
		{"x:n {as f}", "1 9 2 3 4", true}, {"x:n {as f}", "1 9 2 3", false}, {"[a:n] {* b:n c:n}", "1 2 3", true},
		{"{* b:n c:n}", "1 2 3", false}, {"pair c:n", "1 2 3", true}, {"pair", "1", false},
	} {
		s, err := words(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if values, err := Decode(s, strings.Fields(c.slots)); (err == nil) != c.want {
			t.Errorf("%q as %q: %v, %v", c.slots, c.text, values, err)
		}
	}
	for _, text := range []string{"{a:n", "a:n]", "[a:n} b:n", "a:n }", "(a:n", "{a:n}", "a:n {b:n}", "a", "a:what",
		"loop", "a:n(2..1)", "a:n(x)", "a:enum(suspension.nothing)", "a:flag(1)"} {
		if s, err := words(text); err == nil {
			t.Errorf("%q is taken as %v", text, s)
		}
	}
}

func TestDecode(t *testing.T) {
	s, err := words("id:id list:rows(0..2) {name:name(3) at:instant?} rest:bytes(2)")
	must.No(t, err)
	id := strings.Repeat("i", 36)
	values, err := Decode(s, []string{id, "2", "a", "", "b", "17", "xy"})
	must.No(t, err)
	var got []string
	for _, v := range values {
		got = append(got, v.Slot.Name+"="+v.Text)
	}
	if want := []string{"id=" + id, "list=2", "name=a", "at=", "name=b", "at=17", "rest=xy"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for want, slots := range map[string][]string{
		`slot 2 is "long", want name:name(1..3)`: {id, "1", "long", "", ""},
		`slot 1 is "3", want list:rows(0..2)`:    {id, "3", "a", ""},
		`4 slots, want rest:bytes(0..2) behind`:  {id, "1", "a", ""},
		`slot 5 is "z", want the end`:            {id, "1", "a", "", "y", "z"},
	} {
		if _, err := Decode(s, slots); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", slots, err, want)
		}
	}
}

func TestTypes(t *testing.T) {
	uuid := "0192f0c1-0000-7000-8000-000000000000"
	for text, x := range map[string]struct{ good, bad []string }{
		"n(2..10)":               {[]string{"2", "10"}, []string{"1", "11", "", "02", "+2", "-2", "2.0"}},
		"n(1..)":                 {[]string{"1", "9007199254740991"}, []string{"0", "9007199254740992"}},
		"rows(5)":                {[]string{"0", "5"}, []string{"6"}},
		"ms(1..2)":               {[]string{"1"}, []string{"0"}},
		"instant":                {[]string{"0", "1795765480995"}, []string{"now"}},
		"flag":                   {[]string{"0", "1"}, []string{"2", ""}},
		"int":                    {[]string{"0", "-5", "7", "-0"}, []string{"05", "--5", "x", ""}},
		"score":                  {[]string{"1.5", "-2", "1e+17", "inf"}, []string{"x", ""}},
		"when":                   {[]string{"0", "+5", "17"}, []string{"-5", "++5", ""}},
		"bytes(1..3)":            {[]string{"a", "\x00\xffé"[:3]}, []string{"", "abcd"}},
		"ascii(3)":               {[]string{"", "{a}"}, []string{"é", "\n"}},
		"line(3)":                {[]string{"", "aé"}, []string{"a\n", "abcd", "\x7f"}},
		"name(3)":                {[]string{"a b"}, []string{"", "{", ".", "..", "é", "abcd"}},
		"service":                {[]string{"openai/gpt-5", "9"}, []string{"", "/a", "a b", "a:b"}},
		"label":                  {[]string{"a.b-c_D", "9"}, []string{"", ".a", "a b", strings.Repeat("a", 65)}},
		"uuid":                   {[]string{uuid}, []string{strings.ToUpper(uuid), uuid[1:], ""}},
		"id":                     {[]string{uuid, strings.Repeat("\n", 36)}, []string{uuid + "x", ""}},
		"ref":                    {[]string{"12." + uuid}, []string{uuid, "012." + uuid, "123456." + uuid}},
		"tag":                    {[]string{"a.b", "a.b_1.c"}, []string{"a", "a.", ".a", "A.b", "a..b"}},
		"kid":                    {[]string{"k1"}, []string{"", "k 1", strings.Repeat("k", 33)}},
		"hex(4)":                 {[]string{"00ff"}, []string{"00f", "00ff0", "00FF"}},
		"hex(0..4)":              {[]string{"", "00ff"}, []string{"g"}},
		"object(9)":              {[]string{"{}"}, []string{"", "[]", "{ 1234567 }"}},
		"a|b|":                   {[]string{"a", "b", ""}, []string{"c"}},
		"code":                   {[]string{"A1", "R3f"}, []string{"a1", "", "A"}},
		"enum(suspension.codes)": {[]string{"manual_pause", "waiting_for_signal"}, []string{"S1", ""}},
		"text":                   {[]string{"", "\x00"}, nil},
	} {
		typ, err := parseType(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, slot := range x.good {
			if !typ.Holds(slot) {
				t.Errorf("%s refuses %q", text, slot)
			}
		}
		for _, slot := range x.bad {
			if typ.Holds(slot) {
				t.Errorf("%s holds %q", text, slot)
			}
		}
		if again, err := parseType(typ.String()); err != nil || again.String() != typ.String() {
			t.Errorf("%s is written as %s: %v", text, typ, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	groups, err := readGroups()
	must.No(t, err)
	for _, f := range Functions() {
		if f.Args != nil && f.Args[0].(Group).Name != "protocol" {
			t.Errorf("%s has no protocol number", f.Name)
		}
	}
	r := resolver{groups: groups, lines: map[string]map[string]string{}, done: map[string]Function{}}
	for _, f := range Functions() {
		r.lines[f.Name] = split(f.File)
	}
	r.lines["core"] = split("lib/core.lua")
	if _, err := r.function("lib/core.lua"); err == nil || !strings.Contains(err.Error(), "lua/lib/core.lua") {
		t.Errorf("a file without header: %v", err)
	}
	all := ""
	for _, f := range Functions() {
		for _, part := range r.lines[f.Name] {
			all += part + " "
		}
	}
	for _, text := range groups {
		all += text + " "
	}
	used := strings.FieldsFunc(all, func(r rune) bool { return strings.ContainsRune(" {}[]();", r) })
	for name := range groups {
		if !slices.Contains(used, name) {
			t.Errorf("nothing names the group %s", name)
		}
	}
}

// A header that somebody types may be anything; the parser returns, and what it took it can hold slots to.
func FuzzHeader(f *testing.F) {
	for _, text := range []string{"a:n(1..2)? [b:rows {c:text}] {* d:x|y}", "(a:n or pair) {as f}", `"x" {* }`, "((((",
		"a:n("} {
		f.Add(text, "1 2 3")
	}
	f.Fuzz(func(t *testing.T, text, slots string) {
		s, err := words(text)
		if err != nil || len(text) > 100 || len(slots) > 40 {
			return
		}
		_, _ = Decode(s, strings.Fields(slots))
	})
}
