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
)

// least is how many seeded bugs the catalogue promises, leastGo how many of them outside the Lua library.
const (
	least   = 60
	leastGo = 12
)

// The catalogue cannot rot: every bug still applies to the sources, exactly once, and is still a program.
func TestCatalogueApplies(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := findSources(root)
	if err != nil {
		t.Fatal(err)
	}
	all := catalogue()
	names, changes := map[string]bool{}, map[string]string{}
	inGo := 0
	for _, m := range all {
		if m.Name == "" || m.In == "" {
			t.Errorf("%+v is incomplete", m)
		}
		if names[m.Name] {
			t.Errorf("%q is there twice", m.Name)
		}
		names[m.Name] = true
		file, changed, err := sources.Change(m)
		if err != nil {
			t.Error(err)
			continue
		}
		if twin := changes[file+changed]; twin != "" {
			t.Errorf("%q and %q are the same change", m.Name, twin)
		}
		changes[file+changed] = m.Name
		if !inLua(file) {
			inGo++
		} else if err := parses(file, changed); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if len(all) < least || inGo < leastGo {
		t.Errorf("%d bugs, %d of them in Go; want at least %d and %d", len(all), inGo, least, leastGo)
	}
	t.Logf("%d bugs, %d of them in Go", len(all), inGo)
}

var (
	functions = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	topics    = regexp.MustCompile(`"([^"]+)": +(?:slices\.Concat\()?\w+Scenarios\b`)
)

// testNames lists the tests of a package and the topics of the suite, each once.
func testNames(t *testing.T, root, pkg string) (tests, scenarios []string) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s", pkg)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range functions.FindAllSubmatch(text, -1) {
			tests = append(tests, string(match[1]))
		}
		for _, match := range topics.FindAllSubmatch(text, -1) {
			scenarios = append(scenarios, string(match[1]))
		}
	}
	return tests, scenarios
}

// Every pattern names tests that exist, and topics of the suite.
func TestCatalogueNamesTests(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string][]string{}
	for _, m := range catalogue() {
		if !slices.Contains(patterns[m.By.Package], m.By.Run) {
			patterns[m.By.Package] = append(patterns[m.By.Package], m.By.Run)
		}
	}
	for pkg, runs := range patterns {
		tests, scenarios := testNames(t, root, pkg)
		for _, run := range runs {
			function, topic, nested := strings.Cut(run, "/")
			if !slices.ContainsFunc(tests, regexp.MustCompile(function).MatchString) {
				t.Errorf("%s has no test %s", pkg, function)
			}
			if nested && !slices.ContainsFunc(scenarios, regexp.MustCompile(topic).MatchString) {
				t.Errorf("%s has no topic %s", pkg, topic)
			}
		}
	}
}

// The suite is compiled once for all bugs in Lua files: the loader takes the place of a file that does nothing but embed them.
func TestLoaderReplacesTheEmbedding(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(embedded)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := parser.ParseFile(token.NewFileSet(), "loader.go", loader, 0)
	if err != nil {
		t.Fatal(err)
	}
	if replaced.Name.Name != source.Name.Name || len(source.Decls) != 2 || source.Scope.Lookup("Files") == nil || replaced.Scope.Lookup("Files") == nil {
		t.Errorf("%s declares more than the embedded Files, or the loader less", embedded)
	}
}

func TestParses(t *testing.T) {
	if err := parses("f.lua", "local x = 1\nreturn x\n"); err != nil {
		t.Error(err)
	}
	if err := parses("f.lua", "local x = and\n"); err == nil {
		t.Error("what is no Lua parses")
	}
}

func TestApply(t *testing.T) {
	m := Mutant{Name: "m", In: "f", Old: "b", New: "x"}
	if got, err := m.Apply("abc"); err != nil || got != "axc" {
		t.Errorf("%q, %v", got, err)
	}
	laid := Mutant{Name: "m", In: "f", Old: "\n  if a\n    then b", New: "b"}
	if got, err := laid.Apply("x\n\tif  a then\n\t\tb\nend"); err != nil || got != "x\n\tb\nend" {
		t.Errorf("laid out differently: %q, %v", got, err)
	}
	for _, source := range []string{"", "ac", "abcb"} {
		if _, err := m.Apply(source); err == nil {
			t.Errorf("%q: applied", source)
		}
	}
	m.New = "b"
	if _, err := m.Apply("abc"); err == nil {
		t.Error("a change that changes nothing is applied")
	}
}

