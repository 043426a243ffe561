package framelog

import (
	"context"
	"errors"
	"sync"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// TailSource is what a [Hub] follows; *engine.Engine is one.
type TailSource interface {
	Reader
	// Subscribe delivers messages to fn until ctx ends or the connection is lost, and returns why. ready is called
	// once the subscription is confirmed. fn must not block.
	Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
		fn func(channel, message string)) error
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error)
	// OpenFrames opens, in place, frames that were published.
	OpenFrames(frames []stream.Frame)
}

// ErrHubClosed ends the tails of a closed [Hub].
var ErrHubClosed = errors.New("the tail hub is closed")

// Hub follows executions live for any number of tailers of one process. All tailers of an execution share one
// subscription, made with the first and given up with the last; a tailer itself has no goroutine and at most
// 256 frames or 1 MiB waiting. One Hub per engine is meant to be shared.
// Safe for concurrent use.
type Hub struct {
	src   TailSource
	ctx   context.Context
	end   context.CancelCauseFunc
	tasks conc.WaitGroup

	mu     sync.Mutex
	feeds  map[flowfabric.ExecutionID]*feed
	closed bool
}

// NewHub builds a hub. It subscribes to nothing before the first tail.
func NewHub(src TailSource) *Hub {
	ctx, end := context.WithCancelCause(context.Background())
	return &Hub{src: src, ctx: ctx, end: end, feeds: map[flowfabric.ExecutionID]*feed{}}
}

// Close ends all tails with [ErrHubClosed] and waits for the subscriptions to end, not for the tailers' loop
// bodies. Idempotent.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(ErrHubClosed)
	h.tasks.Wait()
}

// join adds a tailer to the feed of an execution, which it starts if there is none. What comes rings signal, if that is
// not nil.
func (h *Hub) join(id flowfabric.ExecutionID, signal chan struct{}) (*feed, *inbox, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrHubClosed
	}
	f := h.feeds[id]
	if f == nil {
		ctx, stop := context.WithCancel(h.ctx)
		f = newFeed(h.src, id, stop)
		h.feeds[id] = f
		h.tasks.Go(func() {
			if err := f.run(ctx); err != nil {
				h.forget(f)
				f.fail(err)
			}
		})
	}
	return f, f.add(signal), nil
}

// leave takes a tailer off; the last one ends the subscription.
func (h *Hub) leave(f *feed, box *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.remove(box) == 0 {
		f.stop()
		if h.feeds[f.id] == f {
			delete(h.feeds, f.id)
		}
	}
}

// forget makes the next tailer of an execution start a new feed.
func (h *Hub) forget(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[f.id] == f {
		delete(h.feeds, f.id)
	}
}
