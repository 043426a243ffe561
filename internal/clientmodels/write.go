package clientmodels

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	width = 120
	first = "Code generated from the types of the HTTP API; DO NOT EDIT. Write it again with " +
		"FLOWFABRIC_GOLDEN=write go test ./httpapi -run TestMakesTheModels."
	numbers = "Whole numbers of the API are below 2^53: a number holds them exactly. Only values that programs " +
		"stored or sent (payloads, steps, results, frames) can have larger ones, which JSON.parse rounds."
	aTime = "A time as RFC 3339 has it, such as 2026-01-31T17:00:00Z."
	bytes = "Bytes in base64."
	newer = "A newer server may send further members, and further values of the enumerations."
)

// TypeScript writes the models as interfaces.
func (m Models) TypeScript() []byte {
	var b strings.Builder
	for _, line := range wrap(first, width-3) {
		b.WriteString("// " + line + "\n")
	}
	b.WriteString("//\n")
	for _, line := range wrap(numbers+" "+newer, width-3) {
		b.WriteString("// " + line + "\n")
	}
	b.WriteString("\n" + jsdoc("", aTime) + "export type Timestamp = string\n" +
		"\n" + jsdoc("", bytes) + "export type Base64 = string\n")
	for _, e := range m.enums {
		b.WriteString("\n" + jsdoc("", e.doc))
		values := make([]string, len(e.values))
		for i, v := range e.values {
			values[i] = strconv.Quote(v)
		}
		if e.open {
			values = append(values, "(string & {})")
		}
		b.WriteString("export type " + e.name + " =\n")
		for _, v := range values {
			b.WriteString("  | " + v + "\n")
		}
	}
	for _, o := range m.objects {
		b.WriteString("\n" + jsdoc("", o.doc) + "export interface " + o.name + " {\n")
		for _, f := range o.fields {
			mark := ""
			if f.optional {
				mark = "?"
			}
			b.WriteString(jsdoc("  ", f.doc) + "  " + f.name + mark + ": " + f.is.typescript() + "\n")
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

func (s shape) typescript() string {
	switch s.kind {
	case text:
		return "string"
	case timestamp:
		return "Timestamp"
	case base64:
		return "Base64"
	case integer, number:
		return "number"
	case flag:
		return "boolean"
	case list:
		return s.elem.typescript() + "[]"
	case dict:
		return "Record<string, " + s.elem.typescript() + ">"
	case declared:
		return s.name
	}
	return "unknown"
}

// jsdoc is a comment, "" for no text.
func jsdoc(indent, doc string) string {
	doc = strings.ReplaceAll(doc, "*/", "*\\/")
	lines := wrap(doc, width-len(indent)-len(" * "))
	switch {
	case doc == "":
		return ""
	case len(lines) == 1 && utf8.RuneCountInString(indent+lines[0]) <= width-len("/**  */"):
		return indent + "/** " + lines[0] + " */\n"
	}
	return indent + "/**\n" + indent + " * " + strings.Join(lines, "\n"+indent+" * ") + "\n" + indent + " */\n"
}

// keywords of Python.
var keywords = []string{"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
	"def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
	"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield"}

// Python writes the models as typed dictionaries. The members of a model besides its arguments are in a class of their
// own, such as SubmissionOptions for Submission: functions take them as keywords. A model without arguments is one
// class.
func (m Models) Python(arguments map[string][]string) []byte {
	var b strings.Builder
	for _, line := range wrap(first, width-2) {
		b.WriteString("# " + line + "\n")
	}
	b.WriteString("\"\"\"Bodies of the HTTP API.\n\n" + strings.Join(wrap(newer, width), "\n") + "\n\"\"\"\n\n" +
		"from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n\n" +
		"Timestamp: TypeAlias = str\n" + docstring("", aTime) +
		"\nBase64: TypeAlias = str\n" + docstring("", bytes))
	for _, e := range m.enums {
		b.WriteString("\n" + e.name + ": TypeAlias = Literal[\n")
		for _, v := range e.values {
			b.WriteString("    " + strconv.Quote(v) + ",\n")
		}
		b.WriteString("]")
		if e.open {
			b.WriteString(" | str")
		}
		b.WriteString("\n" + docstring("", e.doc))
	}
	for _, o := range m.objects {
		if slices.ContainsFunc(o.fields, func(f field) bool { return slices.Contains(keywords, f.name) }) {
			b.WriteString(o.functional())
		} else {
			b.WriteString(o.class(arguments[o.name]))
		}
	}
	return []byte(b.String())
}

func (o object) class(arguments []string) string {
	if arguments == nil {
		return classOf(o.name, "TypedDict", o.doc, o.fields)
	}
	var others, own []field
	for _, f := range o.fields {
		if slices.Contains(arguments, f.name) {
			own = append(own, f)
		} else {
			others = append(others, f)
		}
	}
	options, doc := o.name+"Options", "Members of "+o.name+" besides "+strings.Join(arguments, ", ")+"."
	return classOf(options, "TypedDict", doc, others) + classOf(o.name, options, o.doc, own)
}

func classOf(name, base, doc string, fields []field) string {
	out := "\n\nclass " + name + "(" + base + "):\n" + docstring("    ", doc)
	if doc != "" {
		out += "\n"
	}
	for _, f := range fields {
		out += "    " + f.name + ": " + f.python() + "\n" + docstring("    ", f.doc)
	}
	return out
}

// functional is an object one of whose members has a name that a class cannot have.
func (o object) functional() string {
	out := "\n\n" + o.name + " = TypedDict(\n    \"" + o.name + "\",\n    {\n"
	for _, f := range o.fields {
		for _, line := range wrap(f.doc, width-len("        # ")) {
			out += "        # " + line + "\n"
		}
		out += "        \"" + f.name + "\": " + f.python() + ",\n"
	}
	return out + "    },\n)\n" + docstring("", o.doc)
}

func (f field) python() string {
	if f.optional {
		return "NotRequired[" + f.is.python() + "]"
	}
	return f.is.python()
}

func (s shape) python() string {
	switch s.kind {
	case text:
		return "str"
	case timestamp:
		return "Timestamp"
	case base64:
		return "Base64"
	case integer:
		return "int"
	case number:
		return "float"
	case flag:
		return "bool"
	case list:
		return "list[" + s.elem.python() + "]"
	case dict:
		return "dict[str, " + s.elem.python() + "]"
	case declared:
		return s.name
	}
	return "Any"
}

// docstring is a text of documentation, "" for none.
func docstring(indent, doc string) string {
	doc = strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(doc)
	lines := wrap(doc, width-len(indent)-len(`"""`))
	switch {
	case doc == "":
		return ""
	case len(lines) == 1 && utf8.RuneCountInString(indent+doc) <= width-len(`""""""`) && !strings.HasSuffix(doc, `"`):
		return indent + `"""` + lines[0] + `"""` + "\n"
	}
	return indent + `"""` + strings.Join(lines, "\n"+indent) + "\n" + indent + `"""` + "\n"
}

// wrap breaks a text between words into lines of at most so many characters.
func wrap(text string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
