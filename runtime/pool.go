package runtime

import (
	"slices"
	"sync"

	"github.com/sourcegraph/conc"
)

// maxIdleGoroutines bounds the goroutines that are kept without work.
const maxIdleGoroutines = 256

// goroutinePool runs jobs on goroutines that are kept for the next job: to grow a new stack costs a short job more
// than all else that is done for it here. So a handler that locks its thread, or labels its goroutine, undoes that
// (handler.Bind).
//
// Jobs that come together wait in a queue. The goroutine that takes one wakes the next, if that is not on its way
// yet, and looks for another when it is done. So no job waits for a handler that takes its time, and handlers that
// return at once need two goroutines, not as many as there are jobs.
type goroutinePool struct {
	run func(*job)
	all conc.WaitGroup

	mu    sync.Mutex
	queue []*job          // not taken yet; those before head are
	head  int             // of queue
	idle  []chan struct{} // the one that worked last is at the end: its stack is warm
	// a goroutine was woken, or started, and has not looked at the queue yet; so it is while jobs wait
	coming bool
	closed bool
}

// do runs a job, at once.
func (p *goroutinePool) do(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head > 0 && len(p.queue) == cap(p.queue) { // those that were taken make room
		p.queue, p.head = slices.Delete(p.queue, 0, p.head), 0
	}
	p.queue = append(p.queue, j)
	p.call()
}

// call brings a goroutine for what waits. Called with mu held.
func (p *goroutinePool) call() {
	if p.coming || p.head == len(p.queue) {
		return
	}
	p.coming = true
	if n := len(p.idle); n > 0 {
		next := p.idle[n-1]
		p.idle = p.idle[:n-1]
		next <- struct{}{} // never blocks: it waits for this alone
		return
	}
	p.all.Go(p.work)
}

// work runs one job after the other. A handler that ends its goroutine (runtime.Goexit) ends it.
func (p *goroutinePool) work() {
	wake := make(chan struct{}, 1)
	for called := true; ; {
		j, stay := p.next(called, wake)
		switch {
		case j != nil:
			called = false
			p.run(j)
		case stay:
			<-wake
			called = true
		default:
			return
		}
	}
}

// next takes a job for a goroutine, or notes it as idle, unless there are enough of them.
func (p *goroutinePool) next(called bool, wake chan struct{}) (j *job, stay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if called {
		p.coming = false
	}
	if p.head < len(p.queue) {
		j, p.queue[p.head] = p.queue[p.head], nil
		if p.head++; p.head == len(p.queue) {
			p.queue, p.head = p.queue[:0], 0
		}
		p.call()
		return j, true
	}
	if p.closed || len(p.idle) >= maxIdleGoroutines {
		return nil, false
	}
	p.idle = append(p.idle, wake)
	return nil, true
}

// close lets idle goroutines go, and busy ones at the end of their job.
func (p *goroutinePool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, wake := range p.idle {
		close(wake)
	}
	p.idle = nil
}

// wait returns when all have ended, after close.
func (p *goroutinePool) wait() { p.all.Wait() }
