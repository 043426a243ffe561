package flowfabric_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// sentinels reads from errors.go what each error is called, by code.
func sentinels(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	must.No(t, err)
	names := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			return true
		}
		if c, ok := v.Values[0].(*ast.CallExpr); ok {
			if f, ok := c.Fun.(*ast.Ident); ok && f.Name == "define" {
				code, _ := strconv.Unquote(c.Args[0].(*ast.BasicLit).Value)
				names[code] = v.Names[0].Name
				if len(c.Args) == 4 { // the exported error that stands for this code, too
					names[code] = c.Args[3].(*ast.Ident).Name
				}
			}
		}
		return true
	})
	return names
}

// TestErrorDocs writes the table of all errors from its one source, errors.go, and from the headers of the Lua
// functions, and holds docs/reference/errors.md against it. FLOWFABRIC_GOLDEN=write writes the document.
func TestErrorDocs(t *testing.T) {
	names := sentinels(t)
	if len(names) != len(definitions(t)) {
		t.Fatalf("%d errors have names, %d are defined", len(names), len(definitions(t)))
	}
	by := map[string][]string{}
	for _, h := range contract.Functions() {
		for _, code := range h.Errors {
			if names[code] == "" && code != "config_missing" { // which the engine alone hears, when it opens a store
				t.Errorf("%s answers %s, which is no error", h.Name, code)
			}
			by[code] = append(by[code], strings.TrimPrefix(h.Name, "ff_"))
		}
	}
	var b strings.Builder
	b.WriteString(`# Errors

TestErrorDocs writes this page from errors.go and the headers of the Lua functions (FLOWFABRIC_GOLDEN=write). Compare errors with errors.Is. The class says what
to do: stop (the answer is final for this caller), retry (nothing was decided; make the same call again), info (the change no longer applies), caller (correct the
request), bug (report it). The last column names the functions that can refuse a whole call with this error. Items of a batch have their own answers. An error
without functions comes from Go. One error may stand for several codes, and one without a name (–) needs no program to act on it: flowfabric.CodeOf tells the code.
` + "No error has the code " + strings.Join(umbrellas, ", ") + `: they only stand for others.

| Code | Error | Class | Meaning | Functions |
|---|---|---|---|---|
`)
	codes := make([]string, 0, len(names))
	for code := range names {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		e := denied.New("", code)
		functions := strings.Join(by[code], " ")
		if n := len(by[code]); n > 8 {
			functions = fmt.Sprintf("%d of %d", n, len(contract.Functions()))
		}
		_, meaning, _ := strings.Cut(e.Error(), code+": ")
		name := strings.Replace(names[code], "_", "–", 1)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code, name, denied.ClassOf(e),
			strings.ReplaceAll(meaning, "|", "\\|"), functions)
	}
	const document = "docs/reference/errors.md"
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		must.No(t, os.WriteFile(document, []byte(b.String()), 0o644))
		return
	}
	stored, err := os.ReadFile(document)
	must.No(t, err)
	if string(stored) != b.String() {
		t.Errorf("%s is not what the sources say; write it again with FLOWFABRIC_GOLDEN=write", document)
	}
}
