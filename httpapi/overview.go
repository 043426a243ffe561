package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// How often the store is looked at for the overview.
const (
	sampleWatched = 2 * time.Second  // while somebody watches
	sampleAlone   = 10 * time.Second // while nobody does, and the distance of the points of the history
	sampleHistory = 360              // points: one hour
	sampleShare   = 100              // a look takes at most one part in so many of the time, however large the store is
	sampleTimeout = 20 * time.Second
	overviewTop   = 50 // queues of an overview
)

// self is what somebody may do here.
type self struct {
	Name       string   `json:"name"`
	Role       Role     `json:"role"`
	Namespaces []string `json:"namespaces,omitempty" jsonschema:"absent: all of them"`
	Operations []string `json:"operations" jsonschema:"the operations of this document that they may use"`
}

func (c *call) self() error {
	out := self{Name: c.who.Name, Role: c.who.Role, Namespaces: c.who.Namespaces, Operations: []string{}}
	for _, r := range c.h.routes {
		if len(r.need) == 0 || slices.Contains(r.need, c.who.Role) && !(r.global() && len(c.who.Namespaces) > 0) {
			out.Operations = append(out.Operations, r.name)
		}
	}
	return c.answerJSON(http.StatusOK, out)
}

// sample is the store at one moment. Of a token that is bound to namespaces it has only what queues tell.
type sample struct {
	At         time.Time         `json:"at"`
	Waiting    int               `json:"waiting"`
	OldestAt   time.Time         `json:"oldest_at,omitzero" jsonschema:"creation of the oldest that waits"`
	Stored     int               `json:"stored" jsonschema:"executions in any state"`
	Delayed    int               `json:"delayed"`
	Suspended  int               `json:"suspended"`
	Held       int               `json:"held"`
	Blocked    int               `json:"waiting_children" jsonschema:"wait for others"`
	Active     int               `json:"active"`
	Ended      int               `json:"ended" jsonschema:"and still stored"`
	Closed     int               `json:"closed" jsonschema:"queues that a budget or quota keeps back, by partition"`
	UsedUp     []admin.UsedUp    `json:"budgets_used_up,omitempty" jsonschema:"budgets that have no room for the work that waits for them, at most ten, those for which most waits in front"`
	Created    float64           `json:"created_per_s" jsonschema:"over the last ten seconds, like the rates that follow"`
	Completed  float64           `json:"completed_per_s"`
	Failed     float64           `json:"failed_per_s" jsonschema:"failed or expired"`
	Workers    int               `json:"workers" jsonschema:"that live"`
	Lost       int               `json:"workers_lost" jsonschema:"that stopped without saying so within the last hour"`
	Slots      int               `json:"slots" jsonschema:"executions that the workers can run at once"`
	Partitions int               `json:"partitions" jsonschema:"that answer"`
	Silent     int               `json:"partitions_silent" jsonschema:"that do not answer"`
	Frozen     int               `json:"partitions_frozen"`
	Overdue    int               `json:"partitions_overdue" jsonschema:"no process runs their timers"`
	Lag        flowfabric.Millis `json:"lag_ms" jsonschema:"for how long the earliest thing is due that nobody has done"`
}

// point is a sample of the history.
type point struct {
	At        time.Time `json:"at"`
	Waiting   int       `json:"waiting"`
	Active    int       `json:"active"`
	Suspended int       `json:"suspended"`
	Completed float64   `json:"completed_per_s"`
	Failed    float64   `json:"failed_per_s"`
}

type overview struct {
	Now     sample        `json:"now"`
	Queues  []admin.Queue `json:"queues" jsonschema:"the fifty with most work"`
	History []point       `json:"history" jsonschema:"of the last hour, every ten seconds, as far as this process has looked; empty for a token that is bound to namespaces"`
}

// counts is what has happened since the store was made.
type counts struct {
	at                         time.Time
	created, completed, failed int
}

// look is what was seen at once.
type look struct {
	sample
	queues []admin.Queue // all of them
	counts counts
}

