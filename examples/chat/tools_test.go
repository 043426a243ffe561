package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCalculator(t *testing.T) {
	for expression, want := range map[string]string{
		"12 * (3 + 4)": "84", "-2 - -3": "1", "1 / 3": "0.333333333333", "6 / 3": "2", "0.1 + 0.2": "0.3",
		"17 % 5": "2", "007 + 1": "8", "0": "0", "12 × 3 ÷ 4": "9",
		"99999999999999999999 * 10": "999999999999999999990",
	} {
		if got, err := calculate(expression); got != want || err != nil {
			t.Errorf("%s is %s, %v, want %s", expression, got, err, want)
		}
	}
	for _, expression := range []string{
		"", "1 +", "1 / 0", "1 % 0", "1.5 % 2", "1 << 9", "1e999999999", "0x10", `"a" + "b"`, "len(x)", "func() {}",
		"!1", "^1", "os.Exit", "1; 2", "1i", strings.Repeat("9", 201), strings.Repeat("(", 100) + "1", "1 == 1",
	} {
		if got, err := calculate(expression); err == nil {
			t.Errorf("%q is %s, want an error", expression, got)
		}
	}
}

func FuzzCalculator(f *testing.F) {
	f.Add("1 + 2 * (3 - 4) / 5 % 6")
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := calculate(expression)
		if err == nil && (got == "" || len(got) > 2*maxExpression) {
			t.Errorf("%q is %q", expression, got)
		}
	})
}

func TestSearch(t *testing.T) {
	found, err := search("the White RABBIT")
	if err != nil || found.Found == 0 || len(found.Passages) > 3 ||
		!strings.Contains(strings.ToLower(found.Passages[0].Text), "white rabbit") {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := search("qqqqq"); err != nil || found.Found != 0 || found.Passages == nil {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := search("a 1 !"); err == nil {
		t.Error("a query without words is accepted")
	}
}

// A call that is repeated after a crash publishes the same file.
func TestPublishOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := publish(dir, "key", Note{"Title", "text"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := publish(dir, "key", Note{"Title", "text"})
	if err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
	other, err := publish(dir, "other key", Note{"Title", "text"})
	if err != nil || other == first {
		t.Errorf("%q, then %q, %v", first, other, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v", len(files), err)
	}
	name := strings.TrimPrefix(first, "published as /published/")
	if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != "Title\n\ntext\n" || err != nil ||
		!noteName.MatchString(name) {
		t.Errorf("%s: %q, %v", name, text, err)
	}
}
