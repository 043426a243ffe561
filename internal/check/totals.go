package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// helpers are the trees, besides files of tests, whose code runs in tests alone.
var helpers = []string{"agent/internal/modeltest", "benchmarks/driver/drivertest", "internal/clienttest", "internal/cluster",
	"internal/conformance", "internal/crash",
	"internal/invariant", "internal/model", "internal/must", "internal/race", "internal/sentinel", "internal/storetest",
	"internal/testnode", "internal/testserver", "internal/testwait", "internal/toxic"}

// marker begins the comment that allows a fixed time in its line and the next one, or before the package clause in
// the file. The reason follows.
const marker = "// timed: "

// totals reports what ends a test because a fixed time has passed: a slow machine exceeds every one. A bubble of
// testing/synctest has virtual time; other exceptions state their reason behind the marker.
func totals(root fs.FS) (breaches []string, err error) {
	everywhere := func(string) bool { return true }
	inTests := func(name string) bool { return strings.HasSuffix(name, "_test.go") || underAny(name, helpers) }
	err = walk(root, everywhere, inTests, func(_ string, file *ast.File, where func(token.Pos) token.Position) {
		allowed, all := marked(file, where)
		if all {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && called(call, "synctest", "Test") {
				return false
			}
			if what := total(n); what != "" && !allowed[where(n.Pos()).Line] {
				breaches = append(breaches,
					fmt.Sprintf("%s: %s; bound the wait with internal/testwait, or write %q and the reason",
						where(n.Pos()), what, strings.TrimSpace(marker)))
			}
			return true
		})
	})
	return breaches, err
}

// marked returns the lines with a marker and the ones after them, and whether the whole file has one.
func marked(file *ast.File, where func(token.Pos) token.Position) (lines map[int]bool, all bool) {
	lines = map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, marker) && len(c.Text) > len(marker) {
				line := where(c.Pos()).Line
				lines[line], lines[line+1] = true, true
				all = all || c.Pos() < file.Package
			}
		}
	}
	return lines, all
}

// total says which fixed time a node is, or nothing.
func total(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch method, ok := n.Fun.(*ast.SelectorExpr); {
		case !ok:
		case called(n, "context", "WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"):
			return "a context that ends after a fixed time"
		case (method.Sel.Name == "After" || method.Sel.Name == "Before") && isNow(method.X):
			return "a wait until a fixed time"
		case strings.HasPrefix(method.Sel.Name, "Set") && strings.HasSuffix(method.Sel.Name, "Deadline") &&
			len(n.Args) == 1 && later(n.Args[0]):
			return "a connection that ends after a fixed time"
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(ends, key.Name) && short(n.Value) {
			return "a call that ends after a fixed time"
		}
	case *ast.BinaryExpr:
		if isSince(n.X) && exceeds(n) {
			return "a failure after a fixed time"
		}
	case *ast.IfStmt:
		if took := sinceIn(n.Init); took != "" && exceeding(n.Cond, took) {
			return "a failure after a fixed time"
		}
	case *ast.CommClause:
		if n.Comm != nil && receivesAfter(n.Comm) && slices.ContainsFunc(n.Body, fails) {
			return "a select that fails after a fixed time"
		}
	}
	return ""
}

// ends are the fields that end a call, or an attempt to connect.
var ends = []string{"CallTimeout", "ConnWriteTimeout", "DialTimeout", "ReadHeaderTimeout", "ReadTimeout",
	"SubmitTimeout", "WaitDelay", "WriteTimeout"}

// short tells whether an expression is a time of less than hours: it names a smaller unit.
func short(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if unit, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := unit.X.(*ast.Ident)
			found = found || ok && pkg.Name == "time" &&
				slices.Contains([]string{"Microsecond", "Millisecond", "Second", "Minute"}, unit.Sel.Name)
		}
		return !found
	})
	return found
}

func isSince(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	return ok && called(call, "time", "Since")
}

// exceeds tells whether a comparison asks if something took longer than a fixed time.
func exceeds(n *ast.BinaryExpr) bool { return (n.Op == token.GTR || n.Op == token.GEQ) && short(n.Y) }

// sinceIn returns the name that a statement gives to a time.Since(…), or nothing.
func sinceIn(s ast.Stmt) string {
	assign, ok := s.(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || !isSince(assign.Rhs[0]) {
		return ""
	}
	name, _ := assign.Lhs[0].(*ast.Ident)
	return name.Name
}

// exceeding tells whether a condition asks if a named time is longer than a fixed one.
func exceeding(condition ast.Expr, name string) (found bool) {
	ast.Inspect(condition, func(n ast.Node) bool {
		if compared, ok := n.(*ast.BinaryExpr); ok && exceeds(compared) {
			x, ok := compared.X.(*ast.Ident)
			found = found || ok && x.Name == name
		}
		return !found
	})
	return found
}

// called tells whether a call is of one of a package's functions.
func called(call *ast.CallExpr, pkg string, names ...string) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, f.Sel.Name) {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func isNow(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	return ok && called(call, "time", "Now")
}

// later tells whether an expression is time.Now().Add(…).
func later(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Add" && isNow(f.X)
}

// receivesAfter tells whether the arm of a select is <-time.After(…).
func receivesAfter(comm ast.Stmt) bool {
	x, ok := comm.(*ast.ExprStmt)
	if !ok {
		return false
	}
	receive, ok := x.X.(*ast.UnaryExpr)
	if !ok {
		return false
	}
	call, ok := receive.X.(*ast.CallExpr)
	return ok && called(call, "time", "After")
}

// fails tells whether a statement fails the test.
func fails(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !found
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			found = found || slices.Contains([]string{"Fatal", "Fatalf", "Error", "Errorf", "FailNow", "Fail", "fail"},
				f.Sel.Name)
		case *ast.Ident:
			found = found || f.Name == "panic"
		}
		return !found
	})
	return found
}
