// Package typescript holds the package flowfabric of npm, and the test that runs its own tests.
package typescript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

const (
	mostLines = 3_000  // by hand, in src
	mostBytes = 60_000 // of all of it, minified
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPackage builds and packs the package, runs its tests against a server of `flowfabric dev`, and the examples of
// its pages where only the archive is installed.
func TestPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	dir, node := testnode.Installed(t, ".")
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	run := func(t *testing.T, dir, program string, args ...string) {
		t.Helper()
		cmd := node.Command(ctx, dir, program, args...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v:\n%s", cmd, err, text)
		}
	}
	program := filepath.Join(t.TempDir(), "flowfabric")
	run(t, ".", "go", "build", "-o", program, "github.com/flowfabric/flowfabric-go/cmd/flowfabric")
	run(t, dir, "npm", "run", "build")
	run(t, dir, "npm", "pack", "--ignore-scripts")

	user := t.TempDir() // it has nothing but the archive
	must.No(t, os.WriteFile(filepath.Join(user, "package.json"), []byte(`{"type":"module"}`), 0o600))
	run(t, user, "npm", "install", "--offline", "--no-audit", "--no-fund", filepath.Join(dir, "flowfabric-0.1.0.tgz"))
	run(t, user, node.Program, "--input-type=module", "-e",
		`import { Client, Worker } from "flowfabric"; new Worker({ client: new Client() })`)

	t.Run("small", func(t *testing.T) { small(t, dir, run) })
	root, err := filepath.Abs("../..")
	must.No(t, err)
	for _, suite := range []string{"client", "worker", "docs"} {
		t.Run(suite, func(t *testing.T) {
			cmd := node.Command(ctx, dir, node.Program, "--test", "test/"+suite+".test.js")
			cmd.Env = append(cmd.Env, "FLOWFABRIC_BIN="+program, "FLOWFABRIC_ROOT="+root, "FLOWFABRIC_INSTALLED="+user)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		})
	}
}

// TestLint holds the sources against the rules of eslint and typescript-eslint that know types.
func TestLint(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	dir, node := testnode.Installed(t, "lint")
	must.No(t, testnode.Copy("src", filepath.Join(dir, "src")))
	must.No(t, testnode.Copy("tsconfig.json", filepath.Join(dir, "tsconfig.json")))
	if text, err := node.Command(ctx, dir, "npx", "eslint", "src").CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

// small checks how large the package is: the lines written by hand, and what a page would load.
func small(t *testing.T, dir string, run func(t *testing.T, dir, program string, args ...string)) {
	sources, err := filepath.Glob(filepath.Join(dir, "src", "*.ts"))
	must.No(t, err)
	lines := 0
	for _, name := range sources {
		if text, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if filepath.Base(name) != "models.ts" {
			lines += strings.Count(string(text), "\n")
		}
	}
	out := filepath.Join(t.TempDir(), "all.min.js")
	run(t, dir, "npx", "esbuild", "src/index.ts", "--bundle", "--minify", "--format=esm", "--platform=browser",
		"--outfile="+out)
	info, err := os.Stat(out)
	must.No(t, err)
	t.Logf("%d lines, %d bytes minified", lines, info.Size())
	if lines > mostLines || info.Size() > mostBytes {
		t.Errorf("there are %d lines and %d bytes minified, want at most %d and %d", lines, info.Size(), mostLines,
			mostBytes)
	}
}
