// Package storetest has what the tests of client and internal/coalesce put in the place of a server.
package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Creator makes executions in memory. A test blocks its calls with Gate and makes them fail with Fail and Refuse,
// which are set before the first call.
type Creator struct {
	Gate   chan struct{}                             // each call takes one, if not nil
	Fail   func(ctx context.Context, call int) error // of a whole call, after its items were stored
	Refuse func(x engine.NewExecution) error         // of one item

	Mu       sync.Mutex
	Calls    []Call
	InFlight int
	Most     int // highest InFlight seen
	Stored   map[flowfabric.ExecutionID]engine.NewExecution
	Keys     map[uuid.UUID]flowfabric.ExecutionID // who has a key: nothing ever ends here
}

// Call is one create call.
type Call struct {
	Ctx       context.Context
	Partition uint16
	IDs       []flowfabric.ExecutionID
	Payloads  []string
}

// Seen lists the calls so far.
func (f *Creator) Seen() []Call {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return append([]Call(nil), f.Calls...)
}

// CreateExecutions implements the part of the engine that makes executions.
func (f *Creator) CreateExecutions(ctx context.Context, partition uint16,
	items []engine.NewExecution) ([]engine.Created, error) {
	f.Mu.Lock()
	call := Call{Ctx: ctx, Partition: partition}
	for _, x := range items {
		call.IDs, call.Payloads = append(call.IDs, x.ID), append(call.Payloads, string(x.Payload))
	}
	n := len(f.Calls)
	f.Calls = append(f.Calls, call)
	f.InFlight++
	f.Most = max(f.Most, f.InFlight)
	f.Mu.Unlock()
	defer func() { f.Mu.Lock(); f.InFlight--; f.Mu.Unlock() }()
	if f.Gate != nil {
		select {
		case <-f.Gate:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", flowfabric.ErrTransport, ctx.Err())
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var err error
	if f.Fail != nil {
		err = f.Fail(ctx, n)
	}
	out := make([]engine.Created, len(items))
	for i, x := range items {
		out[i] = engine.Created{ID: x.ID, State: flowfabric.Waiting}
		if holder, taken := f.Keys[x.KeyID]; taken {
			out[i].ID = holder
		}
		old, exists := f.Stored[out[i].ID]
		switch {
		case x.ID.Partition() != partition:
			out[i].Err = denied.New("fake", "invalid_input", "another partition")
		case f.Refuse != nil && f.Refuse(x) != nil:
			out[i].Err = f.Refuse(x)
		case exists && x.Digest != "" && old.Digest != "" && old.Digest != x.Digest:
			out[i].Err = denied.New("fake", "idempotency_conflict")
		case exists:
			out[i].Duplicate = true
		default:
			if f.Stored == nil {
				f.Stored, f.Keys = map[flowfabric.ExecutionID]engine.NewExecution{},
					map[uuid.UUID]flowfabric.ExecutionID{}
			}
			f.Stored[x.ID] = x
			if x.KeyID != uuid.Nil {
				f.Keys[x.KeyID] = x.ID
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// KeyHolder implements the part of the engine that finds the execution of a key.
func (f *Creator) KeyHolder(_ context.Context, _ uint16, key uuid.UUID) (flowfabric.ExecutionID, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if id, ok := f.Keys[key]; ok {
		return id, nil
	}
	return flowfabric.ExecutionID{}, denied.New("fake", "execution_not_found")
}
