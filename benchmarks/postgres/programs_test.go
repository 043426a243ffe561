package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// place makes a directory with both programs, or one of them.
func place(t *testing.T, dir string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPrograms(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(root, "*", "bin")
	t.Setenv("PATH", place(t, filepath.Join(root, "path"), "initdb")) // without postgres
	if _, err := programs(pattern); !errors.Is(err, driver.ErrNotInstalled) || !strings.Contains(err.Error(),
		"make bench-deps") {
		t.Errorf("without programs: %v", err)
	}
	place(t, filepath.Join(root, "9", "bin"), "initdb", "postgres")
	newest := place(t, filepath.Join(root, "15", "bin"), "initdb", "postgres")
	place(t, filepath.Join(root, "17", "bin"), "initdb") // not all of it
	if dir, err := programs(pattern); err != nil || dir != newest {
		t.Errorf("%q, %v, want %q", dir, err, newest)
	}
	whole := place(t, filepath.Join(root, "path"), "postgres")
	if dir, err := programs(pattern); err != nil || dir != whole {
		t.Errorf("%q, %v, want the one of PATH, %q", dir, err, whole)
	}
}
