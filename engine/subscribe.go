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
// So the last one out unsubscribes, and whoever wants the same channel meanwhile waits for that.
type subscribers struct {
	mu       sync.Mutex
	channels map[string]*subscribed
}

type subscribed struct {
	count int
	gone  chan struct{} // not nil: the last one is leaving; closed when the server has confirmed
}

func (s *subscribers) enter(ctx context.Context, channels []string) error {
	for {
		s.mu.Lock()
		if s.channels == nil {
			s.channels = map[string]*subscribed{}
		}
		var wait chan struct{}
		for _, c := range channels {
			if e := s.channels[c]; e != nil && e.gone != nil {
				wait = e.gone
				break
			}
		}
		if wait == nil {
			for _, c := range channels {
				if s.channels[c] == nil {
					s.channels[c] = &subscribed{}
				}
				s.channels[c].count++
			}
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave calls last with the channels that nobody else wants, all at once and without holding others up.
func (s *subscribers) leave(channels []string, last func([]string)) {
	s.mu.Lock()
	var names []string
	gone := make(chan struct{})
	for _, c := range channels {
		e := s.channels[c]
		if e.count--; e.count == 0 {
			e.gone = gone
			names = append(names, c)
		}
	}
	s.mu.Unlock()
	if len(names) == 0 {
		return
	}
	last(names)
	s.mu.Lock()
	for _, c := range names {
		delete(s.channels, c)
	}
	s.mu.Unlock()
	close(gone)
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
	if e.server.cluster {
		if err := e.primary(ctx, client, partition); err != nil {
			return err
		}
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
	if err := e.subscribed.enter(ctx, channels); err != nil {
		return err
	}
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

// primary makes sure that a subscription goes to the partition's primary. A replica would take it, too, and hand on what
// it hears over the cluster's bus, but then the primary counts no receiver, and takes the waiter behind a doorbell for
// dead. So while the driver's map of the cluster is out of date there is no subscribing.
func (e *Engine) primary(ctx context.Context, client rueidis.Client, partition uint16) error {
	root := e.roots[partition]
	role, err := client.Do(ctx, client.B().Role().Build().SetSlot(root)).ToArray() // goes where the map says, is not redirected
	if err != nil {
		return callError("subscribe", err)
	}
	if name, _ := role[0].ToString(); name == "master" {
		return nil
	}
	client.Do(ctx, client.B().Exists().Key(root).Build()) // is redirected, which makes the driver draw a new map
	return fmt.Errorf("subscribe: %w: partition %d has a new primary", flowfabric.ErrTransport, partition)
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
