package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// A store on a disk that is full refuses writes and answers reads. When there is room it goes on, and has everything
// that it acknowledged.
func TestAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NO FULL DISK WAS TESTED: only root can mount one: %v", err)
	}
	t.Cleanup(func() { must.No(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	for _, always := range []bool{false, true} {
		ballast, folder := filepath.Join(disk, "ballast"), filepath.Join(disk, fmt.Sprint("store", always))
		must.No(t, os.WriteFile(ballast, make([]byte, 600<<10), fileMode))
		s, _ := opened(t, folder, always)
		acked, value := 0, strings.Repeat("x", 3000)
		for i := 1; ; i++ {
			err := s.Wait(run(t, s, fmt.Sprint("SET ", i, " ", value)))
			if err == nil {
				acked = i
			} else if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			} else {
				break
			}
		}
		if r := s.Refuses(); r == nil || !strings.HasPrefix(r.Text, "OOM ") {
			t.Errorf("it refuses with %v", r)
		}
		do(t, s, "GET 1")
		must.No(t, os.Remove(ballast))
		testwait.Until(t, "writes go on", func() bool { return s.Refuses() == nil })
		do(t, s, "SET last 1")
		want := held(s)
		must.No(t, s.Close())
		s, _ = opened(t, folder, always)
		same(t, "opened again", held(s), want)
		if len(want) < acked+1 || acked < 50 {
			t.Errorf("%d keys, %d were acknowledged", len(want), acked)
		}
		must.No(t, s.Close())
		must.No(t, os.RemoveAll(folder))
	}
}
