package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
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

// The header of each function names the method that calls it, whose comment names the file of the function.
func TestHeadersNameMethods(t *testing.T) {
	docs := methods(t)
	for _, h := range contract.Functions() {
		doc, ok := docs[strings.TrimPrefix(h.Method, "Engine.")]
		if !ok {
			t.Errorf("%s: Engine has no method %s", h.Name, h.Method)
		} else if !strings.Contains(doc, "lua/"+h.File) {
			t.Errorf("%s: the comment of %s does not name lua/%s", h.Name, h.Method, h.File)
		}
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
