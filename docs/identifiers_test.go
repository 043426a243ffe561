package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// names are the identifiers of the module.
type names struct {
	packages map[string]map[string]bool // declarations of a package: Name, and Type.Member
	declared map[string]bool            // by any package
	members  map[string]bool            // fields and methods of any type
	imported map[string]bool            // names of packages of others
}

func read(t *testing.T) names {
	t.Helper()
	n := names{map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for file, text := range files(t, ".go") {
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(f.Name.Name, "_test")
		pkg := n.packages[name]
		if pkg == nil {
			pkg = map[string]bool{}
			n.packages[name] = pkg
		}
		for _, i := range f.Imports {
			n.imported[path.Base(strings.Trim(i.Path.Value, `"`))] = true
		}
		add := func(name string) {
			pkg[name], n.declared[name] = true, true
			if _, member, ok := strings.Cut(name, "."); ok && !strings.HasPrefix(file, "internal/") {
				n.members[member] = true
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name)
				} else {
					add(receiver(d.Recv.List[0].Type) + "." + d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					specified(spec, add)
				}
			}
		}
	}
	return n
}

func specified(spec ast.Spec, add func(string)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			add(name.Name)
		}
	case *ast.TypeSpec:
		add(s.Name.Name)
		for _, member := range members(s.Type) {
			add(s.Name.Name + "." + member)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members are the fields of a struct and the methods of an interface.
func members(e ast.Expr) (out []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

// has tells whether a package declares name, which may be Type.Member. A member may come from an embedded type.
func (n names) has(pkg map[string]bool, name string) bool {
	base, member, ok := strings.Cut(name, ".")
	return pkg[name] || ok && pkg[base] && n.members[member]
}

// unknown are the identifiers in a piece of code that nothing declares.
func (n names) unknown(code string) (out []string) {
	if name := alone.FindStringSubmatch(code); name != nil && lower.MatchString(name[1]) {
		if !n.has(n.declared, name[1]) && !n.members[name[1]] {
			out = append(out, name[1])
		}
	}
	for _, q := range qualified.FindAllStringSubmatch(code, -1) {
		switch pkg, ours := n.packages[q[1]]; {
		case n.has(n.declared, strings.ToUpper(q[1][:1])+q[1][1:]+"."+q[2]): // client.Get is a method of Client
		case ours && !n.has(pkg, q[2]):
			out = append(out, q[1]+"."+q[2])
		case !ours && !n.imported[q[1]] && !n.members[path.Base(strings.ReplaceAll(q[2], ".", "/"))]:
			out = append(out, q[1]+"."+q[2])
		}
	}
	return out
}

var (
	span      = regexp.MustCompile("`([^`\n]+)`")
	qualified = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	alone     = regexp.MustCompile(`^([A-Z][A-Za-z]\w*(?:\.[A-Z]\w*)?)(?:\(.*\))?$`)
	lower     = regexp.MustCompile(`^[A-Z]\w*[a-z]`)
)

// elsewhere are names of others, and of what was considered and not built.
var elsewhere = []string{"EventSource", "TimeoutStopSec", "IsExcluded", "MaxFlushDelay", "JobCompleteTx",
	"ContinuedAs", "ContinuedFrom", "RequireConfirmation", "OnModelErrorCallback"}

// Every identifier of Go that a document names exists: package.Name, package.Type.Member, variable.Member, Type.Member
// and Name. The pages for those who come from elsewhere name what is there, too.
func TestNamesExist(t *testing.T) {
	known := read(t)
	for file, text := range files(t, ".md") {
		for _, s := range span.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
			for _, name := range known.unknown(s[1]) {
				pkg, _, _ := strings.Cut(name, ".")
				if slices.Contains(elsewhere, name) ||
					strings.HasPrefix(file, "docs/migrate/") && (known.packages[pkg] == nil || pkg == "asynq") {
					continue
				}
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	for code, want := range map[string]string{"client.Submit": "", "client.Sumbit": "client.Sumbit", "why.At": "",
		"why.Facts": "why.Facts", "admin.Admin.Check": "", "admin.Admin.Adit": "admin.Admin.Adit", "Task.Frame": "",
		"DefaultRetention": "DefaultRetention", "http.StatusOK": "", "flowfabric.Delay(time.Hour)": ""} {
		if got := strings.Join(known.unknown(code), " "); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
