package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// channels are the pub/sub channels that this engine listens to. However many subscribers a channel has here, the
// driver has one subscription of it:
//
//   - a second one would not read before its own SUBSCRIBE is answered, and the connection would not read that answer
//     before it has handed on the channel's messages: with enough of them, the connection stands still until it is
//     taken for dead;
//   - the driver forgets a channel when its context ends but leaves the server's subscription in place, and a
//     doorbell would count a listener that is gone. So the last one out unsubscribes, and a subscriber that wants the
//     channel meanwhile waits for that.
type channels struct {
	mu    sync.RWMutex
	named map[string]*channel
}

// channel is guarded by channels.mu.
type channel struct {
	listeners map[*listener]struct{}
	confirmed bool
	group     *group
}

// group is one subscription of the driver's: the channels that a subscriber was the first to want. It lives until none
// of them is wanted. Guarded by channels.mu.
type group struct {
	names   []string
	wanted  int           // listeners of all its channels
	leaving bool          // takes no more listeners
	ended   chan struct{} // closed when the server has forgotten it, or the connection is gone
	stop    context.CancelFunc
	carrier conc.WaitGroup
}

// listener is one call of Subscribe.
type listener struct {
	left  int // channels that are not confirmed yet; guarded by channels.mu
	ready func()
	lost  chan error // capacity 1

	mu sync.Mutex // one message at a time
	fn func(channel, message string)
}

func (l *listener) confirm() {
	if l.left--; l.left == 0 && l.ready != nil {
		l.ready()
	}
}

func (l *listener) lose(err error) {
	select {
	case l.lost <- err:
	default:
	}
}

// join adds a listener to its channels. Those that are new are carried as one group.
func (c *channels) join(ctx context.Context, l *listener, names []string, carry func(context.Context, *group)) error {
	for {
		c.mu.Lock()
		busy := c.leaving(names)
		if busy == nil {
			c.add(l, names, carry)
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *channels) leaving(names []string) <-chan struct{} {
	for _, name := range names {
		if ch := c.named[name]; ch != nil && ch.group.leaving {
			return ch.group.ended
		}
	}
	return nil
}

func (c *channels) add(l *listener, names []string, carry func(context.Context, *group)) {
	if c.named == nil {
		c.named = map[string]*channel{}
	}
	fresh := &group{ended: make(chan struct{})}
	for _, name := range names {
		ch := c.named[name]
		if ch == nil {
			ch = &channel{listeners: map[*listener]struct{}{}, group: fresh}
			c.named[name] = ch
			fresh.names = append(fresh.names, name)
		}
		ch.listeners[l] = struct{}{}
		ch.group.wanted++
		if ch.confirmed {
			l.confirm()
		}
	}
	if len(fresh.names) > 0 {
		inner, stop := context.WithCancel(context.Background()) // it may outlive who began it
		fresh.stop = stop
		fresh.carrier.Go(func() { carry(inner, fresh) })
	}
}

// part takes a listener off its channels, and returns once what nobody else listens to is given up. The listener hears
// nothing after that.
func (c *channels) part(l *listener, names []string) {
	var last []*group
	c.mu.Lock()
	for _, name := range names {
		ch := c.named[name]
		delete(ch.listeners, l)
		if ch.group.wanted--; ch.group.wanted == 0 {
			ch.group.leaving = true
			ch.group.stop()
			last = append(last, ch.group)
		}
	}
	c.mu.Unlock()
	for _, g := range last {
		g.carrier.Wait()
	}
}

func (c *channels) confirm(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.named[name]
	if ch == nil || ch.confirmed {
		return
	}
	ch.confirmed = true
	for l := range ch.listeners {
		l.confirm()
	}
}

func (c *channels) deliver(m rueidis.PubSubMessage) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	ch := c.named[m.Channel]
	if ch == nil {
		return
	}
	for l := range ch.listeners {
		l.mu.Lock()
		l.fn(m.Channel, m.Message)
		l.mu.Unlock()
	}
}

// lose tells the listeners of a group that its subscription ended. Nobody joins it any more.
func (c *channels) lose(g *group, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.leaving = true
	for _, name := range g.names {
		for l := range c.named[name].listeners {
			l.lose(err)
		}
	}
}

// forget comes when nobody is left.
func (c *channels) forget(g *group) {
	c.mu.Lock()
	for _, name := range g.names {
		delete(c.named, name)
	}
	c.mu.Unlock()
	close(g.ended)
}

// subscription is how channels are subscribed to, and left.
func subscription(client rueidis.Client, names []string, sharded bool) (join, leave rueidis.Completed) {
	if sharded {
		return client.B().Ssubscribe().Channel(names...).Build(), client.B().Sunsubscribe().Channel(names...).Build()
	}
	return client.B().Subscribe().Channel(names...).Build(), client.B().Unsubscribe().Channel(names...).Build()
}

// carry is the driver's subscription of a group, from the first listener to the last, also where it is lost meanwhile.
func (e *Engine) carry(ctx context.Context, client rueidis.Client, g *group) {
	defer e.channels.forget(g)
	command, leave := subscription(client, g.names, e.variant.Sharded)
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
			e.channels.confirm(s.Channel)
		} // else the server dropped it, for example because the slot moved: Receive ends
	})
	err := client.Receive(hooked, command, e.channels.deliver)
	if ctx.Err() != nil {
		// Over the connection that carries the subscriptions: there is one per server. Without a deadline: giving up on
		// the answer would let it arrive in the middle of a new subscription and end that. The driver drops a
		// connection that does not answer, and all subscriptions with it. And only now: asking from inside Receive
		// would wait for an answer behind messages that nobody takes any more.
		client.Do(context.Background(), leave)
		return
	}
	if err == nil {
		err = fmt.Errorf("subscribe: %w: the server ended the subscription", flowfabric.ErrTransport)
	} else {
		err = CallError("subscribe", err)
	}
	e.channels.lose(g, err)
	<-ctx.Done() // each of them parts
}
