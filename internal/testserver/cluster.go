package testserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

const (
	// Slots of a cluster.
	Slots = 16384

	primaries = 3
	// How long a node may be silent before the others call it failed, in milliseconds. Without elections it is longer,
	// so that a machine that stands still for a while does not break a test of something else.
	nodeTimeout, electionTimeout = "5000", "2000"
	// failoverTimeout is how long a server tries to take over on command, and a little more.
	failoverTimeout = 6 * time.Second
)

// Nodes is a cluster of three primaries with a replica each, on ports of 127.0.0.1 that only this test knows. Its
// methods belong to the test's goroutine; all of them fail the test rather than return an error.
type Nodes struct {
	t     testing.TB
	nodes []*Server // at first the primaries, then the replicas in the same order
}

// Cluster starts a cluster and returns when every node calls it complete and all replicas are in step. Replicas do
// not take over by themselves until [Nodes.Elections] allows it. Options apply to every node; AOF and Args are of use.
func Cluster(t testing.TB, kind Kind, opts ...Option) *Nodes {
	t.Helper()
	c := &Nodes{t: t}
	for range 2 * primaries {
		_, bus, _ := net.SplitHostPort(freePort(t))
		ours := []Option{TCP(), Args("--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout",
			nodeTimeout,
			"--cluster-replica-validity-factor", "0", "--cluster-replica-no-failover", "yes",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")}
		s := Start(t, kind, append(ours, opts...)...)
		s.bus = bus
		c.nodes = append(c.nodes, s)
	}
	for i, s := range c.nodes {
		s.do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < primaries {
			first, next := i*Slots/primaries, (i+1)*Slots/primaries
			s.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1))
		}
		for _, other := range c.nodes[:i] {
			host, port, _ := net.SplitHostPort(other.address)
			s.do("CLUSTER", "MEET", host, port, other.bus)
		}
	}
	for i, replica := range c.nodes[primaries:] {
		primary := c.nodes[i].do("CLUSTER", "MYID").(string)
		c.await("a replica knows its primary", func() bool {
			_, err := replica.ask("CLUSTER", "REPLICATE", primary)
			return err == nil
		})
	}
	c.Settled()
	return c
}

// URL names all nodes as seeds, in the form engine.Config.URL takes.
func (c *Nodes) URL() string {
	addresses := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		addresses[i] = s.address
	}
	return "redis://" + strings.Join(addresses, ",")
}

// All lists every node, killed ones too.
func (c *Nodes) All() []*Server { return c.nodes }

// Primaries lists the live nodes that serve slots.
func (c *Nodes) Primaries() (list []*Server) {
	for _, s := range c.live() {
		if me := s.view().me; me.primary && len(me.slots) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// SlotOf is the slot of a key.
func (c *Nodes) SlotOf(key string) int {
	c.t.Helper()
	return int(c.live()[0].do("CLUSTER", "KEYSLOT", key).(int64))
}

// NodeOf is the live primary that serves a slot, the one of the newest configuration if several claim to; nil if
// there is none.
func (c *Nodes) NodeOf(slot int) *Server {
	var owner *Server
	newest := int64(-1)
	for _, s := range c.live() {
		if me := s.view().me; me.primary && me.serves(slot) && me.epoch > newest {
			owner, newest = s, me.epoch
		}
	}
	return owner
}

// ReplicaOf is a live replica of a node, which may be dead, or nil.
func (c *Nodes) ReplicaOf(primary *Server) *Server {
	for _, s := range c.live() {
		v := s.view()
		if i := slices.IndexFunc(v.others, func(n node) bool { return n.address == primary.address }); i >= 0 &&
			!v.me.primary && v.me.of == v.others[i].id {
			return s
		}
	}
	return nil
}

// Elections decides whether a node that is silent for two seconds is called failed and its replica takes over. A node
// that is restarted forbids it again for itself.
func (c *Nodes) Elections(allow bool) {
	c.t.Helper()
	timeout, no := nodeTimeout, "yes"
	if allow {
		timeout, no = electionTimeout, "no"
	}
	for _, s := range c.live() {
		s.do("CONFIG", "SET", "cluster-node-timeout", timeout)
		s.do("CONFIG", "SET", "cluster-replica-no-failover", no)
	}
}

// Failover makes the replica of a slot's primary the primary, without losing anything: the primary holds writes back
// until the replica has them all. It returns the new primary once every node agrees.
func (c *Nodes) Failover(slot int) *Server {
	c.t.Helper()
	replica := c.ReplicaOf(c.NodeOf(slot))
	if replica == nil {
		c.t.Fatalf("the primary of slot %d has no replica", slot)
	}
	var told time.Time
	c.await("a replica takes over when told to", func() bool {
		if c.NodeOf(slot) == replica {
			return true
		}
		if time.Since(told) > failoverTimeout { // the server gives up as well; telling it earlier makes it start over
			_, _ = replica.ask("CLUSTER", "FAILOVER")
			told = time.Now()
		}
		return false
	})
	c.Settled()
	return replica
}

// Crash kills the primary of a slot and returns it once its replica has taken over. Elections must be allowed. What the
// primary had not yet replicated is lost. [Server.Restart] brings it back as a replica.
func (c *Nodes) Crash(slot int) (dead *Server) {
	c.t.Helper()
	dead = c.NodeOf(slot)
	dead.Kill()
	c.await("a replica takes over from a dead primary", func() bool { return c.NodeOf(slot) != nil })
	c.Settled()
	return dead
}

// Settled waits until all live nodes agree on who serves what, serve it, and the live replicas are in step.
func (c *Nodes) Settled() {
	c.t.Helper()
	why := ""
	c.awaitOr("the cluster settles", func() bool { why = c.unsettled(); return why == "" }, func() string {
		return why
	})
}

// Listed waits until every live node tells clients of every live replica, which may come seconds after the cluster
// has settled: a node lists a replica once it has heard how far that one is.
func (c *Nodes) Listed() {
	c.t.Helper()
	replicas := 0
	for _, s := range c.live() {
		if !s.view().me.primary {
			replicas++
		}
	}
	c.await("all nodes list all replicas", func() bool {
		return !slices.ContainsFunc(c.live(), func(s *Server) bool { return s.listed() < replicas })
	})
}

// listed counts the replicas that a node tells clients of.
func (s *Server) listed() int {
	reply, _ := s.ask("CLUSTER", "SLOTS")
	rows, _ := reply.([]any)
	replicas := map[any]bool{}
	for _, row := range rows {
		if row, ok := row.([]any); ok { // first slot, last slot, primary, replicas
			for _, replica := range row[3:] {
				if about, ok := replica.([]any); ok {
					replicas[about[1]] = true
				}
			}
		}
	}
	return len(replicas)
}

// strayed is a replica that is of another shard than its primary by this node's file of nodes: it has not heard of
// the replica's new shard. A node that is killed then cannot start again, for Valkey calls such a file corrupt. Redis
// 7.0 writes no shards.
func (s *Server) strayed() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "nodes.conf"))
	shards, of := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // id host:port@bus,host,name=value… flags primary …
		if len(f) < 8 {
			continue
		}
		if _, rest, found := strings.Cut(f[1], "shard-id="); found {
			shards[f[0]], _, _ = strings.Cut(rest, ",")
		}
		of[f[0]] = f[3]
	}
	for id, primary := range of {
		if shards[primary] != "" && shards[id] != shards[primary] {
			return id
		}
	}
	return ""
}