// sampler looks at the store for everybody who watches, and keeps what it saw.
type sampler struct {
	admin  *admin.Admin
	ctx    context.Context
	cancel context.CancelFunc
	loop   conc.WaitGroup

	mu       sync.Mutex
	started  bool
	watchers int
	last     *look
	err      error
	history  []point
	recent   []counts      // of the last ten seconds or so
	changed  chan struct{} // closed when there is another look
	wake     chan struct{} // somebody begins to watch
}

func newSampler(a *admin.Admin) *sampler {
	s := &sampler{admin: a, changed: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// start begins to look, if nobody has begun before.
func (s *sampler) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && s.ctx.Err() == nil {
		s.started = true
		s.loop.Go(s.run)
	}
}

func (s *sampler) close() {
	s.mu.Lock()
	s.cancel() // no start after this
	s.mu.Unlock()
	s.loop.Wait()
}

func (s *sampler) run() {
	pause, began := time.NewTimer(0), time.Time{}
	defer pause.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake: // not before a look that is under way, or was made a moment ago, is two seconds old
			pause.Reset(max(0, sampleWatched-time.Since(began)))
			continue
		case <-pause.C:
		}
		began = time.Now()
		s.take()
		s.mu.Lock()
		every := sampleAlone
		if s.watchers > 0 {
			every = sampleWatched
		}
		s.mu.Unlock()
		pause.Reset(max(every, sampleShare*time.Since(began)))
	}
}

// watch asks for more frequent looks until the function that it returns is called.
func (s *sampler) watch() (leave func()) {
	s.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers++
	if s.watchers == 1 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers--
	}
}

// seen is the last look, or why there is none, the history, and what is closed when there is another one.
func (s *sampler) seen() (l *look, history []point, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, slices.Clone(s.history), s.changed, s.err
}

// take looks once. A store that does not answer at all leaves what was seen before.
func (s *sampler) take() {
	ctx, cancel := context.WithTimeout(s.ctx, sampleTimeout)
	defer cancel()
	l, err := observe(ctx, s.admin)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err == nil {
		s.rate(l)
		s.last = l
		if n := len(s.history); n == 0 || l.At.Sub(s.history[n-1].At) >= sampleAlone-sampleWatched/2 {
			s.history = append(s.history, point{l.At, l.Waiting, l.Active, l.Suspended, l.Completed, l.Failed})
			s.history = s.history[max(0, len(s.history)-sampleHistory):]
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// rate tells how fast counts have risen since about ten seconds before.
func (s *sampler) rate(l *look) {
	s.recent = append(s.recent, l.counts)
	for len(s.recent) > 2 && l.counts.at.Sub(s.recent[1].at) >= sampleAlone {
		s.recent = s.recent[1:]
	}
	first := s.recent[0]
	d := l.counts.at.Sub(first.at).Seconds()
	if d <= 0 {
		return
	}
	// a store that was emptied starts over
	per := func(before, now int) float64 { return float64(max(0, now-before)) / d }
	l.Created, l.Completed, l.Failed = per(first.created, l.counts.created), per(first.completed, l.counts.completed),
		per(first.failed, l.counts.failed)
}

// observe asks the store. What some partitions do not tell is missing in the sums; it is an error when none answers.
func observe(ctx context.Context, a *admin.Admin) (*look, error) {
	l := &look{}
	partitions, err := a.Partitions(ctx)
	for _, p := range partitions {
		if p.Err != nil {
			l.Silent++
			continue
		}
		l.Partitions++
		if p.Now.After(l.At) {
			l.At = p.Now.UTC()
		}
		l.Delayed += p.Delayed.Count
		l.Suspended += p.Suspended.Count
		l.Blocked += p.Blocked.Count
		l.Held += p.Held.Count
		l.Ended += p.Ended.Count
		l.Closed += p.Closed.Count
		l.counts.completed += p.Totals.Completed
		l.counts.failed += p.Totals.Failed + p.Totals.Expired
		l.counts.created += p.Totals.Purged // and what is stored
		l.Lag = max(l.Lag, p.Lag)
		if p.Frozen {
			l.Frozen++
		}
		if p.TickOverdue {
			l.Overdue++
		}
	}
	if l.Partitions == 0 {
		return nil, err
	}
	l.counts.at = l.At
	if l.Closed > 0 {
		gates, _ := a.Gates(ctx)
		for _, b := range gates.UsedUp() {
			if len(l.UsedUp) < 10 {
				l.UsedUp = append(l.UsedUp, b)
			}
		}
	}
	workers, _ := a.Workers(ctx) // partitions that do not answer were counted
	for _, w := range workers {
		l.Active += w.InFlight
		switch {
		case w.Alive:
			l.Workers++
			l.Slots += w.Concurrency
		case !w.Dead:
			l.Lost++
		}
	}
	queues, err := a.Queues(ctx, admin.AllNamespaces)
	if queues == nil {
		return nil, err
	}
	l.queues = queues
	slices.SortStableFunc(l.queues, func(a, b admin.Queue) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Stored, a.Stored))
	})
	l.sum(l.queues)
	l.counts.created += l.Stored
	return l, nil
}

