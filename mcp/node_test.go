package mcp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// The development server belongs to the process and is never stopped.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if node.dir != "" {
			_ = os.RemoveAll(node.dir)
		}
		os.Exit(code)
	}))
}

// node is Node.js with the packages of testdata/node.
var node struct {
	once         sync.Once
	dir, program string
	err          error
}

// needNode installs the packages once, and returns where they are and the Node.js that runs them. Without npm, or
// without a registry, the test is skipped, or fails with CI set.
func needNode(t *testing.T) (dir, program string) {
	t.Helper()
	node.once.Do(func() { node.err = installNode() })
	if node.err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(node.err)
		}
		t.Skip(node.err)
	}
	return node.dir, node.program
}

func installNode() (err error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("the official suite and client need npm (tools/install-node): %w", err)
	}
	if node.dir, err = os.MkdirTemp("", "flowfabric-mcp-node"); err != nil {
		return err
	}
	if err := os.CopyFS(node.dir, os.DirFS("testdata/node")); err != nil {
		return err
	}
	install := exec.Command(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	install.Dir = node.dir
	if text, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("the packages of testdata/node cannot be installed: %w: %s", err, text)
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	node.program = filepath.Join(node.dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(node.program); err == nil {
		return nil
	}
	if node.program, err = exec.LookPath("node"); err != nil {
		return err
	}
	version, err := exec.Command(node.program, "--version").Output()
	if err != nil {
		return err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 22 {
		return fmt.Errorf("the official suite needs Node.js 22 or later, this is %s", version)
	}
	return nil
}
