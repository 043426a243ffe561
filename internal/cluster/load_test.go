package cluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/stream"
)

// load submits all the time, a bounded number ahead, and follows each execution to its end.
type load struct {
	w     *env
	quit  chan struct{}
	slots chan struct{} // one for each execution under way
	owner conc.WaitGroup

	mu      sync.Mutex
	all     []*followed
	ended   [partitions]int // executions whose result was seen
	unknown int             // submits whose outcome nobody knows
}

// followed is one execution and what its followers saw. The fields are complete once the load has ended.
type followed struct {
	id     flowfabric.ExecutionID
	index  int
	got    answer
	err    error                  // of the wait for the result
	seen   bool                   // its result was
	state  flowfabric.PublicState // the end that the tail saw
	broken error                  // what was wrong with the tail
}

// newLoad starts to submit.
func (w *env) newLoad() *load {
	l := &load{w: w, quit: make(chan struct{}), slots: make(chan struct{}, 24)}
	l.owner.Go(l.submit)
	w.Cleanup(func() { l.end() })
	return l
}

func (l *load) submit() {
	for index := 0; ; index++ {
		select {
		case <-l.quit:
			return
		case l.slots <- struct{}{}:
		}
		e, err := client.Submit(l.w.ctx, l.w.client, streaming, job{index})
		if err != nil {
			<-l.slots
			if unknown := new(client.UnknownOutcomeError); !errors.As(err, &unknown) {
				l.w.Errorf("submit %d: %v", index, err)
				return
			}
			l.mu.Lock()
			l.unknown++
			l.mu.Unlock()
			continue
		}
		f := &followed{id: e.ID(), index: index}
		l.mu.Lock()
		l.all = append(l.all, f)
		l.mu.Unlock()
		l.owner.Go(func() {
			var tail conc.WaitGroup
			tail.Go(func() { f.state, f.broken = l.tail(e) })
			f.got, f.err = e.Result(l.w.ctx)
			l.mu.Lock()
			l.ended[f.id.Partition()]++
			f.seen = true
			l.mu.Unlock()
			tail.Wait()
			<-l.slots
		})
	}
}

// tail follows an execution and tells what is wrong with what it saw: each attempt begins with frame 0 and leaves
// nothing out, and the one that succeeds is whole.
func (l *load) tail(e *client.Execution[answer]) (flowfabric.PublicState, error) {
	next := 0
	for event, err := range e.Tail(l.w.ctx) {
		switch {
		case err != nil:
			return "", err
		case event.Kind == stream.TailAttempt:
			next = 0
		case event.Kind == stream.TailGap:
			return "", fmt.Errorf("a gap of %d frames", event.Trimmed)
		case event.Kind == stream.TailFrame && string(event.Frame.Payload) != strconv.Itoa(next):
			return "", fmt.Errorf("frame %s instead of %d", event.Frame.Payload, next)
		case event.Kind == stream.TailFrame:
			next++
		case event.Kind == stream.TailEnd && event.State == flowfabric.Completed && next != frames:
			return "", fmt.Errorf("completed after %d frames of %d", next, frames)
		case event.Kind == stream.TailEnd:
			return event.State, nil
		}
	}
	return "", errors.New("the tail ended without an end")
}

// end stops submitting and waits until every execution was followed to its end.
func (l *load) end() []*followed {
	l.mu.Lock()
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.mu.Unlock()
	l.owner.Wait()
	return l.all
}

// more waits until so many more executions of each given partition have ended, submitted whenever.
func (l *load) more(n int, of ...uint16) {
	l.w.Helper()
	count := func() (c [partitions]int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ended
	}
	before := count()
	l.w.until(fmt.Sprintf("%d more executions of partitions %v have ended", n, of), func() bool {
		now := count()
		for _, p := range of {
			if now[p] < before[p]+n {
				return false
			}
		}
		return true
	})
}

// fresh waits until so many executions of a partition have ended that are submitted from now on.
func (l *load) fresh(n int, p uint16) {
	l.w.Helper()
	l.mu.Lock()
	from := len(l.all)
	l.mu.Unlock()
	l.w.until(fmt.Sprintf("%d new executions of partition %d have ended", n, p), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		ended := 0
		for _, f := range l.all[from:] {
			if f.seen && f.id.Partition() == p {
				ended++
			}
		}
		return ended >= n
	})
}

// everywhere names all partitions.
func everywhere() (all []uint16) {
	for p := range uint16(partitions) {
		all = append(all, p)
	}
	return all
}

// once fails unless every execution ran once, completed, and was seen to by both its followers: nothing was lost, and
// nothing was done twice.
func (l *load) once() {
	l.w.Helper()
	all := l.end()
	for _, f := range all {
		s, err := l.w.read(f.id)
		switch {
		case err != nil || f.err != nil || f.broken != nil:
			l.w.Errorf("%s: read: %v, result: %v, tail: %v", f.id, err, f.err, f.broken)
		case f.got != answer{f.index, frames} || f.state != flowfabric.Completed || s.Code != codes.Completed:
			l.w.Errorf("%s: result %v of %d, the tail ended with %s, the execution is %s", f.id, f.got, f.index,
				f.state,
				s.Code)
		case s.Attempts != 1 || l.w.ran(f.id) != 1:
			l.w.Errorf("%s: %d attempts, a handler ran %d times", f.id, s.Attempts, l.w.ran(f.id))
		}
	}
	if l.unknown > 0 {
		l.w.Errorf("%d submits of unknown outcome", l.unknown)
	}
	l.w.Logf("%d executions, each once", len(all))
}
