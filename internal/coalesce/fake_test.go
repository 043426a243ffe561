package coalesce

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/storetest"
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

func newFor(life context.Context, f *storetest.Creator) *Coalescer {
	return New(life, Config{Store: f, Partitions: 4, Timeout: 15 * time.Second, Closed: errClosed,
		Unknown: func(id flowfabric.ExecutionID, cause error) error { return &unknownError{id, cause} }})
}

// sub is a plain submission as prepare would make it.
func sub(payload string) *Submission {
	s := &Submission{Item: engine.NewExecution{Start: flowfabric.Start{Namespace: "default", Lane: "default",
		Kind: "k"}, Payload: []byte(payload), Digest: payload}}
	s.Measure()
	return s
}

func keyedSub(key, payload string) *Submission {
	s := sub(payload)
	s.Item.Key = &flowfabric.Key{Text: key}
	return s
}

// keyIn finds a key of the partition.
func keyIn(partition uint16, nth int) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("key-", i)
		if p, _ := ids.Keyed(4, "default", "k", key); p == partition {
			if nth--; nth < 0 {
				return key
			}
		}
	}
}
