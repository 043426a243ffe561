package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// On a full disk processes connect and read, as on a full server. What writes is refused until there is room.
func TestReadsGoOnWhenTheDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NO FULL DISK WAS TESTED: only root can mount one: %v", err)
	}
	t.Cleanup(func() { must.No(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	ballast := filepath.Join(disk, "ballast")
	must.No(t, os.WriteFile(ballast, make([]byte, 800<<10), 0o600))
	url := serveFolder(t, filepath.Join(disk, "data")).URL()
	input := strings.Repeat("x", 8000)
	submit := func() (int, string) { return command(t, "submit", "report", "--input", `"`+input+`"`, "--url", url) }
	code, text := submit()
	if code != exitOK {
		t.Fatal(text)
	}
	testwait.Until(t, "the disk is full", func() bool {
		code, text = submit()
		return code != exitOK
	})
	for range 2 {
		code, text := submit()
		if code == exitOK || !strings.Contains(text, "no space left on device; writes go on when") ||
			strings.Contains(text, "script:") {
			t.Errorf("a submit: %d %s", code, text)
		}
		if code, text := command(t, "ls", "--url", url); code != exitOK || !strings.Contains(text, "report") {
			t.Errorf("a list: %d %s", code, text)
		}
	}
	must.No(t, os.Remove(ballast))
	testwait.Until(t, "writes go on", func() bool {
		code, _ := submit()
		return code == exitOK
	})
}
