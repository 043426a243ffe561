package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/report"
)

// The whole report of two runs. FLOWFABRIC_GOLDEN=write writes it; people read it.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "REPORT.md")
	for _, file := range []string{"tables/kept.png", "tables/run-9.md", "NOTES.md"} {
		write(t, filepath.Join(dir, file), "x")
	}
	if err := report.Save(path, []report.Document{first(), second()}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"REPORT.md", "tables/run-1.md", "tables/run-2.md"} {
		golden, got := filepath.Join("testdata", filepath.Base(file)), read(t, filepath.Join(dir, file))
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			write(t, golden, got)
		}
		if want := read(t, golden); got != want {
			t.Errorf("%s differs from %s (FLOWFABRIC_GOLDEN=write writes it):\n%s", file, golden, got)
		}
		for _, m := range regexp.MustCompile(`\]\((tables/[^)]*)\)`).FindAllStringSubmatch(got, -1) {
			read(t, filepath.Join(dir, m[1]))
		}
	}
	if lines := strings.Count(read(t, path), "\n"); lines > 120 {
		t.Errorf("the report has %d lines and should fit on three screens", lines)
	}
	there, err := filepath.Glob(filepath.Join(dir, "tables", "*"))
	if err != nil || len(there) != 3 { // kept.png and the tables of two runs
		t.Errorf("there are %v (%v)", there, err)
	}
	if err := os.Remove(filepath.Join(dir, "NOTES.md")); err != nil {
		t.Fatal(err)
	}
	if err := report.Save(path, []report.Document{first()}); err != nil {
		t.Fatal(err)
	}
	if alone := read(t, path); strings.Contains(alone, "NOTES.md") || !strings.Contains(alone, "(tables/run-1.md)") {
		t.Errorf("a report of one run, without notes:\n%s", alone)
	}
}

// Documents that cannot be reported are refused with their name.
func TestDocumentsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text.json": "hello", "old.json": `{"format": 0}`, "absent.json": ""} {
		path := filepath.Join(dir, name)
		if text != "" {
			write(t, path, text)
		}
		if _, err := report.ReadAll([]string{path}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	if _, err := report.ReadAll(nil); err == nil {
		t.Error("no documents, and no error")
	}
	path := filepath.Join(dir, "run.json")
	if err := second().Write(path); err != nil {
		t.Fatal(err)
	}
	d, err := report.Read(path)
	if err != nil || !d.Began.Equal(second().Began) || len(d.Results) != len(second().Results) || d.Cost == nil {
		t.Errorf("written and read: %+v (%v)", d, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
