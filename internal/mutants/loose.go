package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/gopher-lua/parse"
)

// Compiling the suite again for every change of a Lua file would take most of the time, so for those bugs the tests are
// compiled once, with a library that reads its Lua files from a directory instead of embedding them. Nothing else differs,
// and the baseline runs on the same binary.
const (
	embedded  = "lua/files.go"
	directory = "FLOWFABRIC_MUTANT_LUA"
)

// loader takes the place of the embedded files.
const loader = `package lua

import (
	"io/fs"
	"os"
)

type looseFiles struct{ fs.FS }

func (f looseFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) }
func (f looseFiles) ReadFile(name string) ([]byte, error)       { return fs.ReadFile(f.FS, name) }

// Files are read from the directory.
var Files = looseFiles{os.DirFS(os.Getenv("` + directory + `"))}
`

// looseBinary compiles the tests of a package with such a library.
func (t *Tester) looseBinary(ctx context.Context, pkg string) (string, error) {
	t.compiling.Lock()
	defer t.compiling.Unlock()
	if bin := t.binaries[pkg]; bin != "" {
		return bin, nil
	}
	overlay, err := t.overlay(map[string]string{filepath.Join(t.Root, filepath.FromSlash(embedded)): loader})
	if err != nil {
		return "", err
	}
	bin := filepath.Join(t.Temp, strings.ReplaceAll(strings.Trim(pkg, "./"), "/", "-")+".test")
	cmd := t.command(ctx, t.Root, "go", "test", "-c", "-overlay="+overlay, "-o", bin, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s: %w\n%s", pkg, err, out)
	}
	if t.binaries == nil {
		t.binaries = map[string]string{}
	}
	t.binaries[pkg] = bin
	return bin, nil
}

// parses refuses a Lua file that no server would load: its failure would prove nothing.
func parses(file, source string) error {
	if _, err := parse.Parse(strings.NewReader(source), file); err != nil {
		return fmt.Errorf("does not parse: %w", err)
	}
	return nil
}

// looseLua copies the Lua files and returns where, with one file changed unless its path is empty.
func (t *Tester) looseLua(file, changed string) (string, error) {
	dir, err := os.MkdirTemp(t.Temp, "lua-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(t.Root, "lua"))); err != nil {
		return "", err
	}
	if file == "" {
		return dir, nil
	}
	return dir, os.WriteFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(file, "lua/"))), []byte(changed), 0o600)
}

// overlay writes texts and the description that makes the go tool read them in place of the files.
func (t *Tester) overlay(texts map[string]string) (string, error) {
	dir, err := os.MkdirTemp(t.Temp, "bug-")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range texts {
		replace[file] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	description, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, description, 0o600)
}
