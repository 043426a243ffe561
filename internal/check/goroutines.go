package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// ownGoroutines lists the files that may contain a go statement, with the reason. Everything else starts
// goroutines through something that waits for them: conc.WaitGroup, conc/pool, sync.WaitGroup.Go.
var ownGoroutines = map[string]string{}

// goStatements reports go statements in the module's sources. Tests are left out: goleak watches those. So are
// directories the go tool ignores, and modules of their own.
func goStatements(root fs.FS) (breaches []string, err error) {
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(root, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || ownGoroutines[name] != "" {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				breaches = append(breaches, fmt.Sprintf("%s: bare go statement; start it through an owner that waits (conc.WaitGroup)", files.Position(g.Pos())))
			}
			return true
		})
		return nil
	})
	return breaches, err
}

func skipDir(root fs.FS, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}
