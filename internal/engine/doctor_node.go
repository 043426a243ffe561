package engine

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/wire"
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
func readNode(ctx context.Context, timeout time.Duration, address string, node rueidis.Client) NodeReport {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
	text, err := node.Do(ctx, node.B().Info().Build()).ToString()
	if err == nil {
		out.info(infoFields(text))
	} else {
		out.InfoErr = callError("info", err)
		out.Role, _ = readRole(ctx, node) // "": it does not tell
	}
	out.configuration(ctx, node)
	if out.Primary() {
		out.Library = readLibrary(ctx, node)
	}
	return out
}

// info takes what INFO tells.
func (n *NodeReport) info(f info) {
	n.Server = "redis " + f["redis_version"]
	if v := f["valkey_version"]; v != "" {
		n.Server = "valkey " + v
	}
	n.Role = f["role"]
	n.UsedMemory, n.MaxMemory, n.SystemMemory = f.number("used_memory"), f.number("maxmemory"),
		f.number("total_system_memory")
	n.Policy, n.Evicted = f["maxmemory_policy"], f.number("evicted_keys")
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
	n.Replicas = int(f.number("connected_slaves"))
	if n.Role == "slave" {
		n.LinkDown, n.PrimaryAt = f["master_link_status"] != "up", net.JoinHostPort(f["master_host"], f["master_port"])
	}
}

// readRole asks a node for its role, "master" or "slave".
func readRole(ctx context.Context, node rueidis.Client) (string, error) {
	role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
	if err != nil || len(role) == 0 {
		return "", callError("role", err)
	}
	name, _ := role[0].ToString()
	return name, nil
}

// configuration reads what INFO does not tell. Managed servers refuse it.
func (n *NodeReport) configuration(ctx context.Context, node rueidis.Client) {
	settings, err := node.Do(ctx,
		node.B().ConfigGet().Parameter("save", "appendfsync", "maxmemory-policy").Build()).AsStrMap()
	if err != nil {
		return
	}
	n.Save, n.SaveKnown = settings["save"]
	n.AppendSync = settings["appendfsync"]
	if n.Policy == "" {
		n.Policy = settings["maxmemory-policy"]
	}
}

// readLibrary asks for the version (lua/system/ff_version.lua).
func readLibrary(ctx context.Context, node rueidis.Client) LibraryReport {
	r, _, err := read[wire.VersionReply](decode(fnVersion.name,
		node.Do(ctx, node.B().Fcall().Function(fnVersion.name).Numkeys(0).Build())))
	if missingFunction(err) {
		return LibraryReport{Missing: true, Err: unloadable(ctx, node)}
	}
	return LibraryReport{Protocol: r.Protocol, Revision: r.Revision, Hash: r.Hash, Err: err}
}

// unloadable says why nobody can load a library onto a node: it has no command FUNCTION. That this user may not run
// it says nothing of others.
func unloadable(ctx context.Context, node rueidis.Client) error {
	err := node.Do(ctx, node.B().FunctionList().Libraryname(library.Name).Build()).Error()
	if err = callError("function list", err); errors.Is(err, denied.Config) {
		return err
	}
	return nil
}

// info is an answer of the INFO family: "name:value" lines.
type info map[string]string

func infoFields(text string) info {
	f := info{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // the type of a verbatim text
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// number is 0 for what is not there.
func (f info) number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}
