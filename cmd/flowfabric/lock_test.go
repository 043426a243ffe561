package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sourcegraph/conc"
)

// asCommand makes the program of the tests run a command line instead.
const asCommand = "FLOWFABRIC_TEST_COMMAND"

// Commands that change a file of tokens at the same time keep what the others add and remove, in one process and in
// several.
func TestTokensAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	w := &env{T: t, ctx: t.Context()}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ok := func(line string) {
		if code, _, errOut := w.run(line+" --file "+file, ""); code != exitOK {
			t.Errorf("%s: exit %d: %s", line, code, errOut)
		}
	}
	const n = 8
	var want []string
	for i := range n {
		ok(fmt.Sprint("token new old-", i))
	}
	var changing conc.WaitGroup
	for i := range n {
		changing.Go(func() { ok(fmt.Sprint("token rm old-", i)) })
		changing.Go(func() { ok(fmt.Sprint("token new here-", i)) })
		changing.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^$")
			cmd.Env = append(os.Environ(),
				asCommand+"="+fmt.Sprint("token new there-", i, " --timeout 1h --file ", file))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		want = append(want, fmt.Sprint("here-", i), fmt.Sprint("there-", i))
	}
	changing.Wait()
	_, out, _ := w.run("token ls --file "+file, "")
	var got []string
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(line, " "); strings.Contains(name, "-") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("in the folder: %v, %v", left, err)
	}
}

// Where no folder can be locked, another file is the lock. One that a killed command has left is named.
func TestLockBeside(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	var inside atomic.Int32
	var locking conc.WaitGroup
	for range 8 {
		locking.Go(func() {
			for range 3 {
				unlock, err := waitFor(t.Context(), file, lockBeside)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two have the lock")
				}
				inside.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	locking.Wait()
	if _, err := lockBeside(file); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := waitFor(ctx, file, lockBeside); !errors.Is(err, errLocked) ||
		!strings.Contains(err.Error(), file+".lock") {
		t.Errorf("of a lock that is left: %v", err)
	}
}
