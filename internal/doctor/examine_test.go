package doctor

import (
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// healthy is a deployment that nothing is wrong with.
func healthy() Diagnosis {
	now := time.UnixMilli(1_800_000_000_000)
	node := NodeReport{Address: "10.0.0.1:6379", Role: "master", Server: "valkey 8.0.1", Time: now,
		RoundTrip: time.Millisecond, UsedMemory: 1 << 20, MaxMemory: 1 << 30, SystemMemory: 1 << 33,
		Policy: "noeviction", AOF: true, AppendSync: "everysec", SaveKnown: true,
		Replicas: 1, Library: OwnLibrary()}
	other := node
	other.Address = "10.0.0.2:6379"
	return Diagnosis{Cluster: true, Nodes: []NodeReport{node, other},
		Slots: SlotReport{State: "ok", Assigned: 16384, OK: 16384},
		Store: StoreReport{Booted: true, Partitions: 2, At: now, Roots: []RootReport{
			{Partition: 0, Protocol: limits.Protocol, Owner: "w1", Wake: now.Add(time.Second)},
			{Partition: 1, Protocol: limits.Protocol, Owner: "w1"}}},
		Rights: RightsReport{User: "app", Checked: true}}
}

// Every fault is found by its check, with advice, and nothing else changes.
func TestExamine(t *testing.T) {
	for _, k := range Examine(healthy()).Checks {
		if k.Status != OK && (k.Name != Drift || k.Status != Skip) {
			t.Errorf("healthy: %+v", k)
		}
	}
	first := func(change func(n *NodeReport)) func(*Diagnosis) {
		return func(d *Diagnosis) { change(&d.Nodes[0]) }
	}
	own := func(change func(n *NodeReport)) func(*Diagnosis) {
		return func(d *Diagnosis) { d.Embedded, d.Cluster = true, false; change(&d.Nodes[0]) }
	}
	root := func(change func(r *RootReport)) func(*Diagnosis) {
		return func(d *Diagnosis) { change(&d.Store.Roots[1]) }
	}
	for name, tc := range map[string]struct {
		harm  func(*Diagnosis)
		check string
		want  Status
		found string
	}{
		"old server": {func(d *Diagnosis) { d.Supported = denied.ServerVersion }, "version", Fail,
			"too_old"},
		"in memory": {own(func(n *NodeReport) { n.AOF = false }), "version", Warn, "nothing is persisted"},
		"in a folder, disk full": {own(func(n *NodeReport) { n.WriteFailed = "aof" }), "version", Fail,
			"takes no writes"},
		"in a folder or not": {own(func(n *NodeReport) { n.InfoErr = flowfabric.ErrAuth }), "version", Skip,
			"does not tell"},
		"uncovered slots": {func(d *Diagnosis) {
			d.Slots = SlotReport{State: "fail",
				Assigned: 16000}
		}, "cluster", Fail, "16000"},
		"silent slots": {func(d *Diagnosis) { d.Slots.OK = 16000 }, "cluster", Warn, "384"},
		"slots unread": {func(d *Diagnosis) { d.Slots.Err = flowfabric.ErrAuth }, "cluster", Skip, "auth"},
		"dead node": {first(func(n *NodeReport) { n.Err = flowfabric.ErrTransport }), "reachable", Fail,
			"transport"},
		"evicts": {first(func(n *NodeReport) { n.Policy, n.Evicted = "allkeys-lru", 7 }), "eviction",
			Fail, "7 keys"},
		"policy unread": {first(func(n *NodeReport) { n.Policy = "" }), "eviction", Skip,
			"maxmemory-policy"},
		"nearly full": {first(func(n *NodeReport) { n.UsedMemory = 9 << 26 * 16 / 10 }), "memory", Warn,
			"90 %"},
		"full":     {first(func(n *NodeReport) { n.UsedMemory = 1 << 30 }), "memory", Fail, "100 %"},
		"no limit": {first(func(n *NodeReport) { n.MaxMemory = 0 }), "memory", Warn, "no maxmemory"},
		"machine full": {first(func(n *NodeReport) { n.MaxMemory, n.UsedMemory = 0, 1<<33 }), "memory",
			Fail, "machine"},
		"not persistent": {first(func(n *NodeReport) { n.AOF = false }), "persistence", Warn,
			"nothing is written"},
		"snapshots": {first(func(n *NodeReport) { n.AOF, n.Save = false, "3600 1" }), "persistence",
			Warn, "3600 1"},
		"save unread": {first(func(n *NodeReport) { n.AOF, n.SaveKnown = false, false }), "persistence",
			Skip, "save points"},
		"never synced": {first(func(n *NodeReport) { n.AppendSync = "no" }), "persistence", Warn,
			"when the system likes"},
		"disk full":  {first(func(n *NodeReport) { n.WriteFailed = "aof" }), "persistence", Fail, "aof"},
		"no replica": {first(func(n *NodeReport) { n.Replicas = 0 }), "replication", Warn, "no replica"},
		"replica alone": {first(func(n *NodeReport) { n.Role, n.LinkDown = "slave", true }), "replication",
			Warn, "lost its primary"},
		"skewed": {first(func(n *NodeReport) { n.Skew = 5 * time.Second }), "clock", Warn,
			"5s away"},
		"primaries apart": {first(func(n *NodeReport) { n.Skew = -time.Minute }), "clock", Fail,
			"1m00s apart"},
		"primaries drifting": {first(func(n *NodeReport) { n.Skew = -5 * time.Second }), "clock", Warn,
			"5s apart"},
		"no library": {first(func(n *NodeReport) { n.Library = LibraryReport{Missing: true} }),
			"library", Warn, "not loaded"},
		"library refused": {first(func(n *NodeReport) {
			n.Library = LibraryReport{Err: flowfabric.ErrAuth}
		}), "library", Fail, "auth"},
		"newer library": {first(func(n *NodeReport) { n.Library.Protocol = 9 }), "library", Fail,
			"protocol 9"},
		"older library": {first(func(n *NodeReport) { n.Library.Protocol = -1 }), "library", Fail,
			"protocol -1"},
		"two libraries": {first(func(n *NodeReport) { n.Library.Revision = 9 }), "library", Warn,
			"different"},
		"another build": {func(d *Diagnosis) { d.Nodes[0].Library.Hash, d.Nodes[1].Library.Hash = "x", "x" },
			"library", Warn, "another build"},
		"never booted": {func(d *Diagnosis) { d.Store = StoreReport{} }, "partitions", Warn,
			"never booted"},
		"store unread": {func(d *Diagnosis) { d.Store = StoreReport{Err: flowfabric.ErrAuth} },
			"partitions", Fail, "auth"},
		"root lost": {root(func(r *RootReport) { r.Missing = true }), "partitions", Fail,
			"partition 1 is without a root"},
		"root unread": {root(func(r *RootReport) { r.Err = flowfabric.ErrTransport }), "partitions", Fail,
			"transport"},
		"newer data": {root(func(r *RootReport) { r.Protocol = 9 }), "partitions", Fail, "protocol 9"},
		"older data": {root(func(r *RootReport) { r.Protocol = 0 }), "partitions", Fail, "protocol 0"},
		"frozen": {root(func(r *RootReport) { r.Frozen, r.FrozenReason = true, "slot move" }), "frozen",
			Warn, "partition 1 is frozen: slot move"},
		"nobody ticks": {root(func(r *RootReport) { r.Owner, r.Wake = "", time.UnixMilli(1) }), "maintenance",
			Fail, "1 partition: 1"},
		"late tick": {root(func(r *RootReport) { r.Wake = time.UnixMilli(1) }), "maintenance", Fail,
			"1 partition: 1"},
		"may not": {func(d *Diagnosis) { d.Rights.Denied = []string{"ZADD"} }, "rights", Fail, "ZADD"},
		"renamed": {func(d *Diagnosis) { d.Rights.Unknown = []string{"FUNCTION", "INFO"} }, "commands",
			Fail, "FUNCTION, INFO"},
		"no INFO": {first(func(n *NodeReport) {
			n.InfoErr, n.UsedMemory, n.Policy = flowfabric.ErrConfig, 0,
				""
		}), "info", Fail, "config"},
		"library unloadable": {first(func(n *NodeReport) {
			n.Library = LibraryReport{Missing: true,
				Err: flowfabric.ErrConfig}
		}), "library",
			Fail, "config"},
		"replica": {func(d *Diagnosis) {
			d.Cluster, d.Nodes = false, d.Nodes[:1]
			d.Nodes[0].Role, d.Nodes[0].PrimaryAt = "slave", "10.0.0.9:6379"
		}, "role", Fail, "read-only replica of 10.0.0.9:6379"},
		"role unread": {first(func(n *NodeReport) { n.Role = "" }), "role", Skip, "does not tell"},
		"many routes": {root(func(r *RootReport) { r.Routes = 820 }), "routes", Warn,
			"partition 1 has 820 of 1024 routes"},
		"many of one namespace": {root(func(r *RootReport) { r.Routes, r.Maker, r.Made = 450, "shop", 420 }),
			"routes", Warn, "420 of them made by namespace shop, which may make 482"},
		"a share that is used up": {root(func(r *RootReport) { r.Routes, r.Maker, r.Made = 600, "shop", 300 }),
			"routes", Fail, "which may make 212"},
		"routes full": {root(func(r *RootReport) { r.Routes = 1024 }), "routes", Fail, "1024 of 1024"},
		"nobody serves": {func(d *Diagnosis) {
			d.Store.Unserved = []UnservedRoute{{Namespace: "shop", Lane: "l", Kind: "mail",
				Capabilities: []string{"gpu", "eu"}, Waiting: 7}, {Waiting: 1}}
		}, "served", Warn,
			"8 executions wait that no registered worker takes: " +
				"kind mail in lane l of namespace shop that needs gpu,eu; "},
		"used up": {func(d *Diagnosis) { d.Store.UsedUp = gatetext.UsedUp{"acme": 2, "globex": 30} }, "gates",
			Warn, "gate globex is used up: 30 wait, gate acme is used up: 2 wait"},
		"stepped back": {root(func(r *RootReport) {
			r.Ticked = time.UnixMilli(1_800_000_000_000).Add(time.Hour)
		}), "clock steps", Warn,
			"stepped back, by at least 1h00m, since the last tick of 1 partition: 1"},
		"sessions ahead": {func(d *Diagnosis) {
			d.Store.Ahead = []Ahead{{Partition: 1, Session: "w~1", By: time.Hour}}
		}, "clock steps", Warn,
			"up to 1h00m in the future in 1 partition: 1"},
		"windows ahead": {func(d *Diagnosis) { d.Store.Ahead = []Ahead{{Gate: "calls", By: time.Hour}} },
			"clock steps", Warn, "starts in the future, of 1 gate: calls by 1h00m"},
		"steps unread": {func(d *Diagnosis) { d.Store.AheadErr = flowfabric.ErrAuth }, "clock steps", Skip,
			"auth"},
		"work unread": {func(d *Diagnosis) { d.Store.WorkErr = flowfabric.ErrAuth }, "served", Skip, "auth"},
		"may not ask": {func(d *Diagnosis) {
			d.Rights = RightsReport{User: "app",
				Err: flowfabric.ErrAuth}
		}, "rights", Skip, "app"},
	} {
		t.Run(name, func(t *testing.T) {
			d := healthy()
			tc.harm(&d)
			hit, c := false, Examine(d)
			if c.Healthy != (tc.want != Fail) {
				t.Errorf("healthy: %v", c.Healthy)
			}
			for _, k := range c.Checks {
				switch {
				case k.Name == tc.check && k.Status == tc.want && strings.Contains(k.Found, tc.found):
					hit = true
					if k.Do == "" && tc.want != Skip {
						t.Errorf("no advice: %+v", k)
					}
				case k.Status == Fail:
					t.Errorf("also %+v", k)
				}
			}
			if !hit {
				t.Errorf("not found: %+v", c.Checks)
			}
		})
	}
}
