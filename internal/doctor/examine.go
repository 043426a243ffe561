package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Bounds beyond which clocks, memory and route tables are worth a word, or a failure.
const (
	skewWarn   = time.Second
	skewFail   = 30 * time.Second
	memoryWarn = 0.8
	memoryFail = 0.95
	routesWarn = 0.8
	routesFail = 0.95
)

// Examine judges what a deployment says of itself. It checks no index: see [Drift].
func Examine(d Diagnosis) Checkup {
	c := Checkup{Healthy: true, Checks: []Check{}}
	for _, n := range d.Nodes {
		if n.Primary() {
			c.Keys += n.Keys
		}
	}
	c.version(d)
	if d.Cluster {
		c.slots(d.Slots)
	}
	if !d.Embedded {
		c.commands(d.Rights)
		for _, n := range d.Nodes {
			c.node(d, n)
		}
		c.clocks(d.Nodes)
		c.libraries(d.Nodes)
	}
	c.store(d.Store)
	c.types(d.Store)
	c.ticks(d.Store)
	c.routes(d.Store)
	c.served(d.Store)
	c.budgets(d.Store)
	c.steps(d.Store)
	if !d.Embedded {
		c.rights(d.Rights)
	}
	c.NotChecked(Skip, "", "whether indexes agree with records is not known",
		"'flowfabric doctor --indexes' checks all of them")
	return c
}

func (c *Checkup) version(d Diagnosis) {
	const name = "version"
	switch {
	case d.Embedded:
		c.Add(name, Warn, "", "the development server: nothing is persisted, nobody is kept out",
			"use Valkey or Redis for anything that matters")
	case d.Supported != nil:
		c.Add(name, Fail, "", prose.Message(d.Supported), "upgrade to Valkey 7.2 or Redis 7.0 or newer")
	default:
		kind := "standalone"
		if d.Cluster {
			kind = "cluster of " + prose.Count(len(d.Nodes), "node")
		}
		server := ""
		for _, n := range d.Nodes {
			if n.Err == nil {
				server = n.Server
			}
		}
		c.Add(name, OK, "", server+", "+kind, "")
	}
}

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

// giveBack is the advice where a server lacks commands.
const giveBack = "take rename-command for it out of the server's configuration, or use a server that offers it"

// commands looks for those that the server lacks.
func (c *Checkup) commands(r RightsReport) {
	if len(r.Unknown) > 0 {
		c.Add("commands", Fail, "",
			"the server does not know "+strings.Join(r.Unknown, ", ")+": renamed or switched off", giveBack)
	}
}

// store looks at the deployment's own records.
func (c *Checkup) store(s StoreReport) {
	const name = "partitions"
	if s.Err != nil {
		do := "the user needs to read ff:* keys"
		if errors.Is(s.Err, flowfabric.ErrCorrupt) {
			do = "restore what is damaged; until then no process starts"
		}
		c.Add(name, Fail, "", prose.Message(s.Err), do)
		return
	}
	if !s.Booted {
		c.Add(name, Warn, "", "the store was never booted", "the first worker or submit fixes the number of partitions")
		return
	}
	var missing, frozen, foreign, unread []uint16
	protocol := 0
	why := ""
	var err error
	for _, r := range s.Roots {
		switch {
		case r.Err != nil:
			unread, err = append(unread, r.Partition), r.Err
		case r.Missing:
			missing = append(missing, r.Partition)
		case r.Protocol != limits.Protocol:
			foreign, protocol = append(foreign, r.Partition), r.Protocol
		}
		if r.Frozen {
			frozen, why = append(frozen, r.Partition), r.FrozenReason
		}
	}
	if len(unread) > 0 {
		do := "see what is wrong with their nodes"
		if errors.Is(err, flowfabric.ErrCorrupt) {
			do = "restore them: until then nothing in these partitions works"
		}
		c.Add(name, Fail, "", fmt.Sprintf("roots of %s cannot be read: %s", prose.Ranges(unread), prose.Message(err)),
			do)
	}
	if len(missing) > 0 {
		c.Add(name, Fail, "", are(missing, "without a root"),
			"the store lost data or was flushed in part: restore it; a worker that starts makes empty ones")
	}
	if len(foreign) > 0 {
		advice := "upgrade this program and all workers"
		if protocol < limits.Protocol {
			advice = "the store holds an older layout: let the older version finish its work, then use an empty store"
		}
		c.Add(name, Fail, "",
			are(foreign, fmt.Sprintf("of protocol %d, this program knows %d", protocol, limits.Protocol)), advice)
	}
	if len(frozen) > 0 {
		c.Add("frozen", Warn, "", prose.Join(": ", are(frozen, "frozen"), why),
			"nothing moves in them: 'flowfabric thaw' when their slots have moved")
	}
	if len(unread)+len(missing)+len(foreign) == 0 {
		c.Add(name, OK, "", prose.Count(int(s.Partitions), "partition")+", every root is there", "")
	}
}

