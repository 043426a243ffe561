package measure

import (
	"os"
	"path/filepath"
	"strings"
)

// FileSystem is the type of the file system that holds a directory, for example "ext4"; "" when that cannot be told.
func FileSystem(dir string) (kind string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	longest := -1
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // device, place, type, options; spaces in a place are written as \040
		if len(f) < 3 {
			continue
		}
		place := strings.ReplaceAll(f[1], `\040`, " ")
		within := place == "/" || dir == place || strings.HasPrefix(dir, place+"/")
		if within && len(place) >= longest { // of two at the same place the later one covers the other
			longest, kind = len(place), f[2]
		}
	}
	return kind
}
