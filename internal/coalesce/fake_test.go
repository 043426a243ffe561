package coalesce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unknownError is what the tests' submits of unknown outcome answer.
type unknownError struct {
	ID    flowfabric.ExecutionID
	Cause error
}

func (e *unknownError) Error() string { return e.Cause.Error() + " (it may still happen)" }
func (e *unknownError) Unwrap() error { return e.Cause }

var errClosed = errors.New("closed")

func newFor(life context.Context, f *fakeStore) *Coalescer {
	return New(life, Config{Store: f, Partitions: 4, Timeout: 15 * time.Second, Closed: errClosed,
		Unknown: func(id flowfabric.ExecutionID, cause error) error { return &unknownError{id, cause} }})
}

// fakeStore makes executions in memory. A test blocks its calls with gate and makes them fail with fail.
type fakeStore struct {
	mu       sync.Mutex
	calls    []createCall
	inFlight int
	most     int                                       // highest inFlight seen
	gate     chan struct{}                             // each call takes one, if not nil
	fail     func(ctx context.Context, call int) error // of a whole call
	refuse   func(x engine.NewExecution) error         // of one item
	stored   map[flowfabric.ExecutionID]engine.NewExecution
}

type createCall struct {
	ctx       context.Context
	partition uint16
	ids       []flowfabric.ExecutionID
	payloads  []string
}

func newFake() *fakeStore {
	return &fakeStore{stored: map[flowfabric.ExecutionID]engine.NewExecution{}}
}

func (f *fakeStore) seen() []createCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]createCall(nil), f.calls...)
}

func (f *fakeStore) CreateExecutions(ctx context.Context, partition uint16, items []engine.NewExecution) ([]engine.Created, error) {
	f.mu.Lock()
	call := createCall{ctx: ctx, partition: partition}
	for _, x := range items {
		call.ids, call.payloads = append(call.ids, x.ID), append(call.payloads, string(x.Payload))
	}
	n := len(f.calls)
	f.calls = append(f.calls, call)
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.inFlight--; f.mu.Unlock() }()
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", flowfabric.ErrTransport, ctx.Err())
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.fail != nil {
		err = f.fail(ctx, n)
	}
	out := make([]engine.Created, len(items))
	for i, x := range items {
		out[i] = engine.Created{ID: x.ID, State: flowfabric.Waiting}
		old, exists := f.stored[x.ID]
		switch {
		case x.ID.Partition() != partition:
			out[i].Err = flowfabric.NewError("fake", "invalid_input", "another partition")
		case f.refuse != nil && f.refuse(x) != nil:
			out[i].Err = f.refuse(x)
		case exists && old.Digest != x.Digest:
			out[i].Err = flowfabric.NewError("fake", "idempotency_conflict")
		case exists:
			out[i].Duplicate = true
		default:
			f.stored[x.ID] = x
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// sub is a plain submission as prepare would make it.
func sub(payload string) *Submission {
	return NewSubmission(engine.NewExecution{Namespace: "default", Lane: "default", Kind: "k", Payload: []byte(payload), Digest: payload}, false, "")
}

func keyedSub(key, payload string) *Submission {
	s := sub(payload)
	s.Keyed, s.Key = true, key
	return s
}

// keyIn finds a key whose id lies in the partition.
func keyIn(partition uint16, nth int) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("key-", i)
		if flowfabric.MakeExecutionID(ids.Keyed(4, "default", "k", key)).Partition() == partition {
			if nth--; nth < 0 {
				return key
			}
		}
	}
}