// sum is what queues tell.
func (s *sample) sum(queues []admin.Queue) {
	s.Waiting, s.Stored, s.OldestAt = 0, 0, time.Time{}
	for _, q := range queues {
		s.Waiting += q.Waiting
		s.Stored += q.Stored
		if !q.OldestAt.IsZero() && (s.OldestAt.IsZero() || q.OldestAt.Before(s.OldestAt)) {
			s.OldestAt = q.OldestAt
		}
	}
}

// of is what a principal may know of a look.
func (l *look) of(who Principal) (sample, []admin.Queue) {
	if len(who.Namespaces) == 0 {
		return l.sample, l.queues[:min(len(l.queues), overviewTop)]
	}
	s, own := sample{At: l.At, Partitions: l.Partitions}, []admin.Queue{}
	for _, q := range l.queues {
		if who.may(q.Namespace) {
			own = append(own, q)
		}
	}
	s.sum(own)
	return s, own[:min(len(own), overviewTop)]
}

// first waits for the first look.
func (c *call) first() (*look, []point, <-chan struct{}, error) {
	for {
		l, history, changed, err := c.h.sampler.seen()
		if l != nil || err != nil {
			if len(c.who.Namespaces) > 0 || history == nil {
				history = []point{}
			}
			if err != nil && l == nil {
				return nil, nil, nil, err
			}
			return l, history, changed, nil
		}
		select {
		case <-changed:
		case <-c.ctx().Done():
			return nil, nil, nil, c.ctx().Err()
		case <-c.h.sampler.ctx.Done():
			return nil, nil, nil, flowfabric.ErrDraining
		}
	}
}

func (c *call) overview() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	c.h.sampler.start()
	l, history, _, err := c.first()
	if err != nil {
		return err
	}
	now, queues := l.of(c.who)
	return c.answerJSON(http.StatusOK, overview{Now: now, Queues: queues, History: history})
}

// watched is what followers of the overview are told.
type watchedOverview struct {
	Now    sample        `json:"now"`
	Queues []admin.Queue `json:"queues"`
}

// overviews follows the overview: a look every two seconds, made once for everybody who follows.
func (c *call) overviews() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	defer c.h.sampler.watch()()
	l, _, changed, err := c.first()
	if err != nil {
		return err
	}
	out := newEventWriter(c, eventMedia)
	defer out.close()
	var told *look
	for {
		switch {
		case err != nil: // what was seen before is still what is known
			err = out.emit("", "away", problemText{err.Error()})
		case l != told:
			now, queues := l.of(c.who)
			err, told = out.emit("", "sample", watchedOverview{now, queues}), l
		}
		if err != nil {
			return nil // the reader is gone, or too slow
		}
		select {
		case <-changed:
		case <-c.ctx().Done():
			return nil
		case <-c.h.sampler.ctx.Done():
			return nil
		}
		l, _, changed, err = c.h.sampler.seen()
	}
}

// problemText says why there is nothing to show at the moment.
type problemText struct {
	Detail string `json:"detail"`
}
