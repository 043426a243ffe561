package store

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// str is a text.
type str struct{ text string }

func newStr(s string) *str { return &str{strings.Clone(s)} }

func (*str) kind() string                                 { return "string" }
func (v *str) clone() value                               { return &str{v.text} }
func (v *str) dump(key string, emit func(args ...string)) { emit("SET", key, v.text) }

func init() {
	read("GET", 2, 2, getCommand)
	read("MGET", 2, 0, mget)
	read("STRLEN", 2, 2, strlen)
	write("SET", 3, 0, set)
	write("MSET", 3, 0, mset)
	write("INCR", 2, 2, func(c *call) reply { return incr(c, "1") })
	write("INCRBY", 3, 3, func(c *call) reply { return incr(c, c.args[2]) })
}

func getCommand(c *call) reply {
	v, fault := get[*str](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return null
	default:
		return text(v.text)
	}
}

func mget(c *call) reply {
	items := make([]reply, 0, len(c.args)-1)
	for _, key := range c.args[1:] {
		if v, _ := get[*str](c.s, key); v != nil {
			items = append(items, text(v.text))
		} else {
			items = append(items, null)
		}
	}
	return list(items)
}

func strlen(c *call) reply {
	v, fault := get[*str](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	default:
		return number(int64(len(v.text)))
	}
}

func mset(c *call) reply {
	if len(c.args)%2 == 0 {
		return functions.Error("ERR wrong number of arguments for 'mset' command")
	}
	for i := 1; i < len(c.args); i += 2 {
		c.s.put(c.args[i], newStr(c.args[i+1]))
	}
	c.changed = true
	return ok
}

// incr adds to a whole number, which a missing key has as 0.
func incr(c *call, by string) reply {
	add, err := strconv.ParseInt(by, 10, 64)
	if err != nil {
		return errNotInteger
	}
	v, fault := change[*str](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	n := int64(0)
	if v != nil {
		if n, err = strconv.ParseInt(v.text, 10, 64); err != nil {
			return errNotInteger
		}
	}
	sum := n + add
	if (sum > n) != (add > 0) && add != 0 {
		return functions.Error("ERR increment or decrement would overflow")
	}
	if c.changed = true; v != nil {
		v.text = strconv.FormatInt(sum, 10)
	} else {
		c.s.put(c.args[1], newStr(strconv.FormatInt(sum, 10)))
	}
	return number(sum)
}

// set is SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]. Its effect has the time as PXAT.
func set(c *call) reply { return errSyntax } // TODO(A)
