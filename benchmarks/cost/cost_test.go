package cost_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
)

// most are the commands that a function may make per item, itself included. The batches are fixed and nothing else
// runs, so the count is the same on every machine and under every load; what is allowed is about one command more
// than there is, because a command from Lua costs half a microsecond to two. Who needs more raises the bound and says
// so in the commit.
var most = map[string]float64{
	"create 1": 12, "create 32": 0.5, // 11, 0.4: one EXISTS, one MSET and one ZADD for all
	"claim 1": 15, "claim 32": 0.55, // 14, 0.45: one MGET, one MSET and one ZREM for all
	"complete 1": 10.2, "complete 32": 1.5, // 9.1, 1.4: likewise, and a message for each
	"lifecycle 1": 36, "lifecycle 32": 2.5,
	// 9, 1.3: one XADD for each; 8 for the call (clock, root, fence, counts, message)
	"append 1": 10, "append 32": 2.25,
	"renew 1":                7,  // 6, however many executions are held
	"tick 1":                 26, // 24: a look at every index that may have something due
	"create with two tags 1": 12, "create with two tags 32": 1.5, "lifecycle with two tags 1": 36,
	"lifecycle with two tags 32":     4.5,
	"create with two indexed tags 1": 16, "create with two indexed tags 32": 1.7,
	"lifecycle with two indexed tags 1": 40, "lifecycle with two indexed tags 32": 4.7,
	"suspend 1": 12, "signal 1": 20, // 11, 19: six of the signal ring a waiter
}

// bytes are those of an execution besides payload and result, in a store so small that the server's tables weigh more
// than in the budgets, and more than a fifth on top.
var bytes = map[string]float64{"waiting": 420, "done": 600}

func TestWhatFunctionsDoPerItem(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed (CI is set, so this is a failure)")
		}
		t.Skip("redis-server is not installed; see make deps")
	}
	r, err := cost.Run(t.Context(), cost.Options{Server: "redis-server", Items: 2560, Rounds: 1, Payload: 256,
		Partitions: 2,
		Logger:     slog.New(slog.DiscardHandler)})
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
		t.Logf("%s: %.0f bytes", s.State, s.Bytes)
		if bound, ok := bytes[s.State]; !ok || s.Bytes <= 0 || s.Bytes > bound {
			t.Errorf("an execution that is %s occupies %.0f bytes, want more than 0 and %v or fewer", s.State, s.Bytes,
				bound)
		}
	}
	if len(r.Costs) != len(most) || len(r.Sizes) != len(bytes) {
		t.Errorf("%d operations and %d states were measured, want %d and %d", len(r.Costs), len(r.Sizes), len(most),
			len(bytes))
	}
}
