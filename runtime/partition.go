package runtime

import (
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// partition is what the worker knows of one partition. The first group is guarded by scheduler.mu, the second
// belongs to the claim round under way (there is at most one).
type partition struct {
	id uint16

	queued      bool // waits in scheduler.hot
	claiming    bool
	stale       bool // the connection was lost: after a failover route ids may mean something else
	rung        bool // since the claim round began, so its registration is worth nothing
	registered  bool // the server will ring when matching work arrives
	ahead       bool // the claim round claims ahead of slots: it must not register
	dry         bool // nothing is left to claim ahead
	more        bool // the last claim left some
	until       time.Time
	owed        time.Time // when it was rung for work that no claim round has looked for since: the ring may have to be forwarded
	failures    int
	notBefore   time.Time // backoff after a failed claim round
	backoff     *backoff.ExponentialBackOff
	polled      bool      // hot only because the poll saw ready routes
	emptyPolls  int       // how often in a row that led to nothing: the routes are other workers'
	ignorePolls time.Time // what polls see is ignored until then

	table        map[uint64]engine.Route // a class each, by its own route
	others       map[uint64]engine.Route // other routes that claims brought, not all of them
	version      uint64
	subscription []uint64
	gated        bool   // some of it has had gates; changed under scheduler.mu
	digest       string // "" until the subscription is stored
	rotation     uint64
}

func newPartition(id uint16) *partition {
	return &partition{id: id, table: map[uint64]engine.Route{}, others: map[uint64]engine.Route{}, backoff: newBackoff(100*time.Millisecond, 5*time.Second)}
}

// learn merges the table delta of a reply.
func (p *partition) learn(reply engine.ClaimReply) {
	if reply.Table < p.version { // a failover lost rows that we know: start over
		clear(p.table)
		clear(p.others)
		p.version, p.digest = 0, ""
		return
	}
	if reply.TableFull {
		clear(p.table)
	}
	if len(p.others) > maxOthers {
		clear(p.others)
	}
	for _, r := range reply.Others {
		p.others[r.ID] = r
	}
	for _, r := range reply.Routes {
		p.table[r.ID] = r
	}
	p.version = reply.Table
	if len(p.table) > limits.MaxClasses { // nobody tells of rows that went: ask for all there are
		p.version = 0
	}
}

// route is where a claim comes from.
func (p *partition) route(id uint64) (r engine.Route, known bool) {
	if r, known = p.others[id]; !known {
		r, known = p.table[id]
	}
	return r, known
}

// maxOthers is how many routes of claims are remembered; the reply to each claim has all that it needs.
const maxOthers = 4096

// offer is what a worker can serve.
type offer struct {
	namespaces   map[string]bool
	all          bool // namespaces
	lanes        map[string]bool
	kinds        map[string]bool
	capabilities map[string]bool
}

func newOffer(cfg Config, kinds []string) offer {
	set := func(names []string) map[string]bool {
		m := make(map[string]bool, len(names))
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	return offer{
		namespaces: set(append([]string{cfg.Namespace}, cfg.Namespaces...)), all: slices.Contains(cfg.Namespaces, allNamespaces),
		lanes: set(cfg.Lanes), kinds: set(kinds), capabilities: set(cfg.Capabilities),
	}
}

// serves reports whether work of a route may be given to this worker: namespace, lane and kind are among its own, and
// it has every required capability.
func (o offer) serves(r engine.Route) bool {
	return (o.all || o.namespaces[r.Namespace]) && o.class(r)
}

// class reports whether the worker serves a class of work, of whichever namespace.
func (o offer) class(r engine.Route) bool {
	return o.lanes[r.Lane] && o.kinds[r.Kind] && !slices.ContainsFunc(r.Capabilities, func(c string) bool { return !o.capabilities[c] })
}

// spaces are the namespaces of a subscription, none for all.
func (o offer) spaces() []string {
	if o.all {
		return nil
	}
	return slices.Sorted(maps.Keys(o.namespaces))
}

// subscription lists the classes of a table that the offer serves, in order.
func (o offer) subscription(table map[uint64]engine.Route) []uint64 {
	ids := make([]uint64, 0, len(table))
	for id, r := range table {
		if o.class(r) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[max(0, len(ids)-limits.MaxClasses):] // the newest: the others include all that went
}

// newBackoff is the one shape of backoff in this package: doubling, ±50 %, for ever.
func newBackoff(initial, ceiling time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(initial), backoff.WithMaxInterval(ceiling),
		backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
}
