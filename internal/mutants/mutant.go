package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one change of one source file.
type Mutant struct {
	Name     string // unique, without lines in it
	File     string // path in the repository
	Function string
	Operator string // "" for a bug of the catalogue
	From, To int    // the text that goes
	New      string // the text that takes its place
	Block    int    // of a Lua file: the block that it is in
	By       Test   // of a Go file: the tests that must notice

	statement string
}

// Test names tests: a package of the module, and a pattern for go test -run.
type Test struct {
	Package, Run string
}

// Bug is a change of the catalogue, for what operators cannot say.
type Bug struct {
	Name string // what is broken, in a few words; unique
	In   string // the function it is in, see Sources
	Old  string // text that occurs exactly once there
	New  string // what takes its place
	By   Test   // of a Go file: the tests that must notice
}

// in names tests of one package.
func in(pkg, run string) Test { return Test{"./" + pkg, run} }

// Find returns where in a text the bug is and what the text becomes there. How the text is laid out does not matter.
// It fails unless the old text is there exactly once, so that an entry which the sources have outgrown is noticed
// instead of changing something else.
func (b Bug) Find(part string) (from, to int, err error) {
	text, at := squeeze(part)
	old, _ := squeeze(b.Old)
	old = strings.TrimSpace(old)
	if n := strings.Count(text, old); n != 1 || old == "" {
		return 0, 0, fmt.Errorf("%s: the old text occurs %d times in %s, not once:\n%s", b.Name, n, b.In, b.Old)
	}
	i := strings.Index(text, old)
	from, to = at[i], at[i+len(old)-1]+1
	if part[from:to] == strings.TrimSpace(b.New) {
		return 0, 0, fmt.Errorf("%s: changes nothing", b.Name)
	}
	return from, to, nil
}

// Project is the sources, the Lua library in chunks, and all mutants of both.
type Project struct {
	Root    string
	Sources *Sources
	Chunks  map[string]*chunk // by path in the repository
	Mutants []Mutant
}

// replaced are the files that the suite does not load: its clock can be moved.
var replaced = []string{"lib/time.lua", "lib/time_test_clock.lua"}

// readProject reads everything and applies the operators.
func readProject(root string) (*Project, error) {
	sources, err := findSources(root)
	if err != nil {
		return nil, err
	}
	p := &Project{Root: root, Sources: sources, Chunks: map[string]*chunk{}}
	tree := os.DirFS(filepath.Join(root, "lua"))
	files, err := fs.Glob(tree, "*/*.lua")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		c, err := parseChunk(file, string(source))
		if err != nil {
			return nil, err
		}
		p.Chunks["lua/"+file] = c
		if !slices.Contains(replaced, file) && !strings.HasPrefix(file, "decode/") { // which is generated
			p.Mutants = append(p.Mutants, c.Mutants...)
		}
	}
	for _, b := range catalogue() {
		m, err := p.seed(b)
		if err != nil {
			return nil, err
		}
		p.Mutants = append(p.Mutants, m)
	}
	return p, nil
}

// seed finds the place of a bug.
func (p *Project) seed(b Bug) (Mutant, error) {
	where, err := p.Sources.find(b.In)
	if err != nil {
		return Mutant{}, fmt.Errorf("%s: %w", b.Name, err)
	}
	source, err := p.Sources.read(where.file)
	if err != nil {
		return Mutant{}, err
	}
	if where.to == 0 {
		where.to = len(source)
	}
	from, to, err := b.Find(source[where.from:where.to])
	m := Mutant{Name: b.Name, File: where.file, Function: b.In, From: where.from + from, To: where.from + to,
		New: strings.TrimSpace(b.New), By: b.By}
	if c := p.Chunks[m.File]; c != nil {
		m.Block = c.blockOf(m.From, m.To)
	}
	return m, err
}

// Apply returns the text of the file with the change.
func (p *Project) Apply(m Mutant) (string, error) {
	source, err := p.Sources.read(m.File)
	if err != nil {
		return "", err
	}
	return source[:m.From] + m.New + source[m.To:], nil
}

// Describe shows the lines of a change, before and after.
func (p *Project) Describe(m Mutant) string {
	source, err := p.Sources.read(m.File)
	if err != nil {
		return err.Error()
	}
	from, to := 1+strings.LastIndex(source[:m.From], "\n"), len(source)
	if i := strings.Index(source[m.To:], "\n"); i >= 0 {
		to = m.To + i
	}
	flat := func(s string) string { s, _ = squeeze(s); return strings.TrimSpace(s) }
	return fmt.Sprintf("%s:%d: %s  →  %s", m.File, 1+strings.Count(source[:m.From], "\n"), flat(source[from:to]),
		flat(source[from:m.From]+m.New+source[m.To:to]))
}

// sample picks so many mutants. Which ones depends on the seed and on their names only, so a change of the sources
// changes few of them.
func sample(all []Mutant, n int, seed string) []Mutant {
	rank := func(m Mutant) string {
		sum := sha256.Sum256([]byte(seed + "\n" + m.Name))
		return hex.EncodeToString(sum[:])
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Mutant) int { return strings.Compare(rank(a), rank(b)) })
	return all[:min(n, len(all))]
}

// moduleRoot is the directory of the module's go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("not in a module")
	}
	return filepath.Dir(file), nil
}
