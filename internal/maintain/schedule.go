package maintain

import (
	"container/heap"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// phase is where a partition is between two ticks.
type phase uint8

const (
	waiting phase = iota // for its due time if scheduled, else for a ring
	ticking              // a call is under way
	failing              // pausing after an error
)

// partition is what the loop remembers of one partition.
type partition struct {
	id     uint16
	state  phase
	owned  bool      // by the last answer
	unsure bool      // the last call failed: we may be owner without knowing
	again  bool      // rung while a call was under way
	ask    bool      // the next call asks the owner, if that is another process
	asked  bool      // the last call did
	ended  time.Time // of the last call

	failures int // in a row
	backoff  backoff.BackOff

	scheduled bool
	when      time.Time // due time while scheduled
	index     int       // in the heap while scheduled
}

// afterRefusal is when a bystander may try (again) to take over: a hint that the server refuses to honour,
// repeated with every claim, must not become a tick with every claim.
func (p *partition) afterRefusal(now time.Time) time.Time {
	return later(now, p.ended.Add(bystanderPause))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// schedule orders the partitions that wait for a time. Equal times need no order: a partition with more work
// is due "now", which is behind everybody who was due before.
type schedule struct {
	queue byTime
	byID  map[uint16]*partition
}

// at schedules or reschedules p.
func (s *schedule) at(p *partition, when time.Time) {
	p.when = when
	if p.scheduled {
		heap.Fix(&s.queue, p.index)
		return
	}
	p.scheduled = true
	heap.Push(&s.queue, p)
}

// soonest schedules p, or brings it forward if it is scheduled for later.
func (s *schedule) soonest(p *partition, when time.Time) {
	if !p.scheduled || when.Before(p.when) {
		s.at(p, when)
	}
}

// next is the partition that is due first; nil when none waits for a time.
func (s *schedule) next() *partition {
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0]
}

// due takes the first partition out of the schedule if its time has come.
func (s *schedule) due(now time.Time) *partition {
	p := s.next()
	if p == nil || p.when.After(now) {
		return nil
	}
	heap.Pop(&s.queue)
	p.scheduled = false
	return p
}

// byTime implements heap.Interface.
type byTime []*partition

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].when.Before(q[j].when) }
func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *byTime) Push(x any) {
	p := x.(*partition)
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *byTime) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
