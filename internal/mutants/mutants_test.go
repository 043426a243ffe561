package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/gopher-lua/parse"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// most is how many bugs the catalogue may have.
const most = 190

func project(t *testing.T) *Project {
	t.Helper()
	root, err := moduleRoot()
	must.No(t, err)
	p, err := readProject(root)
	must.No(t, err)
	return p
}

// Each mutant of the library is a program that a server loads, differs from the others, and has a name of its own. To
// parse every one takes half a minute, so a run parses one in forty.
func TestMutantsAreLua(t *testing.T) {
	p := project(t)
	names, changes := map[string]bool{}, map[Mutant]string{}
	count := map[string]int{}
	for i, m := range p.Mutants {
		if names[m.Name] {
			t.Errorf("%q is there twice", m.Name)
		}
		names[m.Name] = true
		change := Mutant{File: m.File, From: m.From, To: m.To, New: m.New}
		if twin := changes[change]; twin != "" {
			t.Errorf("%q and %q are the same change", m.Name, twin)
		}
		changes[change] = m.Name
		count[m.Operator]++
		if !inLua(m.File) || i%40 != 0 && m.Operator != "" {
			continue
		}
		changed, err := p.Apply(m)
		must.No(t, err)
		if _, err := parse.Parse(strings.NewReader(changed), m.File); err != nil {
			t.Errorf("%s: %v", p.Describe(m), err)
		}
		if changed == p.Chunks[m.File].Source {
			t.Errorf("%s changes nothing", m.Name)
		}
	}
	for _, operator := range []string{negate, bound, constant, drop, write, swap} {
		if count[operator] < 100 {
			t.Errorf("operator %s makes %d mutants", operator, count[operator])
		}
	}
	if n := count[""]; n > most {
		t.Errorf("%d bugs in the catalogue, at most %d may be", n, most)
	}
	t.Log(count)
}

// A file with probes is still a program, and each block begins with one.
func TestProbesAreLua(t *testing.T) {
	p := project(t)
	c := &Coverage{}
	c.number(p.Chunks)
	for file, chunk := range p.Chunks {
		text := c.probed(file, chunk)
		if _, err := parse.Parse(strings.NewReader(text), file); err != nil {
			t.Error(err)
		}
		if n := strings.Count(text, "reply.enter("); n < len(chunk.Blocks) {
			t.Errorf("%s: %d probes in %d blocks", file, n, len(chunk.Blocks))
		}
	}
}

