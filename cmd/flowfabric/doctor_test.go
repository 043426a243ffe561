package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// healthy is a deployment that nothing is wrong with.
func healthy() engine.Diagnosis {
	now := time.UnixMilli(1_800_000_000_000)
	node := engine.NodeReport{Address: "10.0.0.1:6379", Role: "master", Server: "valkey 8.0.1", Time: now, RoundTrip: time.Millisecond,
		UsedMemory: 1 << 20, MaxMemory: 1 << 30, SystemMemory: 1 << 33, Policy: "noeviction", AOF: true, AppendSync: "everysec", SaveKnown: true,
		Replicas: 1, Library: engine.OwnLibrary()}
	other := node
	other.Address = "10.0.0.2:6379"
	return engine.Diagnosis{Cluster: true, Nodes: []engine.NodeReport{node, other}, Slots: engine.SlotReport{State: "ok", Assigned: 16384, OK: 16384},
		Store: engine.StoreReport{Booted: true, Partitions: 2, At: now, Roots: []engine.RootReport{
			{Partition: 0, Protocol: limits.Protocol, Owner: "w1", Wake: now.Add(time.Second)}, {Partition: 1, Protocol: limits.Protocol, Owner: "w1"}}},
		Rights: engine.RightsReport{User: "app", Checked: true}}
}

