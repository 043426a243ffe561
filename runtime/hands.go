package runtime

import (
	"sync"

	"github.com/sourcegraph/conc"
)

// maxIdleHands bounds the goroutines that are kept without work.
const maxIdleHands = 256

// hands run jobs on goroutines that are kept for the next job: to grow a new stack costs a short job more than all else
// that is done for it here. So a handler that locks its thread, or labels its goroutine, undoes that (handler.Bind).
type hands struct {
	all conc.WaitGroup

	mu     sync.Mutex
	idle   []chan *job // the one that worked last is at the end: its stack is warm
	closed bool
}

// do runs a job, at once.
func (h *hands) do(j *job) {
	h.mu.Lock()
	if n := len(h.idle); n > 0 {
		next := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		next <- j
		return
	}
	h.mu.Unlock()
	h.all.Go(func() { h.work(j) })
}

// work runs one job after the other. A handler that ends its goroutine (runtime.Goexit) ends it.
func (h *hands) work(j *job) {
	next := make(chan *job, 1)
	for ok := true; ok; j, ok = <-next {
		j.run.work(j)
		if !h.rest(next) {
			return
		}
	}
}

// rest books a goroutine as idle, unless there are enough of them.
func (h *hands) rest(next chan *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) >= maxIdleHands {
		return false
	}
	h.idle = append(h.idle, next)
	return true
}

// close lets idle goroutines go, and busy ones at the end of their job.
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}

// wait returns when all have ended, after close.
func (h *hands) wait() { h.all.Wait() }
