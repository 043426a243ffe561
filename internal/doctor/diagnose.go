package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Diagnosis is what a server says of itself and of the store on it. It judges nothing.
type Diagnosis struct {
	Embedded  bool  // the store of FlowFabric itself: one node, without rights
	Cluster   bool  // of several nodes
	Supported error // why this server is too old for FlowFabric, or nil
	// Nodes are all nodes that could be found, primaries first; one outside of a cluster.
	Nodes []NodeReport
	Slots SlotReport // cluster only
	// Store is what the deployment's own records say.
	Store StoreReport
	// Rights are those of the user that asked.
	Rights RightsReport
}

// SlotReport is what a cluster says of its slots.
type SlotReport struct {
	State    string // "ok", or "fail" while slots are not covered
	Assigned int    // of 16384
	OK       int    // assigned to nodes that answer
	Err      error
}

// StoreReport is what the deployment's records say, read without the function library.
type StoreReport struct {
	Booted     bool // the partition counts are fixed
	Partitions uint16
	Roots      []RootReport
	At         time.Time // server time of the reading
	Err        error     // why it could not be read
	// Damaged are the keys, of those that a partition has once, that are of another type than they should be.
	Damaged  []string
	TypesErr error // why they could not be looked at, in full or in part
	// UsedUp are the gates whose amounts keep work waiting, over all partitions.
	UsedUp gatetext.UsedUp
	// Unserved is work that waits and that no registered worker takes, over all partitions.
	Unserved []UnservedRoute
	WorkErr  error // why routes and workers could not be read, in full or in part
	// Ahead is what lies ahead of the server's clock, because it stepped back, over all partitions.
	Ahead    []Ahead
	AheadErr error // why sessions and gates could not be read, in full or in part
}

// RootReport is the record of one partition.
type RootReport struct {
	Partition    uint16
	Missing      bool // it was never made, or is lost
	Protocol     int
	Frozen       bool
	FrozenReason string
	Owner        string    // who ticks; "" when nobody does
	Wake         time.Time // when the tick is due; zero: nothing to wait for
	Ticked       time.Time // the last tick; zero: there was none
	Routes       int       // in its table, of at most limits.MaxClasses
	Maker        string    // the namespace that made most of them, where it is near its share
	Made         int       // by that
	Err          error
}

// Share is how many of the routes the namespace that made most may make, while the others have those that they have.
func (r RootReport) Share() int {
	others := r.Routes - r.Made
	return min(max(limits.MaxOwnClasses-others, limits.SureClasses), limits.MaxClasses-others)
}

// Back is by how much the server's clock, which shows now, has stepped back since the last tick; 0 when it has not,
// or by a second at most.
func (r RootReport) Back(now time.Time) time.Duration {
	if d := r.Ticked.Sub(now); d > clockSlack {
		return d
	}
	return 0
}

// Overdue tells whether nobody maintains the partition although there is work for it: a tick is two seconds late, or
// due without an owner, or the server's clock stepped back since the last one.
func (r RootReport) Overdue(now time.Time) bool {
	if r.Wake.IsZero() || now.Before(r.Wake) {
		return !r.Wake.IsZero() && r.Wake.Sub(now) > time.Second && r.Back(now) > 0
	}
	return r.Owner == "" || now.After(r.Wake.Add(2*time.Second))
}

// Diagnose asks every node of a deployment, and the records of the store, for what decides whether it is healthy. It
// loads no library, boots no store and writes nothing, so it also helps where [engine.Open] fails. What a server does
// not let the user read is told apart in the fields Err; the error is that of connecting.
//
// Errors: ErrConfig before any I/O; ErrTransport; ErrAuth.
func Diagnose(ctx context.Context, cfg engine.Config) (Diagnosis, error) {
	p, err := engine.Dial(ctx, cfg)
	if err != nil {
		return Diagnosis{}, err
	}
	defer p.Close()
	return diagnose(ctx, p), nil
}

// DiagnoseOpen is [Diagnose] for an open store, over its connection. A server that does not answer is in the report,
// as the error of its node.
func DiagnoseOpen(ctx context.Context, e *engine.Engine) Diagnosis {
	return engine.Probed(ctx, e, func(p *engine.Probe) Diagnosis { return diagnose(ctx, p) })
}

func diagnose(ctx context.Context, p *engine.Probe) Diagnosis {
	d := Diagnosis{Embedded: p.Embedded, Cluster: p.Cluster, Supported: p.Supported}
	if p.Cluster {
		d.Slots = readSlots(ctx, p)
	}
	reading := pool.NewWithResults[NodeReport]().WithMaxGoroutines(16) // one that is silent takes the whole time-out
	for address, node := range p.Nodes() {
		reading.Go(func() NodeReport { return readNode(ctx, address, node) })
	}
	d.Nodes = reading.Wait()
	slices.SortFunc(d.Nodes, func(a, b NodeReport) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), strings.Compare(a.Address, b.Address)) // master, slave
	})
	if p.Embedded {
		d.Nodes[0].Server = p.Server
	} else {
		d.Rights = readRights(ctx, p)
	}
	d.Store = readStore(ctx, p)
	return d
}

// readSlots reads CLUSTER INFO.
func readSlots(ctx context.Context, p *engine.Probe) SlotReport {
	text, err := p.Ask(ctx, "CLUSTER", "INFO").ToString()
	if err != nil {
		return SlotReport{Err: engine.CallError("cluster info", err)}
	}
	f := engine.ParseInfo(text)
	return SlotReport{State: f["cluster_state"], Assigned: int(f.Number("cluster_slots_assigned")),
		OK: int(f.Number("cluster_slots_ok"))}
}

