package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

// file is what the template writes down: Go types of calls and answers.
type file struct {
	Name    string
	Parts   []*structure // parts of calls and answers, and rows
	Calls   []call
	All     []call // of all files
	Replies []call // those of them whose answers are not read by hand
}

// Times tells whether the file has a time or a duration in it.
func (f file) Times() bool {
	all := slices.Clone(f.Parts)
	for _, c := range f.Calls {
		all = append(all, c.Args)
		if c.Answer != nil {
			all = append(all, c.Answer)
		}
	}
	return slices.ContainsFunc(all, func(s *structure) bool {
		return slices.ContainsFunc(s.Fields, func(x field) bool { return strings.Contains(x.Type, "time.") })
	})
}

// call is a function with what it takes and answers.
type call struct {
	contract.Function
	Go     string // ListSessions
	Args   *structure
	Answer *structure // nil if it is read by hand
	ByHand bool
	Same   bool     // OK and ALREADY_SATISFIED answer the same
	Forms  [][]step // else the one and the other
}

// ReadOnly tells whether it writes nothing.
func (c call) ReadOnly() bool { return slices.Contains(c.Flags, "no-writes") }

// structure is a Go struct, with the steps that write or read it.
type structure struct {
	Name          string
	Doc           string
	File          string
	Fields        []field
	Steps         []step
	Written, Read bool
}

type field struct {
	Name, Type, Doc string
}

// step is a part of a call or an answer: a field, a fixed text, or rows.
type step struct {
	Kind    string // how a value is written and read: text, int, rows …
	Field   string
	Type    string // of an element of rows, or of a structure
	Element string // the kind of the elements of a list, or of what may be missing
	Text    string // a fixed one
	None    bool
	Width   int // the least number of slots in a row
}

// run are steps that one append writes, or one other step.
type run struct {
	Plain bool
	Steps []step
}

func runs(steps []step) (out []run) {
	for _, s := range steps {
		plain := s.Expr("") != ""
		if n := len(out); plain && n > 0 && out[n-1].Plain {
			out[n-1].Steps = append(out[n-1].Steps, s)
		} else {
			out = append(out, run{plain, []step{s}})
		}
	}
	return out
}

// Expr is how a field of x is written as one slot, "" if it takes several.
func (s step) Expr(x string) string {
	if s.Kind == "fixed" {
		return fmt.Sprintf("%q", s.Text)
	}
	return expr(s.Kind, x+s.Field, s.None)
}

// Each is how an element of a list is written, and Pointed what may be missing.
func (s step) Each() string    { return expr(s.Element, "x", s.None) }
func (s step) Pointed() string { return expr(s.Element, "*a."+s.Field, s.None) }

func expr(kind, x string, none bool) string {
	form, ok := map[string]string{"text": "%s", "int": "number(%s)", "intOr": "numberOr(%s)", "millis": "millis(%s)",
		"millisOr": "millisOr(%s)", "instant": "instant(%s)", "flag": "flag(%s)", "int?": "none(%s)",
		"millis?": "none(millis(%s))", "instant?": "none(instant(%s))"}[kind+map[bool]string{true: "?"}[none &&
		(kind == "int" || kind == "millis" || kind == "instant")]]
	if !ok {
		return ""
	}
	if form == "none(%s)" {
		form = "none(number(%s))"
	}
	return fmt.Sprintf(form, x)
}

// Method reads a field, and ElementMethod an element of a list, or what may be missing.
func (s step) Method() string        { return method(s.Kind, s.None) }
func (s step) ElementMethod() string { return method(s.Element, s.None) }

