package bullmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// worker is a worker in one of the store's processes, seen from here.
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

// Work starts a worker in each process, all at once, so that none takes the jobs before the others are there.
func (s *store) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	hosts, err := s.enlist(max(1, min(w.Concurrency, s.processes.system.working())))
	if err != nil {
		return nil, err
	}
	starting := pool.NewWithResults[func() error]().WithErrors()
	for i, host := range hosts {
		part := w
		part.Concurrency = (w.Concurrency + i) / len(hosts)
		starting.Go(func() (func() error, error) { return s.workIn(ctx, host, part) })
	}
	stops, err := starting.Wait()
	stop := func() error {
		stopping := pool.New().WithErrors() // at once, too: one that goes on would take what is left
		for _, one := range stops {
			stopping.Go(one)
		}
		return stopping.Wait()
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// enlist returns so many of the processes of all workers, and starts those that are not there.
func (s *store) enlist(n int) ([]*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.hosts) < n {
		p, err := s.processes.take("worker.js")
		if err != nil {
			return nil, err
		}
		p.listen(s.news)
		s.hosts = append(s.hosts, p)
	}
	return s.hosts[:n], nil
}

// workIn starts a worker in a process.
func (s *store) workIn(ctx context.Context, host *process, w driver.Worker) (stop func() error, err error) {
	handling, cancel := context.WithCancel(ctx)
	here, number := &worker{ctx: handling, handle: w.Handle, host: host}, s.number()
	s.mu.Lock()
	s.workers[number] = here
	s.mu.Unlock()
	stop = func() error {
		// Stopping goes on when the run is cancelled; then the process is dead and says so.
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		_, err := host.call(ctx, request{Op: "stop", Worker: number})
		cancel()
		here.running.Wait()
		s.mu.Lock()
		delete(s.workers, number)
		s.mu.Unlock()
		return errors.Join(err, here.trouble.err())
	}
	_, err = host.call(ctx, request{Op: "start", Worker: number, Concurrency: w.Concurrency,
		Counts: w.Counts, WorkMS: float64(w.Work) / float64(time.Millisecond)})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// news is what a process tells of one of its workers.
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
