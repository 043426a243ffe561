package store

import "github.com/flowfabric/flowfabric-go/internal/functions"

// Errors of commands, in the words of Redis.
var (
	errWrongType  = functions.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	errNotInteger = functions.Error("ERR value is not an integer or out of range")
	errNotFloat   = functions.Error("ERR value is not a valid float")
	errSyntax     = functions.Error("ERR syntax error")
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

func texts(all []string) reply {
	items := make([]reply, len(all))
	for i, s := range all {
		items[i] = text(s)
	}
	return list(items)
}