// What the operators make of a small file.
func TestOperators(t *testing.T) {
	for source, want := range map[string][]string{
		"if a == b then c() end": {"negate: if a ~= b then c() end", "drop: if a == b then  end"},
		"if not a then c() end":  {"negate: if  a then c() end", "drop: if not a then  end"},
		"if a < b then c() end": {"negate: if not (a < b) then c() end", "bound: if a <= b then c() end",
			"drop: if a < b then  end"},
		"if a and (b or c == d) then end": {"negate: if not (a) and (b or c == d) then end",
			"negate: if a and (not (b) or c == d) then end", "negate: if a and (b or c ~= d) then end"},
		"local x = a and b or c":            {"negate: local x = not (a) and b or c"},
		"local x = t[1] + 2":                {"constant: local x = t[1] + 3"},
		"local x = string.sub(y, 1, n - 1)": {"constant: local x = string.sub(y, 1, n - 2)"},
		"local x = args.int(argv[2], 0, 10)": {"constant: local x = args.int(argv[2], 1, 10)",
			"constant: local x = args.int(argv[2], 0, 11)"},
		"local x = args.list(argv, 2)":   nil,
		"local x = now + 1000":           nil,
		"local x = 1000 * now":           {"constant: local x = 1001 * now"},
		"n.touched = n.touched + 1":      {"drop: "},
		"redis.call('EXPIRE', key, 600)": {"write: "},
		"if #a > 0 then c() end": {"constant: if #a > 1 then c() end", "negate: if not (#a > 0) then c() end",
			"drop: if #a > 0 then  end"},
		"if a > (b or 1) then end": {"negate: if a > (not (b) or 1) then end", "constant: if a > (b or 2) then end",
			"negate: if not (a > (b or 1)) then end", "bound: if a >= (b or 1) then end"},
		"table.sort(t, function(a, b) return a < b end)": {
			"negate: table.sort(t, function(a, b) return not (a < b) end)", "drop: "},
		"local x = g(ctx, a, b)":         {"swap: local x = g(ctx, b, a)"},
		"local x = g(ctx, a)":            nil,
		"local x = math.max(a, b)":       nil,
		"local x = redis.call('GET', a)": nil,
		"redis.call('DEL', a)":           {"write: "},
		"redis.call('ZADD', k, s, m)":    {"swap: redis.call('ZADD', k, m, s)", "write: "},
		"a.b = c":                        {"drop: "},
		"for i = 1, n do break end":      {"constant: for i = 2, n do break end", "drop: for i = 1, n do  end"},
		"if a then return b end":         {"negate: if not (a) then return b end", "drop: if a then  end"},
		"return a ~= b":                  {"negate: return a == b"},
		"repeat a = 1 until b": {"constant: repeat a = 2 until b", "drop: repeat  until b",
			"negate: repeat a = 1 until not (b)"},
		"each(function(x) return x.n >= 3 end)": {
			"constant: each(function(x) return x.n >= 4 end)", "negate: each(function(x) return not (x.n >= 3) end)",
			"bound: each(function(x) return x.n > 3 end)", "drop: "},
	} {
		head, tail := "local function f(ctx)\n  ", "\nend\n"
		c, err := parseChunk("f.lua", head+source+tail)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var got []string
		for _, m := range c.Mutants {
			text := c.Source[:m.From] + m.New + c.Source[m.To:]
			got = append(got, m.Operator+": "+text[len(head):len(text)-len(tail)])
			if !strings.HasPrefix(m.Name, "f.lua:f:"+m.Operator+":") {
				t.Errorf("%s: named %s", source, m.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", source, got, want)
		}
	}
	for _, source := range []string{"local x = 'a", "if a then", "local x = )", "end"} {
		if _, err := parseChunk("f.lua", source); err == nil {
			t.Errorf("%q is taken for Lua", source)
		}
	}
}

// What is written elsewhere renames no mutant; a statement that is there twice has two names.
func TestNamesLast(t *testing.T) {
	names := func(source string) (out []string) {
		c, err := parseChunk("f.lua", source)
		must.No(t, err)
		for _, m := range c.Mutants {
			out = append(out, m.Name)
		}
		return out
	}
	before := names("local function f()\n  a = 1\n  a = 1\nend\n")
	after := names("local function e() x() end\nlocal function f()\n  y()\n  a  =  1\n\n  a = 1\nend\n")
	for _, name := range before {
		if !slices.Contains(after, name) {
			t.Errorf("%s is no more; there are %q", name, after)
		}
	}
	if len(before) != 4 || len(slices.Compact(slices.Sorted(slices.Values(before)))) != 4 {
		t.Errorf("names of four mutants: %q", before)
	}
}

var functions = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames lists the tests of a package.
func testNames(t *testing.T, root, pkg string) (tests []string) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s", pkg)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.No(t, err)
		for _, match := range functions.FindAllSubmatch(text, -1) {
			tests = append(tests, string(match[1]))
		}
	}
	return tests
}

// Every pattern of the catalogue names tests that exist.
func TestCatalogueNamesTests(t *testing.T) {
	p := project(t)
	for _, m := range p.Mutants {
		if m.Operator != "" {
			continue
		}
		if inLua(m.File) != (m.By == Test{}) {
			t.Errorf("%s: names tests though its file is Lua, or none though it is not", m.Name)
		}
		if m.By == (Test{}) {
			continue
		}
		function, _, _ := strings.Cut(m.By.Run, "/")
		if !slices.ContainsFunc(testNames(t, p.Root, m.By.Package), regexp.MustCompile(function).MatchString) {
			t.Errorf("%s: %s has no test %s", m.Name, m.By.Package, function)
		}
	}
}

