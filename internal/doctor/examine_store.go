package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

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

// gates names those whose amounts have no room for the work that waits for them.
func (c *Checkup) gates(s StoreReport) {
	const name, most = "gates", 10
	if !s.Booted || s.Err != nil || s.WorkErr != nil {
		return
	}
	names := s.UsedUp.Names()
	found := make([]string, 0, most)
	for _, gate := range names[:min(len(names), most)] {
		found = append(found, fmt.Sprintf("gate %s is used up: %d wait", gate, s.UsedUp[gate]))
	}
	if more := len(names) - most; more > 0 {
		found = append(found, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		c.Add(name, OK, "", "none keeps work waiting", "")
		return
	}
	c.Add(name, Warn, "", strings.Join(found, ", "),
		"the work waits for the next period or more room: 'flowfabric gate show' says what was used and refused; raise the limit ('flowfabric gate update'), or reset it")
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
	var gates []string
	for _, a := range s.Ahead {
		if a.Gate != "" {
			gates = append(gates, fmt.Sprintf("%s by %s", a.Gate, prose.Span(a.By)))
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
	if len(gates) > 0 {
		c.Add(name, Warn, "", "windows have starts in the future, of "+prose.Count(len(gates), "gate")+": "+
			strings.Join(gates[:min(5, len(gates))], ", "),
			"they do not count, and go with the gate's next start; "+keep)
	}
	if len(back)+len(sessions)+len(gates) == 0 {
		c.Add(name, OK, "", "no session and no gate's window lies ahead of the server's clock", "")
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
