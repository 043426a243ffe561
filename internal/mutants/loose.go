package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Compiling the suite again for every change of a Lua file would take most of the time, so for those the suite is
// compiled once, with a library that reads its Lua files from a directory instead of embedding them. Nothing else
// differs, and the measurement runs on the same binary.
const (
	embedded    = "lua/files.go"
	directory   = "FLOWFABRIC_MUTANT_LUA"
	conformance = "internal/conformance"
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

// looseBinary compiles the suite with such a library, once.
func (t *Tester) looseBinary(ctx context.Context) (string, error) {
	t.compiling.Lock()
	defer t.compiling.Unlock()
	bin := filepath.Join(t.Temp, "conformance.test")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	overlay, err := t.overlay(filepath.Join(t.Project.Root, filepath.FromSlash(embedded)), loader)
	if err != nil {
		return "", err
	}
	cmd := t.command(ctx, t.Project.Root, "go", "test", "-c", "-trimpath", "-overlay="+overlay, "-o", bin,
		"./"+conformance)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the suite: %w\n%s", err, out)
	}
	return bin, nil
}

// looseLua copies the Lua files, some of them changed, and returns where. The caller removes the directory.
func (t *Tester) looseLua(changed map[string]string) (string, error) {
	dir, err := os.MkdirTemp(t.Temp, "lua-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(t.Project.Root, "lua"))); err != nil {
		return "", err
	}
	for file, text := range changed {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(file, "lua/"))), []byte(text),
			0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// looseTest runs tests of the suite on the Lua files of a directory. If log is not empty, the server writes what the
// library does to it.
func (t *Tester) looseTest(ctx context.Context, run, dir, log string, limit time.Duration) ([]byte, error) {
	bin, err := t.looseBinary(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.serverDir(dir, log); err != nil {
		return nil, err
	}
	cmd := t.command(ctx, filepath.Join(t.Project.Root, filepath.FromSlash(conformance)), "go", "tool", "test2json",
		bin, "-test.v=test2json", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+run)
	cmd.Env = append(os.Environ(), directory+"="+dir, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if log != "" {
		cmd.Env = append(cmd.Env, announce+"=1")
	}
	return t.events(ctx, cmd)
}

// overlay writes a text and the description that makes the go tool read it in place of a file.
func (t *Tester) overlay(file, text string) (string, error) {
	dir, err := os.MkdirTemp(t.Temp, "bug-")
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(replacement, []byte(text), 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{file: replacement}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, description, 0o600)
}
