package store

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A folder that an earlier version has written is read for ever. Those in testdata were written once, each by the first
// version of its layout: a base, a log behind it, every type of value, a call of several commands, and a time that is
// far away. FLOWFABRIC_GOLDEN=write makes the folder of a layout that has none yet.
func TestFoldersOfEarlierVersionsAreRead(t *testing.T) {
	const folder = "testdata/layout-1"
	if _, err := os.Stat(folder); err != nil && os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		writeLayout(t, folder)
	}
	copied := filepath.Join(t.TempDir(), "store")
	must.No(t, os.CopyFS(copied, os.DirFS(folder)))
	s, logs := opened(t, copied, false)
	all := held(s)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, all[key])
	}
	want, err := os.ReadFile(folder + ".txt")
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" && err != nil {
		must.No(t, os.WriteFile(folder+".txt", []byte(strings.Join(lines, "")), 0o644))
		return
	}
	must.No(t, err)
	if got := strings.Join(lines, ""); got != string(want) || logs.Len() > 0 {
		t.Errorf("read\n%s\nwant\n%s\n%s", got, want, logs)
	}
	do(t, s, "SET another 1") // and it can be written
}

func writeLayout(t *testing.T, folder string) {
	s, _ := opened(t, folder, true)
	do(t, s, "SET text one", "SET later two", "PEXPIREAT later 4102444800000")
	do(t, s, "HSET hash a 1 b 2", "RPUSH list x y z", "SADD set m n")
	do(t, s, "ZADD sorted 1.5 a -2 b inf c", "XADD stream 5-1 f v", "XADD stream 6-0 f w", "XDEL stream 5-1")
	must.No(t, s.Rewrite())
	do(t, s, "HSET hash b 3", "HDEL hash a")
	do(t, s, "UNLINK text", "RPUSH list w", "SREM set m", "ZADD sorted 7 d", "XADD stream 7-0 g u")
	do(t, s, "INCRBY count 41")
	must.No(t, s.Close())
	must.No(t, os.Remove(filepath.Join(folder, "LOCK")))
}