func method(kind string, none bool) string {
	if none && (kind == "int" || kind == "instant" || kind == "UUID") {
		kind += "Or0"
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}

// byHand are answers that the grammar cannot read plainly: what a slot says of the slots behind it.
var byHand = []string{"ff_claim_next", "ff_claim_granted", "ff_complete_execution"}

type builder struct {
	area    string // of the function
	group   string // whose rows are being read, "" outside one
	shared  map[string]*structure
	order   []string
	reading bool // of an answer: what is missing must be plain before what follows it
}

// parts is the file of what several areas share.
const parts = "parts"

// build makes a file for each area of functions, and one for what they share.
func build(functions []contract.Function) ([]file, error) {
	b := builder{shared: map[string]*structure{}}
	var all, replies []call
	calls := map[string][]call{}
	for _, f := range functions {
		c := call{Function: f, Go: contract.GoName(strings.TrimPrefix(f.Name, "ff_"))}
		c.ByHand = slices.Contains(byHand, f.Name)
		b.area, b.reading = path.Dir(f.File), false
		var err error
		if c.Args, err = b.structure(c.Go, skipProtocol(f.Args)); err != nil {
			return nil, fmt.Errorf("%s: Args: %w", f.Name, err)
		}
		b.used(c.Args, func(s *structure) { s.Written = true })
		if !c.ByHand {
			b.reading = true
			if err := b.answer(&c); err != nil {
				return nil, fmt.Errorf("%s: Replies: %w", f.Name, err)
			}
			b.used(c.Answer, func(s *structure) { s.Read = true })
			replies = append(replies, c)
		}
		all, calls[b.area] = append(all, c), append(calls[b.area], c)
	}
	files := []file{{Name: parts, All: all, Replies: replies}}
	for _, area := range contract.Areas {
		files = append(files, file{Name: area, Calls: calls[area]})
	}
	for _, name := range b.order {
		s := b.shared[name]
		i := slices.IndexFunc(files, func(f file) bool { return f.Name == s.File })
		files[i].Parts = append(files[i].Parts, s)
	}
	return files, nil
}

// skipProtocol leaves out the first argument of nearly every function, which the engine puts before the others.
func skipProtocol(s contract.Sequence) contract.Sequence {
	if len(s) > 0 {
		if g, ok := s[0].(contract.Group); ok && g.Name == "protocol" {
			return s[1:]
		}
	}
	return s
}

// answer joins the forms of an answer into one structure.
func (b *builder) answer(c *call) error {
	out := &structure{Name: c.Go + "Reply"}
	for _, r := range c.Replies {
		part := structure{Name: c.Go}
		if err := b.fill(&part, r.Slots); err != nil {
			return err
		}
		at := 0 // the fields are in the order of each form
		for _, f := range part.Fields {
			i := slices.IndexFunc(out.Fields, func(o field) bool { return o.Name == f.Name })
			switch {
			case i < 0:
				out.Fields = slices.Insert(out.Fields, at, f)
				i = at
			case i < at:
				return fmt.Errorf("the forms have %s at different places", f.Name)
			case out.Fields[i].Type != f.Type:
				return fmt.Errorf("%s is %s and %s", f.Name, out.Fields[i].Type, f.Type)
			}
			at = i + 1
		}
		c.Forms = append(c.Forms, part.Steps)
	}
	c.Same = len(c.Forms) == 1 || len(c.Forms) == 2 && slices.Equal(c.Forms[0], c.Forms[1])
	for _, f := range c.Forms {
		out.Steps = append(out.Steps, f...)
	}
	if c.Same {
		out.Steps = c.Forms[0]
	}
	c.Answer = out
	return nil
}

// structure is a struct of its own for a sequence.
func (b *builder) structure(name string, s contract.Sequence) (*structure, error) {
	out := &structure{Name: name, File: b.area}
	return out, b.fill(out, s)
}

func (b *builder) fill(out *structure, s contract.Sequence) error {
	for i, x := range s {
		if slot, ok := x.(contract.Slot); ok && slot.Type.Name == "rows" && i+1 < len(s) {
			if rows, ok := s[i+1].(contract.Rows); ok && rows.Counted {
				if err := b.rows(out, slot.Name, bounds(slot), rows); err != nil {
					return err
				}
				continue
			}
		}
		if rows, ok := x.(contract.Rows); ok && rows.Counted {
			continue // with its number
		}
		if err := b.part(out, x, i == len(s)-1); err != nil {
			return err
		}
	}
	for i, f := range out.Fields {
		if slices.ContainsFunc(out.Fields[:i], func(o field) bool { return o.Name == f.Name }) {
			return fmt.Errorf("%s has two fields %s", out.Name, f.Name)
		}
	}
	return nil
}

// part adds what is no number of rows. Of an answer only the last part may be missing, or be there any number of times.
func (b *builder) part(out *structure, x contract.Shape, last bool) error {
	switch x := x.(type) {
	case contract.Slot:
		kind, goType := b.kindOf(x)
		out.add(field{contract.GoName(x.Name), goType, bounds(x)}, step{Kind: kind, None: x.None})
	case contract.Text:
		if len(x) > 1 {
			return fmt.Errorf("%s has no name", strings.Join(x, "|"))
		}
		out.Steps = append(out.Steps, step{Kind: "fixed", Text: x[0]})
	case contract.Group:
		if slot, ok := single(x.Part); ok {
			return b.part(out, slot, last)
		}
		if len(x.Part) == 2 {
			if slot, ok := x.Part[0].(contract.Slot); ok && slot.Type.Name == "rows" {
				b.group = x.Name
				defer func() { b.group = "" }()
				return b.rows(out, x.Name, bounds(slot), x.Part[1].(contract.Rows))
			}
		}
		inner, err := b.common(contract.GoName(x.Name), x.Part)
		if err != nil {
			return err
		}
		out.add(field{inner.Name, inner.Name, ""}, step{Kind: "structure", Type: inner.Name})
	case contract.Maybe:
		if !last && b.reading {
			return fmt.Errorf("only the end may be missing")
		}
		return b.maybe(out, x.Part)
	case contract.Rows:
		if !last && b.reading {
			return fmt.Errorf("only the end may be repeated any number of times")
		}
		name := "All"
		inner, err := b.structure(out.Name+singular(name), x.Part)
		if err != nil {
			return err
		}
		inner.Doc = "one of " + out.Name + "." + name + "."
		b.share(inner)
		out.add(field{name, "[]" + inner.Name, "any number"}, step{Kind: "free", Type: inner.Name})
	default:
		return fmt.Errorf("%T has no form in Go", x)
	}
	return nil
}

// maybe adds what may be missing, as a pointer.
func (b *builder) maybe(out *structure, part contract.Sequence) error {
	if slot, ok := single(part); ok && slot.Type.Name != "rows" {
		kind, goType := b.kindOf(slot)
		out.add(field{contract.GoName(slot.Name), "*" + goType, "may be missing"}, step{Kind: "maybe", Element: kind})
		return nil
	}
	if g, ok := part[0].(contract.Group); ok && len(part) == 1 {
		inner, err := b.common(contract.GoName(g.Name), g.Part)
		if err != nil {
			return err
		}
		out.add(field{inner.Name, "*" + inner.Name, "may be missing"}, step{Kind: "optional", Type: inner.Name})
		return nil
	}
	name := ""
	switch first := part[0].(type) {
	case contract.Group:
		name = contract.GoName(first.Name)
	case contract.Slot:
		name = contract.GoName(first.Name)
	}
	inner, err := b.structure(out.Name+name, part)
	if err != nil {
		return err
	}
	inner.Doc = "what may be missing of " + out.Name + "."
	b.share(inner)
	out.add(field{name, "*" + inner.Name, "may be missing"}, step{Kind: "optional", Type: inner.Name})
	return nil
}

// rows adds a list. Rows of one slot are a list of its type, and pairs whose second slot is called value are a map.
func (b *builder) rows(out *structure, name, doc string, r contract.Rows) error {
	if slot, ok := single(r.Part); ok {
		kind, goType := b.kindOf(slot)
		out.add(field{contract.GoName(name), "[]" + goType, doc},
			step{Kind: "list", Type: goType, Element: kind, None: slot.None})
		return nil
	}
	if len(r.Part) == 2 {
		key, ok1 := r.Part[0].(contract.Slot)
		value, ok2 := r.Part[1].(contract.Slot)
		if ok1 && ok2 && value.Name == "value" && key.Name != "value" {
			out.add(field{contract.GoName(name), "map[string]string", doc}, step{Kind: "pairs"})
			return nil
		}
	}
	inner, err := b.row(out, name, r.Part)
	if err != nil {
		return err
	}
	out.add(field{contract.GoName(name), "[]" + inner.Name, doc},
		step{Kind: "rows", Type: inner.Name, Width: width(r.Part)})
	return nil
}

// row is the structure of a row. Rows that have a name in lua/groups.txt have one structure wherever they are.
func (b *builder) row(out *structure, name string, s contract.Sequence) (*structure, error) {
	if b.group == name {
		return b.common(contract.GoName(singular(name)), s)
	}
	inner, err := b.structure(out.Name+contract.GoName(singular(name)), s)
	if err != nil {
		return nil, err
	}
	if known := b.shared[inner.Name]; known != nil && known.Written && b.reading {
		inner.Name = out.Name + "Reply" + contract.GoName(singular(name))
	}
	inner.Doc = "one of " + contract.GoName(name) + " of " + out.Name + "."
	b.share(inner)
	return inner, nil
}

// common is a structure that several calls share.
func (b *builder) common(name string, s contract.Sequence) (*structure, error) {
	if known, ok := b.shared[name]; ok {
		return known, nil
	}
	inner, err := b.structure(name, s)
	if err == nil {
		inner.Doc, inner.File = "a part of calls or answers.", parts
		b.share(inner)
	}
	return inner, err
}

func (b *builder) share(s *structure) {
	if b.shared[s.Name] == nil {
		b.order = append(b.order, s.Name)
	}
	b.shared[s.Name] = s
}

// used tells of each structure within s.
func (b *builder) used(s *structure, mark func(s *structure)) {
	mark(s)
	for _, x := range s.Steps {
		if inner := b.shared[x.Type]; inner != nil {
			b.used(inner, mark)
		}
	}
}

func (s *structure) add(f field, x step) {
	x.Field = f.Name
	s.Fields, s.Steps = append(s.Fields, f), append(s.Steps, x)
}

// single is the only slot of a sequence.
func single(s contract.Sequence) (contract.Slot, bool) {
	if len(s) != 1 {
		return contract.Slot{}, false
	}
	if g, ok := s[0].(contract.Group); ok {
		return single(g.Part)
	}
	slot, ok := s[0].(contract.Slot)
	return slot, ok
}

// kindOf is how a slot is written and read, and its type in Go. In answers, and where 0 is no value of an argument, 0
// is none.
func (b *builder) kindOf(s contract.Slot) (kind, goType string) {
	switch s.Type.Name {
	case "n", "rows", "int":
		kind, goType = "int", "int"
	case "ms":
		kind, goType = "millis", "time.Duration"
	case "instant":
		kind, goType = "instant", "time.Time"
		return kind, goType
	case "flag":
		return "flag", "bool"
	case "uuid":
		if b.reading {
			return "UUID", "[16]byte"
		}
		return "text", "string"
	default:
		return "text", "string"
	}
	if s.None && s.Type.Lo < 1 && !b.reading {
		return kind + "Or", "*" + goType
	}
	return kind, goType
}

// bounds is what a field's comment says of its values.
func bounds(s contract.Slot) string {
	text := s.Type.String()
	if open := strings.IndexByte(text, '('); open > 0 {
		text = strings.TrimSuffix(text[open+1:], ")")
		if slices.Contains([]string{"bytes", "line", "ascii", "name", "hex", "object"}, s.Type.Name) {
			text += " bytes"
		}
		if s.Type.Name == "ms" {
			text += " ms"
		}
	} else if s.Type.Name != "enum" {
		text = ""
	}
	if s.None && text != "" {
		return text + ", or none"
	}
	if s.None {
		return "or none"
	}
	return text
}

// width is the least number of slots that a sequence has.
func width(s contract.Sequence) (n int) {
	for _, x := range s {
		switch x := x.(type) {
		case contract.Slot, contract.Text:
			n++
		case contract.Group:
			n += width(x.Part)
		}
	}
	return n
}

// singular is the name of one of many.
func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "s"):
		return strings.TrimSuffix(name, "s")
	}
	return name
}
