package flowfabric

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const waitKey = "go"

// Suspend implements [driver.Suspender]: each execution hands out the token of a pending waitpoint and awaits it.
func (s *store) Suspend(ctx context.Context, payload []byte, n int,
	resumed func(int)) (func(context.Context, int) error, func() error, error) {
	var mu sync.Mutex
	tokens, index := []suspend.Token{}, map[string]int{}
	handedOut := make(chan struct{}, n)
	stop, err := s.work(ctx, driver.Worker{Concurrency: 64},
		func(ctx context.Context, t *handler.Task, _ []byte) ([]byte, error) {
			if _, again := t.Resumed(); !again {
				token, err := t.Pending(ctx, waitKey, time.Hour)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				index[t.ID().String()] = len(tokens)
				tokens = append(tokens, token)
				mu.Unlock()
				handedOut <- struct{}{}
			} else {
				mu.Lock()
				i := index[t.ID().String()]
				mu.Unlock()
				resumed(i)
			}
			_, err := handler.Await[json.RawMessage](ctx, t, waitKey)
			return nil, err
		})
	if err != nil {
		return nil, nil, err
	}
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = payload
	}
	if _, err := client.SubmitMany(ctx, s.client, definition, payloads); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	for range n {
		select {
		case <-handedOut:
		case <-ctx.Done():
			return nil, nil, errors.Join(context.Cause(ctx), stop())
		}
	}
	for _, token := range tokens { // the last of them may still be on their way
		if err := s.parked(ctx, token); err != nil {
			return nil, nil, errors.Join(err, stop())
		}
	}
	signal := func(ctx context.Context, i int) error {
		_, err := s.client.Signal(ctx, tokens[i], json.RawMessage("true"))
		return err
	}
	return signal, stop, nil
}

// parked waits until an execution is suspended.
func (s *store) parked(ctx context.Context, token suspend.Token) error {
	for {
		r, err := s.engine.ReadSuspension(ctx, token.Execution())
		if err != nil {
			return err
		}
		if r.ID != (suspend.Record{}).ID && r.ClosedAt.IsZero() {
			return nil
		}
	}
}
