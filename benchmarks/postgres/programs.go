package postgres

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// debian is where Debian has the programs of every release, and not in PATH.
const debian = "/usr/lib/postgresql/*/bin"

// initialize makes the directory of a new server.
func initialize(ctx context.Context, bin string, user account, dir string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", owner,
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = dir, user.attributes()
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, said)
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
