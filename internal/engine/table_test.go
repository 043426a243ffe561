package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// methods maps the name of every method of Engine to its doc comment.
func methods(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(".")
	must.No(t, err)
	out := map[string]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ParseComments)
		must.No(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "Engine" {
				out[f.Name.Name] = f.Doc.Text()
			}
		}
	}
	return out
}

// The table of this package and the headers of the Lua files name the same functions and methods.
func TestTableMatchesHeaders(t *testing.T) {
	headers := map[string]contract.Function{}
	for _, h := range contract.Functions() {
		headers[h.Name] = h
	}
	docs := methods(t)
	for _, f := range functions {
		h, ok := headers[f.name]
		if !ok {
			t.Errorf("%s has no Lua file", f.name)
			continue
		}
		delete(headers, f.name)
		if h.Method != "Engine."+f.method {
			t.Errorf("%s: method %q in Go, %q in lua/%s", f.name, f.method, h.Method, h.File)
		}
		if readonly := slices.Contains(h.Flags, "no-writes"); readonly != f.readonly {
			t.Errorf("%s: readonly %v in Go, flags %v in Lua", f.name, f.readonly, h.Flags)
		}
		doc, ok := docs[f.method]
		if !ok {
			t.Errorf("%s: Engine has no method %s", f.name, f.method)
		} else if !strings.Contains(doc, "lua/"+h.File) {
			t.Errorf("%s: the comment of Engine.%s does not name lua/%s", f.name, f.method, h.File)
		}
	}
	for name := range headers {
		t.Errorf("%s is not in the table of package engine", name)
	}
}

// Every code in a header is an error that applications can compare with. config_missing is the exception: only
// Open sees it, and turns it into a configuration error.
func TestErrorsHaveSentinels(t *testing.T) {
	for _, h := range contract.Functions() {
		for _, code := range h.Errors {
			err := denied.New(h.Name, code)
			if known := flowfabric.CodeOf(err) == code; known == (code == "config_missing") {
				t.Errorf("%s: %s has sentinel: %v", h.Name, code, known)
			}
		}
	}
}
