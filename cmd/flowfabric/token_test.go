//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// The file of tokens keeps its mode, its owner and its place behind a link, whatever a command changes in it.
func TestTokenFile(t *testing.T) {
	w := &env{T: t, ctx: t.Context()}
	ok := func(line string) string {
		t.Helper()
		code, out, errOut := w.run(line, "")
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", line, code, errOut)
		}
		return out
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "tokens.json")
	ok("token new first --file " + file)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Fatalf("a new file: %v, %v", info, err)
	}
	must.No(t, os.Symlink("real.json", link))
	must.No(t, os.Chmod(file, 0o640))
	if os.Geteuid() == 0 {
		must.No(t, os.Chown(file, 1234, 5678))
	}
	before, err := os.Stat(file)
	must.No(t, err)
	kept := func(after string) {
		t.Helper()
		is, err := os.Stat(file)
		if err != nil || is.Mode() != before.Mode() || !sameOwners(is, before) {
			t.Errorf("after %s: %+v, was %+v, %v", after, is, before, err)
		}
		if at, err := os.Readlink(link); err != nil || at != "real.json" {
			t.Errorf("after %s: the link leads to %q, %v", after, at, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
			t.Errorf("after %s: %v, %v", after, list, err)
		}
	}
	ok("token new shop --role producer --in blue --in red --expires 720h --file " + link)
	kept("new")
	var list []listedToken
	if err := json.Unmarshal([]byte(ok("token ls --json --file "+link)), &list); err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	shop := list[1]
	if left := time.Until(shop.Expires); shop.Name != "shop" || shop.Role != httpapi.Producer ||
		shop.Expired ||
		len(shop.Namespaces) != 2 || left > 720*time.Hour || left < 719*time.Hour {
		t.Errorf("%+v", shop)
	}
	if text := ok("token list --file " + link); !strings.Contains(text, "blue, red") ||
		!strings.Contains(text, "never") {
		t.Errorf("for people: %s", text)
	}
	ok("token rm first --file " + link)
	kept("rm")
	t.Setenv("FLOWFABRIC_API_TOKENS_FILE", link)
	if text := ok("token ls"); strings.Contains(text, "first") || !strings.Contains(text, "shop") {
		t.Errorf("after rm: %s", text)
	}
	for line, want := range map[string]int{"token rm first": exitNotFound, "token new shop --file " + link: exitUsage,
		"token new x --expires -1h": exitUsage, "token rm": exitUsage} {
		if code, out, errOut := w.run(line, ""); code != want {
			t.Errorf("%s: exit %d, want %d: %s%s", line, code, want, out, errOut)
		}
	}
	ok("token new brief --expires 1ns --file " + link)
	if text := ok("token ls"); !strings.Contains(text, "expired") {
		t.Errorf("a token that is over: %s", text)
	}
	kept("all")
}

func sameOwners(a, b os.FileInfo) bool {
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return x.Uid == y.Uid && x.Gid == y.Gid
}
