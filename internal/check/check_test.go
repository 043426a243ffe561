package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// pkg builds a package of the module; names starting with "@" are someone else's.
func pkg(from string, imports ...string) Package {
	full := func(name string) string {
		if name == "." {
			return module
		}
		if foreign, ok := strings.CutPrefix(name, "@"); ok {
			return foreign
		}
		return module + "/" + name
	}
	p := Package{ImportPath: full(from)}
	for _, name := range imports {
		p.Imports = append(p.Imports, full(name))
	}
	return p
}

func TestArrows(t *testing.T) {
	for _, good := range []Package{
		pkg(".", "@fmt", "@github.com/google/uuid"),
		pkg("internal/engine", ".", "lua", "internal/keys"),
		pkg("internal/waits", ".", "internal/engine", "internal/keys", "suspend"),
		pkg("internal/engine", ".", "stream"),
		pkg("handler", ".", "internal/engine", "internal/keeper", "internal/framelog", "suspend", "internal/admit"),
		pkg("runtime", "handler", "internal/keeper", "internal/maintain", "embedded"),
		pkg("client", "handler", "stream", "flow", "internal/inproc"),
		pkg("fftest", "handler", "internal/maintain", "embedded", "client", "runtime", "@testing"),
		pkg("internal/maintain", ".", "internal/engine"),
		pkg("internal/testserver", "embedded"),
		pkg("internal/conformance", "runtime", "client", "internal/testserver", "internal/keys"),
		pkg("examples/llm-streaming", "runtime", "client"),
		pkg("cmd/flowfabric", "client", "internal/keys"),
	} {
		if got := arrows([]Package{good}); len(got) > 0 {
			t.Errorf("%s may: %q", good.ImportPath, got)
		}
	}
	for _, bad := range []Package{
		pkg(".", "internal/engine"),
		pkg("lua", "internal/keys"),
		pkg("internal/engine", "internal/keeper"),
		pkg("internal/keeper", "internal/framelog"),
		pkg("stream", "internal/engine"),
		pkg("suspend", "handler"),
		pkg("suspend", "internal/engine"),
		pkg("handler", "runtime"),
		pkg("handler", "internal/maintain"),
		pkg("internal/maintain", "internal/keeper"),
		pkg("client", "runtime"),
		pkg("client", "embedded"),
		pkg("flow", "client"),
		pkg("runtime", "admin"),
		pkg("lease", "runtime"),
		pkg("internal/source", "internal/session"),
		pkg("fftest", "internal/testserver"),
		pkg("client", "internal/testserver"),
		pkg("internal/maintain", "internal/invariant"),
		pkg("runtime", "cmd/flowfabric"),
		pkg("examples/a", "internal/keys"),
		pkg("util"),
	} {
		if got := arrows([]Package{bad}); len(got) != 1 {
			t.Errorf("%s → %v: %q, want one breach", bad.ImportPath, bad.Imports, got)
		}
	}
}

func TestLibraries(t *testing.T) {
	for _, good := range []Package{
		pkg("internal/engine", "@github.com/redis/rueidis"),
		pkg("internal/invariant", "@github.com/redis/rueidis"),
		pkg("internal/engine", "@github.com/redis/rueidis/internal/cmds"),
		pkg("runtime", "@go.uber.org/fx", "@github.com/prometheus/client_golang/prometheus"),
		pkg("examples/a", "@go.uber.org/fx"),
		pkg("cmd/flowfabric", "@github.com/spf13/cobra"),
		pkg("internal/store", "@github.com/tidwall/btree"),
		pkg("client", "@go.uber.org/fxlike"),
		{ImportPath: module + "/runtime", Deps: []string{"go.uber.org/zap"}},
	} {
		if got := libraries([]Package{good}); len(got) > 0 {
			t.Errorf("%s may: %q", good.ImportPath, got)
		}
	}
	for _, bad := range []Package{
		pkg("stream", "@github.com/redis/rueidis"),
		pkg("client", "@go.uber.org/fx"),
		pkg("runtime", "@go.uber.org/zap"),
		pkg("runtime", "@github.com/spf13/cobra"),
		pkg("embedded", "@github.com/tidwall/btree"),
		pkg("internal/engine", "@go.uber.org/goleak"),
		pkg("handler", "@testing"),
		{ImportPath: module + "/client", Deps: []string{"fmt", "go.uber.org/zap/zapcore"}},
		{ImportPath: module + "/client", Deps: []string{"fmt", "github.com/prometheus/client_golang/prometheus"}},
	} {
		if got := libraries([]Package{bad}); len(got) != 1 {
			t.Errorf("%s: %q, want one breach", bad.ImportPath, got)
		}
	}
}

