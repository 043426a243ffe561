package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

//go:embed decode.tmpl
var decode string

// decoder is a Lua function that reads and judges the arguments of one function of the library, and gives them names.
type decoder struct {
	Name   string
	Fields []luaField // in front of whatever has no fixed place
	Steps  []luaStep
}

// Has tells whether there is a step of a kind.
func (d decoder) Has(kinds ...string) bool {
	return slices.ContainsFunc(d.Steps, func(s luaStep) bool { return slices.Contains(kinds, s.Kind) })
}

type luaField struct{ Name, Value string }

// luaStep judges one value, or reads and judges what follows.
type luaStep struct {
	Kind   string // check, set, reader, list, rows
	Name   string // of a field
	Value  string // what it is
	When   string // it is refused
	Code   string
	Want   string
	At     string // where the number of rows is
	Behind string // where the rows begin, and how many slots each has
	Width  int
	Lo, Hi string
	Fields []luaField
	Steps  []luaStep
}

// readers are groups that a helper of the library reads: it returns the value, and an answer that refuses.
var readers = map[string]string{"fence": "fence.parse", "fence0": "fence.optional"}

// decoders are those of the functions that take what they are given by name, by area.
func decoders(functions []contract.Function) (map[string][]decoder, error) {
	out := map[string][]decoder{}
	for _, f := range functions {
		if f.Decoded == contract.DecodedNothing {
			continue
		}
		d := decoder{Name: f.Name}
		r := luaReader{at: 1, out: &d}
		s := f.Args
		if rest := skipProtocol(s); len(rest) < len(s) {
			r.at, s = 2, rest
		}
		if err := r.sequence(s); err != nil && f.Decoded == contract.DecodedAll {
			return nil, fmt.Errorf("%s: Args: %w", f.Name, err)
		}
		area := path.Dir(f.File)
		out[area] = append(out[area], d)
	}
	return out, nil
}

// luaReader walks over arguments. Until something has no fixed length, places are numbers.
type luaReader struct {
	at    int
	loose bool // the place is at + the variable at of the Lua function
	out   *decoder
}

func (r *luaReader) place(n int) string {
	switch {
	case !r.loose:
		return strconv.Itoa(r.at + n)
	case r.at+n == 0:
		return "at"
	default:
		return "at + " + strconv.Itoa(r.at+n)
	}
}

func (r *luaReader) sequence(s contract.Sequence) error {
	for i, x := range s {
		switch x := x.(type) {
		case contract.Slot:
			if x.Type.Name == "rows" && i+1 < len(s) {
				if rows, ok := s[i+1].(contract.Rows); ok && rows.Counted {
					if err := r.rows(x, rows.Part, i+2 == len(s)); err != nil {
						return err
					}
					continue
				}
			}
			r.slot(x)
		case contract.Group:
			if reader := readers[x.Name]; reader != "" {
				r.out.Steps = append(r.out.Steps, luaStep{Kind: "reader", Name: strings.TrimSuffix(x.Name, "0"),
					Value: reader + "(argv, " + r.place(0) + ")"})
				r.at += width(x.Part)
				continue
			}
			if err := r.sequence(x.Part); err != nil {
				return err
			}
		case contract.Rows:
			if x.Counted {
				continue // with its number
			}
			return fmt.Errorf("rows without a number are read by hand")
		default:
			return fmt.Errorf("%T is read by hand", x)
		}
	}
	return nil
}

// slot adds one value.
func (r *luaReader) slot(s contract.Slot) {
	arg := "argv[" + r.place(0) + "]"
	r.at++
	value, check := judged(s, "q."+s.Name, arg)
	if r.loose {
		r.out.Steps = append(r.out.Steps, luaStep{Kind: "set", Name: s.Name, Value: value})
	} else {
		r.out.Fields = append(r.out.Fields, luaField{s.Name, value})
	}
	r.out.Steps = append(r.out.Steps, check...)
}