// Every fault is found by its check, with advice, and nothing else changes.
func TestExamine(t *testing.T) {
	for _, k := range examine(healthy()).Checks {
		if k.Status != statusOK {
			t.Errorf("healthy: %+v", k)
		}
	}
	first := func(change func(n *engine.NodeReport)) func(*engine.Diagnosis) {
		return func(d *engine.Diagnosis) { change(&d.Nodes[0]) }
	}
	root := func(change func(r *engine.RootReport)) func(*engine.Diagnosis) {
		return func(d *engine.Diagnosis) { change(&d.Store.Roots[1]) }
	}
	for name, tc := range map[string]struct {
		harm  func(*engine.Diagnosis)
		check string
		want  status
		found string
	}{
		"old server":         {func(d *engine.Diagnosis) { d.Supported = flowfabric.ErrServerVersion }, "version", statusFail, "too_old"},
		"development":        {func(d *engine.Diagnosis) { d.Embedded, d.Cluster = true, false }, "version", statusWarn, "nothing is persisted"},
		"uncovered slots":    {func(d *engine.Diagnosis) { d.Slots = engine.SlotReport{State: "fail", Assigned: 16000} }, "cluster", statusFail, "16000"},
		"silent slots":       {func(d *engine.Diagnosis) { d.Slots.OK = 16000 }, "cluster", statusWarn, "384"},
		"slots unread":       {func(d *engine.Diagnosis) { d.Slots.Err = flowfabric.ErrAuth }, "cluster", statusSkip, "auth"},
		"dead node":          {first(func(n *engine.NodeReport) { n.Err = flowfabric.ErrTransport }), "reachable", statusFail, "transport"},
		"evicts":             {first(func(n *engine.NodeReport) { n.Policy, n.Evicted = "allkeys-lru", 7 }), "eviction", statusFail, "7 keys"},
		"policy unread":      {first(func(n *engine.NodeReport) { n.Policy = "" }), "eviction", statusSkip, "maxmemory-policy"},
		"nearly full":        {first(func(n *engine.NodeReport) { n.UsedMemory = 9 << 26 * 16 / 10 }), "memory", statusWarn, "90 %"},
		"full":               {first(func(n *engine.NodeReport) { n.UsedMemory = 1 << 30 }), "memory", statusFail, "100 %"},
		"no limit":           {first(func(n *engine.NodeReport) { n.MaxMemory = 0 }), "memory", statusWarn, "no maxmemory"},
		"machine full":       {first(func(n *engine.NodeReport) { n.MaxMemory, n.UsedMemory = 0, 1<<33 }), "memory", statusFail, "machine"},
		"not persistent":     {first(func(n *engine.NodeReport) { n.AOF = false }), "persistence", statusWarn, "nothing is written"},
		"snapshots":          {first(func(n *engine.NodeReport) { n.AOF, n.Save = false, "3600 1" }), "persistence", statusWarn, "3600 1"},
		"save unread":        {first(func(n *engine.NodeReport) { n.AOF, n.SaveKnown = false, false }), "persistence", statusSkip, "save points"},
		"never synced":       {first(func(n *engine.NodeReport) { n.AppendSync = "no" }), "persistence", statusWarn, "when the system likes"},
		"disk full":          {first(func(n *engine.NodeReport) { n.WriteFailed = "aof" }), "persistence", statusFail, "aof"},
		"no replica":         {first(func(n *engine.NodeReport) { n.Replicas = 0 }), "replication", statusWarn, "no replica"},
		"replica alone":      {first(func(n *engine.NodeReport) { n.Role, n.LinkDown = "slave", true }), "replication", statusWarn, "lost its primary"},
		"skewed":             {first(func(n *engine.NodeReport) { n.Skew = 5 * time.Second }), "clock", statusWarn, "5s away"},
		"primaries apart":    {first(func(n *engine.NodeReport) { n.Skew = -time.Minute }), "clock", statusFail, "1m00s apart"},
		"primaries drifting": {first(func(n *engine.NodeReport) { n.Skew = -5 * time.Second }), "clock", statusWarn, "5s apart"},
		"no library":         {first(func(n *engine.NodeReport) { n.Library = engine.LibraryReport{Missing: true} }), "library", statusWarn, "not loaded"},
		"library refused":    {first(func(n *engine.NodeReport) { n.Library = engine.LibraryReport{Err: flowfabric.ErrAuth} }), "library", statusFail, "auth"},
		"newer library":      {first(func(n *engine.NodeReport) { n.Library.Protocol = 9 }), "library", statusFail, "protocol 9"},
		"older library":      {first(func(n *engine.NodeReport) { n.Library.Protocol = -1 }), "library", statusFail, "protocol -1"},
		"two libraries":      {first(func(n *engine.NodeReport) { n.Library.Revision = 9 }), "library", statusWarn, "different"},
		"another build": {func(d *engine.Diagnosis) { d.Nodes[0].Library.Hash, d.Nodes[1].Library.Hash = "x", "x" }, "library", statusWarn,
			"another build"},
		"never booted": {func(d *engine.Diagnosis) { d.Store = engine.StoreReport{} }, "partitions", statusWarn, "never booted"},
		"store unread": {func(d *engine.Diagnosis) { d.Store = engine.StoreReport{Err: flowfabric.ErrAuth} }, "partitions", statusFail, "auth"},
		"root lost":    {root(func(r *engine.RootReport) { r.Missing = true }), "partitions", statusFail, "partition 1 is without a root"},
		"root unread":  {root(func(r *engine.RootReport) { r.Err = flowfabric.ErrTransport }), "partitions", statusFail, "transport"},
		"newer data":   {root(func(r *engine.RootReport) { r.Protocol = 9 }), "partitions", statusFail, "protocol 9"},
		"older data":   {root(func(r *engine.RootReport) { r.Protocol = 0 }), "partitions", statusFail, "protocol 0"},
		"frozen":       {root(func(r *engine.RootReport) { r.Frozen, r.FrozenReason = true, "slot move" }), "frozen", statusWarn, "partition 1 is frozen: slot move"},
		"nobody ticks": {root(func(r *engine.RootReport) { r.Owner, r.Wake = "", time.UnixMilli(1) }), "maintenance", statusFail, "1 partition: 1"},
		"late tick":    {root(func(r *engine.RootReport) { r.Wake = time.UnixMilli(1) }), "maintenance", statusFail, "1 partition: 1"},
		"may not":      {func(d *engine.Diagnosis) { d.Rights.Denied = []string{"ZADD"} }, "rights", statusFail, "ZADD"},
		"renamed":      {func(d *engine.Diagnosis) { d.Rights.Unknown = []string{"FUNCTION", "INFO"} }, "commands", statusFail, "FUNCTION, INFO"},
		"no INFO":      {first(func(n *engine.NodeReport) { n.InfoErr, n.UsedMemory, n.Policy = flowfabric.ErrConfig, 0, "" }), "info", statusFail, "config"},
		"library unloadable": {first(func(n *engine.NodeReport) { n.Library = engine.LibraryReport{Missing: true, Err: flowfabric.ErrConfig} }), "library",
			statusFail, "config"},
		"replica": {func(d *engine.Diagnosis) {
			d.Cluster, d.Nodes = false, d.Nodes[:1]
			d.Nodes[0].Role, d.Nodes[0].PrimaryAt = "slave", "10.0.0.9:6379"
		}, "role", statusFail, "read-only replica of 10.0.0.9:6379"},
		"role unread": {first(func(n *engine.NodeReport) { n.Role = "" }), "role", statusSkip, "does not tell"},
		"many routes": {root(func(r *engine.RootReport) { r.Routes = 820 }), "routes", statusWarn, "partition 1 has 820 of 1024 routes"},
		"routes full": {root(func(r *engine.RootReport) { r.Routes = 1024 }), "routes", statusFail, "1024 of 1024"},
		"nobody serves": {func(d *engine.Diagnosis) {
			d.Store.Unserved = []engine.UnservedRoute{{Namespace: "shop", Lane: "l", Kind: "mail", Capabilities: []string{"gpu", "eu"}, Waiting: 7}, {Waiting: 1}}
		}, "served", statusWarn, "8 executions wait that no registered worker takes: kind mail in lane l of namespace shop that needs gpu,eu; "},
		"stepped back": {root(func(r *engine.RootReport) { r.Ticked = time.UnixMilli(1_800_000_000_000).Add(time.Hour) }), "clock steps", statusWarn,
			"stepped back, by at least 1h00m, since the last tick of 1 partition: 1"},
		"sessions ahead": {func(d *engine.Diagnosis) {
			d.Store.Ahead = []engine.Ahead{{Partition: 1, Session: "w~1", By: time.Hour}}
		}, "clock steps", statusWarn,
			"up to 1h00m in the future in 1 partition: 1"},
		"windows ahead": {func(d *engine.Diagnosis) { d.Store.Ahead = []engine.Ahead{{Quota: "calls", By: time.Hour}} }, "clock steps", statusWarn,
			"starts in the future, of 1 quota: calls by 1h00m"},
		"steps unread": {func(d *engine.Diagnosis) { d.Store.AheadErr = flowfabric.ErrAuth }, "clock steps", statusSkip, "auth"},
		"work unread":  {func(d *engine.Diagnosis) { d.Store.WorkErr = flowfabric.ErrAuth }, "served", statusSkip, "auth"},
		"may not ask":  {func(d *engine.Diagnosis) { d.Rights = engine.RightsReport{User: "app", Err: flowfabric.ErrAuth} }, "rights", statusSkip, "app"},
	} {
		t.Run(name, func(t *testing.T) {
			d := healthy()
			tc.harm(&d)
			hit := false
			for _, k := range examine(d).Checks {
				switch {
				case k.Name == tc.check && k.Status == tc.want && strings.Contains(k.Found, tc.found):
					hit = true
					if k.Do == "" && tc.want != statusSkip {
						t.Errorf("no advice: %+v", k)
					}
				case k.Status == statusFail:
					t.Errorf("also %+v", k)
				}
			}
			if !hit {
				t.Errorf("not found: %+v", examine(d).Checks)
			}
		})
	}
}

