package bullmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// worker is a worker of the store's process, seen from here.
type worker struct {
	ctx     context.Context // of handlers
	handle  func(context.Context, []byte)
	host    *process
	running conc.WaitGroup // handlers that got a payload
	trouble troubles
}

// troubles are what went wrong in a worker.
type troubles struct {
	mu  sync.Mutex
	all []error
}

func (t *troubles) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, fmt.Errorf("bullmq worker: %w", err))
}

func (t *troubles) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.all...)
}

// stopTimeout bounds how long a worker may take to end after its handlers have.
const stopTimeout = 30 * time.Second

func (s *store) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	handling, cancel := context.WithCancel(ctx)
	here := &worker{ctx: handling, handle: w.Handle}
	number, err := s.enlist(here)
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() error {
		// Stopping goes on when the run is cancelled; then the process is dead and says so.
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		_, err := here.host.call(ctx, request{Op: "stop", Worker: number})
		cancel()
		here.running.Wait()
		s.mu.Lock()
		delete(s.workers, number)
		s.mu.Unlock()
		return errors.Join(err, here.trouble.err())
	}
	_, err = here.host.call(ctx, request{Op: "start", Worker: number, Concurrency: w.Concurrency,
		Counts: w.Counts, WorkMS: float64(w.Work) / float64(time.Millisecond)})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// enlist gives a worker a number and the process of all workers.
func (s *store) enlist(w *worker) (number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil {
		if s.host, err = s.processes.take("worker.js"); err != nil {
			return 0, err
		}
		s.host.listen(s.news)
	}
	w.host = s.host
	s.last++
	s.workers[s.last] = w
	return s.last, nil
}

// news is what the workers' process tells of one of its workers.
func (s *store) news(m message) {
	s.mu.Lock()
	w := s.workers[m.Worker]
	s.mu.Unlock()
	if w == nil {
		return
	}
	ctx := driver.WithBegan(w.ctx, m.at())
	switch {
	case m.Trouble != "":
		w.trouble.add(errors.New(m.Trouble))
	case m.Ask > 0:
		w.running.Go(func() {
			w.handle(ctx, m.Payload)
			if err := w.host.tell(request{Op: "handled", Ask: m.Ask}); err != nil {
				w.trouble.add(err)
			}
		})
	default:
		for range m.Handled {
			w.handle(ctx, nil)
		}
	}
}