func TestGoStatements(t *testing.T) {
	const bare = "package a\n\nfunc f() {\n\tgo f()\n}\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := goStatements(fstest.MapFS{
		"bad.go":             file(bare),
		"deep/down/too.go":   file("//go:build never\n\n" + bare),
		"good.go":            file("package a\n\n// go f() in a comment\nvar s = \"go f()\"\n"),
		"a_test.go":          file(bare),
		"testdata/x.go":      file(bare),
		".hidden/x.go":       file(bare),
		"other/go.mod":       file("module other\n"),
		"other/elsewhere.go": file(bare),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "bad.go:4:2: ") ||
		!strings.HasPrefix(got[1], "deep/down/too.go:6:2: ") {
		t.Errorf("%q", got)
	}
	if _, err := goStatements(fstest.MapFS{"broken.go": file("package")}); err == nil {
		t.Error("a file that does not parse was passed over")
	}
}

// Functions, methods of interfaces and function types may have six parameters; receivers, results and optional ones
// do not count.
func TestLongParameters(t *testing.T) {
	got, err := longParameters(fstest.MapFS{"a.go": &fstest.MapFile{Data: []byte(`package a

func (t T) six(a, b, c int, d, e string, f func(a, b int), _ ...int) (g, h int, err error) { return }
func seven(a, b, c int, d, e string, f, g int)                                   {}

type i interface {
	Eight(int, int, int, int, int, int, int, int)
}

var f = func(a, b, c, d, e, f, g int) {}
`)}, "a_test.go": &fstest.MapFile{Data: []byte("package a\n\nfunc f(a, b, c, d, e, f, g int) {}\n")}})
	if err != nil || len(got) != 3 || !strings.HasPrefix(got[0], "a.go:4:11: 7 ") ||
		!strings.HasPrefix(got[1], "a.go:7:7: 8 ") || !strings.HasPrefix(got[2], "a.go:10:13: 7 ") {
		t.Errorf("%v %q", err, got)
	}
}

// A test may not end because a fixed time has passed, in any module, unless its time is virtual or a reason is given.
func TestTotals(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("package a\n\n" + text)} }
	const bad = `func f(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	for time.Now().Before(end) {
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	select {
	case <-done:
	case <-time.After(time.Second):
		t.Fatal("late")
	}
}
`
	got, err := totals(fstest.MapFS{
		"a_test.go":                file(bad),
		"internal/toxic/helper.go": file("var x = time.Now().After(end)\n"),
		"mcp/go.mod":               {Data: []byte("module mcp\n")},
		"mcp/b_test.go":            file("var _, _ = context.WithDeadline(ctx, end)\n"),
		"marked_test.go": file(`func f(t *testing.T) {
	// timed: nobody answers
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	late := time.Now().After(end) // timed: it says when
}
`),
		"short_test.go": file(`func f(t *testing.T) {
	o := Options{URL: url, ConnWriteTimeout: 20 * time.Second}
	if took := time.Since(began); err != nil || took > time.Minute {
		t.Error(took)
	}
	late := time.Since(began) >= 5*time.Second
}
`),
		"all_test.go": {Data: []byte("// timed: virtual time\n\npackage a\n\n" + bad)},
		"virtual_test.go": file("func g(t *testing.T) { synctest.Test(t, " +
			strings.TrimSpace(strings.Replace(bad, "func f", "func", 1)) + ") }\n"),
		"fine_test.go": file(`func f(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	_ = conn.SetDeadline(time.Time{})
	select {
	case <-done:
	case <-time.After(time.Millisecond):
		again()
	}
	at := time.Now().Add(time.Hour)
	o := Options{CallTimeout: time.Hour, Settle: time.Second}
	if took := time.Since(began); took < time.Second {
		t.Error(took)
	}
}
`),
		"plain.go":           file(bad),
		"testdata/c_test.go": file(bad),
	})
	want := []string{"a_test.go:4:17: a context", "a_test.go:5:6: a wait", "a_test.go:7:6: a connection",
		"a_test.go:10:2: a select", "internal/toxic/helper.go:3:9: a wait", "mcp/b_test.go:3:12: a context",
		"short_test.go:4:25: a call", "short_test.go:5:2: a failure", "short_test.go:8:10: a failure"}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v %q", err, got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%s, want %s", got[i], want[i])
		}
	}
	reasonless, err := totals(fstest.MapFS{"a_test.go": file("// timed: \nvar x = time.Now().After(end)\n")})
	if err != nil || len(reasonless) != 1 {
		t.Errorf("a marker without a reason: %v %q", err, reasonless)
	}
}

