package primaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
)

// This program is also the client that the test starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[2] == "client" {
		if err := Client(context.Background(), os.Args[3:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// Every job is handled once, by a cluster of which each primary has its part of the calls.
func TestRun(t *testing.T) {
	drivertest.Needs(t, "redis-server")
	var out bytes.Buffer
	o := Options{Server: "redis-server", Most: 2, Jobs: 100, Concurrency: 4, Partitions: 16,
		JSON: t.TempDir() + "/primaries.json"}
	r, err := Run(t.Context(), o, &out)
	if err != nil || len(r.Rows) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, row := range r.Rows {
		n := i/2 + 1
		// Each partition has jobs, so it had calls that claim and that settle them.
		if row.Jobs != n*100 || row.PerSecond <= 0 || row.Shared != (2*n > r.Machine.Cores) || len(row.Calls) != n ||
			slices.Min(row.Calls) < 2*float64(slices.Min(row.Partitions)) {
			t.Errorf("%+v", row)
		}
	}
	written, err := os.ReadFile(o.JSON)
	if said := strings.Contains(out.String(), "beyond primaries"); err != nil || said != (r.Machine.Cores < 4) ||
		said != bytes.Contains(written, []byte(`"shared": true`)) {
		t.Errorf("%d cores, %v:\n%s\n%s", r.Machine.Cores, err, &out, written)
	}
	o.Concurrency = -1 // which a worker refuses
	if _, err := Run(t.Context(), o, &out); err == nil || !strings.Contains(err.Error(), "client 0: exit status 1") {
		t.Errorf("clients that cannot work: %v", err)
	}
}
