package embedded

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/internal/store"
)

// kind is how something is subscribed.
type kind int

const (
	byName kind = iota
	byPattern
	bySlot // sharded channels, which are apart from the others
	kinds
)

// words of a kind: what its commands and messages are called.
var words = [kinds]struct{ subscribe, unsubscribe, message string }{
	byName:    {"subscribe", "unsubscribe", "message"},
	byPattern: {"psubscribe", "punsubscribe", "pmessage"},
	bySlot:    {"ssubscribe", "sunsubscribe", "smessage"},
}

func sharded(yes bool) kind {
	if yes {
		return bySlot
	}
	return byName
}

// hub is where commands publish: it implements [store.Channels]. A message waits there until the effects of its call,
// and of all calls before it, are as safe as the store promises. Then the connection that made the call, or one that
// made a later call, delivers it. So messages keep their order, and nobody sees one whose call may still be lost.
type hub struct {
	last    uint64 // number of the last message published; changes under the locks of both the store and the hub
	sent    atomic.Uint64
	mu      sync.Mutex
	waiting []message
	// Subscribers by name or pattern, each with the last message before its subscription.
	subscribers [kinds]map[string]map[*session]uint64
}

type message struct {
	number        uint64
	channel, text string
	kind          kind
}

func newHub() *hub {
	h := &hub{}
	for k := range h.subscribers {
		h.subscribers[k] = map[string]map[*session]uint64{}
	}
	return h
}

// Publish implements [store.Channels].
func (h *hub) Publish(channel, text string, slot bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := sharded(slot)
	n := len(h.subscribers[k][channel])
	if k == byName {
		for pattern, all := range h.subscribers[byPattern] {
			if store.Match(pattern, channel) {
				n += len(all)
			}
		}
	}
	if n > 0 {
		h.last++
		h.waiting = append(h.waiting, message{h.last, strings.Clone(channel), strings.Clone(text), k})
	}
	return n
}

// Names implements [store.Channels].
func (h *hub) Names(slot bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.subscribers[sharded(slot)]))
}

// Subscribers implements [store.Channels].
func (h *hub) Subscribers(channel string, slot bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers[sharded(slot)][channel])
}

// Patterns implements [store.Channels].
func (h *hub) Patterns() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers[byPattern])
}

// deliver hands out the messages up to a number. It waits for no subscriber.
func (h *hub) deliver(upTo uint64) {
	if h.sent.Load() >= upTo {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	done := 0
	for ; done < len(h.waiting) && h.waiting[done].number <= upTo; done++ {
		m := &h.waiting[done]
		h.hand(m, m.kind, m.channel, "")
		if m.kind == byName {
			for pattern := range h.subscribers[byPattern] {
				if store.Match(pattern, m.channel) {
					h.hand(m, byPattern, pattern, pattern)
				}
			}
		}
	}
	h.waiting = slices.Delete(h.waiting, 0, done)
	h.sent.Store(max(h.sent.Load(), upTo))
}

// hand gives a message to those that subscribed under a name before it was published.
func (h *hub) hand(m *message, k kind, name, pattern string) {
	var encoded [2][]byte // for RESP2 and RESP3
	for c, since := range h.subscribers[k][name] {
		if since >= m.number {
			continue
		}
		at := 0
		if c.resp3 {
			at = 1
		}
		if encoded[at] == nil {
			e := encoder{resp3: c.resp3}
			if k == byPattern {
				e.push(4)
				e.text(words[k].message)
				e.text(pattern)
			} else {
				e.push(3)
				e.text(words[k].message)
			}
			e.text(m.channel)
			e.text(m.text)
			encoded[at] = e.out
		}
		c.outbox.message(encoded[at])
	}
}

// subscribe adds a connection under a name, and confirms it before the first message comes.
func (h *hub) subscribe(c *session, k kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.subscribers[k][name]
	if all == nil {
		all = map[*session]uint64{}
		h.subscribers[k][name] = all
	}
	if _, already := all[c]; !already {
		all[c] = h.last
		if c.names[k] == nil {
			c.names[k] = map[string]bool{}
		}
		c.names[k][name] = true
	}
	c.confirm(words[k].subscribe, name, c.subscriptions(k))
}

// unsubscribe takes a connection away from a name, and confirms it behind the last message.
func (h *hub) unsubscribe(c *session, k kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(c, k, name)
	c.confirm(words[k].unsubscribe, name, c.subscriptions(k))
}

func (h *hub) remove(c *session, k kind, name string) {
	delete(c.names[k], name)
	all := h.subscribers[k][name]
	delete(all, c)
	if len(all) == 0 {
		delete(h.subscribers[k], name)
	}
}

// leave ends all subscriptions of a connection.
func (h *hub) leave(c *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range kinds {
		for name := range c.names[k] {
			h.remove(c, k, name)
		}
	}
}

// subscriptions is what a confirmation counts: sharded channels apart from the others.
func (c *session) subscriptions(k kind) int {
	if k == bySlot {
		return len(c.names[bySlot])
	}
	return len(c.names[byName]) + len(c.names[byPattern])
}

// confirm answers a SUBSCRIBE or UNSUBSCRIBE of one name.
func (c *session) confirm(word, name string, count int) {
	e := encoder{resp3: c.resp3}
	e.push(3)
	e.text(word)
	e.text(name)
	e.number(int64(count))
	c.outbox.message(e.out)
}

// subscribeTo is SUBSCRIBE and its like. From the first on, all that the connection sends goes through its outbox.
func (c *session) subscribeTo(k kind, args []string) {
	if !c.flush() {
		return
	}
	c.open()
	for _, name := range args[1:] {
		c.srv.hub.subscribe(c, k, strings.Clone(name))
	}
}

// unsubscribeFrom is UNSUBSCRIBE and its like; without names it means all.
func (c *session) unsubscribeFrom(k kind, args []string) {
	if !c.flush() {
		return
	}
	c.open()
	names := args[1:]
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.names[k]))
	}
	for _, name := range names {
		c.srv.hub.unsubscribe(c, k, name)
	}
	if len(names) == 0 {
		e := encoder{resp3: c.resp3}
		e.push(3)
		e.text(words[k].unsubscribe)
		e.null()
		e.number(int64(c.subscriptions(k)))
		c.outbox.message(e.out)
	}
}