// types names keys that are of another type than they should be.
func (c *Checkup) types(s StoreReport) {
	const name, most = "keys", 10
	if !s.Booted || s.Err != nil {
		return
	}
	if n := len(s.Damaged); n > 0 {
		found := slices.Clone(s.Damaged[:min(n, most)])
		if n > most {
			found = append(found, fmt.Sprintf("%d more", n-most))
		}
		c.Add(name, Fail, "", strings.Join(found, ", "), "restore roots from a backup; "+
			"'flowfabric repair' sets the others aside and fills them again from the records")
		return
	}
	if s.TypesErr != nil {
		c.Add(name, Skip, "", prose.Message(s.TypesErr), "the user needs the command TYPE on ff:* keys")
		return
	}
	c.Add(name, OK, "", "those that each partition has once are of their types", "")
}

// are says one thing of partitions: "partition 3 is frozen".
func are(numbers []uint16, what string) string {
	if len(numbers) == 1 {
		return "partition " + prose.Ranges(numbers) + " is " + what
	}
	return "partitions " + prose.Ranges(numbers) + " are " + what
}

// ticks looks for partitions that nobody maintains.
func (c *Checkup) ticks(s StoreReport) {
	if !s.Booted || s.Err != nil {
		return
	}
	const name = "maintenance"
	var late []uint16
	owners := map[string]bool{}
	for _, r := range s.Roots {
		if r.Owner != "" {
			owners[r.Owner] = true
		}
		if r.Err == nil && !r.Frozen && r.Overdue(s.At) {
			late = append(late, r.Partition)
		}
	}
	switch {
	case len(late) > 0:
		c.Add(name, Fail, "", fmt.Sprintf("nobody maintains %s: %s", prose.Count(len(late), "partition"),
			prose.Ranges(late)),
			"delays, timeouts, deadlines and lost leases wait there: start a worker with maintenance")
	case len(owners) == 0:
		c.Add(name, OK, "", "nobody maintains the store, and nothing needs it", "")
	default:
		c.Add(name, OK, "", "it has "+prose.Count(len(owners), "owner"), "")
	}
}

// routes looks for partitions whose table of routes is nearly full.
func (c *Checkup) routes(s StoreReport) {
	const name = "routes"
	if !s.Booted || s.Err != nil || s.WorkErr != nil {
		return
	}
	var full RootReport
	share := 0.0
	for _, r := range s.Roots {
		own := float64(r.Routes) / limits.MaxClasses
		if r.Made > 0 {
			own = max(own, float64(r.Made)/float64(r.Share()))
		}
		if own > share {
			full, share = r, own
		}
	}
	found := fmt.Sprintf("partition %d has %d of %d routes", full.Partition, full.Routes, limits.MaxClasses)
	if full.Made > 0 {
		found += fmt.Sprintf(", %d of them made by namespace %s, which may make %d", full.Made, full.Maker,
			full.Share())
	}
	const advice = "a route is a lane, kind and set of capabilities; beyond a limit submits fail with " +
		"too_many_routes: use fewer of them ('flowfabric queues --all-namespaces'); " +
		"a route goes when its last execution is purged"
	switch {
	case full.Routes == 0:
		c.Add(name, OK, "", "there are none", "")
	case share >= routesFail:
		c.Add(name, Fail, "", found, advice)
	case share >= routesWarn:
		c.Add(name, Warn, "", found, advice)
	default:
		c.Add(name, OK, "", found+", and no other is fuller", "")
	}
}

