package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// surface says how many identifiers each public package exports: its functions, types, methods, constants and
// variables, but for methods of the interfaces in standard, which nobody has to learn or calls by name. The second
// number of a line counts the exported fields of exported structs as well. What users must learn grows only on
// purpose: `go run ./internal/check -exported` writes the file, and a reviewer sees the numbers change.
const surface = "internal/check/exported.txt"

// most is how many identifiers all public packages may export together. It may fall, and must not grow:
// docs/adr/0062-how-many-names.md says what they are.
const most = 900

// mostFields is how many identifiers and exported fields of exported structs all public packages may have together.
// It may fall, too: a name that became a field is still a word to learn. The same page says in which groups they are,
// and why each is there. It rose by 2 for events that resume waits: what one resumed, and what a waitpoint expects.
const mostFields = 2293

// standard are the methods by which a type fits an interface of the standard library: error with errors.Is and
// errors.As, fmt, encoding, log/slog and net/http. They do what that interface says, and the library or the language
// calls them. They are not counted when they have exactly this form.
var standard = map[string]string{
	"Error":         "func() string",
	"Is":            "func(error) bool",
	"Unwrap":        "func() error",
	"String":        "func() string",
	"GoString":      "func() string",
	"Format":        "func(fmt.State, rune)",
	"MarshalText":   "func() ([]byte, error)",
	"UnmarshalText": "func([]byte) error",
	"MarshalJSON":   "func() ([]byte, error)",
	"UnmarshalJSON": "func([]byte) error",
	"LogValue":      "func() slog.Value",
	"ServeHTTP":     "func(http.ResponseWriter, *http.Request)",
}

// fits tells whether a method is one of standard, or the Unwrap of several errors.
func fits(method *ast.FuncDecl) bool {
	form := shape(method.Type)
	return standard[method.Name.Name] == form || method.Name.Name == "Unwrap" && form == "func() []error"
}

// shape is the type of a function without the names of parameters and results.
func shape(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) (all []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			all = append(all, slices.Repeat([]string{types.ExprString(field.Type)}, max(1, len(field.Names)))...)
		}
		return all
	}
	results := list(f.Results)
	text := "func(" + strings.Join(list(f.Params), ", ") + ")"
	switch len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	}
	return text + " (" + strings.Join(results, ", ") + ")"
}

// passages are the exported functions by which packages of this module pass types to each other that no user can name.
// They are counted: a user sees them.
var passages = []string{"handler.NewTask", "handler.Kin", "flow.Plan", "client.Link"}

// exports are the exported names of a package, and what is wrong with types that they mention.
type exports struct {
	count    int
	fields   int
	breaches []string
}

// exported reads every package that a user can import, by directory.
func exported(root fs.FS) (map[string]exports, error) {
	found := map[string]exports{}
	err := sources(root, func(name string, file *ast.File, where func(token.Pos) token.Position) {
		dir := path.Dir(name)
		if underAny(dir, tops) || slices.Contains(strings.Split(dir, "/"), "internal") {
			return
		}
		e := found[dir]
		s := &scanner{exports: &e, dir: dir, foreign: foreignImports(file), where: where}
		for _, d := range file.Decls {
			s.declaration(d)
		}
		found[dir] = e
	})
	maps.DeleteFunc(found, func(_ string, e exports) bool { return e.count == 0 })
	return found, err
}

// foreignImports are the names under which a file knows packages whose types no public package shows, and why: those
// that are internal, and the library for UUIDs, which flowfabric.UUID hides.
func foreignImports(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range file.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		why := "of an internal package, which no user can name"
		if imported == "github.com/google/uuid" {
			why = "of " + imported + "; take flowfabric.UUID"
		} else if !strings.Contains(imported, "/internal/") {
			continue
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = why
	}
	return names
}

type scanner struct {
	*exports
	dir     string
	foreign map[string]string
	where   func(token.Pos) token.Position
}

func (s *scanner) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || receiver(d.Recv.List[0].Type).IsExported() && !fits(d)) {
			s.counted(d.Name, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					s.counted(spec.Name, spec.Type)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						s.counted(name, spec.Type)
					}
				}
			}
		}
	}
}

// counted counts a name, and looks at what a user sees of its type: no unexported field.
func (s *scanner) counted(name *ast.Ident, shown ast.Expr) {
	s.count++
	if shown == nil {
		return
	}
	s.fields += fields(shown)
	if why := s.mentions(shown); why != "" && !slices.Contains(passages, s.dir+"."+name.Name) {
		s.breaches = append(s.breaches,
			fmt.Sprintf("%s: %s mentions a type %s", s.where(name.Pos()), name.Name, why))
	}
}

// fields counts the exported fields of a struct, with those of structs without a name inside it. What is embedded is
// one: its own fields are counted where it is declared.
func fields(shown ast.Expr) (count int) {
	t, ok := shown.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, f := range t.Fields.List {
		names := f.Names
		if len(names) == 0 {
			names = []*ast.Ident{receiver(f.Type)}
		}
		for _, name := range names {
			if name.IsExported() {
				count += 1 + fields(f.Type)
			}
		}
	}
	return count
}

// mentions says what is wrong with a type that a type has in what is not hidden; "" for nothing.
func (s *scanner) mentions(shown ast.Expr) (why string) {
	ast.Inspect(shown, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					why = cmp.Or(why, s.mentions(f.Type))
				}
			}
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				why = cmp.Or(why, s.foreign[x.Name])
			}
		}
		return why == ""
	})
	return why
}

// receiver is the type that a method belongs to.
func receiver(t ast.Expr) *ast.Ident {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.SelectorExpr:
			return x.Sel
		case *ast.Ident:
			return x
		default:
			return ast.NewIdent("_")
		}
	}
}

// written is the text of the file: a line for each package, and their sum.
func written(found map[string]exports) []byte {
	var b bytes.Buffer
	line := func(name string, e exports) { fmt.Fprintf(&b, "%s %d %d\n", name, e.count, e.count+e.fields) }
	for _, name := range slices.Sorted(maps.Keys(found)) {
		line(name, found[name])
	}
	line("all", sum(found))
	return b.Bytes()
}

// sum is what all packages export together.
func sum(found map[string]exports) (all exports) {
	for _, e := range found {
		all.count += e.count
		all.fields += e.fields
	}
	return all
}

// surfaceBreaches compares what is exported with what the file says.
func surfaceBreaches(found map[string]exports, file []byte) (breaches []string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		breaches = append(breaches, found[name].breaches...)
	}
	all := sum(found)
	if all.count > most {
		breaches = append(breaches, fmt.Sprintf(
			"the public packages export %d identifiers, and may export %d: users must learn each of them",
			all.count, most))
	}
	if together := all.count + all.fields; together > mostFields {
		breaches = append(breaches, fmt.Sprintf(
			"the public packages export %d identifiers and fields, and may export %d: users must learn each of them",
			together, mostFields))
	}
	now := written(found)
	if bytes.Equal(now, file) {
		return breaches
	}
	was := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		name, count, _ := strings.Cut(lines.Text(), " ")
		was[name] = count
	}
	for lines := bufio.NewScanner(bytes.NewReader(now)); lines.Scan(); {
		name, count, _ := strings.Cut(lines.Text(), " ")
		if was[name] != count {
			breaches = append(breaches,
				fmt.Sprintf(
					"%s exports %s identifiers, without and with fields; %s says %q. Users must learn each of them. "+
						"go run ./internal/check -exported writes the file",
					name, count, surface, was[name]))
		}
	}
	return breaches
}
