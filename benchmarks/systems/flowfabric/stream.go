package flowfabric

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Streams implements [driver.Streamer]: n executions whose handlers wait for stop while their fences are used.
func (s *store) Streams(ctx context.Context, n int) ([]driver.Stream, func() error, error) {
	tasks := make(chan *handler.Task, n)
	over := make(chan struct{})
	stopWorker, err := s.work(ctx, driver.Worker{Concurrency: n},
		func(ctx context.Context, t *handler.Task, _ []byte) ([]byte, error) {
			tasks <- t
			select {
			case <-over:
			case <-ctx.Done():
			}
			return nil, nil
		})
	if err != nil {
		return nil, nil, err
	}
	stop := func() error {
		close(over)
		return stopWorker()
	}
	if _, err := client.SubmitMany(ctx, s.client, definition, make([][]byte, n)); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	streams := make([]driver.Stream, 0, n)
	for range n {
		select {
		case t := <-tasks:
			streams = append(streams, &frames{store: s, task: t, next: 1})
		case <-ctx.Done():
			return nil, nil, errors.Join(context.Cause(ctx), stop())
		}
	}
	return streams, stop, nil
}

// frames is the stream of one running execution.
type frames struct {
	store *store
	task  *handler.Task
	next  uint64
	batch []stream.Frame
}

func (f *frames) Append(ctx context.Context, payloads [][]byte) error {
	f.batch = f.batch[:0]
	for _, p := range payloads {
		f.batch = append(f.batch, stream.Frame{Type: "token", Payload: p})
	}
	_, err := f.store.engine.AppendFrames(ctx, f.task.Fence(), f.next, f.batch)
	if err == nil {
		f.next += uint64(len(payloads))
	}
	return err
}

func (f *frames) Tail(ctx context.Context, ready func(), seen func(frame []byte)) error {
	for event, err := range f.store.client.Execution(f.task.ID()).Tail(ctx, client.FromNow()) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case event.Kind == stream.TailAttempt: // the subscription stands and the place to begin is known
			ready()
		case event.Kind == stream.TailFrame:
			seen(event.Frame.Payload)
		}
	}
	return nil
}
