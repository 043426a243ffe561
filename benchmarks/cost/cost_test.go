package cost_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
)

// most are the commands that a function may make per item, itself included. The batches are fixed and nothing else runs, so the
// count is the same on every machine and under every load; what is allowed is about one command more than there is, because a
// command from Lua costs half a microsecond to two. Who needs more raises the bound and says so in the commit.
var most = map[string]float64{
	"create 1": 12, "create 32": 4.25, // 11, 3.25: EXISTS, core and payload for each; 8 for the call (clock, root, route, one ZADD for all)
	"claim 1": 16, "claim 32": 4.4, // 15, 3.4: core and payload read, core written for each; 12 for the call (clock, root, session, heads, one ZREM)
	"complete 1": 11, "complete 32": 5.2, // 10, 4.2: core read and written, result, message for each; 6 for the call (clock, root, session, indexes)
	"append 1": 10, "append 32": 2.25, // 9, 1.3: one XADD for each; 8 for the call (clock, root, fence, counts, message)
	"renew 1":   7,                  // 6, however many executions are held
	"tick 1":    26,                 // 24: a look at every index that may have something due
	"suspend 1": 16, "signal 1": 24, // 15, 23
}

// bytes are those of an execution besides payload and result, in a store so small that the server's tables weigh more than
// in the budgets, and a fifth more.
var bytes = map[string]float64{"waiting": 830, "done": 1250}

func TestWhatFunctionsDoPerItem(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed (CI is set, so this is a failure)")
		}
		t.Skip("redis-server is not installed; see make deps")
	}
	r, err := cost.Run(t.Context(), cost.Options{Server: "redis-server", Items: 640, Rounds: 1, Payload: 256, Partitions: 2,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Costs {
		name := fmt.Sprintf("%s %d", c.Operation, c.PerCall)
		if bound, ok := most[name]; !ok || c.Commands <= 0 || c.Commands > bound {
			t.Errorf("%s makes %.2f commands per item, want more than 0 and %v or fewer", name, c.Commands, bound)
		}
	}
	for _, s := range r.Sizes {
		if bound, ok := bytes[s.State]; !ok || s.Bytes <= 0 || s.Bytes > bound {
			t.Errorf("an execution that is %s occupies %.0f bytes, want more than 0 and %v or fewer", s.State, s.Bytes, bound)
		}
	}
	if len(r.Costs) != len(most) || len(r.Sizes) != len(bytes) {
		t.Errorf("%d operations and %d states were measured, want %d and %d", len(r.Costs), len(r.Sizes), len(most), len(bytes))
	}
}
