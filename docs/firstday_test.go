package docs_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	// firstDay lists the names that README, the tutorial and the smallest example need, one on a line.
	firstDay = "reference/first-day.md"
	// mostOfFirstDay is how many there may be: as many as one reads about in an afternoon.
	mostOfFirstDay = 60
)

// public are the packages that applications import, by the names that code gives them.
var public = map[string]string{"flowfabric": ".", "handler": "handler", "runtime": "runtime", "client": "client",
	"suspend": "suspend", "stream": "stream", "flow": "flow", "approval": "approval", "schedule": "schedule",
	"admission": "admission", "admin": "admin", "agent": "agent", "lease": "lease", "embedded": "embedded",
	"fftest": "fftest", "httpapi": "httpapi", "dashboard": "dashboard"}

// alike are selectors in these texts that only look like ours: of the standard library, and of their own types.
var alike = map[string]bool{"context.Context": true, "worker.Wait": true, "w.Model": true, "articles.Model": true,
	"Model.Write": true, "articles.Write": true, "writer.Handle": true}

// exportedMembers are the methods and fields that the public packages export.
func exportedMembers(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for file, text := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") ||
			!slices.Contains(slices.Collect(maps.Values(public)), path.Dir(file)) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				if x.Recv != nil {
					names[x.Name.Name] = true
				}
			case *ast.StructType:
				for _, f := range x.Fields.List {
					for _, name := range f.Names {
						names[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

// used are the names of the public packages in Go code, which may be a fragment: "handler.Step" of a package, ".Frame"
// of a value.
func used(code string, members map[string]bool) (names []string) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", set.Base(), len(code)), []byte(code), nil, 0)
	var before [3]string // the tokens before, the last one first
	for {
		_, kind, text := s.Scan()
		if kind == token.EOF {
			return names
		}
		if kind != token.IDENT {
			text = kind.String()
		}
		if kind == token.IDENT && token.IsExported(text) && before[0] == "." {
			switch {
			case public[before[1]] != "" && before[2] != ".":
				names = append(names, before[1]+"."+text)
			case members[text] && !alike[before[1]+"."+text]:
				names = append(names, "."+text)
			}
		}
		before = [3]string{text, before[0], before[1]}
	}
}

// What a newcomer reads on the first day uses few names, and the list of them is complete.
func TestFirstDay(t *testing.T) {
	known := exportedMembers(t)
	needed := map[string]string{} // where
	note := func(where, code string) {
		for _, name := range used(code, known) {
			needed[name] = where
		}
	}
	for file, text := range files(t, ".md") {
		if file != "README.md" && file != "docs/tutorial.md" {
			continue
		}
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if b[1] == "go" {
				note(file, b[2])
			}
		}
	}
	for file, text := range files(t, ".go") {
		if strings.HasPrefix(file, "examples/hello/") && !strings.HasSuffix(file, "_test.go") {
			note(file, text)
		}
	}
	text, err := os.ReadFile(firstDay)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "- `"); found {
			name, _, _ = strings.Cut(name, "`")
			listed[name] = true
		}
	}
	if len(listed) > mostOfFirstDay {
		t.Errorf("%s lists %d names, and may list %d", firstDay, len(listed), mostOfFirstDay)
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if !listed[name] {
			t.Errorf("%s uses %s, which %s does not list", needed[name], name, firstDay)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if needed[name] == "" {
			t.Errorf("%s lists %s, which nothing uses", firstDay, name)
		}
	}
}