// rows adds a list of values, or of tables with names.
func (r *luaReader) rows(count contract.Slot, part contract.Sequence, last bool) error {
	step := luaStep{Kind: "rows", Name: count.Name, At: r.place(0), Behind: r.place(1), Width: width(part),
		Code: count.Code, Want: want(count), Lo: strconv.FormatInt(count.Type.Lo, 10),
		Hi: strconv.FormatInt(count.Type.Hi, 10)}
	slots := make([]contract.Slot, 0, len(part))
	for _, x := range part {
		slot, ok := x.(contract.Slot)
		if !ok {
			return fmt.Errorf("%T in rows is read by hand", x)
		}
		slots = append(slots, slot)
	}
	switch {
	case len(slots) == 1:
		step.Kind = "list"
		value, check := judged(slots[0], "x", "argv[at]")
		step.Value, step.Steps = value, within(count.Name, check)
	default:
		for i, s := range slots {
			arg := "argv[at + " + strconv.Itoa(i) + "]"
			if i == 0 {
				arg = "argv[at]"
			}
			value, check := judged(s, "x."+s.Name, arg)
			step.Fields = append(step.Fields, luaField{s.Name, value})
			step.Steps = append(step.Steps, within(count.Name, check)...)
		}
	}
	r.out.Steps = append(r.out.Steps, step)
	r.at, r.loose = 0, true
	if last {
		r.out.Steps = append(r.out.Steps, luaStep{Kind: "check", When: "argv[at]", Code: count.Code, Name: count.Name,
			Want: want(count)})
	}
	return nil
}

// within says of refusals in which rows they are.
func within(rows string, steps []luaStep) []luaStep {
	for i := range steps {
		steps[i].Name = rows + ": " + steps[i].Name
	}
	return steps
}

// want is what a refusal says of a slot.
func want(s contract.Slot) string {
	text := s.Type.Want()
	if s.None {
		text += ", or none"
	}
	return strings.ReplaceAll(text, "'", `\'`)
}

// judged is what the field x becomes of an argument, and what checks it.
func judged(s contract.Slot, x, arg string) (value string, check []luaStep) {
	value, when := arg, ""
	lo, hi := strconv.FormatInt(s.Type.Lo, 10), strconv.FormatInt(s.Type.Hi, 10)
	switch s.Type.Name {
	case "n", "rows", "ms":
		value, when = "args.int("+arg+", "+lo+", "+hi+")", "not "+x
		if s.None {
			when += " and " + arg + " ~= ''"
		}
	case "int":
		value, when = "args.signed("+arg+")", "not "+x
		if s.None {
			when += " and " + arg + " ~= ''"
		}
	case "flag":
		value, when = arg+" == '1'", "not "+x+" and "+arg+" ~= '0'"
	default:
		when = wrong(s.Type, x, lo, hi)
		if s.None && s.Type.Lo < 1 && slices.Contains([]string{"bytes", "ascii", "line", "text"}, s.Type.Name) {
			break // none is one of its values
		}
		if s.None {
			if strings.Contains(when, " or ") {
				when = "(" + when + ")"
			}
			when = x + " ~= '' and " + when
		}
	}
	return value, []luaStep{{Kind: "check", When: when, Name: s.Name, Code: cmp.Or(s.Code, "invalid_input"),
		Want: want(s)}}
}

// wrong is what is true of a text that is not of a type.
func wrong(t contract.Type, x, lo, hi string) string {
	size := "not " + x + " or #" + x + " > " + hi
	if t.Lo > 0 {
		size += " or #" + x + " < " + lo
	}
	if t.Lo == t.Hi {
		size = "not " + x + " or #" + x + " ~= " + hi
	}
	switch t.Name {
	case "bytes":
		return size
	case "ascii":
		return size + " or string.find(" + x + ", '[^\\32-\\126]')"
	case "line":
		return size + " or string.find(" + x + ", '%c')"
	case "hex":
		return size + " or string.find(" + x + ", '[^0-9a-f]')"
	case "object":
		return size + " or not string.find(" + x + ", '^{.*}$')"
	case "name":
		return "not args.name(" + x + ", " + hi + ")"
	case "instant": // times are compared and kept as text
		return "not args.int(" + x + ", " + lo + ", " + hi + ")"
	case "text", "when", "score", "code":
		return "not " + x
	case "enum":
		if t.Table != "" {
			return "not " + t.Table + "[" + x + " or '']"
		}
		all := make([]string, len(t.Words))
		for i, w := range t.Words {
			all[i] = x + " ~= '" + w + "'"
		}
		return strings.Join(all, " and ")
	}
	return "not args." + t.Name + "(" + x + ")"
}