// The suite is compiled once for all bugs in Lua files: the loader takes the place of a file that does nothing but
// embed them.
func TestLoaderReplacesTheEmbedding(t *testing.T) {
	root, err := moduleRoot()
	must.No(t, err)
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(embedded)), nil, 0)
	must.No(t, err)
	replaced, err := parser.ParseFile(token.NewFileSet(), "loader.go", loader, 0)
	must.No(t, err)
	if replaced.Name.Name != source.Name.Name || len(source.Decls) != 2 || source.Scope.Lookup("Files") == nil ||
		replaced.Scope.Lookup("Files") == nil {
		t.Errorf("%s declares more than the embedded Files, or the loader less", embedded)
	}
}

func TestFind(t *testing.T) {
	b := Bug{Name: "m", In: "f", Old: "b", New: "x"}
	if from, to, err := b.Find("abc"); err != nil || from != 1 || to != 2 {
		t.Errorf("%d to %d, %v", from, to, err)
	}
	laid := Bug{Name: "m", In: "f", Old: "\n  if a\n    then b", New: "b"}
	if from, to, err := laid.Find("x\n\tif  a then\n\t\tb\nend"); err != nil || from != 3 || to != 17 {
		t.Errorf("laid out differently: %d to %d, %v", from, to, err)
	}
	for _, source := range []string{"", "ac", "abcb"} {
		if _, _, err := b.Find(source); err == nil {
			t.Errorf("%q: found", source)
		}
	}
	b.New = "b"
	if _, _, err := b.Find("abc"); err == nil {
		t.Error("a change that changes nothing is found")
	}
}

// A log of the server tells which scenario runs which block, and how long it takes.
func TestReadLog(t *testing.T) {
	c := &Coverage{First: map[string]int{"lua/a.lua": 0, "lua/b.lua": 3}, killed: map[string]map[int]int{}}
	err := c.readLog([]byte("12:M 27 Nov 2026 02:46:49.100 # block 9\n" +
		"12:M 27 Nov 2026 02:46:49.100 # scenario TestRedis/one/long\n" +
		"12:M 27 Nov 2026 02:46:49.200 # block 4\n" +
		"12:M 27 Nov 2026 02:46:49.200 # block 0\n" +
		"12:M 27 Nov 2026 02:46:50.100 # scenario TestRedis/two/a_(b/c)\n" +
		"13:M 27 Nov 2026 02:46:50.105 # scenario TestRedis/other/twin\n" + // on a second server
		"12:M 27 Nov 2026 02:46:50.110 # block 4\n" +
		"13:M 27 Nov 2026 02:46:50.115 # block 6\n" +
		"something else\n"))
	must.No(t, err)
	want := []Scenario{{"TestRedis/one/long", time.Second, []int{0, 4}},
		{"TestRedis/two/a_(b/c)", 10 * time.Millisecond, []int{4}},
		{"TestRedis/other/twin", 10 * time.Millisecond, []int{6}}}
	if !slices.EqualFunc(c.Scenarios, want, func(a, b Scenario) bool {
		return a.Name == b.Name && a.Took == b.Took && slices.Equal(a.Blocks, b.Blocks)
	}) {
		t.Errorf("got %v, want %v", c.Scenarios, want)
	}
	inB := Mutant{File: "lua/b.lua", Function: "f", Block: 1}
	file := &chunk{Blocks: make([][2]int, 3)}
	if got := c.of(inB, file); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("scenarios of a block: %v, the shortest is not first", got)
	}
	c.noticed(inB, "TestRedis/one/long/part")
	if got := c.of(inB, file); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("scenarios of a block: %v, the one that noticed another mutant of the function is not first", got)
	}
	if got := c.of(Mutant{File: "lua/b.lua", Block: 2}, file); len(got) != 0 {
		t.Errorf("scenarios of a block that nothing runs: %v", got)
	}
	if got := c.of(Mutant{File: "lua/a.lua", Block: top}, file); !slices.Equal(got, []int{0}) {
		t.Errorf("scenarios of what is in no function: %v", got)
	}
	if got := c.pattern([]int{1}); got != `^TestRedis$/^(two)$/^(a_\(b.c\))$` {
		t.Errorf("pattern %s", got)
	}
	if err := new(Coverage).readLog(nil); err == nil {
		t.Error("an empty log tells something")
	}
}

