package source

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Busy workers take hot partitions in turn. Priority orders the queues of one partition, so work of high priority
// would wait until its partition has its turn. What makes such work claimable says so: to a waiter, with the ring,
// and if nobody waits, to all workers. A partition of which that was said is marked, and comes before the others:
//
//	"w9000", or "9000 <route>" ─▶ mark ──Take: before those in turn──▶ claim round ─▶ the mark stays while it may bring
//	                                                                                  more, else it goes
//
// Nobody need be told: a message that is lost leaves the partition in its turn. A mark that is out of date costs one
// claim.

// mark is urgent work that a partition has.
type mark struct {
	priority int
	route    uint64 // 0 is not known
	rounds   int    // that were made for it
}

const (
	// markRounds bounds the claim rounds that are made for one mark: work of other lanes and namespaces has its turns
	// meanwhile.
	markRounds = 16
	// numbered is what the numbers of routes have behind that of their class, unless they are the class's own.
	numbered = 1_000_000_000
)

// parseUrgent reads a message of [engine.UrgentChannel].
func parseUrgent(message string) (m mark, ok bool) {
	priority, route, _ := strings.Cut(message, " ")
	n, err := strconv.Atoi(priority)
	id, wrong := strconv.ParseUint(route, 10, 64)
	return mark{priority: n, route: id}, err == nil && wrong == nil && n > 0
}

// urge marks a partition that has urgent work for which nobody waited. It makes none hot: if this worker is
// registered there, the work is not for it, or the ring that took its registration comes, too.
func (s *Source) urge(p *Partition, m mark) {
	s.mu.Lock()
	s.put(p, m)
	p.dry = false
	s.mu.Unlock()
	s.cfg.OnHot()
}

// put marks a partition, unless it has a mark of a higher priority. Called with mu held.
func (s *Source) put(p *Partition, m mark) {
	if m.priority <= p.urgent.priority {
		return
	}
	if p.urgent.priority == 0 {
		s.marked++
	}
	p.urgent = m
}

// serve moves the mark of a partition to the claim round that begins. Called with mu held.
func (s *Source) serve(p *Partition) {
	if p.urgent.priority > 0 {
		s.marked--
	}
	p.served, p.urgent = p.urgent, mark{}
}

// level is how urgent a partition is: the priority of its mark, 0 if that is no more than what claims bring anyhow,
// or not for this worker. Called with mu held, for a partition from which nothing is being claimed.
func (s *Source) level(p *Partition) int {
	m := p.urgent
	if m.priority <= s.recent.lowest() {
		return 0
	}
	if class := m.class(); class > 0 {
		if _, known := p.table.Route(class); known && !slices.Contains(p.subscription, class) {
			return 0
		}
	}
	return m.priority
}

func (m mark) class() uint64 {
	if m.route >= numbered {
		return m.route / numbered
	}
	return m.route
}

// before is the first in hot that is more urgent than what is in turn, and that may be claimed from; -1 if none is.
// Called with mu held.
func (s *Source) before(now time.Time, ahead bool) int {
	found, most := -1, 0
	if s.marked == 0 {
		return found
	}
	for i, p := range s.hot {
		if level := s.level(p); level > most && s.claimable(p, now, ahead) {
			found, most = i, level
		}
	}
	return found
}

// visited learns what a claim brought. The mark stays as long as nothing lower came of the same lane and namespace,
// and until the partition will ring: of what comes up to then, workers may not be told again.
func (s *Source) visited(p *Partition, claims []*engine.Claim, registered bool) {
	low, of := math.MaxInt, engine.Route{}
	if p.served.route > 0 {
		if r, known := p.table.Route(p.served.route); known {
			of = r
		} else {
			of, _ = p.table.Route(p.served.class())
			of.Namespace = ""
		}
	}
	over := registered
	for _, c := range claims {
		low = min(low, c.Priority)
		r, _ := p.table.Route(c.Route)
		mine := (of.Lane == "" || of.Lane == r.Lane) && (of.Namespace == "" || of.Namespace == r.Namespace)
		over = over || mine && c.Priority < p.served.priority
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(claims) > 0 {
		s.recent.add(low)
	}
	if p.served.rounds++; over || p.served.rounds >= markRounds {
		p.served = mark{}
	}
}

// elsewhere tells whether another partition has urgent work. Called with mu held.
func (s *Source) elsewhere(p *Partition) bool {
	if s.marked == 0 {
		return false
	}
	return slices.ContainsFunc(s.hot, func(other *Partition) bool { return other != p && s.level(other) > s.level(p) })
}

// recent is the lowest priority that the last claims brought, of one to two times as many as it has room for; 0 until
// it knows. Where all work has one priority, none of it is urgent.
type recent struct {
	room, n     int
	now, before int
}

func newRecent(room int) recent { return recent{room: room, now: math.MaxInt} }

func (r *recent) lowest() int { return min(r.now, r.before) }

func (r *recent) add(priority int) {
	r.now = min(r.now, priority)
	if r.n++; r.n >= r.room {
		r.now, r.before, r.n = math.MaxInt, r.now, 0
	}
}
