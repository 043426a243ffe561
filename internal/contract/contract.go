// Package contract reads the headers of the functions in package lua: what each function takes, answers and refuses.
// It holds calls and answers to them (Fit), and what is written by hand on both sides is generated from it.
package contract

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/lua"
)

// Areas are the directories of functions, in the order in which a library has them.
var Areas = []string{"system", "execution", "worker", "stream", "suspend", "operate", "read", "flow", "admission",
	"tick"}

// Function is what the first comment of a function's file says.
type Function struct {
	Name    string
	Purpose string
	Flags   []string // no-writes, allow-oom
	Method  string   // "Engine.ClaimNext"
	Args    Sequence
	Replies []Reply
	Errors  []string
	File    string
	// Decoded tells what generated code reads: all arguments, which come to the function by name, their begin, of which
	// the function asks it, or nothing.
	Decoded Decoded
}

// Decoded is how much of a function's arguments generated code reads.
type Decoded int

const (
	DecodedNothing Decoded = iota
	DecodedBegin
	DecodedAll
)

// Reply is one form of an answer.
type Reply struct {
	Code  string // OK, ALREADY_SATISFIED
	Slots Sequence
}

// Reply returns the form of an answer with a code.
func (f Function) Reply(code string) (Sequence, bool) {
	for _, r := range f.Replies {
		if r.Code == code {
			return r.Slots, true
		}
	}
	return nil, false
}

// labels begin the lines of a header behind its purpose. A line that begins with none goes on with the one before.
var labels = []string{"Flags", "Go", "Args", "Replies", "Errors"}

// Functions lists all functions by name. It panics on a malformed header, which a test of this package would have
// found.
var Functions = sync.OnceValue(func() []Function {
	groups, err := readGroups()
	if err != nil {
		panic(err)
	}
	r := resolver{groups: groups, lines: map[string]map[string]string{}, done: map[string]Function{}}
	var files []string
	for _, area := range Areas {
		entries, err := lua.Files.ReadDir(area)
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			files = append(files, path.Join(area, e.Name()))
		}
	}
	for _, file := range files {
		r.lines[name(file)] = split(file)
	}
	for _, file := range files {
		if _, err := r.function(file); err != nil {
			panic(err)
		}
	}
	out := make([]Function, 0, len(files))
	for _, f := range r.done {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return out
})

// readGroups reads lua/groups.txt: what a name in a header stands for.
func readGroups() (map[string]string, error) {
	text, err := lua.Files.ReadFile("groups.txt")
	if err != nil {
		return nil, err
	}
	groups, last := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(strings.TrimRight(line, "\n"), " = ")
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " ") && last != "":
			groups[last] += " " + strings.TrimSpace(line)
		case !ok:
			return nil, fmt.Errorf("lua/groups.txt: %q: want name = words", line)
		default:
			last = strings.TrimSpace(name)
			groups[last] = strings.TrimSpace(rest)
		}
	}
	return groups, nil
}

func name(file string) string { return strings.TrimSuffix(path.Base(file), ".lua") }

// split returns the parts of the header of a file by their labels, the purpose by the name of the function.
func split(file string) map[string]string {
	text, err := lua.Files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	parts, label := map[string]string{}, ""
	switch f := name(file); {
	case strings.Contains(string(text), "\nlocal function "+f+"(ctx, q)"):
		parts["Decoded"] = "all"
	case strings.Contains(string(text), "decode."+f+"(argv)"):
		parts["Decoded"] = "begin"
	}
	for line := range strings.Lines(string(text)) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if !ok {
			break
		}
		if begin, rest, ok := strings.Cut(text, ":"); ok && (begin == name(file) || slices.Contains(labels, begin)) {
			label, text = begin, rest
		}
		parts[label] = strings.TrimSpace(parts[label] + " " + strings.TrimSpace(text))
	}
	return parts
}

// Parse reads the words of arguments or of a reply, in which a name of groups stands for other words.
func Parse(text string, groups map[string]string) (Sequence, error) {
	r := resolver{groups: groups}
	return r.parse(text)
}

// resolver turns headers into functions. One may answer what another does, so it knows all of them.
type resolver struct {
	groups map[string]string
	lines  map[string]map[string]string
	done   map[string]Function
}

func (r *resolver) function(file string) (Function, error) {
	f := Function{Name: name(file), File: file}
	if done, ok := r.done[f.Name]; ok {
		return done, nil
	}
	parts := r.lines[f.Name]
	f.Decoded = map[string]Decoded{"begin": DecodedBegin, "all": DecodedAll}[parts["Decoded"]]
	f.Purpose, f.Method = parts[f.Name], parts["Go"]
	for _, label := range append([]string{f.Name}, labels...) {
		if parts[label] == "" {
			return f, fmt.Errorf("lua/%s: the header lacks its line %s", file, label)
		}
	}
	var err error
	if f.Args, err = r.parse(parts["Args"]); err != nil {
		return f, fmt.Errorf("lua/%s: Args: %w", file, err)
	}
	first := ""
	for form := range strings.SplitSeq(parts["Replies"], ";") {
		code, rest, _ := strings.Cut(strings.TrimSpace(form), " ")
		if rest == "the same" {
			rest = first
		}
		first = rest
		slots, err := r.parse(rest)
		if err != nil {
			return f, fmt.Errorf("lua/%s: Replies: %w", file, err)
		}
		f.Replies = append(f.Replies, Reply{Code: code, Slots: slots})
	}
	if f.Flags, err = r.words(parts["Flags"]); err != nil {
		return f, fmt.Errorf("lua/%s: Flags: %w", file, err)
	}
	if f.Errors, err = r.words(parts["Errors"]); err != nil {
		return f, fmt.Errorf("lua/%s: Errors: %w", file, err)
	}
	r.done[f.Name] = f
	return f, nil
}

// words splits a list, in which @name stands for a group. "none" is the empty one.
func (r *resolver) words(text string) (out []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for _, word := range strings.Fields(text) {
		group, ok := r.groups[word]
		switch {
		case ok:
			of, err := r.words(group)
			if err != nil {
				return nil, err
			}
			out = append(out, of...)
		case strings.HasPrefix(word, "@"):
			return nil, fmt.Errorf("%s: no such group in lua/groups.txt", word)
		default:
			out = append(out, word)
		}
	}
	slices.Sort(out)
	if unique := slices.Compact(slices.Clone(out)); len(unique) < len(out) {
		return nil, fmt.Errorf("%q says a word twice", text)
	}
	return out, nil
}

// parse reads the words of arguments or a reply.
func (r *resolver) parse(text string) (Sequence, error) {
	if text == "none" {
		return nil, nil
	}
	p := parser{text: text, groups: r.groups}
	p.replies = func(name string) (Sequence, error) {
		for _, area := range Areas {
			file := path.Join(area, name+".lua")
			if _, ok := r.lines[name]; ok && exists(file) {
				f, err := r.function(file)
				if err != nil {
					return nil, err
				}
				slots, _ := f.Reply("OK")
				return slots, nil
			}
		}
		return nil, fmt.Errorf("%s: no such function", name)
	}
	return p.all()
}

func exists(file string) bool {
	f, err := lua.Files.Open(file)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
