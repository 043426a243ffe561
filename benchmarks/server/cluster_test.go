package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// The driver of a cluster closes its former connections after a rest of its own, even when it was closed itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// What a cluster says of itself is what all of its nodes did and hold.
func TestCluster(t *testing.T) {
	for program, name := range map[string]string{"redis-server": "cluster of 3, redis 7",
		"valkey-server": "cluster of 3, valkey "} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("%s is not installed (CI is set, so this is a failure)", program)
				}
				t.Skipf("%s is not installed; see make deps", program)
			}
			c, err := server.StartCluster(t.Context(), program, 3)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Stop()
			if !strings.HasPrefix(c.Name(), name) || len(strings.Split(c.URL(), ",")) != 3 {
				t.Errorf("%s at %s", c.Name(), c.URL())
			}
			sumsUp(t, c)
		})
	}
}

func sumsUp(t *testing.T, c *server.Cluster) {
	const keys, members = 300, 2
	ctx := t.Context()
	client, err := c.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before, err := c.Sample(ctx)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := c.Memory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 60)
	for i := range keys {
		add := client.B().Zadd().Key(fmt.Sprint("key", i)).ScoreMember().ScoreMember(1, "a"+value).ScoreMember(2,
			"b"+value).Build()
		if err := client.Do(ctx, add).Error(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := c.Sample(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if used := after.Sub(before); used.Commands["zadd"].Calls != keys || used.CPU <= 0 {
		t.Errorf("the nodes were seen to execute %v of %d ZADD in %v", used.Commands["zadd"].Calls, keys, used.CPU)
	}
	full, err := c.Memory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if grown := full - empty; grown < keys*members*float64(len(value)) {
		t.Errorf("%d sets of %d values of %d bytes occupy %v bytes", keys, members, len(value), grown)
	}
	present := func() (n int64) {
		for i := range keys {
			one, err := c.Cardinality(ctx, fmt.Sprint("key", i))
			if err != nil {
				t.Fatal(err)
			}
			n += one
		}
		return n
	}
	if n := present(); n != keys*members {
		t.Errorf("%d members were counted, want %d", n, keys*members)
	}
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if n := present(); n != 0 {
		t.Errorf("%d members are left after the reset", n)
	}
	call, stop, err := c.Trivial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for range 64 { // a round of all keys, hence all nodes
		if err := call(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// A server writes nothing, unless its files are to stay: then it forces them to the disk.
func TestWhatIsWritten(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed; see make deps")
	}
	for want, start := range map[string]func() (*server.Server, error){
		"no":  func() (*server.Server, error) { return server.Start(t.Context(), "redis-server") },
		"yes": func() (*server.Server, error) { return server.StartIn(t.Context(), "redis-server", t.TempDir()) },
	} {
		s, err := start()
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Do(t.Context(), "CONFIG", "GET", "appendonly").AsStrMap()
		if err != nil || got["appendonly"] != want {
			t.Errorf("appendonly is %v, want %s: %v", got, want, err)
		}
		s.Stop()
	}
}
