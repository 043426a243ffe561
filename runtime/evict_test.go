package runtime_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A worker on a server that may delete executions when its memory is full says so when it starts, with the node in a
// cluster.
func TestAServerThatEvictsIsTold(t *testing.T) {
	const words = "set maxmemory-policy noeviction"
	start := func(url string) string {
		var log safeLog
		envAt(t, url).start(runtime.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, greetBinding())
		return log.text()
	}
	if text := start(testserver.Redis(t)); strings.Contains(text, words) {
		t.Errorf("of a server that evicts nothing: %s", text)
	}
	text := start(testserver.Valkey(t, testserver.Args("--maxmemory-policy", "volatile-ttl")))
	if !strings.Contains(text, "level=WARN") || !strings.Contains(text, words) ||
		!strings.Contains(text, "policy=volatile-ttl") {
		t.Errorf("of a server that evicts: %s", text)
	}
	nodes := testserver.Cluster(t, testserver.ServerValkey, testserver.Args("--maxmemory-policy", "allkeys-lru"))
	nodes.Listed()
	text = start(nodes.URL())
	for _, n := range nodes.All() {
		if !strings.Contains(text, "policy=allkeys-lru node="+n.Address()) {
			t.Errorf("no word of %s: %s", n.Address(), text)
		}
	}
}