// budgets names those that have no room for the work that waits for them.
func (c *Checkup) budgets(s StoreReport) {
	const name, most = "budgets", 10
	if !s.Booted || s.Err != nil || s.WorkErr != nil {
		return
	}
	names := s.UsedUp.Names()
	found := make([]string, 0, most)
	for _, budget := range names[:min(len(names), most)] {
		found = append(found, fmt.Sprintf("budget %s is used up: %d wait", budget, s.UsedUp[budget]))
	}
	if more := len(names) - most; more > 0 {
		found = append(found, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		c.Add(name, OK, "", "none keeps work waiting", "")
		return
	}
	c.Add(name, Warn, "", strings.Join(found, ", "),
		"the work waits for the next period or more room: 'flowfabric budget show' says what was used and refused; raise the limit ('flowfabric budget update'), or reset it")
}

// steps looks for what lies ahead of the server's clock, because it stepped back.
func (c *Checkup) steps(s StoreReport) {
	const name = "clock steps"
	if !s.Booted || s.Err != nil {
		return
	}
	if s.AheadErr != nil {
		c.Add(name, Skip, "", prose.Message(s.AheadErr), "the user needs to read ff:* keys")
		return
	}
	var back []uint16
	var by time.Duration
	for _, r := range s.Roots {
		if d := r.Back(s.At); r.Err == nil && d > 0 {
			back, by = append(back, r.Partition), max(by, d)
		}
	}
	var sessions []uint16
	var quotas []string
	for _, a := range s.Ahead {
		if a.Quota != "" {
			quotas = append(quotas, fmt.Sprintf("%s by %s", a.Quota, prose.Span(a.By)))
		} else {
			sessions, by = append(sessions, a.Partition), max(by, a.By)
		}
	}
	const keep = "let NTP slew the server's clock instead of setting it"
	if len(back) > 0 {
		c.Add(name, Warn, "",
			fmt.Sprintf("the server's clock stepped back, by at least %s, since the last tick of %s: %s",
				prose.Span(by), prose.Count(len(back), "partition"), prose.Ranges(back)),
			"the next tick gives sessions one lease time and reopens closed routes; delays, timeouts and schedules come later by the step; "+
				keep)
	}
	if len(sessions) > 0 {
		c.Add(name, Warn, "", fmt.Sprintf("sessions were renewed up to %s in the future in %s: %s", prose.Span(by),
			prose.Count(len(sessions), "partition"), prose.Ranges(sessions)),
			"work of dead workers stays active there until a tick shortens them: start a worker with maintenance; "+
				keep)
	}
	if len(quotas) > 0 {
		c.Add(name, Warn, "", "windows have starts in the future, of "+prose.Count(len(quotas), "quota")+": "+
			strings.Join(quotas[:min(5, len(quotas))], ", "),
			"they do not count, and go with the quota's next start; "+keep)
	}
	if len(back)+len(sessions)+len(quotas) == 0 {
		c.Add(name, OK, "", "no session and no quota's window lies ahead of the server's clock", "")
	}
}

// served looks for work that waits and that no worker takes.
func (c *Checkup) served(s StoreReport) {
	const name, most = "served", 5
	switch {
	case !s.Booted || s.Err != nil:
	case s.WorkErr != nil:
		c.Add(name, Skip, "", prose.Message(s.WorkErr), "the user needs to read ff:* keys")
	case len(s.Unserved) == 0:
		c.Add(name, OK, "", "all that waits has a worker", "")
	default:
		total := 0
		var list []string
		for i, u := range s.Unserved {
			total += u.Waiting
			if i < most {
				text := fmt.Sprintf("kind %s in lane %s of namespace %s", u.Kind, u.Lane, u.Namespace)
				list = append(list, prose.Join(" that needs ", text, strings.Join(u.Capabilities, ",")))
			}
		}
		if more := len(s.Unserved) - most; more > 0 {
			list = append(list, fmt.Sprintf("%d more", more))
		}
		verb := "wait"
		if total == 1 {
			verb = "waits"
		}
		c.Add(name, Warn, "", fmt.Sprintf("%s %s that no registered worker takes: %s", prose.Count(total, "execution"),
			verb, strings.Join(list, "; ")),
			"start a worker with such a handler, or cancel the work; see docs/runbook/FlowFabricNoWorkerServes.md and 'flowfabric why ID'")
	}
}

func (c *Checkup) rights(r RightsReport) {
	const name = "rights"
	switch {
	case len(r.Denied) > 0:
		c.Add(name, Fail, "", fmt.Sprintf("user %q may not run %s on ff:* keys and channels", r.User,
			strings.Join(r.Denied, ", ")), "grant them (ACL SETUSER)")
	case r.Checked && len(r.Unknown) > 0:
		c.Add(name, OK, "", fmt.Sprintf("user %q may run every command that the server has", r.User), "")
	case r.Checked:
		c.Add(name, OK, "", fmt.Sprintf("user %q may do all that is needed", r.User), "")
	case errors.Is(r.Err, flowfabric.ErrAuth):
		c.Add(name, Skip, "", prose.Join(": ", "the user may not ask what it may do", r.User), "")
	default:
		c.Add(name, Skip, "", prose.Message(r.Err), "")
	}
}
