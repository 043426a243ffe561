package testserver_test

import (
	"os/exec"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

func TestSentinel(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			if _, err := exec.LookPath(string(kind)); err != nil {
				t.Skipf("%s is not installed", kind)
			}
			t.Parallel()
			w := testserver.Sentinel(t, kind, testserver.Passwords{})
			first := w.Primary()
			if dead := w.Crash(); dead != first || w.Primary() == first {
				t.Error("another server died, or the dead one is the primary")
			}
			first.Restart()
			w.Settled()
			if now := w.Failover(); now == nil || len(w.Replicas()) != 2 {
				t.Errorf("%d replicas", len(w.Replicas()))
			}
		})
	}
}
