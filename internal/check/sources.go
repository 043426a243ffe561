package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// visitor looks at one file.
type visitor func(name string, file *ast.File, where func(token.Pos) token.Position)

// sources shows every source file of the module to look, but no tests, no directories that the go tool ignores, and
// no modules of their own.
func sources(root fs.FS, look visitor) error {
	own := func(dir string) bool {
		_, err := fs.Stat(root, path.Join(dir, "go.mod"))
		return err != nil
	}
	return walk(root, own, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }, look)
}

// walk shows look the wanted Go files of the directories that enter allows.
func walk(root fs.FS, enter, want func(name string) bool, look visitor) error {
	return fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (ignored(name) || !enter(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !want(name) {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		look(name, file, files.Position)
		return nil
	})
}

// ignored tells whether the go tool ignores a directory.
func ignored(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}
