package main

import (
	"bufio"
	"bytes"
	"fmt"
	goscan "go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The size of the source is counted, so that its growth is a decision. A hand-written line of w columns counts as
// ⌈w/100⌉, blank lines and lines of comments count as nothing, and a tab has 4 columns.
const (
	sizes     = "internal/check/size.txt"
	tab       = "    "
	unit      = 100 // columns of one counted line
	widest    = 120 // columns of a line
	slack     = 100 // a class may grow by 1/slack before the check fails
	howToGrow = "; if that is intended: go run ./internal/check -size -write"
)

// The classes of source, in the order of the report. Generated files are shown, and have no bounds.
var classes = []string{"go", "lua", "tests", "examples", "benchmarks", "generated"}

// trees says which class a file belongs to: the first entry that holds it. A test file outside of benchmarks is of
// the class tests, wherever it is. What no entry holds is the product: go or lua.
var trees = []struct{ under, class string }{
	{"agent/internal/modeltest", "tests"},
	{"benchmarks", "benchmarks"},
	{"docs", "examples"},
	{"examples", "examples"},
	{"httpapi/spec", "tests"},
	{"internal/check", "tests"},
	{"internal/clienttest", "tests"},
	{"internal/demotest", "tests"},
	{"internal/testnode", "tests"},
	{"internal/testwait", "tests"},
	{"internal/cluster", "tests"},
	{"internal/conformance", "tests"},
	{"internal/crash", "tests"},
	{"internal/invariant", "tests"},
	{"internal/model", "tests"},
	{"internal/must", "tests"},
	{"internal/mutants", "tests"},
	{"internal/race", "tests"},
	{"internal/sentinel", "tests"},
	{"internal/storetest", "tests"},
	{"internal/testserver", "tests"},
	{"internal/toxic", "tests"},
	{"tools", "tests"},
}

func classOf(name string, text []byte) string {
	if generated.Match(text) {
		return "generated"
	}
	class := strings.TrimPrefix(path.Ext(name), ".")
	for _, t := range trees {
		if strings.HasPrefix(name, t.under+"/") {
			class = t.class
			break
		}
	}
	if strings.HasSuffix(name, "_test.go") && class != "benchmarks" {
		return "tests"
	}
	return class
}

var generated = regexp.MustCompile(`(?m)^(//|--) Code generated .* DO NOT EDIT\.$`)

// Size is how much source a class has.
type Size struct {
	Files, Raw int
	Lines      int      // as they are counted
	Long       []string // places of lines that are too wide and can be broken
}

// measure counts the Go and Lua files of a tree, other modules in it included.
func measure(root fs.FS) (map[string]Size, error) {
	found := map[string]Size{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if slices.Contains([]string{"testdata", "vendor", "node_modules"}, base) ||
				name != "." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext != ".go" && ext != ".lua" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		class := classOf(name, text)
		s := found[class]
		s.add(name, text)
		found[class] = s
		return nil
	})
	return found, err
}

