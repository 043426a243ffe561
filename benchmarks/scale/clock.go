package scale

import (
	"container/heap"
	"time"
)

// clock is virtual time: what happens next happens at once.
type clock struct {
	now    time.Duration
	queue  events
	number uint64
}

type event struct {
	at     time.Duration
	number uint64 // events of one moment happen in the order they were made
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1].do = nil
	*q = (*q)[:len(*q)-1]
	return last
}

// after lets something happen later.
func (c *clock) after(d time.Duration, do func()) {
	c.number++
	heap.Push(&c.queue, event{c.now + d, c.number, do})
}

// run lets everything happen until a moment, or until over says that it is enough.
func (c *clock) run(until time.Duration, over func() bool) {
	for len(c.queue) > 0 && !over() {
		if c.queue[0].at > until {
			c.now = until
			return
		}
		e := heap.Pop(&c.queue).(event)
		c.now = e.at
		e.do()
	}
}

// station executes one call at a time, in the order of arrival: a primary, or the processor of a worker.
type station struct {
	clock *clock
	queue []call
	busy  bool
	used  time.Duration // executing
	calls int

	waited time.Duration // of all calls, before they were executed
}

// call is executed when its turn comes: do decides then how long that takes and what happens afterwards.
type call struct {
	came time.Duration
	do   func() (takes time.Duration, then func())
}

// arrive queues a call.
func (s *station) arrive(do func() (time.Duration, func())) {
	s.queue = append(s.queue, call{s.clock.now, do})
	if !s.busy {
		s.next()
	}
}

func (s *station) next() {
	if s.busy = len(s.queue) > 0; !s.busy {
		return
	}
	first := s.queue[0]
	s.queue[0] = call{}
	s.queue = s.queue[1:]
	s.calls++
	s.waited += s.clock.now - first.came
	takes, then := first.do()
	s.used += takes
	s.clock.after(takes, func() {
		then()
		s.next()
	})
}
