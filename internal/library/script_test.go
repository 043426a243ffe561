package library

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
)

// entriesOf are the entries of the tables of helpers, as a text defines them when it is loaded: "core.read".
func entriesOf(t testing.TB, name, text string) map[string]bool {
	tables, out := map[string]bool{}, map[string]bool{}
	add := func(x ast.Expr) {
		if a, ok := x.(*ast.AttrGetExpr); ok && tables[attribute(a.Object)] {
			out[attribute(a)] = true
		}
	}
	for _, s := range statements(parsed(t, name, text)) {
		switch s := s.(type) {
		case *ast.LocalAssignStmt:
			for _, n := range s.Names {
				tables[n] = true
			}
		case *ast.FuncDefStmt:
			add(s.Name.Func)
		case *ast.AssignStmt:
			for i, to := range s.Lhs {
				add(to)
				if made, ok := s.Rhs[i].(*ast.TableExpr); ok && tables[attribute(to)] {
					for _, f := range made.Fields {
						if key, ok := f.Key.(*ast.StringExpr); ok {
							out[attribute(to)+"."+key.Value] = true
						}
					}
				}
			}
		}
	}
	return out
}

// A script has every entry of a helper's table that something in it reads. TestGlobals holds it against missing locals.
func TestScriptsHaveWhatTheyUse(t *testing.T) {
	for _, v := range []Variant{{}, {TestClock: true}} {
		var whole strings.Builder
		for _, lib := range libs {
			whole.WriteString(libSource(lib, v))
		}
		known := entriesOf(t, "helpers", whole.String())
		if len(known) < 600 {
			t.Fatalf("%d entries are known", len(known))
		}
		for _, h := range Functions() {
			text := Script(h.Name, v)
			has := entriesOf(t, h.Name, text)
			walk(parsed(t, h.Name, text), func(n any) bool {
				a, ok := n.(*ast.AttrGetExpr)
				if !ok {
					return true
				}
				if name := attribute(a); known[name] && !has[name] {
					t.Errorf("%s: %s is missing", h.Name, name)
				}
				return true
			})
		}
	}
}

// No helper is handed to others as a value, for what they read of it could not be seen: its table is only read, by a name in the text.
func TestHelpersAreNoValues(t *testing.T) {
	looked := 0
	for _, file := range sources(t) {
		chunk := parsed(t, file, read(file))
		locals := map[string]bool{}
		for _, s := range chunk {
			if l, ok := s.(*ast.LocalAssignStmt); ok {
				for _, name := range l.Names {
					locals[name] = true
				}
			}
		}
		for _, s := range chunk {
			own, tables := map[string]bool{}, map[ast.Expr]bool{} // names that mean something else in the statement, and what is read by a name
			walk(s, func(n any) bool {
				switch n := n.(type) {
				case *ast.LocalAssignStmt:
					for _, name := range n.Names {
						own[name] = true
					}
				case *ast.ParList:
					for _, name := range n.Names {
						own[name] = true
					}
				case *ast.GenericForStmt:
					for _, name := range n.Names {
						own[name] = true
					}
				case *ast.NumberForStmt:
					own[n.Name] = true
				case *ast.AttrGetExpr:
					if _, fixed := n.Key.(*ast.StringExpr); fixed {
						tables[n.Object] = true
					}
				}
				return true
			})
			walk(s, func(n any) bool {
				i, ok := n.(*ast.IdentExpr)
				if !ok || !slices.Contains(libs, i.Value) && i.Value != "clock" {
					return true
				}
				if looked++; !locals[i.Value] && !own[i.Value] && !tables[i] {
					t.Errorf("%s:%d: %s is used as a value", file, i.Line(), i.Value)
				}
				return true
			})
		}
	}
	if looked < 1000 {
		t.Errorf("%d uses of helpers were looked at", looked)
	}
}

// What a function does not need is left out.
func TestScriptsAreSmall(t *testing.T) {
	for name, absent := range map[string]string{
		"ff_put_budget": "share.", "ff_read_quota": "create.", "ff_boot": "record.", "ff_create_execution": "suspension.",
	} {
		if text := Script(name, Variant{}); strings.Contains(text, "function "+absent) {
			t.Errorf("%s has the functions of %s", name, absent)
		}
	}
}
