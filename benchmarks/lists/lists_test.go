package lists_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/lists"
)

// Every page that is measured is full, so there is one for each line.
func TestMeasuresEachPage(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed (CI is set, so this is a failure)")
		}
		t.Skip("redis-server is not installed; see make deps")
	}
	var out strings.Builder
	err := lists.Run(t.Context(), lists.Options{Server: "redis-server", Items: 25_000, Partitions: 2, Samples: 1}, &out)
	if err != nil || strings.Count(out.String(), "newest") != 5 {
		t.Errorf("%v\n%s", err, &out)
	}
}
