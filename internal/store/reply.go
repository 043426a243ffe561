package store

import "github.com/flowfabric/flowfabric-go/internal/functions"

// Errors of commands, in the words of Redis.
var (
	errWrongType  = functions.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	errNotInteger = functions.Error("ERR value is not an integer or out of range")
	errNotFloat   = functions.Error("ERR value is not a valid float")
	errSyntax     = functions.Error("ERR syntax error")
	errCursor     = functions.Error("ERR invalid cursor")
	errNoKey      = functions.Error("ERR no such key")

	errNotPositive = functions.Error("ERR value is out of range, must be positive")
)

var (
	ok   = functions.Reply{Kind: functions.KindStatus, Text: "OK"}
	null = functions.Reply{}
)

type reply = functions.Reply

func number(n int64) reply { return reply{Kind: functions.KindInt, Int: n} }

func yes(b bool) reply {
	if b {
		return number(1)
	}
	return number(0)
}

func text(s string) reply { return reply{Kind: functions.KindBulk, Text: s} }

func list(items []reply) reply { return reply{Kind: functions.KindList, List: items} }

// mostScratch bounds the list that is kept for the next reply.
const mostScratch = 4096

// items is an empty list for the reply of this command. It is used again by the next command that answers with one.
func (c *call) items(size int) []reply {
	switch s := c.s; {
	case size > mostScratch:
		return make([]reply, 0, size)
	case size > cap(s.scratch):
		s.scratch = make([]reply, 0, max(size, 128))
	}
	return c.s.scratch[:0]
}

func (c *call) texts(all []string) reply {
	items := c.items(len(all))
	for _, s := range all {
		items = append(items, text(s))
	}
	return list(items)
}