func (s *Size) add(name string, text []byte) {
	parts := goParts
	if path.Ext(name) == ".lua" {
		parts = luaParts
	}
	all := lines(text, parts(text))
	s.Files++
	s.Raw += len(all)
	for i, l := range all {
		if l.code {
			s.Lines += (l.width + unit - 1) / unit
		}
		if l.width > widest && !l.whole {
			s.Long = append(s.Long, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
}

// A part is a token of a source: where it begins and ends, and what it is.
type part struct {
	from, to int
	kind     kind
}

type kind int

const (
	code kind = iota
	literal
	comment
)

// line is what matters of a line.
type line struct {
	width int
	code  bool
	whole bool // it cannot be broken
}

func lines(text []byte, parts []part) (all []line) {
	from, golden := 0, false
	for raw := range bytes.Lines(text) {
		to := from + len(raw)
		shown := strings.TrimRight(string(raw), " \t\r\n")
		indent := len(shown) - len(strings.TrimLeft(shown, " \t"))
		l := line{width: columns(shown)}
		for len(parts) > 0 && parts[0].to <= from {
			parts = parts[1:]
		}
		first := true
		for _, p := range parts {
			if p.from >= to {
				break
			}
			begin, end := max(p.from, from), min(p.to, from+len(shown))
			l.code = l.code || p.kind != comment
			if p.kind == literal && alone(shown, begin-from, end-from) ||
				p.kind == literal && p.from < from && p.to >= to {
				l.whole = true
			}
			if p.kind == comment && first && p.from >= from {
				said := shown[indent:]
				golden = output.MatchString(said) || golden
				l.whole = golden || fixed.MatchString(said)
			}
			first = false
		}
		golden = golden && !l.code && l.width > 0
		all = append(all, l)
		from = to
	}
	return all
}

// alone tells whether a literal has its line for itself, but for indentation, a little punctuation behind it, and a
// name before it that gofmt keeps there. Then only a change of the literal would make the line shorter.
func alone(shown string, from, to int) bool {
	before := strings.TrimLeft(shown[:from], " \t")
	return strings.Trim(shown[to:], "(){}[],;: +") == "" && (before == "" || named.MatchString(before)) ||
		tag.MatchString(shown[from:])
}

var (
	named = regexp.MustCompile(`^((const |var )?\w+ += |(\w+|"[^"]*"): *)$`)
	tag   = regexp.MustCompile("^`\\w+:\"[^`]*`$") // of the field of a struct
	// fixed are comments of one line: directives, the labels of Lua headers, which internal/library reads, and one
	// long word.
	fixed = regexp.MustCompile(`^//(go:|nolint|line )|^-- (Args|Replies|Errors|Flags|Go): |^(//|--)\s*\S+$`)
	// output begins what an example prints, line by line.
	output = regexp.MustCompile(`^// (Unordered o|O)utput:`)
)

func columns(s string) int { return utf8.RuneCountInString(strings.ReplaceAll(s, "\t", tab)) }

// goParts finds the tokens of a Go file.
func goParts(text []byte) (parts []part) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s goscan.Scanner
	s.Init(file, text, nil, goscan.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return parts
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // no character of the source
		}
		p := part{from: file.Offset(pos)}
		switch tok {
		case token.COMMENT:
			p.kind = comment
		case token.STRING:
			p.kind = literal
		}
		p.to = p.from + max(len(lit), len(tok.String()))
		if tok == token.STRING || tok == token.COMMENT || tok.IsLiteral() {
			p.to = p.from + len(lit)
		}
		parts = append(parts, p)
	}
}

// luaToken is a token of Lua as far as it matters: a comment or string in long brackets is found by its opening.
var luaToken = regexp.MustCompile(
	`^(?:--\[(=*)\[|--[^\n]*|\[(=*)\[|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|\w+|\s+|[\s\S])`)

// luaParts finds the tokens of a Lua file.
func luaParts(text []byte) (parts []part) {
	for from := 0; from < len(text); {
		m := luaToken.FindSubmatch(text[from:])
		p := part{from: from, to: from + len(m[0])}
		switch {
		case bytes.HasPrefix(m[0], []byte("--")):
			p.kind = comment
			if bytes.HasSuffix(m[0], []byte("[")) && m[1] != nil {
				p.to = closing(text, p.to, m[1])
			}
		case m[2] != nil:
			p.kind, p.to = literal, closing(text, p.to, m[2])
		case m[0][0] == '"' || m[0][0] == '\'':
			p.kind = literal
		}
		if len(bytes.TrimSpace(m[0])) > 0 {
			parts = append(parts, p)
		}
		from = p.to
	}
	return parts
}

// closing is where long brackets of a level end.
func closing(text []byte, from int, level []byte) int {
	end := "]" + string(level) + "]"
	if at := bytes.Index(text[from:], []byte(end)); at >= 0 {
		return from + at + len(end)
	}
	return len(text)
}

// table is the report of -size.
func table(found map[string]Size) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s %6s %8s %8s %8s\n", "class", "files", "raw", "counted", "over "+fmt.Sprint(widest))
	for _, class := range classes {
		s := found[class]
		fmt.Fprintf(&b, "%-11s %6d %8d %8d %8d\n", class, s.Files, s.Raw, s.Lines, len(s.Long))
	}
	return b.String()
}

// bound is what size.txt allows a class.
type bound struct{ lines, long int }

const sizesHead = "# How much source each class may have: lines as internal/check/size.go counts them, which may grow by 1 %, and lines\n" +
	"# of more than 120 columns that can be broken, of which there may only be fewer.\n" +
	"# Written by: go run ./internal/check -size -write\n"

func bounds(file []byte) (map[string]bound, error) {
	out := map[string]bound{}
	for s := bufio.NewScanner(bytes.NewReader(file)); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") || s.Text() == "" {
			continue
		}
		var class string
		var b bound
		if _, err := fmt.Sscan(s.Text(), &class, &b.lines, &b.long); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", sizes, s.Text(), err)
		}
		out[class] = b
	}
	return out, nil
}

// writtenSizes is size.txt for what was found. The number of long lines never rises.
func writtenSizes(found map[string]Size, before map[string]bound) []byte {
	var b bytes.Buffer
	b.WriteString(sizesHead)
	for _, class := range classes {
		s := found[class]
		long := len(s.Long)
		if old, ok := before[class]; ok {
			long = min(long, old.long)
		}
		if class != "generated" {
			fmt.Fprintf(&b, "%-10s %6d %5d\n", class, s.Lines, long)
		}
	}
	return b.Bytes()
}

// sizeBreaches reports the classes that are larger than size.txt allows.
func sizeBreaches(found map[string]Size, allowed map[string]bound) (breaches []string) {
	for _, class := range classes {
		if class == "generated" {
			continue
		}
		s, most := found[class], allowed[class]
		if s.Lines > most.lines+most.lines/slack {
			breaches = append(breaches, fmt.Sprintf("%s: %s has %d counted lines, over 1 %% more than %d%s", sizes,
				class, s.Lines, most.lines, howToGrow))
		}
		if len(s.Long) > most.long {
			breaches = append(breaches,
				fmt.Sprintf("%s: %s has %d lines of more than %d columns, and may have %d; among them: %s",
					sizes, class, len(s.Long), widest, most.long, strings.Join(s.Long[:min(len(s.Long), 10)], " ")))
		}
	}
	return breaches
}