func TestJudge(t *testing.T) {
	const (
		build  = `{"Action":"build-output","Output":"# pkg\n"}` + "\n" + `{"Action":"build-output","Output":"x.go:1: undefined\n"}` + "\n" + `{"Action":"build-fail"}`
		passed = `{"Action":"pass","Test":"TestA/b"}` + "\n" + `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"pass"}`
		failed = `{"Action":"fail","Test":"TestA/b"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}`
	)
	for what, c := range map[string]struct {
		events  string
		wanted  int
		verdict Verdict
		detail  string
	}{
		"innermost failure":    {failed, 2, Caught, "TestA/b"},
		"all pass":             {passed, 2, Survived, ""},
		"only the parent ran":  {`{"Action":"pass","Test":"TestA"}`, 2, Broken, "no test ran"},
		"nothing ran":          {`{"Action":"pass"}`, 1, Broken, "no test ran"},
		"all skipped":          {`{"Action":"skip","Test":"TestA"}`, 1, Broken, "no test ran"},
		"does not build":       {build, 1, Broken, "does not build: x.go:1: undefined"},
		"build, then failure":  {build + "\n" + failed, 1, Broken, "does not build: x.go:1: undefined"},
		"hangs":                {`{"Action":"output","Test":"TestA/c","Output":"panic: test timed out after 3m0s\n"}` + "\n" + failed, 1, Caught, "TestA/c (did not end)"},
		"panics outside tests": {`{"Action":"output","Output":"panic: boom\n"}` + "\n" + `{"Action":"fail"}`, 1, Caught, "panic: boom"},
		"leaks":                {passed + "\n" + `{"Action":"output","Output":"goleak: Errors on successful test run\n"}`, 1, Caught, "goleak: Errors on successful test run"},
		"fails silently":       {`{"Action":"fail"}`, 1, Broken, "go test failed without a failing test"},
		"is no JSON":           {"what?", 1, Broken, "no test ran"},
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

func TestKillers(t *testing.T) {
	root := t.TempDir()
	k, err := readKillers(root)
	if err != nil {
		t.Fatal(err)
	}
	here, gone := Mutant{Name: "a: b", By: Test{"./pkg", "^TestA$"}}, Mutant{Name: "gone"}
	if _, known := k.of(here); known {
		t.Error("a killer is known before any bug was caught")
	}
	k.caught(here, "TestA/b_(c)")
	k.caught(gone, "TestB")
	if err := k.write(root, []Mutant{here}); err != nil {
		t.Fatal(err)
	}
	if k, err = readKillers(root); err != nil {
		t.Fatal(err)
	}
	if got, known := k.of(here); !known || got != (Test{"./pkg", `^TestA$/^b_\(c\)$`}) {
		t.Errorf("%+v, %t", got, known)
	}
	if got, known := k.of(gone); known {
		t.Errorf("a bug that is gone is kept: %+v", got)
	}
	// Each bug that is remembered is in the catalogue, so that the file does not grow stale.
	real, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if k, err = readKillers(real); err != nil {
		t.Fatal(err)
	}
	for _, m := range catalogue() {
		delete(k.test, m.Name)
	}
	for bug := range k.test {
		t.Errorf("%s remembers %q, which is in no catalogue", killersFile, bug)
	}
}

func TestDepth(t *testing.T) {
	for name, want := range map[string]int{"TestA": 1, "^TestA$/^(b|c/d)$": 2, "^(A|B)$": 1, "A/b/c": 3, "A/b|C": 2, "[/]": 1} {
		if got := depth(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Functions of every form are found, each with all of its text and nothing more.
func TestPlaces(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := findSources(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"core.waiting":                        {"function core.waiting(c)", " end"},
		"claim.parse":                         {"function claim.parse(", "\nend"},
		"record/escape":                       {"local function escape(text)", "\nend"},
		"ff_tick":                             {"local function ff_tick(k, argv)", "\nend"},
		"internal/mutants.Sources.Change":     {"func (s *Sources) Change(", "\n}"},
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
		if err != nil {
			t.Fatal(err)
		}
		part := text[p.from:p.to]
		if !strings.HasPrefix(part, want[0]) || !strings.HasSuffix(part, want[1]) || want[0] == "" || strings.Count(part, "\nend\n") > 0 {
			t.Errorf("%s: %s", name, part)
		}
	}
}

// What a run says of every bug is understood by the next one that goes on from there.
func TestRunsGoOn(t *testing.T) {
	var output strings.Builder
	output.WriteString("the tests pass on the unchanged sources (1s)\n")
	all := catalogue()
	for i, m := range all {
		verdict := Caught
		if i == 0 {
			verdict = Survived
		}
		output.WriteString(line(m, Result{verdict, "TestA/b  [c]", 123 * time.Second}))
	}
	names := caught(output.String())
	for i, m := range all {
		if names[m.Name] != (i > 0) {
			t.Errorf("%q: %t", m.Name, names[m.Name])
		}
	}
}