// A sample depends on its seed alone, and has none that is listed as equivalent.
func TestChoose(t *testing.T) {
	all := []Mutant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	chosen := func(o options) string {
		mutants, err := o.choose(all, map[string]string{"b": "why"})
		must.No(t, err)
		var names []string
		for _, m := range mutants {
			names = append(names, m.Name)
		}
		return strings.Join(names, "")
	}
	if got := chosen(options{}); got != "abcd" {
		t.Errorf("all: %s", got)
	}
	if got := chosen(options{pattern: "a|b"}); got != "ab" {
		t.Errorf("a pattern: %s", got)
	}
	if got := chosen(options{part: "1/3"}) + " " + chosen(options{part: "2/3"}) + " " +
		chosen(options{part: "3/3"}); got != "a b cd" {
		t.Errorf("parts: %s", got)
	}
	for _, part := range []string{"0/3", "4/3", "x"} {
		if _, err := (options{part: part}).choose(all, nil); err == nil {
			t.Errorf("-part %s is taken", part)
		}
	}
	seeds := map[string]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		got := chosen(options{sample: 2, seed: seed})
		if len(got) != 2 || strings.Contains(got, "b") || got != chosen(options{sample: 2, seed: seed}) {
			t.Errorf("sample: %s", got)
		}
		seeds[got] = true
	}
	if len(seeds) < 2 {
		t.Error("all seeds choose the same")
	}
	file := filepath.Join(t.TempDir(), "out")
	output := line(all[0], Result{Verdict: Caught}) + line(all[1], Result{Verdict: Equivalent}) +
		line(all[2], Result{Verdict: Survived})
	must.No(t, os.WriteFile(file, []byte(output), 0o600))
	if got := chosen(options{after: file}); got != "cd" {
		t.Errorf("after another run: %s", got)
	}
	if _, err := (options{pattern: "x"}).choose(all, nil); err == nil {
		t.Error("a run without mutants is no error")
	}
}

