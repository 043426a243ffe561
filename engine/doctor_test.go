package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// What Diagnose tells of a healthy server of each kind, and that it changes nothing.
func TestDiagnose(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...testserver.Option) string{"redis": testserver.Redis, "valkey": testserver.Valkey} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{URL: start(t, testserver.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")), Partitions: 3}
			fresh, err := Diagnose(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			n := fresh.Nodes[0]
			if fresh.Store.Booted || !n.Library.Missing || len(fresh.Nodes) != 1 || fresh.Cluster || fresh.Embedded || fresh.Supported != nil {
				t.Errorf("before anybody came: %+v", fresh)
			}
			if n.Role != "master" || !strings.HasPrefix(n.Server, name+" ") || n.Policy != "allkeys-lru" || n.MaxMemory != 100<<20 || n.UsedMemory == 0 ||
				n.AOF || !n.SaveKnown || n.Save != "" || n.Err != nil || n.Skew.Abs() > time.Minute {
				t.Errorf("node: %+v", n)
			}
			if r := fresh.Rights; r.User != "default" || !r.Checked || len(r.Denied) > 0 || r.Err != nil {
				t.Errorf("rights: %+v", r)
			}
			e, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := e.FreezePartition(t.Context(), 1, "moving"); err != nil {
				t.Fatal(err)
			}
			d, err := Diagnose(t.Context(), cfg)
			if err != nil || d.Nodes[0].Library != OwnLibrary() {
				t.Errorf("library %+v, want %+v, %v", d.Nodes[0].Library, OwnLibrary(), err)
			}
			if s := d.Store; !s.Booted || s.Partitions != 3 || len(s.Roots) != 3 || !s.Roots[1].Frozen || s.Roots[1].FrozenReason != "moving" ||
				s.Roots[0].Frozen || s.Roots[2].Missing || s.Roots[2].Protocol != 1 {
				t.Errorf("store: %+v", s)
			}
		})
	}
}

// A user who lacks a command is told which, and one who may not even ask is told that.
func TestDiagnoseRights(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerValkey)
	cfg := Config{URL: srv.URL()}
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	user := func(name string, rules ...string) Config {
		args := append([]string{"ACL", "SETUSER", name, "on", ">secret"}, rules...)
		if err := e.client.Do(t.Context(), e.client.B().Arbitrary(args...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		c := cfg
		c.Username, c.Password = name, "secret"
		return c
	}
	d, err := Diagnose(t.Context(), user("poor", "~ff:*", "&ff:*", "+@all", "-zadd", "-spublish"))
	if got := strings.Join(d.Rights.Denied, " "); err != nil || got != "SPUBLISH ZADD" || !d.Rights.Checked || d.Rights.User != "poor" {
		t.Errorf("denied %q of %+v, %v", got, d.Rights, err)
	}
	d, err = Diagnose(t.Context(), user("elsewhere", "~other:*", "&other:*", "+@all"))
	if err != nil || len(d.Rights.Denied) < 20 || d.Store.Err == nil {
		t.Errorf("%+v, %v", d.Rights, err)
	}
	d, err = Diagnose(t.Context(), user("mute", "~ff:*", "&ff:*", "+@all", "-@admin", "-@dangerous", "+info"))
	if err != nil || d.Rights.Checked || d.Rights.Err == nil || d.Rights.User != "mute" || d.Nodes[0].SaveKnown || d.Nodes[0].Policy == "" {
		t.Errorf("%+v, %+v, %v", d.Rights, d.Nodes, err)
	}
}

// In a cluster every node is asked, and no slot is missing.
func TestDiagnoseCluster(t *testing.T) {
	nodes := testserver.Cluster(t, testserver.ServerValkey)
	d, err := Diagnose(t.Context(), Config{URL: nodes.URL()})
	if err != nil {
		t.Fatal(err)
	}
	primaries := 0
	for _, n := range d.Nodes {
		if n.Err != nil {
			t.Errorf("%s: %v", n.Address, n.Err)
		}
		if n.Primary() {
			primaries++
		}
	}
	if !d.Cluster || primaries != 3 || d.Slots.State != "ok" || d.Slots.Assigned != 16384 || d.Slots.OK != 16384 {
		t.Errorf("%d primaries of %d, slots %+v", primaries, len(d.Nodes), d.Slots)
	}
}

// A server of the embedded kind has little to tell, which is no error.
func TestDiagnoseEmbedded(t *testing.T) {
	d, err := Diagnose(t.Context(), Config{URL: testserver.Embedded(t)})
	if err != nil || !d.Embedded || len(d.Nodes) != 1 || d.Nodes[0].Err != nil || !strings.HasPrefix(d.Nodes[0].Server, "miniredis") {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestOverdue(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for _, tc := range []struct {
		owner string
		wake  time.Duration
		want  bool
	}{{"", time.Second, false}, {"", 0, true}, {"w1", 0, false}, {"w1", -2 * time.Second, false}, {"w1", -2001 * time.Millisecond, true}} {
		if got := (RootReport{Owner: tc.owner, Wake: now.Add(tc.wake)}).Overdue(now); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if (RootReport{}).Overdue(now) {
		t.Error("nothing to wait for")
	}
}

// Every command that the library runs has sample arguments.
func TestRightsCoverTheLibrary(t *testing.T) {
	for _, name := range needed() {
		if _, known := samples[name]; !known {
			t.Errorf("doctor_rights.go has no sample arguments for %s", name)
		}
	}
}
