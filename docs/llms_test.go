package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const llmsHead = `# FlowFabric for Go

> FlowFabric runs background work that must not get lost, on Valkey, Redis or a folder: durable steps, waits
> for people, live output, flows, schedules, limits, agents.

All pages are plain Markdown. Links are relative to this file: in the module (go list -m -f '{{.Dir}}'
github.com/flowfabric/flowfabric-go, then docs), and at
https://raw.githubusercontent.com/flowfabric/flowfabric-go/main/docs/ or, for a release, with its tag instead of
main. Addresses of pages do not change within a major version. To write code, read the skill first, then the first
day, then the page on what you do.
`

// llmsParts are the parts of the list, and the folders of their pages; "" is docs itself. The last one is for those
// who have room.
var llmsParts = []struct{ title, folder string }{{"Begin", ""}, {"How to", "how-to"}, {"Reference", "reference"},
	{"Move from others", "migrate"}, {"Explanation", "explanation"}, {"When something is wrong", "runbook"},
	{"Optional", "adr"}}

// firstSentence is that of the first paragraph behind the title of a page.
var firstSentence = regexp.MustCompile(`(?s)^# [^\n]+\n\n(?:\*[^\n]+\*\n\n)*(.+?)(?:[.:?](?:\s|$)|\n\n)`)

// llms is the list: each page with its title and its first sentence.
func llms(t *testing.T) string {
	pages := map[string][]string{}
	all := files(t, ".md")
	for _, file := range slices.Sorted(maps.Keys(all)) {
		local, found := strings.CutPrefix(file, "docs/")
		if !found || strings.Count(local, "/") > 1 {
			continue
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(all[file], "# "), "\n")
		folder := strings.TrimSuffix(path.Dir(local), ".")
		line := fmt.Sprintf("- [%s](%s)", title, local)
		if m := firstSentence.FindStringSubmatch(block.ReplaceAllString(all[file], "")); m != nil && folder != "adr" {
			text := link.ReplaceAllString(strings.Join(strings.Fields(m[1]), " "), "")
			line += ": " + strings.NewReplacer("[", "", "]", "", "*", "").Replace(text)
		}
		pages[folder] = append(pages[folder], line)
	}
	text := llmsHead
	for _, p := range llmsParts {
		text += "\n## " + p.title + "\n\n"
		if p.folder == "" {
			text += "- [Skill](../cmd/flowfabric/skills/flowfabric/SKILL.md): a tested service, and mistakes to avoid\n"
		}
		text += strings.Join(pages[p.folder], "\n") + "\n"
		delete(pages, p.folder)
	}
	for folder := range pages {
		t.Errorf("docs/%s has pages, and llms.txt no part for them", folder)
	}
	return text
}

// llms.txt lists every page, with its first sentence, and nothing else. FLOWFABRIC_GOLDEN=write writes it.
func TestLLMs(t *testing.T) {
	want := llms(t)
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		if err := os.WriteFile("llms.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("llms.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("llms.txt is not the list of pages: FLOWFABRIC_GOLDEN=write go test -run TestLLMs ./docs")
	}
	for _, m := range link.FindAllStringSubmatch(string(got), -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("llms.txt: %v", err)
		}
	}
}
