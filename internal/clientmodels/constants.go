package clientmodels

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

const module = "github.com/flowfabric/flowfabric-go"

// Constants reads the constants of Go types, which reflection does not know, from the source of this module.
type Constants struct {
	Root string                // of the module
	Open map[reflect.Type]bool // types that have other values besides their constants

	read map[string]map[string]Constant // by package and type
}

// Constant is a type with its values.
type Constant struct {
	Doc    string // the first sentence of its comment
	Values []string
	Open   bool
}

// Of are the constants of a type of this module, in the order of the source; of others there are none.
func (c *Constants) Of(t reflect.Type) (Constant, error) {
	if t.PkgPath() != module && !strings.HasPrefix(t.PkgPath(), module+"/") {
		return Constant{}, nil
	}
	if c.read == nil {
		c.read = map[string]map[string]Constant{}
	}
	if c.read[t.PkgPath()] == nil {
		types, err := constants(filepath.Join(c.Root, strings.TrimPrefix(t.PkgPath(), module)))
		if err != nil {
			return Constant{}, fmt.Errorf("read the constants of %s: %w", t, err)
		}
		c.read[t.PkgPath()] = types
	}
	out := c.read[t.PkgPath()][t.Name()]
	out.Open = c.Open[t]
	return out, nil
}

// constants reads those of a directory, by their types.
func constants(dir string) (map[string]Constant, error) {
	out := map[string]Constant{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err == nil && len(files) == 0 {
		err = fs.ErrNotExist
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				declarations(out, g)
			}
		}
	}
	return out, err
}

// links to other names, as comments of Go have them.
var links = regexp.MustCompile(`\[([A-Z][\w.]*)\]`)

func declarations(out map[string]Constant, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			comment := spec.Doc
			if comment == nil {
				comment = g.Doc
			}
			known := out[spec.Name.Name]
			known.Doc = links.ReplaceAllString(new(doc.Package).Synopsis(comment.Text()), "$1")
			out[spec.Name.Name] = known
		case *ast.ValueSpec:
			of, ok := spec.Type.(*ast.Ident)
			if g.Tok != token.CONST || !ok {
				continue
			}
			known := out[of.Name]
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
						known.Values = append(known.Values, text)
					}
				}
			}
			out[of.Name] = known
		}
	}
}
