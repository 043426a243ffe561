package library

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Script is the EVAL text of one function: of the helpers what it needs, the function, and its call. A server without functions runs
// the whole text with every call, so what is not needed costs time with every call.
func Script(name string, v Variant) string {
	at := slices.IndexFunc(Functions(), func(h Header) bool { return h.Name == name })
	if at < 0 {
		panic("library: no function " + name)
	}
	h := Functions()[at]
	own := bare(read(h.File)) + "return " + call(h, "KEYS, ARGV") + "\n"
	need := shaken{v: v, taken: map[*item]bool{}, known: map[string]bool{}}
	need.follow(nil, uses(own))
	var b strings.Builder
	for _, lib := range libs {
		b.WriteString(need.text(partsOf(libFile(lib, v))))
	}
	b.WriteString(own)
	return finish(b.String(), v)
}

// item is a statement of a helper's file: a function, a variable, an entry of its table.
type item struct {
	names []string // "table.entry", or the name of a local; empty: the statement is needed whenever anything of the file is
	text  string
	uses  []string
}

// parts are the statements of a helper's file, in order.
type parts struct {
	table string // what the helper is known by
	items []*item
}

// shaken is what a function needs of the helpers.
type shaken struct {
	v     Variant
	taken map[*item]bool
	known map[string]bool
}

// file tells which file has a helper's table. They are named alike, but for the clock.
func (s *shaken) file(table string) (string, bool) {
	if table == "clock" {
		table = "time"
	}
	return libFile(table, s.v), slices.Contains(libs, table)
}

// follow takes what is used, and what that uses; names without a dot are locals of the file from.
func (s *shaken) follow(from *parts, names []string) {
	for _, name := range names {
		table, _, dotted := strings.Cut(name, ".")
		p := from
		if file, ok := s.file(table); ok && dotted {
			p = partsOf(file)
		}
		if p == nil || s.known[p.table+":"+name] {
			continue
		}
		s.known[p.table+":"+name] = true
		for _, it := range p.items {
			if slices.Contains(it.names, name) || dotted && len(it.names) == 0 || strings.HasSuffix(name, ".*") && p.table == table {
				s.take(p, it)
			}
		}
	}
}

func (s *shaken) take(p *parts, it *item) {
	if !s.taken[it] {
		s.taken[it] = true
		s.follow(p, it.uses)
	}
}

// text is what is needed of a file, in a block of its own, so that only its table counts among the locals that a chunk may have.
func (s *shaken) text(p *parts) string {
	var b strings.Builder
	for _, it := range p.items {
		if s.taken[it] {
			b.WriteString(it.text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "local " + p.table + "\ndo\n" + b.String() + "end\n"
}

var (
	function = regexp.MustCompile(`^(?:local )?function (\w+(?:\.\w+)?)`)
	variable = regexp.MustCompile(`^local (\w+(?:, \w+)*)`)
	entry    = regexp.MustCompile(`^(\w+\.\w+)(?:\.\w+|\[[^]]*\])* = `)
	used     = regexp.MustCompile(`([a-z_A-Z]\w*)(?:\.([a-z_A-Z]\w*)|(\[))?`)
)

// named are the names that a statement defines; that of its table needs no name.
func named(table, line string) []string {
	if m := function.FindStringSubmatch(line); m != nil {
		return own(table, m[1])
	}
	if m := variable.FindStringSubmatch(line); m != nil {
		if names := strings.Split(m[1], ", "); names[0] != table {
			return names
		}
		return nil
	}
	if m := entry.FindStringSubmatch(line); m != nil {
		return own(table, m[1])
	}
	return nil
}

// own is the name of an entry of the helper's table, or that of the local whose entry it is.
func own(table, name string) []string {
	if first, _, _ := strings.Cut(name, "."); first != table {
		return []string{first}
	}
	return []string{name}
}

// partsOf takes a helper's file apart. A statement begins at the left margin.
var partsOf = func() func(file string) *parts {
	var known sync.Map
	return func(file string) *parts {
		if p, ok := known.Load(file); ok {
			return p.(*parts)
		}
		text := read(file)
		at := table.FindStringSubmatchIndex(text)
		p := &parts{table: text[at[2]:at[3]]}
		for line := range strings.Lines(text) {
			code := strings.TrimSpace(line)
			if code == "" || strings.HasPrefix(code, "--") {
				continue
			}
			begins := !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "}") && code != "end"
			if begins || len(p.items) == 0 {
				p.items = append(p.items, &item{names: named(p.table, code)})
			}
			p.items[len(p.items)-1].text += code + "\n"
		}
		for _, it := range p.items {
			it.uses = uses(it.text)
			if strings.HasPrefix(it.text, "local "+p.table+" = {") {
				it.text = strings.TrimPrefix(it.text, "local ")
			}
		}
		known.Store(file, p)
		return p
	}
}()

// uses are the names that a text may use: entries of tables, and locals. "table.*" is all of a table whose entries are chosen when it runs.
func uses(text string) []string {
	var out []string
	for _, m := range used.FindAllStringSubmatchIndex(text, -1) {
		if at := m[0]; strings.HasSuffix(text[:at], ".") && !strings.HasSuffix(text[:at], "..") {
			continue // an entry of something else
		}
		first := text[m[2]:m[3]]
		names := []string{first}
		if m[4] >= 0 {
			names = append(names, first+"."+text[m[4]:m[5]])
		} else if m[6] >= 0 {
			names = append(names, first+".*")
		}
		for _, name := range names {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// bare drops whole-line comments and indentation.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
