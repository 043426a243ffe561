package testserver_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

func TestCluster(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			if _, err := exec.LookPath(string(kind)); err != nil {
				t.Skipf("%s is not installed", kind)
			}
			lifeOfACluster(t, testserver.Cluster(t, kind))
		})
	}
}

func lifeOfACluster(t *testing.T, c *testserver.Nodes) {
	const slot = 12182 // of the key foo
	if n := len(c.Primaries()); n != 3 {
		t.Fatalf("%d primaries", n)
	}
	owner := c.NodeOf(slot)
	for i := range 20 {
		do(t, owner.URL(), "SET {foo}"+string(rune('a'+i))+" value")
	}
	do(t, owner.URL(), "SET foo bar")

	other := c.Primaries()[slices.IndexFunc(c.Primaries(), func(s *testserver.Server) bool { return s != owner })]
	saw := ""
	if moved := c.MoveSlot(slot, other, func() { saw = do(t, other.URL(), "GET foo") }); moved != 21 {
		t.Errorf("moved %d keys, want 21", moved)
	}
	if !strings.HasPrefix(saw, "-MOVED 12182") {
		t.Errorf("while the slot moves its new owner says %q", saw)
	}
	if got := do(t, other.URL(), "GET foo"); got != "bar" || c.NodeOf(slot) != other {
		t.Errorf("after the move: %q", got)
	}
	if got := do(t, owner.URL(), "GET foo"); !strings.HasPrefix(got, "-MOVED 12182") {
		t.Errorf("the old owner says %q", got)
	}

	replica := c.ReplicaOf(other)
	if now := c.Failover(slot); now != replica || do(t, now.URL(), "GET foo") != "bar" {
		t.Errorf("a failover lost the key, or went to another node")
	}
	c.Elections(true)
	if dead := c.Crash(slot); dead != replica || do(t, c.NodeOf(slot).URL(), "GET foo") != "bar" {
		t.Errorf("a crash lost the key, or another node died")
	}
	replica.Restart()
	c.Settled()
	if c.ReplicaOf(c.NodeOf(slot)) != replica {
		t.Errorf("the restarted node is not a replica")
	}
	if n := len(c.Primaries()); n != 3 {
		t.Errorf("%d primaries after all", n)
	}
}