// "The tick is unmoved by steps of the host's clock": the files that wait keep to the monotonic one.
func TestWallClocks(t *testing.T) {
	clean, err := wallClocks(os.DirFS("../.."), byDuration)
	if err != nil || len(clean) > 0 {
		t.Errorf("%v %q", err, clean)
	}
	got, err := wallClocks(fstest.MapFS{"a.go": &fstest.MapFile{Data: []byte(`package a
func f() {
	_ = time.Now().Add(time.Second).Sub(began).Round(time.Millisecond)
	_ = time.Now().UnixMilli()
	_ = now.Round(0)
	_ = x.UTC()
}
`)}}, []string{"a.go"})
	if err != nil || len(got) != 3 || !strings.HasPrefix(got[0], "a.go:4:6: UnixMilli") ||
		!strings.HasPrefix(got[1], "a.go:5:6: Round") || !strings.HasPrefix(got[2], "a.go:6:6: UTC") {
		t.Errorf("%v %q", err, got)
	}
	if _, err := wallClocks(fstest.MapFS{}, []string{"gone.go"}); err == nil {
		t.Error("a listed file that is gone was passed over")
	}
}

// The tables must not contradict themselves: every name in them is a known package.
func TestTablesAreConsistent(t *testing.T) {
	known := func(name string) bool {
		_, ok := below(name)
		return ok || underAny(name, tops)
	}
	for name, b := range beside {
		for _, other := range append(slices.Clone(b.also), b.on, name) {
			if !known(other) {
				t.Errorf("beside: %s is unknown", other)
			}
		}
	}
	for library, by := range owners {
		for _, name := range by {
			if !known(name) {
				t.Errorf("owners of %s: %s is unknown", library, name)
			}
		}
	}
}

func TestExported(t *testing.T) {
	const public = `package a

import (
	"time"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	inner "github.com/flowfabric/flowfabric-go/internal/keys"
)

type A struct {
	At     time.Time
	Size   struct{ W, H int }
	hidden engine.Engine
}

func (a *A) Get() time.Time  { return a.At }
func (a *A) Core() inner.Key { return inner.Key{} }
func (a *A) unseen()         {}

type b struct{}

func (b) Unseen() engine.Claim { return engine.Claim{} }

type G[T any] struct{ engine.Lane }

type U struct {
	IDs []uuid.UUID
	id  uuid.UUID
}

type F interface{ Of(id uuid.UUID) }

func (g G[T]) Do(f func(engine.Claim)) {}

const One, two = 1, 2

var Three engine.Claim
`
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"a/a.go":               file(public),
		"a/a_test.go":          file("package a\n\nfunc Unseen() {}\n"),
		"a/internal/b/b.go":    file("package b\n\nfunc Unseen() {}\n"),
		"internal/engine/e.go": file("package engine\n\nfunc Unseen() {}\n"),
		"cmd/x/main.go":        file("package main\n\nfunc Unseen() {}\n"),
		"b/b.go":               file("package b\n\ntype I interface{ Do() }\n"),
	}
	found, err := exported(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(written(found)), "a 9 15\nb 1 1\nall 10 16\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var named []string
	for _, b := range surfaceBreaches(found, []byte("a 9 15\nb 1 1\nall 10 16\n")) {
		_, rest, _ := strings.Cut(b, ": ")
		named = append(named, strings.Fields(rest)[0])
	}
	if want := []string{"Core", "G", "U", "F", "Do", "Three"}; !slices.Equal(named, want) {
		t.Errorf("%q mention types that nobody can name or should, want %q", named, want)
	}
	if got := surfaceBreaches(found, []byte("a 9 14\nb 1 1\nall 10 15\n")); len(got) != 8 {
		t.Errorf("a package that grew: %q", got)
	}
	for bound, many := range map[int]map[string]exports{
		most:       {"a": {count: most}, "b": {count: 1}},
		mostFields: {"a": {fields: mostFields}, "b": {count: 1}},
	} {
		got := surfaceBreaches(many, written(many))
		if len(got) != 1 || !strings.Contains(got[0], strconv.Itoa(bound+1)) {
			t.Errorf("more than there may be: %q", got)
		}
	}
}

// Methods of interfaces of the standard library are not counted, in their exact form alone.
func TestStandardMethodsAreNotCounted(t *testing.T) {
	for method, want := range map[string]int{
		"Error() string": 1, "Unwrap() error": 1, "Unwrap() []error": 1, "Is(target error) bool": 1,
		"String() string": 1, "MarshalText() ([]byte, error)": 1, "MarshalText() (text []byte, err error)": 1,
		"UnmarshalText(text []byte) error": 1, "ServeHTTP(w http.ResponseWriter, q *http.Request)": 1,
		"LogValue() slog.Value": 1, "Format(s fmt.State, verb rune)": 1, "String(width int) string": 2,
		"Is(other T) bool": 2, "Error() error": 2,
		"Close() error": 2,
	} {
		found, err := exported(fstest.MapFS{
			"a/a.go": {Data: []byte("package a\n\ntype T struct{}\n\nfunc (T) " + method + " { panic(0) }\n")}})
		if err != nil || found["a"].count != want {
			t.Errorf("%s: the type and its method count %d (%v), want %d", method, found["a"].count, err, want)
		}
	}
}
