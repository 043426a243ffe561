package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// subscribers counts, per channel, the subscriptions of this engine. The driver forgets a channel locally when its
// context ends but leaves the server's subscription in place; a doorbell would then count a listener that is gone.
// So the last one out unsubscribes, and nobody comes in meanwhile.
type subscribers struct {
	mu    sync.Mutex
	count map[string]int
}

func (s *subscribers) enter(channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	for _, c := range channels {
		s.count[c]++
	}
}

// leave calls last, under the lock, with the channels that nobody else wants.
func (s *subscribers) leave(channels []string, last func([]string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for _, c := range channels {
		if s.count[c]--; s.count[c] == 0 {
			delete(s.count, c)
			gone = append(gone, c)
		}
	}
	if len(gone) > 0 {
		last(gone)
	}
}

// Subscribe delivers the messages of channels to fn until ctx ends or the connection is lost, and returns why. The
// caller resubscribes and catches up by reading: messages are hints, never the only copy. ready is called once
// all channels are confirmed. fn must not block. In a cluster all channels must belong to the given partition;
// elsewhere they may be mixed. All subscriptions of an engine share one connection per server.
func (e *Engine) Subscribe(ctx context.Context, partition uint16, channels []string, ready func(), fn func(channel, message string)) error {
	if len(channels) == 0 || partition >= e.partitions {
		return fmt.Errorf("subscribe: %w: %d channels of partition %d", flowfabric.ErrInvalidInput, len(channels), partition)
	}
	client, err := e.subs()
	if err != nil {
		return err
	}
	command := client.B().Subscribe().Channel(channels...).Build()
	if e.variant.Sharded {
		command = client.B().Ssubscribe().Channel(channels...).Build()
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	confirmed, told := map[string]bool{}, false // touched by the connection's goroutine alone
	hooked := rueidis.WithOnSubscriptionHook(inner, func(s rueidis.PubSubSubscription) {
		switch s.Kind {
		case "subscribe", "ssubscribe":
			// Another subscriber's confirmation of a shared channel is heard here, too.
			if confirmed[s.Channel] = true; len(confirmed) == len(channels) && !told && ready != nil {
				told = true
				ready()
			}
		case "unsubscribe", "sunsubscribe": // the server dropped it, for example because the slot moved
			cancel(fmt.Errorf("subscribe: %w: the server ended the subscription of %s", flowfabric.ErrTransport, s.Channel))
		}
	})
	e.subscribed.enter(channels)
	err = client.Receive(hooked, command, func(m rueidis.PubSubMessage) { fn(m.Channel, m.Message) })
	// Only now does the driver drop what still comes for these channels: asking from inside Receive would wait for
	// an answer behind messages that nobody takes any more.
	e.subscribed.leave(channels, func(gone []string) {
		if ctx.Err() != nil { // otherwise the connection is lost, and the subscription with it
			e.unsubscribe(client, gone)
		}
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case context.Cause(inner) != nil:
		return context.Cause(inner)
	case err == nil:
		return fmt.Errorf("subscribe: %w: the subscription ended", flowfabric.ErrTransport)
	}
	return callError("subscribe", err)
}

// unsubscribe goes over the connection that carries the subscriptions: there is one per server. It has no deadline of
// its own: giving up on the answer would let it arrive in the middle of a new subscription and end that. The driver
// drops a connection that does not answer, and all subscriptions with it.
func (e *Engine) unsubscribe(client rueidis.Client, channels []string) {
	ctx := context.Background()
	if e.variant.Sharded {
		client.Do(ctx, client.B().Sunsubscribe().Channel(channels...).Build())
	} else {
		client.Do(ctx, client.B().Unsubscribe().Channel(channels...).Build())
	}
}
