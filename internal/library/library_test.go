package library

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/lua"
)

var variants = []Variant{{}, {Sharded: true}, {TestClock: true}, {Sharded: true, TestClock: true}}

// sources lists every Lua file of the package.
func sources(t testing.TB) []string {
	t.Helper()
	all, err := fs.Glob(lua.Files, "*/*.lua")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sources, %v", len(all), err)
	}
	return all
}

func parsed(t testing.TB, name, text string) []ast.Stmt {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return chunk
}

func compiled(t testing.TB, name, text string) *vm.FunctionProto {
	t.Helper()
	proto, err := vm.Compile(parsed(t, name, text), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return proto
}

func TestHeaders(t *testing.T) {
	names, methods := map[string]bool{}, map[string]bool{}
	for _, h := range contract.Functions() {
		if h.Name+".lua" != path.Base(h.File) || !strings.HasPrefix(h.Name, "ff_") {
			t.Errorf("%s: named %s", h.File, h.Name)
		}
		if define := "\nlocal function " + h.Name; !strings.Contains(read(h.File), define+"(k, argv)\n") &&
			!strings.Contains(read(h.File), define+"(ctx, argv)\n") &&
			!strings.Contains(read(h.File), define+"(ctx, q)\n") {
			t.Errorf("%s does not define local function %s(ctx, q), (ctx, argv) or (k, argv)", h.File, h.Name)
		}
		if names[h.Name] || methods[h.Method] {
			t.Errorf("%s or %s is there twice", h.Name, h.Method)
		}
		names[h.Name], methods[h.Method] = true, true
		if !strings.HasPrefix(h.Method, "Engine.") || !strings.HasSuffix(h.Purpose, ".") {
			t.Errorf("%s: method %q, purpose %q", h.File, h.Method, h.Purpose)
		}
		for _, f := range h.Flags {
			if f != "no-writes" && f != "allow-oom" {
				t.Errorf("%s: flag %q", h.File, f)
			}
		}
		if i := slices.IndexFunc(h.Errors, func(e string) bool {
			return strings.Trim(e, "abcdefghijklmnopqrstuvwxyz_") != ""
		}); i >= 0 {
			t.Errorf("%s: error %q", h.File, h.Errors[i])
		}
		if enters(h) {
			for _, e := range []string{"invalid_input", "partition_missing", "partition_frozen", "protocol_mismatch"} {
				if !slices.Contains(h.Errors, e) {
					t.Errorf("%s enters a root but its header lacks %s", h.File, e)
				}
			}
		}
	}
	count := 0
	for _, f := range sources(t) {
		if !strings.HasPrefix(f, "lib/") && !strings.HasPrefix(f, "decode/") {
			count++
		}
	}
	if count != len(names) {
		t.Errorf("%d function files, %d functions", count, len(names))
	}
}

func TestLibsAreListed(t *testing.T) {
	onDisk, err := fs.Glob(lua.Files, "lib/*.lua")
	must.No(t, err)
	want := []string{"lib/time_test_clock.lua"} // replaces time where the clock must move
	for _, l := range libs {
		want = append(want, "lib/"+l+".lua")
	}
	slices.Sort(want)
	if !slices.Equal(onDisk, want) {
		t.Errorf("lib/ has %v, the list %v", onDisk, want)
	}
	for _, f := range sources(t) {
		if dir := path.Dir(f); dir != "lib" && dir != "decode" && !slices.Contains(contract.Areas, dir) {
			t.Errorf("%s is in no listed area", f)
		}
	}
}

// The lint of the portable subset: what real servers, the embedded one and a later server in Rust
// or C all run alike.

func TestGlobals(t *testing.T) {
	check := func(name, text string) {
		protos(compiled(t, name, text), func(p *vm.FunctionProto) {
			for _, code := range p.Code {
				switch global := func() string { return vm.LVAsString(p.Constants[code&(1<<18-1)]) }; int(code >> 26) {
				case vm.OP_SETGLOBAL:
					t.Errorf("%s: function at line %d sets the global %s", name, p.LineDefined, global())
				case vm.OP_GETGLOBAL:
					if _, ok := functions.Environment[global()]; !ok {
						t.Errorf("%s: function at line %d uses the global %s", name, p.LineDefined, global())
					}
				}
			}
		})
	}
	for _, v := range variants {
		check("library", withoutShebang(Library(v)))
	}
}

// statements are those of a chunk and of the blocks in it.
func statements(chunk []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for _, s := range chunk {
		if block, ok := s.(*ast.DoBlockStmt); ok {
			out = append(out, statements(block.Stmts)...)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// The library may do nothing at load time but define locals and register.
func TestLoadTime(t *testing.T) {
	for _, v := range variants {
		registered := 0
		for _, s := range statements(parsed(t, "library", withoutShebang(Library(v)))) {
			switch s := s.(type) {
			case *ast.FuncDefStmt:
			case *ast.LocalAssignStmt, *ast.AssignStmt: // tables of constants are fine, calls are not
				walk(s, func(n any) bool {
					if _, ok := n.(*ast.FuncCallExpr); ok {
						t.Errorf("line %d calls something at load time", s.Line())
					}
					_, body := n.(*ast.FunctionExpr)
					return !body
				})
			case *ast.FuncCallStmt:
				c := s.Expr.(*ast.FuncCallExpr)
				if attribute(c.Func) != "redis.register_function" {
					t.Errorf("line %d calls %s at load time", s.Line(), attribute(c.Func))
				}
				registered++
			default:
				t.Errorf("line %d: %T at load time", s.Line(), s)
			}
		}
		if registered != len(contract.Functions()) {
			t.Errorf("%d functions registered, %d exist", registered, len(contract.Functions()))
		}
	}
}

func TestPortableSubset(t *testing.T) {
	for _, file := range sources(t) {
		text := read(file)
		for n, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "[[") || strings.Contains(line, "[=[") {
				t.Errorf("%s:%d: long brackets would not survive the comment stripper", file, n+1)
			}
			if len(line) > 140 && !strings.HasPrefix(line, "-- ") && !strings.HasPrefix(file, "decode/") {
				t.Errorf("%s:%d: %d characters", file, n+1, len(line))
			}
		}
		for _, s := range parsed(t, file, text) {
			walk(s, func(n any) bool {
				lint(t, file, n)
				return true
			})
		}
	}
}

// names are the variables that are assigned to, "" for anything else.
func names(all []ast.Expr) []string {
	out := make([]string, len(all))
	for i, x := range all {
		if name, ok := x.(*ast.IdentExpr); ok {
			out[i] = name.Value
		}
	}
	return out
}

// reckons tells whether an expression, more than the variable alone, has a variable.
func reckons(x ast.Expr, name string) (found bool) {
	if _, alone := x.(*ast.IdentExpr); alone {
		return false
	}
	walk(x, func(n any) bool {
		if v, ok := n.(*ast.IdentExpr); ok && v.Value == name {
			found = true
		}
		return true
	})
	return found
}

// lint judges one node of a source.
func lint(t *testing.T, file string, node any) {
	t.Helper()
	bad := func(n ast.PositionHolder, format string, args ...any) {
		t.Helper()
		t.Errorf("%s:%d: %s", file, n.Line(), fmt.Sprintf(format, args...))
	}
	switch n := node.(type) {
	case *ast.AssignStmt:
		for i, name := range names(n.Lhs) {
			for _, value := range n.Rhs[min(i+1, len(n.Rhs)):] {
				if name != "" && reckons(value, name) {
					bad(n,
						"%s is set before the value of the next variable is worked out from it: gopher-lua does that, others do not",
						name)
				}
			}
		}
	case *ast.GotoStmt:
		bad(n, "goto")
	case *ast.LabelStmt:
		bad(n, "label")
	case *ast.IdentExpr:
		if slices.Contains([]string{"cjson", "cmsgpack", "struct", "bit", "tostring", "coroutine", "loadstring", "load",
			"setmetatable", "rawset", "pcall", "error", "_G", "os", "require"}, n.Value) {
			bad(n, "%s is outside the portable subset", n.Value)
		}
	case *ast.StringExpr:
		for _, p := range []string{"%q", "%f["} {
			if strings.Contains(n.Value, p) {
				bad(n, "%s in %q", p, n.Value)
			}
		}
	case *ast.NumberExpr:
		if strings.ContainsAny(n.Value, ".eExX") {
			bad(n, "number %s is not a plain whole one", n.Value)
		}
	case *ast.AttrGetExpr:
		object, isName := n.Object.(*ast.IdentExpr)
		if !isName {
			return
		}
		if allowed, isGlobal := functions.Environment[object.Value]; isGlobal && !slices.Contains(allowed,
			attributeKey(n)) {
			bad(n, "%s is outside the portable subset", attribute(n))
		}
	case *ast.FuncCallExpr:
		if attribute(n.Func) != "string.format" {
			return
		}
		if format, ok := n.Args[0].(*ast.StringExpr); !ok || format.Value != "%.0f" && format.Value != "%d" {
			bad(n, "string.format with something else than a literal %%.0f or %%d")
		}
	}
}

var writes = regexp.MustCompile(
	`redis\.call\('(SET|UNLINK|HSET|HSETNX|HDEL|HINCRBY|DEL|EXPIRE|SADD|SREM|ZADD|ZREM|ZREMRANGEBYSCORE|RPUSH|LPOP|LTRIM|XADD|XDEL|XTRIM|S?PUBLISH)'|(indexes|flow|settle|doorbell|urgent|stream|publish|root|purge|history|signals|delivery|waitpoint|suspension|create|schedule|meter|ledger|gate|steps|service|written|catalogue|expect)\.(acquire|reserve|put|drop|deliver|save|wait|forget|apply|alarm|delay|fail|finish|pause|requeue|wake|close|to|need|run|forward|add|write|file|miss|touch)\(`)

func TestReadersDoNotWrite(t *testing.T) {
	for _, h := range contract.Functions() {
		writer := writes.MatchString(read(h.File)) || strings.Contains(read(h.File), "claim.run(") ||
			strings.Contains(read(h.File), "audit.begin(")
		if readonly := slices.Contains(h.Flags, "no-writes"); readonly && writer {
			t.Errorf("%s is flagged no-writes and has %q", h.Name, writes.FindString(read(h.File)))
		} else if !readonly && !writer {
			t.Errorf("%s writes nothing but lacks the no-writes flag", h.Name)
		}
	}
}

var coded = regexp.MustCompile(`(?:reply\.err|\bbad)\('([a-z_]+)'`)

// Every code that a source can answer is known to the applications.
func TestCodesHaveSentinels(t *testing.T) {
	seen := 0
	for _, file := range sources(t) {
		for _, m := range coded.FindAllStringSubmatch(read(file), -1) {
			seen++
			if err := denied.New("", m[1]); err.Is(denied.Reply) && m[1] != "config_missing" {
				t.Errorf("%s answers %s, which package flowfabric does not know", file, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("found only %d codes; the pattern no longer fits the sources", seen)
	}
}

// Real Lua 5.1 allows 200 locals and 60 upvalues a function, gopher-lua fewer registers; some room is kept.
func TestLimits(t *testing.T) {
	for _, v := range variants {
		locals := 0
		chunk := parsed(t, "library", withoutShebang(Library(v)))
		for _, s := range chunk {
			if l, ok := s.(*ast.LocalAssignStmt); ok {
				locals += len(l.Names)
			}
		}
		if locals > 180 {
			t.Errorf("the library has %d locals at its top level, at most 200 load", locals)
		}
		protos(compiled(t, "library", withoutShebang(Library(v))), func(p *vm.FunctionProto) {
			if p.NumUpvalues > 55 {
				t.Errorf("the function at line %d has %d upvalues, at most 60 load", p.LineDefined, p.NumUpvalues)
			}
		})
	}
}

// The library registers every function with the flags of its header.
func TestLibraryRegisters(t *testing.T) {
	for _, v := range variants {
		lua := functions.New(nil)
		code, err := functions.Compile(Library(v))
		if err == nil {
			err = lua.Load(code, false)
		}
		if err != nil || code.Name() != Name {
			t.Fatalf("%+v: %v", v, err)
		}
		var want []functions.Function
		for _, h := range contract.Functions() {
			want = append(want, functions.Function{Name: h.Name, Flags: h.Flags})
		}
		if got := lua.Libraries()[0].Functions; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: registered %v, the headers say %v", v, got, want)
		}
	}
}

func TestVariants(t *testing.T) {
	for _, v := range variants {
		text := Library(v)
		if m := regexp.MustCompile(`@[A-Z]+@`).FindString(text); m != "" {
			t.Errorf("%+v: %s is not filled in", v, m)
		}
		if got := strings.Contains(text, "'SPUBLISH'"); got != v.Sharded {
			t.Errorf("%+v: SPUBLISH %v", v, got)
		}
		if got := strings.Contains(text, "'clock_offset'"); got != v.TestClock {
			t.Errorf("%+v: moved clock %v", v, got)
		}
		if !strings.Contains(text, Hash()) {
			t.Errorf("%+v: the library does not carry its hash", v)
		}
		if build(v) != text {
			t.Errorf("%+v: two builds differ, so every process would reload the library of the other", v)
		}
	}
}

func TestHash(t *testing.T) {
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(Hash()) {
		t.Fatalf("Hash is %q", Hash())
	}
}

func withoutShebang(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return "\n" + rest
}

func protos(p *vm.FunctionProto, visit func(*vm.FunctionProto)) {
	visit(p)
	for _, inner := range p.FunctionPrototypes {
		protos(inner, visit)
	}
}

// walk visits n and every node below it, as long as visit returns true.
func walk(n any, visit func(any) bool) { walkValue(reflect.ValueOf(n), visit) }

func walkValue(v reflect.Value, visit func(any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		walkValue(v.Elem(), visit)
	case reflect.Pointer:
		if !v.IsNil() && visit(v.Interface()) {
			walkValue(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkValue(v.Field(i), visit)
			}
		}
	}
}

// attribute is "redis.call" for redis.call and redis['call'].
func attribute(e ast.Expr) string {
	a, ok := e.(*ast.AttrGetExpr)
	if !ok {
		if i, ok := e.(*ast.IdentExpr); ok {
			return i.Value
		}
		return ""
	}
	return attribute(a.Object) + "." + attributeKey(a)
}

func attributeKey(a *ast.AttrGetExpr) string {
	if s, ok := a.Key.(*ast.StringExpr); ok {
		return s.Value
	}
	return ""
}

// rounds of a random test: usual, or all of them with FLOWFABRIC_SOAK.
func rounds(usual, full int) int {
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		return full
	}
	return usual
}
