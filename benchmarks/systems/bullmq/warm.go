package bullmq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// warmJobs go through each process that works before anything is measured, in each of the two ways to submit.
const warmJobs = 5000

// warming is how many jobs that are in all.
func (s System) warming() int { return 2 * warmJobs * s.working() }

// warm submits jobs and handles them. They stay in the server, which is reset before the first round.
func (s System) warm(ctx context.Context, srv driver.Server) (err error) {
	opened, err := s.Open(ctx, srv, driver.Settings{})
	if err != nil {
		return err
	}
	defer opened.Close()
	store := opened.(*store)
	var handled atomic.Int64
	all := make(chan struct{})
	stop, err := store.Work(ctx, driver.Worker{Concurrency: 64, Counts: true, Handle: func(context.Context, []byte) {
		if handled.Add(1) == int64(s.warming()) {
			close(all)
		}
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	payloads := make([][]byte, s.warming()/2)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, "%0256d", i)
	}
	for _, perCall := range []int{1, 100} {
		send, err := store.Prepare(ctx, payloads, 64, perCall)
		if err != nil {
			return err
		}
		if _, err := send(ctx); err != nil {
			return err
		}
	}
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d jobs: %w", handled.Load(), s.warming(), context.Cause(ctx))
	}
}
