package runtime

import (
	"slices"
	"sync"

	"github.com/sourcegraph/conc"
)

// maxIdleHands bounds the goroutines that are kept without work.
const maxIdleHands = 256

// hands run jobs on goroutines that are kept for the next job: to grow a new stack costs a short job more than all else
// that is done for it here. So a handler that locks its thread, or labels its goroutine, undoes that (handler.Bind).
//
// Jobs that come together wait in a queue. Whoever takes one wakes the next goroutine, if that is not on its way yet, and looks for another
// when it is done. So no job waits for a handler that takes its time, and handlers that return at once need two goroutines, not as many
// as there are jobs.
type hands struct {
	run func(*job)
	all conc.WaitGroup

	mu     sync.Mutex
	queue  []*job          // not taken yet; those before head are
	head   int             // of queue
	idle   []chan struct{} // the one that worked last is at the end: its stack is warm
	coming bool            // a goroutine was woken, or started, and has not looked at the queue yet; so it is while jobs wait
	closed bool
}

// do runs a job, at once.
func (h *hands) do(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.head > 0 && len(h.queue) == cap(h.queue) { // those that were taken make room
		h.queue, h.head = slices.Delete(h.queue, 0, h.head), 0
	}
	h.queue = append(h.queue, j)
	h.call()
}

// call brings a goroutine for what waits. Called with mu held.
func (h *hands) call() {
	if h.coming || h.head == len(h.queue) {
		return
	}
	h.coming = true
	if n := len(h.idle); n > 0 {
		next := h.idle[n-1]
		h.idle = h.idle[:n-1]
		next <- struct{}{} // never blocks: it waits for this alone
		return
	}
	h.all.Go(h.work)
}

// work runs one job after the other. A handler that ends its goroutine (runtime.Goexit) ends it.
func (h *hands) work() {
	wake := make(chan struct{}, 1)
	for called := true; ; {
		j, stay := h.next(called, wake)
		switch {
		case j != nil:
			called = false
			h.run(j)
		case stay:
			<-wake
			called = true
		default:
			return
		}
	}
}

// next takes a job for a goroutine, or books it as idle, unless there are enough of them.
func (h *hands) next(called bool, wake chan struct{}) (j *job, stay bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if called {
		h.coming = false
	}
	if h.head < len(h.queue) {
		j, h.queue[h.head] = h.queue[h.head], nil
		if h.head++; h.head == len(h.queue) {
			h.queue, h.head = h.queue[:0], 0
		}
		h.call()
		return j, true
	}
	if h.closed || len(h.idle) >= maxIdleHands {
		return nil, false
	}
	h.idle = append(h.idle, wake)
	return nil, true
}

// close lets idle goroutines go, and busy ones at the end of their job.
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, wake := range h.idle {
		close(wake)
	}
	h.idle = nil
}

// wait returns when all have ended, after close.
func (h *hands) wait() { h.all.Wait() }
