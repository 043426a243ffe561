package tokenkeys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A folder keeps the keys that it was given first, for its owner alone.
func TestAFolderKeepsItsKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	made, err := Kept(dir, "")
	must.No(t, err)
	if again, err := Kept(dir, "k1:"+secretA); err != nil || again != made || keyring(t, made).Kids() == nil {
		t.Errorf("%v: the keys are others after a restart", err)
	}
	info, err := os.Stat(filepath.Join(dir, File))
	must.No(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if given, err := Kept(t.TempDir(), "k1:"+secretA); err != nil || given != "k1:"+secretA {
		t.Errorf("configured keys are not kept: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Processes that start at once have the same keys.
func TestKeysOfAFolderAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.Map
	var makers sync.WaitGroup
	for range 16 {
		makers.Go(func() {
			keys, err := Kept(dir, "")
			if err != nil {
				t.Error(err)
			}
			all.Store(keys, true)
		})
	}
	makers.Wait()
	different := 0
	all.Range(func(any, any) bool { different++; return true })
	if different != 1 {
		t.Errorf("%d different keys", different)
	}
}

// Bad keys are refused by the name of the file, and none of them is shown.
func TestBadKeysOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Kept(dir, secretA); !errors.Is(err, denied.Kid) {
		t.Errorf("configured: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, File)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("bad keys were kept: %v", err)
	}
	for text, want := range map[string]string{"\n": "is empty", secretA: "no id"} {
		must.No(t, os.WriteFile(filepath.Join(dir, File), []byte(text), 0o600))
		if _, err := Kept(dir, ""); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), File) || strings.Contains(err.Error(), secretA) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A program on a folder signs with what the folder keeps, unless it is given keys.
func TestConfiguredForAFolder(t *testing.T) {
	url := "embedded://" + t.TempDir()
	one, err := Configured(url, "")
	must.No(t, err)
	if two, err := Configured(url, ""); err != nil || two.Kids()[0] != one.Kids()[0] {
		t.Errorf("%v, %v: other keys after a restart", two, err)
	}
	if given, err := Configured(url, "k1:"+secretA); err != nil || given.Kids()[0] != "k1" {
		t.Errorf("%v, %v: keys that were given are not used", given, err)
	}
}
