package doctor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

func (c *Checkup) slots(s SlotReport) {
	const name = "cluster"
	switch {
	case s.Err != nil:
		c.Add(name, Skip, "", prose.Message(s.Err), "")
	case s.State != "ok" || s.Assigned != 16384:
		c.Add(name, Fail, "", fmt.Sprintf("state %q, %d of 16384 slots assigned", s.State, s.Assigned),
			"executions in slots without a node cannot move: bring the nodes back, or assign the slots (CLUSTER ADDSLOTS)")
	case s.OK != s.Assigned:
		c.Add(name, Warn, "", fmt.Sprintf("%d of %d slots are on nodes that do not answer", s.Assigned-s.OK,
			s.Assigned), "a failover may be under way: look again, then look at CLUSTER NODES")
	default:
		c.Add(name, OK, "", "all slots are covered", "")
	}
}

// node looks at one node: what it evicts, its memory, what it writes to disk, and its copies.
func (c *Checkup) node(d Diagnosis, n NodeReport) {
	if n.Err != nil {
		c.Add("reachable", Fail, n.Address, prose.Message(n.Err), "bring the node back, or take it out of the cluster")
		return
	}
	c.eviction(n)
	if n.InfoErr == nil {
		c.memory(n)
		c.persistence(n)
	} else {
		c.Add("info", Fail, n.Address, prose.Message(n.InfoErr),
			"every process reads INFO when it connects: give the server the command back, or the user the right")
	}
	switch {
	case !d.Cluster && !n.Primary():
		c.Add("role", Fail, n.Address, prose.Join(" of ", "the server is a read-only replica", n.PrimaryAt),
			"nothing can be submitted, claimed or ended here: put the address of the primary into the URL, here and in workers and clients")
	case n.Role == "":
		c.Add("role", Skip, n.Address, "the server does not tell whether it is a primary",
			"make sure that it is no replica")
	}
	switch {
	case n.InfoErr != nil:
	case n.LinkDown:
		c.Add("replication", Warn, n.Address, "the replica has lost its primary",
			"look at its log; until then it is no use in a failover")
	case n.Primary() && d.Cluster && n.Replicas == 0:
		c.Add("replication", Warn, n.Address, "the primary has no replica",
			"if it dies, its partitions stand still until it is back: add a replica")
	case n.Primary() && n.Replicas > 0:
		c.Add("replication", OK, n.Address, prose.Count(n.Replicas, "replica"), "")
	}
}

func (c *Checkup) eviction(n NodeReport) {
	const name = "eviction"
	switch {
	case n.Policy == "":
		c.Add(name, Skip, n.Address, "the server does not tell maxmemory-policy", "make sure that it is noeviction")
	case n.Policy != engine.NoEviction:
		c.Add(name, Fail, n.Address, fmt.Sprintf("maxmemory-policy is %s, %d keys were evicted", n.Policy, n.Evicted),
			"the server may throw executions away: CONFIG SET maxmemory-policy noeviction, and in its configuration file")
	default:
		c.Add(name, OK, n.Address, "noeviction", "")
	}
}

