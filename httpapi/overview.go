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
	sampleWatched = 3 * time.Second  // while somebody watches
	sampleAlone   = 10 * time.Second // while nobody does, and the distance of the points of the history
	sampleHistory = 360              // points: one hour
	sampleShare   = 100              // a look takes at most one part in so many of the time, however large the store is
	sampleTimeout = 20 * time.Second
	overviewTop   = 50 // queues of an overview
)

// self is what somebody may do here.
type self struct {
	Principal
	Operations []string `json:"operations" jsonschema:"the operations of this document that they may use"`
}

func (c *call) self() error {
	out := self{c.who, []string{}}
	if len(out.Namespaces) == 0 {
		out.Namespaces = nil
	}
	for _, r := range c.h.routes {
		if len(r.need) == 0 || slices.Contains(r.need, c.who.Role) && !(r.global() && len(c.who.Namespaces) > 0) {
			out.Operations = append(out.Operations, r.name)
		}
	}
	return c.answerJSON(http.StatusOK, out)
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
	watchedOverview
	History []point `json:"history" jsonschema:"of the last hour, every ten seconds, as far as this process has looked; empty for a token that is bound to namespaces"`
}

// watchedOverview is what followers of the overview are told. Of a token that is bound to namespaces, now has only what
// queues tell.
type watchedOverview struct {
	Now    admin.Overview `json:"now"`
	Queues []admin.Queue  `json:"queues" jsonschema:"the fifty with most work"`
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
	last     *admin.Overview
	err      error
	history  []point
	recent   []admin.Overview // of the last ten seconds or so
	changed  chan struct{}    // closed when there is another look
	wake     chan struct{}    // somebody begins to watch
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
		case <-s.wake: // not before a look that is under way, or was made a moment ago, is three seconds old
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
func (s *sampler) seen() (l *admin.Overview, history []point, changed <-chan struct{}, err error) {
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
			s.history = append(s.history, point{l.At, l.Waiting, l.Active, l.Suspended, l.CompletedRate, l.FailedRate})
			s.history = s.history[max(0, len(s.history)-sampleHistory):]
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// rate tells how fast counts have risen since about ten seconds before.
func (s *sampler) rate(l *admin.Overview) {
	s.recent = append(s.recent, *l)
	for len(s.recent) > 2 && l.At.Sub(s.recent[1].At) >= sampleAlone {
		s.recent = s.recent[1:]
	}
	l.Since(s.recent[0])
}

// observe asks the store. What some partitions do not tell is missing in the sums; it is an error when none answers.
func observe(ctx context.Context, a *admin.Admin) (*admin.Overview, error) {
	o, err := a.Overview(ctx, admin.AllNamespaces)
	if o.Partitions == 0 {
		return nil, err
	}
	o.UsedUp = o.UsedUp[:min(len(o.UsedUp), 10)]
	slices.SortStableFunc(o.Queues, func(a, b admin.Queue) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Stored, a.Stored))
	})
	return &o, nil
}

// shown is what a principal may know of a look.
func shown(o admin.Overview, who Principal) watchedOverview {
	if len(who.Namespaces) > 0 {
		all := o.Queues
		o = admin.Overview{At: o.At, Partitions: o.Partitions, Queues: []admin.Queue{}}
		for _, q := range all {
			if !who.may(q.Namespace) {
				continue
			}
			o.Queues, o.Waiting, o.Stored = append(o.Queues, q), o.Waiting+q.Waiting, o.Stored+q.Stored
			if !q.OldestAt.IsZero() && (o.OldestAt.IsZero() || q.OldestAt.Before(o.OldestAt)) {
				o.OldestAt = q.OldestAt
			}
		}
	}
	return watchedOverview{o, o.Queues[:min(len(o.Queues), overviewTop)]}
}

// first waits for the first look.
func (c *call) first() (*admin.Overview, []point, <-chan struct{}, error) {
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

func (c *call) overview() (out overview, err error) {
	if q := c.query(); q.err != nil {
		return out, q.err
	}
	c.h.sampler.start()
	l, history, _, err := c.first()
	if err != nil {
		return out, err
	}
	return overview{shown(*l, c.who), history}, nil
}

// overviews follows the overview: a look every three seconds, made once for everybody who follows.
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
	var last *admin.Overview
	for {
		switch {
		case err != nil: // what was seen before is still what is known
			err = out.emit("", "away", problemText{err.Error()})
		case l != last:
			err, last = out.emit("", "sample", shown(*l, c.who)), l
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
