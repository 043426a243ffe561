package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
)

// ownGoroutines lists the files that may contain a go statement, with the reason. Everything else starts
// goroutines through something that waits for them: conc.WaitGroup, conc/pool, sync.WaitGroup.Go.
var ownGoroutines = map[string]string{}

// goStatements reports go statements in the module's sources. Tests are left out: goleak watches those.
func goStatements(root fs.FS) (breaches []string, err error) {
	err = sources(root, func(name string, file *ast.File, where func(token.Pos) token.Position) {
		if ownGoroutines[name] != "" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				breaches = append(breaches, fmt.Sprintf(
					"%s: bare go statement; start it through an owner that waits (conc.WaitGroup)", where(g.Pos())))
			}
			return true
		})
	})
	return breaches, err
}