func (c *Checkup) memory(n NodeReport) {
	const name = "memory"
	used := mebibytes(n.UsedMemory)
	limit, what := n.MaxMemory, "maxmemory"
	if limit == 0 {
		limit, what = n.SystemMemory, "the machine's memory"
	}
	if limit == 0 {
		c.Add(name, Skip, n.Address, used+" used, no limit is known", "")
		return
	}
	share := float64(n.UsedMemory) / float64(limit)
	found := fmt.Sprintf("%s used, %.0f %% of %s", used, 100*share, what)
	more :=
		"above the limit new work is refused (out_of_memory) and running work still ends: raise the limit, shorten retention, or purge"
	switch {
	case share >= memoryFail:
		c.Add(name, Fail, n.Address, found, more)
	case share >= memoryWarn:
		c.Add(name, Warn, n.Address, found, more)
	case n.MaxMemory == 0:
		c.Add(name, Warn, n.Address, found+", no maxmemory",
			"without a limit the system may kill the server: set maxmemory")
	default:
		c.Add(name, OK, n.Address, found, "")
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func (c *Checkup) persistence(n NodeReport) {
	const name = "persistence"
	switch {
	case n.WriteFailed != "":
		c.Add(name, Fail, n.Address, "the last write of the "+n.WriteFailed+" file failed",
			"look at the server's log and at its disk: after a restart work since then is lost")
	case n.AOF && n.AppendSync == "no":
		c.Add(name, Warn, n.Address, "appendonly, synced when the system likes",
			"a crash of the machine may lose half a minute of work: set appendfsync everysec, or always")
	case n.AOF:
		c.Add(name, OK, n.Address, prose.Join(", appendfsync ", "appendonly", n.AppendSync), "")
	case !n.SaveKnown:
		c.Add(name, Skip, n.Address, "no appendonly; the server does not tell its save points",
			"make sure that it saves, or set appendonly yes")
	case n.Save == "":
		c.Add(name, Warn, n.Address, "nothing is written to disk", "a restart loses everything: set appendonly yes")
	default:
		c.Add(name, Warn, n.Address, "snapshots only (save "+n.Save+")",
			"a crash loses what happened since the last snapshot: set appendonly yes")
	}
}

// clocks compares the nodes with this machine and with each other.
func (c *Checkup) clocks(nodes []NodeReport) {
	const name = "clock"
	var least, most, spread time.Duration
	seen := false
	for _, n := range nodes {
		if n.Err != nil || !n.Primary() {
			continue
		}
		if skew := n.Skew.Abs() - n.RoundTrip/2; skew > skewWarn {
			c.Add(name, Warn, n.Address, fmt.Sprintf("%s away from this machine", prose.Span(n.Skew)),
				"deadlines and delays go by the server's clock: give both time by NTP")
		}
		if !seen {
			least, most, seen = n.Skew, n.Skew, true
		}
		least, most = min(least, n.Skew), max(most, n.Skew)
		spread = max(spread, n.RoundTrip)
	}
	switch apart := most - least - spread; {
	case !seen:
	case apart > skewFail:
		c.Add(name, Fail, "", "primaries are "+prose.Span(most-least)+" apart",
			"give all nodes time by NTP: after a failover leases would end at once, or much too late")
	case apart > skewWarn:
		c.Add(name, Warn, "", "primaries are "+prose.Span(most-least)+" apart", "give all nodes time by NTP")
	case !slices.ContainsFunc(c.Checks, func(k Check) bool { return k.Name == name }):
		c.Add(name, OK, "", "servers and this machine agree", "")
	}
}

// libraries wants the same function library on every primary, and tells how it compares with this program's.
func (c *Checkup) libraries(nodes []NodeReport) {
	const name = "library"
	own := OwnLibrary()
	var first *NodeReport
	same := true
	for i, n := range nodes {
		if n.Err != nil || !n.Primary() {
			continue
		}
		switch l := n.Library; {
		case l.Err != nil && errors.Is(l.Err, denied.Config):
			c.Add(name, Fail, n.Address, prose.Message(l.Err), giveBack)
		case l.Err != nil:
			c.Add(name, Fail, n.Address, prose.Message(l.Err), "the user needs FCALL")
		case l.Missing:
			c.Add(name, Warn, n.Address, "the function library is not loaded", "the first worker or client loads it")
		case l.Protocol > own.Protocol:
			c.Add(name, Fail, n.Address, fmt.Sprintf("protocol %d, this program knows %d", l.Protocol, own.Protocol),
				"upgrade this program, and workers of its version")
		case l.Protocol < own.Protocol:
			c.Add(name, Fail, n.Address, fmt.Sprintf("protocol %d, this program knows %d", l.Protocol, own.Protocol),
				"use a program of the older version; a store of that version is not read by this one")
		default:
			if first == nil {
				first = &nodes[i]
			}
			same = same && l == first.Library
		}
	}
	switch {
	case first == nil:
	case !same:
		c.Add(name, Warn, "", "primaries carry different libraries",
			"they are made the same by the next worker that starts; while one is behind, new functions fail there")
	case first.Library.Revision < own.Revision:
		c.Add(name, OK, "", fmt.Sprintf("revision %d everywhere, this program would bring %d", first.Library.Revision,
			own.Revision), "")
	case first.Library.Revision > own.Revision:
		c.Add(name, OK, "", fmt.Sprintf("revision %d everywhere, newer than this program's %d", first.Library.Revision,
			own.Revision), "")
	case first.Library.Hash != own.Hash:
		c.Add(name, Warn, "", fmt.Sprintf("revision %d of another build", own.Revision),
			"a development build was here: start a worker of the release")
	default:
		c.Add(name, OK, "", fmt.Sprintf("protocol %d, revision %d on every primary", own.Protocol, own.Revision), "")
	}
}
