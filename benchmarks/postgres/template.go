package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// template is the directory of a new server, made once per run, because every scenario starts servers. It is a tar
// archive in a file without a name, so that it goes with this process however that ends.
type template struct {
	bin     string
	user    account
	archive *os.File
}

// debian is where Debian has the programs of every release, and not in PATH.
const debian = "/usr/lib/postgresql/*/bin"

var (
	making sync.Mutex
	made   *template
)

// initialized returns the template. A failure is not remembered: it may have been the end of a context.
func initialized(ctx context.Context) (*template, error) {
	making.Lock()
	defer making.Unlock()
	if made != nil {
		return made, nil
	}
	bin, err := programs(debian)
	if err != nil {
		return nil, err
	}
	t := &template{bin: bin}
	if t.user, err = accountOfServer(); err != nil {
		return nil, err
	}
	dir, err := t.user.dir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "data")
	if err := t.run(ctx, dir, nil, nil, filepath.Join(bin, "initdb"), "-D", data, "-U", owner, "--auth=trust",
		"--encoding=UTF8", "--no-locale", "--no-sync"); err != nil {
		return nil, err
	}
	if t.archive, err = os.CreateTemp("", "ffbench"); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(t.archive.Name()),
		t.run(ctx, dir, nil, t.archive, "tar", "-cf", "-", "-C", data, ".")); err != nil {
		return nil, errors.Join(err, t.archive.Close())
	}
	made = t
	return t, nil
}

// copyTo makes the directory of another server.
func (t *template) copyTo(ctx context.Context, data string) error {
	if err := t.user.mkdir(data); err != nil {
		return err
	}
	if _, err := t.archive.Seek(0, 0); err != nil {
		return err
	}
	return t.run(ctx, data, t.archive, nil, "tar", "-xpf", "-", "-C", data)
}

// run runs a program as the server's user.
func (t *template) run(ctx context.Context, dir string, in, out *os.File, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = t.user.attributes()
	var said strings.Builder
	cmd.Stderr = &said
	if in != nil {
		cmd.Stdin = in
	}
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, said.String())
	}
	return nil
}

// programs is the directory of initdb and postgres: the one of PATH, or of the newest release in a pattern of
// directories.
func programs(pattern string) (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && has(filepath.Dir(path), "postgres") {
			return filepath.Dir(path), nil
		}
	}
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !has(dir, "initdb") || !has(dir, "postgres") })
	if len(dirs) == 0 {
		return "", fmt.Errorf("PostgreSQL: %w (make bench-deps): no initdb and postgres in PATH or %s",
			driver.ErrNotInstalled, pattern)
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return release(a) - release(b) }), nil
}

func has(dir, program string) bool {
	_, err := exec.LookPath(filepath.Join(dir, program))
	return err == nil
}

// release is the 15 of /usr/lib/postgresql/15/bin; 0 of what is not a whole number, as old releases were not.
func release(dir string) (n int) {
	_, _ = fmt.Sscanf(filepath.Base(filepath.Dir(dir)), "%d", &n)
	return n
}
