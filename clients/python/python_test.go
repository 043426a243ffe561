// Package python holds the package flowfabric of Python, and the test that runs its own tests.
package python

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPackage runs the tests of the package against a server of `flowfabric dev`: with the wheel in an empty
// environment where it can be built, else from the sources.
func TestPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	python := pythonOf(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	program := filepath.Join(t.TempDir(), "flowfabric")
	build := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/flowfabric/flowfabric-go/cmd/flowfabric")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	tests, err := filepath.Abs("tests")
	must.No(t, err)
	path := tests
	if installed := installed(t, ctx, python); installed != "" {
		python = installed
	} else {
		sources, err := filepath.Abs("src")
		must.No(t, err)
		path += string(os.PathListSeparator) + sources
	}
	cert, key := testserver.Certificate(t)
	for _, suite := range []string{"test_http", "test_client", "test_worker", "test_gates", "test_sync", "test_kill",
		"test_restart", "test_cuts", "test_docs"} {
		t.Run(suite, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, python, "-m", "unittest", suite)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "FLOWFABRIC_BIN="+program, "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1",
				"FLOWFABRIC_PAGES="+filepath.Dir(tests), "FLOWFABRIC_CERT="+cert, "FLOWFABRIC_CERT_KEY="+key)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		})
	}
}

// TestTypes has pyright check the sources, as strictly as it can.
func TestTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	dir, node := testnode.Installed(t, ".")
	if text, err := node.Command(t.Context(), dir, "npm", "run", "check").CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}

// pythonOf is Python 3.11 or newer. Without it the test is skipped, or fails with CI set.
func pythonOf(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no python3 of version 3.11 or newer")
		}
		t.Skip("SKIPPED: there is no python3 of version 3.11 or newer, so the package for Python is not tried")
	}
	return python
}

// installed is the Python of an empty environment with the wheel; "" where there are no tools to build one offline.
func installed(t *testing.T, ctx context.Context, python string) string {
	t.Helper()
	dir := t.TempDir()
	// A copy, because a build writes beside the sources.
	must.No(t, os.CopyFS(filepath.Join(dir, "package"), os.DirFS(".")))
	var builder string
	for _, one := range []string{python, "/usr/bin/python3"} { // the tools may be with the Python of the system only
		if exec.CommandContext(ctx, one, "-c", "import setuptools, wheel").Run() == nil {
			builder = one
			break
		}
	}
	if builder == "" {
		t.Log("the tests run from the sources, because no Python here has setuptools and wheel")
		return ""
	}
	for _, step := range []*exec.Cmd{
		exec.CommandContext(ctx, builder, "-c",
			"import setuptools.build_meta as b, sys; b.build_wheel(sys.argv[1])", filepath.Join(dir, "wheels")),
		exec.CommandContext(ctx, python, "-m", "venv", filepath.Join(dir, "empty")),
	} {
		step.Dir = filepath.Join(dir, "package")
		if text, err := step.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v:\n%s", step, err, text)
		}
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "wheels", "flowfabric-*.whl"))
	must.No(t, err)
	if len(wheels) != 1 {
		t.Fatalf("there are the wheels %v, want one", wheels)
	}
	empty := filepath.Join(dir, "empty", "bin", "python")
	install := exec.CommandContext(ctx, empty, "-m", "pip", "install", "--no-deps", "--no-index", wheels[0])
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return empty
}
