// Package migrate holds the code of the notes on moving from other queues, which its tests run.
package migrate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var documents = []string{"from-asynq.md", "from-river.md", "from-temporal.md", "from-celery.md", "from-bullmq.md"}

// inGo is how many names of packages of Go a document has at least.
var inGo = map[string]int{"from-asynq.md": 40, "from-river.md": 40, "from-temporal.md": 30}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var block = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// prose is a document without its blocks.
func prose(t *testing.T, document string) string {
	return block.ReplaceAllString(read(t, document), "")
}

// packages are those whose names the notes use, by directory.
var packages = map[string]string{"flowfabric": "", "client": "client", "admin": "admin", "handler": "handler",
	"runtime": "runtime", "fftest": "fftest", "flow": "flow", "suspend": "suspend", "schedule": "schedule",
	"admission": "admission", "embedded": "embedded", "stream": "stream", "engine": "internal/engine"}

// What the notes call client.Submit, Admin.Replay or Config.Lanes is there.
func TestNamesExist(t *testing.T) {
	known, members := map[string]bool{}, map[string]bool{}
	for name, dir := range packages {
		exported(t, name, filepath.Join("..", "..", dir), known, members)
	}
	ours := regexp.MustCompile(`^(?:(` + strings.Join(names(packages), "|") +
		`)\.([A-Z]\w*)|(?:Client|Admin|Execution|Task|Config|Worker|Env|Report|Flow|Policy|RetryPolicy|Outcome|Failure|Binding|Filter|Gate|SubscribeOptions)\.([A-Z]\w*))`)
	for _, document := range documents {
		seen := 0
		for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose(t, document), -1) {
			m := ours.FindStringSubmatch(quoted[1])
			if m == nil {
				continue
			}
			seen++
			if m[1] != "" && !known[m[1]+"."+m[2]] {
				t.Errorf("%s: there is no %s.%s", document, m[1], m[2])
			}
			if name := strings.SplitN(m[0], ".", 2); m[1] == "" && !members[m[0]] {
				t.Errorf("%s: %s has no %s", document, name[0], name[1])
			}
		}
		if seen < inGo[document] {
			t.Errorf("%s: %d names", document, seen)
		}
	}
}

func names(m map[string]string) (list []string) {
	for name := range m {
		list = append(list, name)
	}
	return list
}

// exported collects what a package exports: pkg.Name, and Type.Method and Type.Field.
func exported(t *testing.T, name, dir string, known, members map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					known[name+"."+d.Name.Name] = true
				} else if on := receiver(d.Recv.List[0].Type); on != "" {
					members[on+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declared(name, s, known, members)
				}
			}
		}
	}
}

func declared(name string, s ast.Spec, known, members map[string]bool) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			known[name+"."+n.Name] = true
		}
	case *ast.TypeSpec:
		known[name+"."+s.Name.Name] = true
		if fields, ok := s.Type.(*ast.StructType); ok {
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					members[s.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// Every command is one of docs/reference/cli.md, and every link leads somewhere. Reports of benchmarks are made when
// they are measured.
func TestCommandsAndLinks(t *testing.T) {
	manual := read(t, "../reference/cli.md")
	for _, document := range documents {
		text := prose(t, document)
		commands := regexp.MustCompile("`flowfabric ([a-z-]+(?: [a-z-]+)?)").FindAllStringSubmatch(text, -1)
		for _, c := range commands {
			first, _, _ := strings.Cut(c[1], " ")
			if !strings.Contains(manual, "### flowfabric "+c[1]+"\n") &&
				!strings.Contains(manual, "### flowfabric "+first+"\n") {
				t.Errorf("%s: flowfabric %s is no command", document, c[1])
			}
		}
		for _, l := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			if !slices.Contains(headings(text), l[1]) {
				t.Errorf("%s: no heading is #%s", document, l[1])
			}
		}
		for _, l := range regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(l[1], "://") || strings.Contains(l[1], "benchmarks/results/") {
				continue
			}
			if _, err := os.Stat(l[1]); err != nil {
				t.Errorf("%s: %v", document, err.(*fs.PathError))
			}
		}
		if len(commands) < 5 {
			t.Errorf("%s: %d commands", document, len(commands))
		}
	}
}

// headings are the anchors of a document.
func headings(text string) (anchors []string) {
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(h[1]), "")
		anchors = append(anchors, strings.ReplaceAll(kept, " ", "-"))
	}
	return anchors
}
