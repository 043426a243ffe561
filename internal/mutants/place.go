package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Sources finds the functions that the bugs are in. A function of the library is called what its callers call it
// ("claim.parse"); one that is local to its file has the file's name before its own ("record/escape"), unless they
// are the same ("ff_claim_next"). A function in Go has the directory of its package before it, and its receiver
// ("internal/keys.Partition.Core"). What is in no function is in a file ("limits.go").
type Sources struct {
	root   string
	places map[string]place
}

// place is a part of a file.
type place struct {
	file     string // path in the repository
	from, to int    // of the whole file if to is 0
	twin     string // another file with a function of the same name
}

// findSources reads the whole tree.
func findSources(root string) (*Sources, error) {
	s := &Sources{root, map[string]place{}}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" ||
			s.has(name, "go.mod")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".lua"):
			return s.addLua(name)
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return s.addGo(name)
		}
		return nil
	})
	return s, err
}

func (s *Sources) has(dir, name string) bool {
	_, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(dir), name))
	return err == nil
}

func (s *Sources) read(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(file)))
	return string(text), err
}

// add keeps a name that is there twice, as in files for different systems, as one that no bug can use.
func (s *Sources) add(name string, p place) {
	if known, ok := s.places[name]; ok {
		p.twin = known.file
	}
	s.places[name] = p
}

// luaFunction is a function of a file's top level: its end is on the same line, or is the next that is not indented.
var luaFunction = regexp.MustCompile(`(?m)^(local )?function ([\w.]+)\(.*(?: end$|\n(?:(?:[ \t].*)?\n)*end$)`)

func (s *Sources) addLua(file string) error {
	text, err := s.read(file)
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(path.Base(file), ".lua")
	for _, m := range luaFunction.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[4]:m[5]]
		if m[2] >= 0 && name != base {
			name = base + "/" + name
		}
		s.add(name, place{file: file, from: m[0], to: m[1]})
	}
	return nil
}

func (s *Sources) addGo(file string) error {
	text, err := s.read(file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name == "init" || f.Name.Name == "_" {
			continue
		}
		name := path.Dir(file) + "."
		if f.Recv != nil {
			name += receiver(f.Recv.List[0].Type) + "."
		}
		s.add(name+f.Name.Name, place{file: file, from: set.Position(f.Pos()).Offset, to: set.Position(f.End()).Offset})
	}
	return nil
}

// receiver is the name of a method's type, without pointer and parameters.
func receiver(x ast.Expr) string {
	switch t := x.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// find returns where a function is, or a whole file.
func (s *Sources) find(name string) (place, error) {
	p, ok := s.places[name]
	switch {
	case !ok && strings.Contains(path.Base(name), ".") && s.has(".", name):
		return place{file: name}, nil
	case !ok:
		return p, fmt.Errorf("there is no function and no file %s", name)
	case p.twin != "":
		return p, fmt.Errorf("%s is in %s and in %s", name, p.twin, p.file)
	}
	return p, nil
}

// squeeze makes one blank of each run of white space and returns where each byte came from.
func squeeze(text string) (string, []int) {
	out, from := make([]byte, 0, len(text)), make([]int, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if c == '\n' || c == '\t' {
			c = ' '
		}
		if c == ' ' && len(out) > 0 && out[len(out)-1] == ' ' {
			continue
		}
		out, from = append(out, c), append(from, i)
	}
	return string(out), from
}

// inLua tells whether a file is of the library on the server.
func inLua(file string) bool { return strings.HasSuffix(file, ".lua") }
