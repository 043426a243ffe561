package measure_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

func TestFileSystem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("file systems are told on Linux only")
	}
	for dir, want := range map[string]string{"/proc/self": "proc", "/proc": "proc", "/nowhere": ""} {
		if got := measure.FileSystem(dir); got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
	}
	here := measure.FileSystem(t.TempDir())
	if rooted := measure.FileSystem("/") != ""; here == "" && rooted || here == "proc" {
		// a chroot may have no mount of its own
		t.Errorf("temporary files are on %q", here)
	}
	link := filepath.Join(t.TempDir(), "link") // what counts is where it leads
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	if got := measure.FileSystem(link); got != "proc" {
		t.Errorf("a link to /proc is on %q", got)
	}
}
