// Package docs_test holds the documents to the code.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// files returns the texts of all files of the module with this ending, by path.
func files(t *testing.T, ending string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" ||
			entry.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, ending):
			text, err := os.ReadFile(path)
			all[filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var block = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// Every block of Go in README and docs is code of this repository, line by line: it compiles, and most of it is run
// by a test. So is every block of TypeScript.
func TestBlocksAreCode(t *testing.T) {
	all := map[string]string{"go": joined(files(t, ".go")), "tsx": joined(files(t, ".tsx")) + joined(files(t, ".ts"))}
	blocks := 0
	for name, text := range files(t, ".md") {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			code, ok := all[b[1]]
			if !ok {
				continue
			}
			blocks++
			if !strings.Contains(code, "\n"+dedented(b[2])) {
				t.Errorf("%s: no file has this block:\n%s", name, b[2])
			}
		}
	}
	if blocks < 30 {
		t.Errorf("%d blocks of Go", blocks)
	}
}

func joined(texts map[string]string) string {
	var all strings.Builder
	for _, text := range texts {
		all.WriteString("\n" + dedented(text))
	}
	return all.String()
}

// dedented takes the indentation from all lines: a part of a function stands at the margin in a document.
func dedented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// A link inside the repository leads to a file, and its fragment to a heading there.
func TestLinksLeadSomewhere(t *testing.T) {
	documents := files(t, ".md")
	for name, text := range documents {
		for _, m := range link.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if fragment != "" && !anchors(documents[path])[fragment] {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
}

func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		found[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

var (
	decision = regexp.MustCompile(`^\| (?:\[(\d+)\]\((\S+\.md)\)|(\d+)) \| .+\. \| ([^|]+) \|$`)
	folded   = regexp.MustCompile(`^folded into \[architecture\.md#(\S+)\]\(\.\./architecture\.md#(\S+)\)$`)
	standing = regexp.MustCompile(`^(?:holds|(holds in part) \(see \d+(?:, \d+)*\)|(replaced by) \d+)$`)
	told     = regexp.MustCompile(`^# .+\n\n(?:\*(Holds in part|Replaced by)[: ])?`)
)

// The index of decisions has one line for each number, in order. A line links to its record, which says under its title
// when it does not hold as a whole, or says where in the architecture the record went.
func TestDecisionsAreIndexed(t *testing.T) {
	records := files(t, ".md")
	_, table, _ := strings.Cut(records["docs/adr/README.md"], "|---|---|---|\n")
	delete(records, "docs/adr/README.md")
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		m := decision.FindStringSubmatch(line)
		if m == nil || m[1]+m[3] != strconv.Itoa(i+1) {
			t.Fatalf("docs/adr/README.md: want the decision %d with a sentence and a status: %s", i+1, line)
		}
		if m[2] == "" {
			if to := folded.FindStringSubmatch(m[4]); to == nil || to[1] != to[2] {
				t.Errorf("docs/adr/README.md: %d has no record and does not say where it went: %s", i+1, m[4])
			}
			continue
		}
		path := "docs/adr/" + m[2]
		text, ok := records[path]
		if !ok || !strings.HasPrefix(m[2], fmt.Sprintf("%04d-", i+1)) {
			t.Errorf("docs/adr/README.md: %s is no record of decision %d", m[2], i+1)
		}
		status, said := standing.FindStringSubmatch(m[4]), told.FindStringSubmatch(text)
		if status == nil || said == nil || !strings.EqualFold(status[1]+status[2], said[1]) {
			t.Errorf("%s does not say under its title what the index says: %s", path, m[4])
		}
		delete(records, path)
	}
	for path := range records {
		if strings.HasPrefix(path, "docs/adr/") {
			t.Errorf("docs/adr/README.md has no line for %s", path)
		}
	}
}

// A page that says how to get a module says how that is done as long as nobody can download it.
func TestUnpublishedModules(t *testing.T) {
	fetches := regexp.MustCompile(`go (get|install) github\.com/flowfabric|flowfabric-go\S*@latest`)
	texts := files(t, ".md")
	for name, text := range files(t, "doc.go") {
		texts[name] = text
	}
	pages := 0
	for name, text := range texts {
		if fetches.MatchString(text) {
			pages++
			if !strings.Contains(text, "until the module is published") {
				t.Errorf("%s does not say that the module is not published", name)
			}
		}
	}
	if pages == 0 || !strings.Contains(texts["README.md"], "replace github.com/flowfabric/flowfabric-go => ") {
		t.Errorf("%d pages; or the README has no replace line", pages)
	}
}
