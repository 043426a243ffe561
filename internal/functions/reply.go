package functions

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Kind is what a [Reply] is.
type Kind uint8

// The kinds of replies. The zero value is nil.
const (
	KindNil    Kind = iota
	KindInt         // Int
	KindBulk        // Text
	KindStatus      // Text
	KindError       // Text, which begins with its code
	KindList        // List
)

// Reply is the answer of a command or of a function.
type Reply struct {
	Kind Kind
	Int  int64
	Text string
	List []Reply
}

// Error makes a reply that is an error. text begins with its code: "ERR no such thing".
func Error(text string) Reply { return Reply{Kind: KindError, Text: text} }

// value turns a reply into what redis.call returns for it. An error becomes a table with its text.
func (s *state) value(r *Reply) lua.LValue {
	switch r.Kind {
	case KindInt:
		return lua.LNumber(r.Int)
	case KindBulk:
		return lua.LString(r.Text)
	case KindStatus:
		return s.field("ok", r.Text)
	case KindError:
		return s.field("err", r.Text)
	case KindList:
		t := s.l.CreateTable(len(r.List), 0)
		for i := range r.List {
			t.Append(s.value(&r.List[i]))
		}
		return t
	default:
		return lua.LFalse
	}
}

func (s *state) field(name, text string) *lua.LTable {
	t := s.l.CreateTable(0, 1)
	t.RawSetString(name, lua.LString(text))
	return t
}

// deepest is how far tables of a result may be nested.
const deepest = 100

// reply turns the result of a function into a reply: a number is cut to a whole one, false is nil, a nil ends a list.
func reply(v lua.LValue, depth int) Reply {
	switch v := v.(type) {
	case lua.LNumber:
		return Reply{Kind: KindInt, Int: whole(float64(v))}
	case lua.LString:
		return Reply{Kind: KindBulk, Text: string(v)}
	case lua.LBool:
		if v {
			return Reply{Kind: KindInt, Int: 1}
		}
		return Reply{}
	case *lua.LTable:
		if depth == deepest {
			return Error("ERR reached lua stack limit")
		}
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return Error(string(text))
		}
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return Reply{Kind: KindStatus, Text: string(text)}
		}
		list := make([]Reply, 0, v.Len())
		for i := 1; ; i++ {
			item := v.RawGetInt(i)
			if item == lua.LNil {
				return Reply{Kind: KindList, List: list}
			}
			list = append(list, reply(item, depth+1))
		}
	default:
		return Reply{}
	}
}

// whole cuts a number to a whole one. What has none is the smallest, as C has it on the usual machines.
func whole(n float64) int64 {
	if n >= -1<<63 && n < 1<<63 {
		return int64(n)
	}
	return math.MinInt64
}
