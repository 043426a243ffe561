package framelog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

const (
	resubscribeFirst  = 50 * time.Millisecond
	resubscribeAtMost = 5 * time.Second
	// glanceAge is how old the answer to another tailer's look at the same attempt may be.
	glanceAge = 500 * time.Millisecond
)

// feed is the one subscription of an execution and its fan-out.
type feed struct {
	src  TailSource
	id   flowfabric.ExecutionID
	stop context.CancelFunc

	mu      sync.Mutex
	boxes   map[*inbox]struct{}
	ready   chan struct{} // closed while the subscription is confirmed
	isReady bool
	err     error // permanent; every tail ends with it

	look    chan struct{} // capacity 1: held during a glance
	glances map[uint32]glance
}

type glance struct {
	at   time.Time
	meta engine.StreamMeta
}

// past tells whether an answer will do, see feed.glance.
func (g glance) past(at time.Time) bool {
	if at.IsZero() {
		return time.Since(g.at) < glanceAge
	}
	return g.meta.Now.After(at)
}

func newFeed(src TailSource, id flowfabric.ExecutionID, stop context.CancelFunc) *feed {
	return &feed{src: src, id: id, stop: stop, boxes: map[*inbox]struct{}{}, ready: make(chan struct{}),
		look: make(chan struct{}, 1), glances: map[uint32]glance{}}
}

// run keeps the subscription until ctx ends. It returns an error only if subscribing again is pointless.
func (f *feed) run(ctx context.Context) error {
	frames, events := engine.FrameChannel(f.id), engine.EventChannel(f.id)
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(resubscribeFirst),
		backoff.WithMaxInterval(resubscribeAtMost), backoff.WithMaxElapsedTime(0))
	for {
		err := f.src.Subscribe(ctx, f.id.Partition(), []string{frames, events}, f.confirmed,
			func(channel, text string) {
				if channel == frames {
					f.publish(text)
				} else {
					f.tell(newsState)
				}
			})
		if ctx.Err() != nil {
			return nil
		}
		if class := denied.ClassOf(err); class != 0 && class != fault.Retry {
			return err
		}
		if f.lost() {
			pauses.Reset()
		}
		if pause(ctx, pauses.NextBackOff()) != nil {
			return nil
		}
	}
}

// confirmed runs when a subscription stands: what was published before it must be read.
func (f *feed) confirmed() {
	f.mu.Lock()
	if !f.isReady {
		f.isReady = true
		close(f.ready)
	}
	f.mu.Unlock()
	f.tell(newsBehind)
}

// lost notes the end of a subscription and tells whether it ever stood.
func (f *feed) lost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	stood := f.isReady
	if stood {
		f.isReady, f.ready = false, make(chan struct{})
	}
	return stood
}

// publish decodes a message once and hands it to every tailer. One that cannot be decoded is not dwelt on:
// the tailers read what it was about.
func (f *feed) publish(text string) {
	said, err := engine.DecodeFrames(text)
	if err != nil {
		f.tell(newsBehind)
		return
	}
	f.src.OpenFrames(said.Frames)
	m := message{attempt: said.Attempt, frames: said.Frames, resumed: said.Resumed,
		told: make([]atomic.Pointer[Event], len(said.Frames))}
	for i := range m.frames {
		m.bytes += len(m.frames[i].Payload)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for box := range f.boxes {
		box.push(m)
	}
}

func (f *feed) tell(n news) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for box := range f.boxes {
		box.tell(n)
	}
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	for box := range f.boxes {
		box.fail(err)
	}
}

func (f *feed) add(signal chan struct{}) *inbox {
	box := newInbox(signal)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		box.fail(f.err)
	}
	f.boxes[box] = struct{}{}
	return box
}

func (f *feed) remove(box *inbox) (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.boxes, box)
	return len(f.boxes)
}

// standing is closed while the subscription is confirmed.
func (f *feed) standing() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

// glance is the state of an attempt as it was after an instant of the server's clock, or if that is zero at most half a
// second ago: the looks of tailers share one call.
func (f *feed) glance(ctx context.Context, attempt uint32, past time.Time) (engine.StreamMeta, error) {
	select {
	case f.look <- struct{}{}:
		defer func() { <-f.look }()
	case <-ctx.Done():
		return engine.StreamMeta{}, context.Cause(ctx)
	}
	if g, ok := f.glances[attempt]; ok && g.past(past) {
		return g.meta, nil
	}
	at := time.Now()
	meta, err := f.src.ReadAttemptStream(ctx, f.id, attempt)
	if err != nil {
		return engine.StreamMeta{}, fmt.Errorf("look at attempt %d: %w", attempt, err)
	}
	clear(f.glances) // tailers are mostly at one attempt
	f.glances[attempt] = glance{at, meta}
	return meta, nil
}