// readStore reads the partition counts and every root, with plain reads.
func readStore(ctx context.Context, p *engine.Probe) StoreReport {
	stored, err := p.Do(ctx, engine.On("HMGET", keys.Config, "num_flow_partitions",
		"num_gate_partitions"))[0].AsStrSlice()
	if err != nil {
		return StoreReport{Err: engine.Damaged(engine.CallError("read partition counts", err))}
	}
	if slices.Contains(stored, "") {
		return StoreReport{Err: p.Lost(ctx)}
	}
	counts := make([]uint16, len(stored))
	for i, text := range stored {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return StoreReport{Err: fmt.Errorf("%w: %s says %.40q partitions", flowfabric.ErrCorrupt, keys.Config,
				text)}
		}
		counts[i] = uint16(n)
	}
	s := StoreReport{Booted: true, Partitions: counts[0]}
	if s.At, err = serverTime(ctx, p); err != nil {
		s.Err = err
		return s
	}
	commands := make([]engine.Command, s.Partitions)
	for i := range s.Partitions {
		commands[i] = engine.On("HMGET", keys.Root(i), "protocol", "frozen", "owner", "wake", "ticked")
	}
	for i, resp := range p.Do(ctx, commands...) {
		s.Roots = append(s.Roots, rootReport(uint16(i), resp))
	}
	s.readTypes(ctx, p, counts)
	s.readWork(ctx, p)
	s.readAhead(ctx, p, counts[1])
	return s
}

// types are those of the keys that a partition has once; lua/lib/audit_root.lua holds the keys of executions against
// the same.
var types = map[string][]string{
	"hash": {"routes", "routeids", "routeuse", "lanes", "closings", "attached", "shares", "weights", "work", "kids",
		"makers"},
	"set": {"ready", "gready", "digests"}, "stream": {"feed", "outbox", "trail"},
	"zset": {"delayed", "alarms", "parked", "done", "pending", "sessions", "routelog", "workers", "schedules",
		"scnames", "blocked", "flows", "flowdue", "backlog", "paused", "closed", "unsuccessful", "dsdue", "versions"},
}

// readTypes finds keys that cannot be used because they are of another type.
func (s *StoreReport) readTypes(ctx context.Context, p *engine.Probe, counts []uint16) {
	var commands []engine.Command
	var names, wanted []string
	add := func(kind, key string) {
		commands = append(commands, engine.On("TYPE", key))
		names, wanted = append(names, key), append(wanted, kind)
	}
	for i := range counts[0] {
		add("hash", keys.Root(i))
		for kind, list := range types {
			for _, name := range list {
				add(kind, keys.Root(i)+":"+name)
			}
		}
	}
	for i := range counts[1] {
		add("hash", keys.GateRoot(i))
		add("zset", keys.Partition(keys.GateRoot(i)).Gates())
	}
	for i, resp := range p.Do(ctx, commands...) {
		kind, err := resp.ToString()
		if err != nil {
			s.TypesErr = cmp.Or(s.TypesErr, engine.CallError("read types of keys", err))
		} else if kind != "none" && kind != wanted[i] {
			s.Damaged = append(s.Damaged, fmt.Sprintf("%s is a %s and no %s", names[i], kind, wanted[i]))
		}
	}
	slices.Sort(s.Damaged)
}

func rootReport(partition uint16, resp engine.Response) RootReport {
	out := RootReport{Partition: partition}
	slots, err := resp.ToArray()
	if err != nil {
		out.Err = engine.Damaged(engine.CallError("read root", err))
		return out
	}
	text := func(i int) (value string, there bool) {
		value, err := slots[i].ToString()
		return value, err == nil
	}
	protocol, there := text(0)
	out.Missing = !there
	out.Protocol, _ = strconv.Atoi(protocol)
	out.FrozenReason, out.Frozen = text(1)
	out.Owner, _ = text(2)
	if ticked, there := text(4); there {
		ms, _ := strconv.ParseInt(ticked, 10, 64)
		out.Ticked = time.UnixMilli(ms).UTC()
	}
	if wake, there := text(3); there {
		ms, err := strconv.ParseInt(wake, 10, 64)
		if err != nil {
			out.Err = fmt.Errorf("%w: wake time %.40q of partition %d", flowfabric.ErrCorrupt, wake, partition)
		}
		out.Wake = time.UnixMilli(ms).UTC()
	}
	return out
}

func serverTime(ctx context.Context, p *engine.Probe) (time.Time, error) {
	parts, err := p.Ask(ctx, "TIME").AsStrSlice()
	if err != nil {
		return time.Time{}, engine.CallError("time", err)
	}
	if len(parts) != 2 {
		return time.Time{}, fmt.Errorf("time: %w: %d parts", denied.Reply, len(parts))
	}
	s, err1 := strconv.ParseInt(parts[0], 10, 64)
	us, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return time.Time{}, fmt.Errorf("time: %w: %w", denied.Reply, err)
	}
	return time.Unix(s, us*1000), nil
}

// OwnLibrary is what this program loads onto servers.
func OwnLibrary() LibraryReport {
	return LibraryReport{Protocol: limits.Protocol, Revision: library.Revision, Hash: library.Hash()}
}
