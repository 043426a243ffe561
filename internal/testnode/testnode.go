// Package testnode runs npm packages in tests, on a Node.js that is recent enough for them.
package testnode

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// ErrMissing is that there is no npm, no registry, or no Node.js that is recent enough.
var ErrMissing = errors.New("npm packages need npm (tools/install-node), its registry, and Node.js 20.19 or later")

//go:embed node
var own embed.FS

// recent is a version of Node.js on which the packages run.
var recent = regexp.MustCompile(`^v(20\.(19|[2-9][0-9])|2[2-9]|[3-9][0-9])\.`)

// Node is a Node.js. It is for use by several goroutines.
type Node struct {
	Program string
	env     []string
}

// Find returns the Node.js of PATH if it is recent enough, or else one of npm, which it installs below a folder.
// Without one the error is ErrMissing.
func Find(ctx context.Context, dir string) (Node, error) {
	if program, err := exec.LookPath("node"); err == nil {
		version, err := exec.CommandContext(ctx, program, "--version").Output()
		if err == nil && recent.Match(version) {
			return Node{Program: program, env: os.Environ()}, nil
		}
	}
	if err := os.CopyFS(dir, own); err != nil {
		return Node{}, err
	}
	dir = filepath.Join(dir, "node")
	if err := (Node{env: os.Environ()}).Install(ctx, dir); err != nil {
		return Node{}, err
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	bin := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+cmp.Or(arch, runtime.GOARCH), "bin")
	program := filepath.Join(bin, "node")
	if _, err := os.Stat(program); err != nil {
		return Node{}, errors.Join(ErrMissing, err)
	}
	// npm chooses packages by the Node.js that runs it
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	return Node{Program: program, env: append(os.Environ(), path)}, nil
}

// Command is a program with arguments, in a folder, which finds this Node.js.
func (n Node) Command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append([]string(nil), n.env...)
	return cmd
}

// Install installs what the lock of a folder names. Without npm or its registry the error is ErrMissing.
func (n Node) Install(ctx context.Context, dir string) error {
	text, err := n.Command(ctx, dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts",
		"--loglevel=error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %w: %s", ErrMissing, err, text)
	}
	return nil
}

// Installed copies the package in a folder to a folder of the test, and installs there what its lock names. Without npm
// or its registry it skips the test, or fails it with CI set.
func Installed(t testing.TB, source string) (dir string, node Node) {
	t.Helper()
	dir = t.TempDir()
	node, err := InstallCopy(t.Context(), source, dir)
	Need(t, err)
	return dir, node
}

// Need ends the test if there is an error: ErrMissing skips it, unless CI is set.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	must.No(t, err)
}

// InstallCopy is Installed for folders that several tests share. The caller removes dir.
func InstallCopy(ctx context.Context, source, dir string) (Node, error) {
	if err := Copy(source, dir); err != nil {
		return Node{}, err
	}
	node, err := Find(ctx, filepath.Join(dir, ".node"))
	if err != nil {
		return Node{}, err
	}
	return node, node.Install(ctx, dir)
}

// Copy copies a folder without what npm and builds leave in it.
func Copy(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name = filepath.Join(to, name)
		if entry.IsDir() {
			if entry.Name() == "node_modules" || entry.Name() == "dist" {
				return filepath.SkipDir
			}
			return os.MkdirAll(name, 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(name, text, 0o644)
	})
}