// unsettled says what is missing.
func (c *Nodes) unsettled() string {
	first := ""
	for _, s := range c.live() {
		v := s.view()
		if len(v.others)+1 != len(c.nodes) || v.handshakes {
			return fmt.Sprintf("%s knows %d others", s.address, len(v.others))
		}
		if first == "" {
			first = v.owners()
		} else if m := v.owners(); m != first {
			return fmt.Sprintf("%s sees %q, another %q", s.address, m, first)
		}
		if replica := s.strayed(); replica != "" {
			return fmt.Sprintf("%s counts the replica %s to another shard than its primary", s.address, replica)
		}
		info, _ := s.ask("CLUSTER", "INFO")
		if text, _ := info.(string); !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text,
			"cluster_slots_ok:16384") {
			return s.address + " calls the cluster incomplete"
		}
		if v.me.primary {
			continue
		}
		info, _ = s.ask("INFO", "replication")
		if text, _ := info.(string); !strings.Contains(text, "master_link_status:up") {
			return s.address + " is not in step with its primary"
		}
	}
	return ""
}

func (c *Nodes) live() []*Server {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(s *Server) bool { return s.process == nil })
}

func (c *Nodes) await(what string, done func() bool) {
	c.t.Helper()
	c.awaitOr(what, done, func() string { return "" })
}

func (c *Nodes) awaitOr(what string, done func() bool, why func() string) {
	c.t.Helper()
	testwait.Progress(c.t, what, func() (bool, any) {
		if done() {
			return true, nil
		}
		return false, why()
	})
}

// ask runs a command on this server, which may be paused, see the function ask.
func (s *Server) ask(args ...string) (any, error) {
	return ask(s.network, s.address, s.pass, askTimeout, args...)
}

// do is ask for a command that must succeed.
func (s *Server) do(args ...string) any {
	s.t.Helper()
	reply, err := ask(s.network, s.address, s.pass, 0, args...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.address, strings.Join(args, " "), err)
	}
	return reply
}

// view is what one node thinks of the cluster.
type view struct {
	me         node
	others     []node
	handshakes bool
}

type node struct {
	id, address string
	of          string // a replica's primary
	primary     bool
	epoch       int64
	slots       [][2]int
}

func (n node) serves(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// owners tells who serves what, in a form that two nodes' views can be compared by.
func (v view) owners() string {
	var lines []string
	for _, n := range append([]node{v.me}, v.others...) {
		if n.primary && len(n.slots) > 0 {
			lines = append(lines, fmt.Sprint(n.address, n.slots))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// view asks a node; one that does not answer knows nobody.
func (s *Server) view() (v view) {
	reply, err := s.ask("CLUSTER", "NODES")
	text, _ := reply.(string)
	if err != nil {
		return v
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id host:port@bus flags primary ping pong epoch link slots…
		if len(f) < 8 {
			continue
		}
		address, _, _ := strings.Cut(f[1], "@")
		flags := strings.Split(f[2], ",")
		n := node{id: f[0], address: address, of: f[3], primary: slices.Contains(flags, "master")}
		n.epoch, _ = strconv.ParseInt(f[6], 10, 64)
		for _, r := range f[8:] {
			from, to, several := strings.Cut(r, "-")
			a, err := strconv.Atoi(from)
			b := a
			if several {
				b, _ = strconv.Atoi(to)
			}
			if err == nil { // not a slot that is being moved: "[7->-id]"
				n.slots = append(n.slots, [2]int{a, b})
			}
		}
		v.handshakes = v.handshakes || slices.Contains(flags, "handshake")
		if slices.Contains(flags, "myself") {
			v.me = n
		} else {
			v.others = append(v.others, n)
		}
	}
	return v
}
