package flowfabric_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// word is a category, a source or a reason, and what it means.
type word struct{ value, meaning string }

// categories reads the list from internal/causes.
func categories(t *testing.T) (list []word) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "internal/causes/causes.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			value, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			x := word{value, strings.TrimSpace(v.Comment.Text())}
			if list = append(list, x); !strings.Contains(string(doc), "//   - "+x.value+": "+x.meaning+"\n") {
				t.Errorf("the package comment does not say %s: %s", x.value, x.meaning)
			}
		}
		return true
	})
	return list
}

// written is what the Lua functions write into a place, by patterns of which the last group is an expression: words,
// or the name of a local variable that is one of some words. from are expressions that stand for what a caller gives.
type written struct {
	places *regexp.Regexp
	from   []string
}

var (
	quoted   = regexp.MustCompile(`'([a-z_]*)'`)
	variable = regexp.MustCompile(`^[a-z_]+$`)
	comments = regexp.MustCompile(`(?m)--[^\n]*$`)

	inCategories = written{from: []string{"f.category", "category"}, places: regexp.MustCompile(
		`(?:settle\.fold\(ctx, c, [a-z.]+,\s*[^(),]+,\s*|{ category = )([^,})\s]+),|'failure_category', ([^,}\s]+) }`)}
	inSources = written{from: []string{"source"}, places: regexp.MustCompile(
		`(?:{ |= )'cancel_source',\s*([^,}\s]+)`)}
	inReasons = written{from: []string{"reason"}, places: regexp.MustCompile(
		`(?:return rest\(ctx, h, e, [a-z]+, |'cw', reason ~= '' and reason or )([^,)\s]+)`)}
)

// of lists the words that a function of a file writes. What it cannot tell fails the test: then it must learn it.
func (w written) of(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob("lua/*/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := comments.ReplaceAllString(string(data), "")
		for _, at := range w.places.FindAllStringSubmatchIndex(text, -1) {
			if at[2] < 0 {
				at = append(at[:2], at[4:]...)
			}
			expression := text[at[2]:at[3]]
			if slices.Contains(w.from, expression) && !strings.Contains(text[:at[0]], "local "+expression+" = ") {
				continue
			}
			if variable.MatchString(expression) { // the nearest one before
				from := strings.LastIndex(text[:at[0]], "local "+expression+" = ")
				if from < 0 {
					t.Errorf("%s: nothing tells what %q is", file, text[at[0]:at[1]])
					continue
				}
				expression, _, _ = strings.Cut(text[from:], "\n")
			}
			words := quoted.FindAllStringSubmatch(expression, -1)
			if len(words) == 0 {
				t.Errorf("%s: this test cannot tell what %q writes", file, text[at[0]:at[1]])
			}
			for _, x := range words {
				if len(x[1]) > 1 { // else it is no word, or a mark
					out[x[1]] = true
				}
			}
		}
	}
	return out
}

// reasons are those of cancellations that nobody asked for, and sources those of all.
var (
	reasons = []word{
		{"sibling_quorum_satisfied", "the node behind it got what it needs from others (`flow.CancelRemaining`)"},
		{"sibling_quorum_impossible", "the node behind it cannot run any more (`flow.CancelRemaining`)"},
		{"parent_ended", "the execution that waited for it ended"},
		{"wait_over", "the wait for it was over without it (`flow.CancelRemaining`)"},
		{"flow_cancelled", "its flow was cancelled without a reason"},
	}
	sources = []word{
		{"operator_override", "somebody asked for it: `CancelledBy` names who, if that is known"},
		{"owner", "its worker, because the handler returned `handler.Cancel`"},
		{"flow_cascade", "its flow, or what depended on it; the reason says which"},
		{"system_timeout_policy", "its wait lasted too long, with `suspend.OnTimeout(suspend.Cancel)`"},
	}
)

// TestCategoryDocs writes the page of categories from internal/causes, and holds it and what the Lua functions can
// write against each other. FLOWFABRIC_GOLDEN=write writes the document.
func TestCategoryDocs(t *testing.T) {
	list, byLua := categories(t), inCategories.of(t)
	same := func(what string, list []word, lua map[string]bool) {
		for _, x := range list {
			if !lua[x.value] {
				t.Errorf("no Lua function writes the %s %s", what, x.value)
			}
			delete(lua, x.value)
		}
		if len(lua) > 0 {
			t.Errorf("the list of %ss lacks %v", what, lua)
		}
	}
	var b strings.Builder
	b.WriteString(`# Categories

Why something ended without success. TestCategoryDocs writes this page from internal/causes and holds it against the
Lua functions (FLOWFABRIC_GOLDEN=write).

## Categories of failures

Snapshots, lists, histories, streams and metrics have them. A worker gives a category with the failure of an attempt,
and a handler may choose one of its own (` + "`handler.Category`" + `).
The store gives a category where no worker decides.

| Category | Given by | Meaning |
|---|---|---|
`)
	var store []word
	for _, x := range list {
		by := "worker"
		switch {
		case byLua[x.value] && x.value == "attempt_timeout":
			by = "worker, or the store"
		case byLua[x.value]:
			by = "the store"
		}
		if byLua[x.value] {
			store = append(store, x)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", x.value, by, x.meaning)
	}
	same("category", store, byLua)
	b.WriteString("\n## Who cancelled\n\nA cancellation gives no category, unless it is the timeout of a wait.\n" +
		"`CancelSource` of a snapshot says what kind of source cancelled it:\n\n| Source | Meaning |\n|---|---|\n")
	asked := inSources.of(t)
	for _, source := range []string{"operator_override", "owner"} { // an argument, or the fence that comes with it
		asked[source] = true
	}
	for _, x := range sources {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x.value, x.meaning)
	}
	same("source", sources, asked)
	b.WriteString("\nThe reason is what was said, or with the source `flow_cascade` one of:\n\n" +
		"| Reason | Meaning |\n|---|---|\n")
	for _, x := range reasons {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x.value, x.meaning)
	}
	same("reason", reasons, inReasons.of(t))

	const document = "docs/reference/categories.md"
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		if err := os.WriteFile(document, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != b.String() {
		t.Errorf("%s is not what the sources say; write it again with FLOWFABRIC_GOLDEN=write", document)
	}
}
