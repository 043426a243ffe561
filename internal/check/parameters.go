package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
)

// mostParameters is how many parameters a function may have, its receiver and a last one that callers may leave out
// (opts ...T) not counted. What travels together is a struct with a name.
const mostParameters = 6

// longParameters reports functions, methods of interfaces and function types with more parameters.
func longParameters(root fs.FS) (breaches []string, err error) {
	err = sources(root, func(_ string, file *ast.File, where func(token.Pos) token.Position) {
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncType)
			if !ok {
				return true
			}
			count := 0
			for _, p := range f.Params.List {
				if _, optional := p.Type.(*ast.Ellipsis); !optional {
					count += max(1, len(p.Names))
				}
			}
			if count > mostParameters {
				breaches = append(breaches,
					fmt.Sprintf("%s: %d parameters, want at most %d; give what travels together a name",
						where(f.Params.Pos()), count, mostParameters))
			}
			return true
		})
	})
	return breaches, err
}