// What doctor says of real servers: it loads nothing, and judges as an operator should.
func TestDoctor(t *testing.T) {
	doctor := func(w *env, line string) (int, map[string]check) {
		t.Helper()
		code, out, errOut := w.run(line, "")
		var c checkup
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}
		if c.Healthy != (code == exitOK) {
			t.Errorf("healthy %v, exit %d", c.Healthy, code)
		}
		byName := map[string]check{}
		for _, k := range c.Checks {
			if was, known := byName[k.Name]; !known || was.Status == statusOK {
				byName[k.Name] = k
			}
		}
		return code, byName
	}
	want := func(checks map[string]check, wants map[string]status) {
		t.Helper()
		for name, s := range wants {
			if checks[name].Status != s {
				t.Errorf("%s: %+v, want %s", name, checks[name], s)
			}
		}
	}
	fresh := &env{T: t, ctx: t.Context()}
	t.Setenv("FLOWFABRIC_URL", testserver.Redis(t, testserver.Args("--maxmemory", "200mb")))
	code, checks := doctor(fresh, "doctor --json --audit")
	want(checks, map[string]status{"version": statusOK, "library": statusWarn, "partitions": statusWarn, "drift": statusSkip, "rights": statusOK, "eviction": statusOK, "memory": statusOK})
	if code != exitOK {
		t.Errorf("a fresh server: exit %d", code)
	}
	for name, kind := range map[string]testserver.Kind{"redis": testserver.ServerRedis, "valkey": testserver.ServerValkey} {
		t.Run(name, func(t *testing.T) {
			srv := testserver.Start(t, kind, testserver.AOF(), testserver.Args("--maxmemory", "200mb", "--maxmemory-policy", "volatile-lru"))
			w := newEnv(t, srv.URL())
			if err := w.engine.FreezePartition(w.ctx, 2, "slot move"); err != nil {
				t.Fatal(err)
			}
			code, checks := doctor(w, "doctor --json")
			want(checks, map[string]status{"version": statusOK, "library": statusOK, "partitions": statusOK, "frozen": statusWarn, "persistence": statusOK,
				"eviction": statusFail, "clock": statusOK, "rights": statusOK})
			if code != exitFailed {
				t.Errorf("exit %d", code)
			}
			if err := w.engine.ThawPartition(w.ctx, 2); err != nil {
				t.Fatal(err)
			}
			_, checks = doctor(w, "doctor --json --audit")
			want(checks, map[string]status{"drift": statusOK})
			_, out, _ := w.run("doctor", "")
			if !strings.Contains(out, "CONFIG SET maxmemory-policy noeviction") || !strings.Contains(out, "CHECK") {
				t.Errorf("for people: %s", out)
			}
		})
	}
	t.Run("replica", func(t *testing.T) {
		primary := testserver.Start(t, testserver.ServerValkey, testserver.TCP())
		host, port, _ := net.SplitHostPort(primary.Address())
		t.Setenv("FLOWFABRIC_URL", testserver.Valkey(t, testserver.Args("--replicaof", host, port)))
		code, checks := doctor(fresh, "doctor --json")
		want(checks, map[string]status{"role": statusFail})
		if found := checks["role"].Found; code != exitFailed || !strings.Contains(found, "read-only replica of "+primary.Address()) {
			t.Errorf("exit %d: %s", code, found)
		}
	})
	t.Run("renamed", func(t *testing.T) {
		t.Setenv("FLOWFABRIC_URL", testserver.Redis(t, testserver.Args("--rename-command", "FUNCTION", "F", "--rename-command", "INFO", "I")))
		code, checks := doctor(fresh, "doctor --json")
		want(checks, map[string]status{"commands": statusFail, "library": statusFail, "info": statusFail})
		if found := checks["commands"].Found; code != exitFailed || !strings.Contains(found, "FUNCTION, INFO") {
			t.Errorf("exit %d: %s", code, found)
		}
		_, out, errOut := fresh.run("doctor", "")
		if all := out + errOut; strings.Contains(all, "internal_script_error") || !strings.Contains(all, "rename-command") {
			t.Errorf("for people: %s", all)
		}
		if code, _, errOut := fresh.run("ls", ""); code != exitUsage || !strings.Contains(errOut, "the command INFO") {
			t.Errorf("another command: exit %d, %s", code, errOut)
		}
	})
	t.Run("embedded", func(t *testing.T) {
		_, checks := doctor(newEnv(t, testserver.Embedded(t)), "doctor --json --audit")
		want(checks, map[string]status{"version": statusWarn, "partitions": statusOK, "drift": statusOK, "routes": statusOK, "served": statusWarn})
	})
}

