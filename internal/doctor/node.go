package doctor

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/library"
)

// NodeReport is what one node says of itself. Err is set when the node did not answer at all; a field that it does not
// tell, or does not let the user read, is zero.
type NodeReport struct {
	Address   string
	Role      string // "master" or "slave", as the protocol calls them; "" when it does not tell
	PrimaryAt string // of a replica: the address of its primary; "" when it does not tell
	Server    string // name and version
	Err       error
	// why INFO was not answered; then Server, the memory, what is persisted and the replicas are not known
	InfoErr error

	Time      time.Time     // the node's clock
	Skew      time.Duration // the node's clock minus the one of this machine, give or take half of RoundTrip
	RoundTrip time.Duration

	UsedMemory, MaxMemory int64  // bytes; MaxMemory 0: no limit is configured
	SystemMemory          int64  // bytes of the machine
	Policy                string // maxmemory-policy
	Evicted               int64  // keys evicted since the node started

	AOF         bool   // appendonly
	AppendSync  string // appendfsync; "" when the user may not read the configuration
	Save        string // the save points; "" when there are none or they cannot be read
	SaveKnown   bool
	WriteFailed string // which kind of persistence failed at its last try: "aof", "rdb" or ""

	Keys     int  // in the database of the store, those of others among them
	Replicas int  // of a primary, those connected
	LinkDown bool // of a replica: it has lost its primary

	Library LibraryReport // of a primary
}

// Primary tells nodes that take writes; one that does not tell its role is taken for one.
func (n NodeReport) Primary() bool { return n.Role != "slave" }

// LibraryReport is the function library of a node.
type LibraryReport struct {
	Missing  bool
	Protocol int
	Revision int
	Hash     string
	Err      error // why it could not be asked
}

// readNode asks one node; each answer may be missing without hurting the others.
func readNode(ctx context.Context, address string, node *engine.Probe) NodeReport {
	ctx, cancel := context.WithTimeout(ctx, node.Timeout)
	defer cancel()
	out := NodeReport{Address: address}
	began := time.Now()
	clock, err := serverTime(ctx, node)
	if err != nil {
		out.Err = err
		return out
	}
	out.Time, out.RoundTrip = clock, time.Since(began)
	out.Skew = clock.Sub(began.Add(out.RoundTrip / 2))
	text, err := node.Ask(ctx, "INFO").ToString()
	if err == nil {
		out.info(engine.ParseInfo(text))
	} else {
		out.InfoErr = engine.CallError("info", err)
		out.Role, _ = node.Role(ctx) // "": it does not tell
	}
	out.configuration(ctx, node)
	if out.Primary() {
		out.Library = readLibrary(ctx, node)
	}
	return out
}

// info takes what INFO tells.
func (n *NodeReport) info(f engine.Info) {
	n.Server = "redis " + f["redis_version"]
	if v := f["valkey_version"]; v != "" {
		n.Server = "valkey " + v
	}
	n.Role = f["role"]
	n.UsedMemory, n.MaxMemory, n.SystemMemory = f.Number("used_memory"), f.Number("maxmemory"),
		f.Number("total_system_memory")
	n.Policy, n.Evicted = f["maxmemory_policy"], f.Number("evicted_keys")
	n.AOF = f["aof_enabled"] == "1"
	switch {
	case n.AOF && f["aof_last_write_status"] == "err", n.AOF && f["aof_last_bgrewrite_status"] == "err":
		n.WriteFailed = "aof"
	case f["rdb_last_bgsave_status"] == "err":
		n.WriteFailed = "rdb"
	}
	if held, ok := strings.CutPrefix(f["db0"], "keys="); ok {
		number, _, _ := strings.Cut(held, ",")
		n.Keys, _ = strconv.Atoi(number)
	}
	n.Replicas = int(f.Number("connected_slaves"))
	if n.Role == "slave" {
		n.LinkDown, n.PrimaryAt = f["master_link_status"] != "up", net.JoinHostPort(f["master_host"], f["master_port"])
	}
}

// configuration reads what INFO does not tell. Managed servers refuse it.
func (n *NodeReport) configuration(ctx context.Context, node *engine.Probe) {
	settings, err := node.Ask(ctx, "CONFIG", "GET", "save", "appendfsync", "maxmemory-policy").AsStrMap()
	if err != nil {
		return
	}
	n.Save, n.SaveKnown = settings["save"]
	n.AppendSync = settings["appendfsync"]
	if n.Policy == "" {
		n.Policy = settings["maxmemory-policy"]
	}
}

func readLibrary(ctx context.Context, node *engine.Probe) LibraryReport {
	r, missing, err := node.Version(ctx)
	if missing {
		return LibraryReport{Missing: true, Err: unloadable(ctx, node)}
	}
	return LibraryReport{Protocol: r.Protocol, Revision: r.Revision, Hash: r.Hash, Err: err}
}

// unloadable says why nobody can load a library onto a node: it has no command FUNCTION. That this user may not run
// it says nothing of others.
func unloadable(ctx context.Context, node *engine.Probe) error {
	err := node.Ask(ctx, "FUNCTION", "LIST", "LIBRARYNAME", library.Name).Error()
	if err = engine.CallError("function list", err); errors.Is(err, denied.Config) {
		return err
	}
	return nil
}
