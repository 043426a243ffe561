package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guarantees is the page that lists what is promised, and by which tests. What is written by people ends at the line
// generated.
const (
	guarantees = "../../docs/conformance.md"
	generated  = "<!-- From here on written by TestGuarantees (FLOWFABRIC_GOLDEN=write). -->\n"
)

var (
	goTests = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	topicOf = regexp.MustCompile("topics? ((?:`[a-z ]+`(?:, | and )?)+)")
	quoted  = regexp.MustCompile("`([a-z ]+)`")
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// The page names every scenario of the suite, and no test or topic that is not there.
func TestGuarantees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	page, old, found := strings.Cut(string(text), generated)
	if !found {
		t.Fatalf("%s has no line %q", guarantees, generated)
	}
	known, all := testsOf(t, "../.."), topics()
	for _, name := range goTests.FindAllString(page, -1) {
		if !known[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	for _, list := range topicOf.FindAllStringSubmatch(page, -1) {
		for _, m := range quoted.FindAllStringSubmatch(list[1], -1) {
			if all[m[1]] == nil {
				t.Errorf("there is no topic %q", m[1])
			}
		}
	}
	var b strings.Builder
	for _, topic := range order {
		fmt.Fprintf(&b, "\n### %s\n\n", strings.ToUpper(topic[:1])+topic[1:])
		for _, s := range all[topic] {
			fmt.Fprintf(&b, "- %s\n", s.name)
		}
	}
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		if err := os.WriteFile(guarantees, []byte(page+generated+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != b.String() {
		t.Errorf("%s does not list the scenarios as they are; write it again with FLOWFABRIC_GOLDEN=write", guarantees)
	}
}

// testsOf names every test of the module.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range defined.FindAllSubmatch(source, -1) {
			known[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
