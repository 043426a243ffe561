package store

import (
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// Channels are where messages go that commands publish. The server has them, because subscribers are connections.
// They are called during a call.
type Channels interface {
	// Publish hands a message to the subscribers of a channel, and tells how many there are. It does not wait for them.
	Publish(channel, message string, sharded bool) int
	// Names lists the channels that have subscribers by name.
	Names(sharded bool) []string
	// Subscribers counts those that subscribed a channel by name.
	Subscribers(channel string, sharded bool) int
	// Patterns counts the patterns that are subscribed.
	Patterns() int
}

// Deliver says where messages go. Without it nobody subscribes.
func (s *Store) Deliver(to Channels) { s.channels = to }

// silent are channels without subscribers.
type silent struct{}

func (silent) Publish(string, string, bool) int { return 0 }
func (silent) Names(bool) []string              { return nil }
func (silent) Subscribers(string, bool) int     { return 0 }
func (silent) Patterns() int                    { return 0 }

// Match reports whether a pattern of channels or settings, as KEYS takes it, matches a text.
func Match(pattern, text string) bool { return newGlob(pattern).matches(text) }

func init() {
	read("PING", 1, 2, ping)
	read("ECHO", 2, 2, func(c *call) reply { return text(c.args[1]) })
	read("PUBSUB", 2, 0, pubsub)
	write("PUBLISH", 3, 3, func(c *call) reply { return publish(c, false) }) // not for functions with no-writes
	write("SPUBLISH", 3, 3, func(c *call) reply { return publish(c, true) })
}

func ping(c *call) reply {
	if len(c.args) == 2 {
		return text(c.args[1])
	}
	return functions.Reply{Kind: functions.KindStatus, Text: "PONG"}
}

func publish(c *call, sharded bool) reply {
	return number(int64(c.s.channels.Publish(c.args[1], c.args[2], sharded)))
}

// pubsub is PUBSUB CHANNELS [pattern], NUMSUB [channel…], SHARDCHANNELS, SHARDNUMSUB and NUMPAT.
func pubsub(c *call) reply {
	sub, rest := strings.ToUpper(c.args[1]), c.args[2:]
	kind, sharded := strings.CutPrefix(sub, "SHARD")
	items := []reply{}
	switch {
	case kind == "CHANNELS" && len(rest) <= 1:
		for _, name := range c.s.channels.Names(sharded) {
			if len(rest) == 0 || Match(rest[0], name) {
				items = append(items, text(name))
			}
		}
	case kind == "NUMSUB":
		for _, name := range rest {
			items = append(items, text(name), number(int64(c.s.channels.Subscribers(name, sharded))))
		}
	case sub == "NUMPAT" && len(rest) == 0:
		return number(int64(c.s.channels.Patterns()))
	default:
		return functions.Error("ERR unknown subcommand or wrong number of arguments for '" + c.args[1] +
			"'. Try PUBSUB HELP.")
	}
	return list(items)
}
