package runtime

import (
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Jobs that come together run together, however long the first ones take: none waits for another's handler.
func TestPoolRunsJobsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 300 // more than goroutines are kept
		begun, release := 0, make(chan struct{})
		var mu sync.Mutex
		h := goroutinePool{run: func(*job) {
			mu.Lock()
			begun++
			mu.Unlock()
			<-release
		}}
		for round := 1; round <= 2; round++ { // with new goroutines, and with kept ones
			for range jobs {
				h.do(&job{})
			}
			synctest.Wait()
			if begun != round*jobs {
				t.Fatalf("round %d: %d jobs have begun, want %d", round, begun, round*jobs)
			}
			for range jobs {
				release <- struct{}{}
			}
			synctest.Wait()
		}
		if kept := len(h.idle); kept != maxIdleGoroutines {
			t.Errorf("%d goroutines are kept, want %d", kept, maxIdleGoroutines)
		}
		h.close()
		h.wait()
	})
}

// Jobs that end at once need a few goroutines, not one each.
func TestPoolIsSmallForShortJobs(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1)) // on more processors it depends on who is faster
	synctest.Test(t, func(t *testing.T) {
		const jobs = 1000
		done := 0
		var mu sync.Mutex
		h := goroutinePool{run: func(*job) {
			mu.Lock()
			done++
			mu.Unlock()
		}}
		for range jobs {
			h.do(&job{})
		}
		synctest.Wait()
		if done != jobs || len(h.idle) > jobs/20 {
			t.Errorf("%d jobs were done by %d goroutines, want %d by a few", done, len(h.idle), jobs)
		}
		h.close()
		h.wait()
	})
}

// A handler that ends its goroutine takes no other job along.
func TestPoolOutlivesGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		var mu sync.Mutex
		h := goroutinePool{run: func(j *job) {
			mu.Lock()
			ended++
			mu.Unlock()
			if j.left {
				goruntime.Goexit()
			}
		}}
		for i := range 20 {
			h.do(&job{left: i%2 == 0})
		}
		synctest.Wait()
		if ended != 20 {
			t.Errorf("%d jobs have run, want 20", ended)
		}
		h.close()
		h.wait()
	})
}