func TestEquivalent(t *testing.T) {
	reasons, err := parseEquivalent("# a comment\n\na:b:1  it is only faster\n")
	if err != nil || len(reasons) != 1 || reasons["a:b:1"] != "it is only faster" {
		t.Errorf("%v, %v", reasons, err)
	}
	for _, source := range []string{"a:b:1\n", "a:b:1 x\na:b:1 y\n"} {
		if _, err := parseEquivalent(source); err == nil {
			t.Errorf("%q is taken", source)
		}
	}
	for _, c := range []struct {
		verdict Verdict
		reason  string
		want    Verdict
	}{{Caught, "", Caught}, {Caught, "why", Listed}, {Survived, "", Survived}, {Survived, "why", Equivalent},
		{Broken, "why", Broken}} {
		if got := expect(Result{Verdict: c.verdict}, c.reason, ""); got.Verdict != c.want {
			t.Errorf("%s, listed because %q: %s, want %s", c.verdict, c.reason, got.Verdict, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	const (
		build = `{"Action":"build-output","Output":"# pkg\n"}` + "\n" +
			`{"Action":"build-output","Output":"x.go:1: undefined\n"}` + "\n" + `{"Action":"build-fail"}`
		passed = `{"Action":"pass","Test":"TestA/b"}` + "\n" + `{"Action":"pass","Test":"TestA"}` + "\n" +
			`{"Action":"pass"}`
		failed = `{"Action":"fail","Test":"TestA/b"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" +
			`{"Action":"fail"}`
	)
	for what, c := range map[string]struct {
		events  string
		wanted  int
		verdict Verdict
		detail  string
	}{
		"innermost failure":   {failed, 2, Caught, "TestA/b"},
		"all pass":            {passed, 2, Survived, ""},
		"only the parent ran": {`{"Action":"pass","Test":"TestA"}`, 2, Broken, "no test ran"},
		"nothing ran":         {`{"Action":"pass"}`, 1, Broken, "no test ran"},
		"all skipped":         {`{"Action":"skip","Test":"TestA"}`, 1, Broken, "no test ran"},
		"does not build":      {build, 1, Broken, "does not build: x.go:1: undefined"},
		"build, then failure": {build + "\n" + failed, 1, Broken, "does not build: x.go:1: undefined"},
		"hangs": {`{"Action":"output","Test":"TestA/c","Output":"panic: test timed out after 3m0s\n"}` +
			"\n" + failed, 1, Hung, "TestA/c (did not end)"},
		"panics outside tests": {`{"Action":"output","Output":"panic: boom\n"}` + "\n" + `{"Action":"fail"}`, 1, Caught,
			"panic: boom"},
		"leaks": {
			passed + "\n" + `{"Action":"output","Output":"goleak: Errors on successful test run\n"}`, 1, Caught,
			"goleak: Errors on successful test run"},
		"fails silently": {`{"Action":"fail"}`, 1, Broken, "go test failed without a failing test"},
		"is no JSON":     {"what?", 1, Broken, "no test ran"},
	} {
		verdict, detail, test := judge([]byte(c.events), c.wanted)
		if verdict != c.verdict || detail != c.detail {
			t.Errorf("%s: %s %q, want %s %q", what, verdict, detail, c.verdict, c.detail)
		}
		if named := c.detail == "TestA/b"; named != (test == "TestA/b") {
			t.Errorf("%s: the test that noticed is %q", what, test)
		}
	}
}

func TestDepth(t *testing.T) {
	for name, want := range map[string]int{"TestA": 1, "^TestA$/^(b|c/d)$": 2, "^(A|B)$": 1, "A/b/c": 3, "A/b|C": 2,
		"[/]": 1} {
		if got := depth(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Functions of every form are found, each with all of its text and nothing more.
func TestPlaces(t *testing.T) {
	root, err := moduleRoot()
	must.No(t, err)
	s, err := findSources(root)
	must.No(t, err)
	for name, want := range map[string][2]string{
		"core.waiting":                        {"function core.waiting(c)", " end"},
		"claim.parse":                         {"function claim.parse(", "\nend"},
		"record/escape":                       {"local function escape(text)", "\nend"},
		"ff_tick":                             {"local function ff_tick(k, argv)", "\nend"},
		"internal/mutants.Sources.find":       {"func (s *Sources) find(", "\n}"},
		"internal/mutants.squeeze":            {"func squeeze(", "\n}"},
		"internal/keys.Partition.Waits":       {"func (p Partition) Waits(", "}"},
		"internal/mutants.there is no such":   {},
		"internal/testserver.dieWithParent":   {},
		"benchmarks.main":                     {},
		"internal/mutants.TestCatalogueNames": {},
	} {
		p, ok := s.places[name]
		if !ok || p.twin != "" {
			if want[0] != "" {
				t.Errorf("%s: not found", name)
			}
			continue
		}
		text, err := s.read(p.file)
		must.No(t, err)
		part := text[p.from:p.to]
		if !strings.HasPrefix(part, want[0]) || !strings.HasSuffix(part, want[1]) || want[0] == "" ||
			strings.Count(part, "\nend\n") > 0 {
			t.Errorf("%s: %s", name, part)
		}
	}
}

// What a run says of every mutant is understood by the next one that goes on from there.
func TestRunsGoOn(t *testing.T) {
	var output strings.Builder
	output.WriteString("the tests pass on the unchanged sources (1s)\n")
	all := project(t).Mutants
	for i, m := range all {
		verdict := Caught
		if i == 0 {
			verdict = Survived
		}
		output.WriteString(line(m, Result{verdict, "TestA/b  [c]", 123 * time.Second}))
	}
	names := tried(output.String())
	for i, m := range all {
		if names[m.Name] != (i > 0) {
			t.Errorf("%q: %t", m.Name, names[m.Name])
		}
	}
}