// The table of exit codes, by the errors that lead to them.
func TestExitCodeOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, exitOK}, {errors.New("disk"), exitFailed}, {flowfabric.ErrCorrupt, exitFailed}, {denied.Reply, exitFailed},
		{usage("x"), exitUsage}, {flowfabric.ErrConfig, exitUsage}, {flowfabric.ErrInvalidInput, exitUsage}, {flowfabric.ErrPayloadTooLarge, exitUsage},
		{flowfabric.ErrNotFound, exitNotFound}, {flowfabric.ErrScheduleNotFound, exitNotFound}, {flowfabric.ErrWorkerNotFound, exitNotFound},
		{flowfabric.ErrTerminal, exitRefused}, {flowfabric.ErrLaneClosed, exitRefused}, {flowfabric.ErrPartitionFrozen, exitRefused},
		{flowfabric.ErrIdempotencyConflict, exitRefused}, {flowfabric.ErrReplaysExhausted, exitRefused}, {flowfabric.ErrOutOfMemory, exitRefused},
		{flowfabric.ErrTransport, exitUnreachable}, {flowfabric.ErrAuth, exitDenied}, {flowfabric.ErrFailed, exitOutcome},
		{flowfabric.ErrProtocol, exitFailed}, {errUnhealthy, exitFailed},
		{&commandError{flowfabric.ErrTransport, errTimeout}, exitTimeout}, {&commandError{flowfabric.ErrTransport, errInterrupted}, exitInterrupted},
		{&client.UnknownOutcomeError{Cause: flowfabric.ErrTransport}, exitUnreachable},
		{errors.Join(errors.New("a"), flowfabric.ErrNotFound), exitNotFound},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
}

// late is a context whose deadline has passed without its timer having noticed, as it happens on a busy machine.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

// An attempt to connect that ends at the deadline of its command says so in the words of the network, before the context does.
func TestOutOfTimeWhileConnecting(t *testing.T) {
	dial := fmt.Errorf("%w: %w", flowfabric.ErrTransport, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded})
	if err := marked(late{t.Context()}, dial); exitCode(err) != exitTimeout {
		t.Errorf("past the deadline: %v", err)
	}
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := marked(early, dial); exitCode(err) != exitUnreachable {
		t.Errorf("long before the deadline: %v", err)
	}
	if err := marked(late{t.Context()}, flowfabric.ErrNotFound); exitCode(err) != exitNotFound {
		t.Errorf("another error: %v", err)
	}
}
