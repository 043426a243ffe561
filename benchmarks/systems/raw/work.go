package raw

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// worker takes jobs on one connection. A slot is reserved before a job is taken.
type worker struct {
	driver.Worker
	typed  bool
	client rueidis.Client
	take   rueidis.DedicatedClient
	id     int64 // of take's connection
	slots  chan struct{}
	over   chan struct{} // closed to end it
	ended  chan struct{} // closed when nothing is taken any more
	err    error         // why, before ended is closed
}

// Work starts a worker with connections of its own.
func (s *store) Work(ctx context.Context, cfg driver.Worker) (stop func() error, err error) {
	client, err := dial(s.socket)
	if err != nil {
		return nil, err
	}
	take, release := client.Dedicate()
	id, err := take.Do(ctx, take.B().ClientId().Build()).AsInt64()
	if err != nil {
		release()
		client.Close()
		return nil, fmt.Errorf("raw: connect a worker: %w", err)
	}
	w := &worker{Worker: cfg, typed: s.typed, client: client, take: take, id: id,
		slots: make(chan struct{}, cfg.Concurrency), over: make(chan struct{}), ended: make(chan struct{})}
	var running conc.WaitGroup
	running.Go(func() {
		defer close(w.ended)
		w.err = w.run(ctx, &running)
	})
	return func() error {
		close(w.over)
		w.wake(ctx)
		running.Wait()
		release()
		client.Close()
		return w.err
	}, nil
}

// run takes batches and starts a goroutine for every job.
func (w *worker) run(ctx context.Context, running *conc.WaitGroup) error {
	// A call that could be cancelled costs the client two goroutines more. It is ended by [worker.wake].
	calls := context.WithoutCancel(ctx)
	for free := 0; ; {
		if free == 0 {
			select {
			case w.slots <- struct{}{}:
				free = 1
			case <-w.over:
				return nil
			}
		}
		free = w.reserve(free)
		select {
		case <-w.over:
			return nil
		default:
		}
		jobs, err := w.pop(calls, free)
		if err != nil {
			return err
		}
		free -= len(jobs)
		for _, job := range jobs {
			payload, err := job.AsBytes()
			if err != nil {
				return fmt.Errorf("raw: a job's payload: %w", err)
			}
			running.Go(func() {
				if w.typed {
					var in driver.Document
					if err := json.Unmarshal(payload, &in); err == nil { // else the scenario misses a job
						w.Handle(ctx, []byte(in.Text))
					}
					<-w.slots
					return
				}
				w.Handle(ctx, payload)
				<-w.slots
			})
		}
	}
}

// reserve takes all other slots that are free now.
func (w *worker) reserve(free int) int {
	for {
		select {
		case w.slots <- struct{}{}:
			free++
		default:
			return free
		}
	}
}

// pop takes up to n jobs, the oldest first, and waits when there is none. It returns nothing when it was woken.
func (w *worker) pop(ctx context.Context, n int) ([]rueidis.RedisMessage, error) {
	pop := w.take.B().Blmpop().Timeout(0).Numkeys(1).Key(key).Right().Count(int64(n)).Build()
	reply, err := w.take.Do(ctx, pop).ToArray() // key, elements
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("raw: take jobs: %w", err)
	}
	if len(reply) != 2 {
		return nil, fmt.Errorf("raw: take jobs: a reply of %d parts, want 2", len(reply))
	}
	return reply[1].ToArray()
}

// wake ends a waiting pop until the worker has seen that it is over: it may have been about to wait.
func (w *worker) wake(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		// An error means that the connection is gone, and then the pop has ended by itself.
		_ = w.client.Do(ctx, w.client.B().ClientUnblock().ClientId(w.id).Build()).Error()
		select {
		case <-w.ended:
			return
		case <-again.C:
		}
	}
}
