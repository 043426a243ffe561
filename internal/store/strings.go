package store

import (
	"math"
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
	write("SETNX", 3, 3, setnx)
	write("GETDEL", 2, 2, getdel)
	write("APPEND", 3, 3, appendCommand)
	write("MSET", 3, 0, mset)
	write("INCR", 2, 2, func(c *call) reply { return incr(c, "1", 1) })
	write("INCRBY", 3, 3, func(c *call) reply { return incr(c, c.args[2], 1) })
	write("DECR", 2, 2, func(c *call) reply { return incr(c, "1", -1) })
	write("DECRBY", 3, 3, func(c *call) reply { return incr(c, c.args[2], -1) })
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
	items := c.items(len(c.args) - 1)
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

func setnx(c *call) reply {
	if c.s.find(c.args[1]) != nil {
		return number(0)
	}
	c.s.put(c.args[1], newStr(c.args[2]))
	c.changed = true
	return number(1)
}

func getdel(c *call) reply {
	answer := getCommand(c)
	if answer.Kind == functions.KindBulk {
		c.changed = c.s.drop(c.args[1])
	}
	return answer
}

func appendCommand(c *call) reply {
	v, fault := change[*str](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	if c.changed = true; v == nil {
		v = newStr(c.args[2])
		c.s.put(c.args[1], v)
	} else {
		v.text += c.args[2]
	}
	return number(int64(len(v.text)))
}

func mset(c *call) reply {
	if len(c.args)%2 == 0 {
		return arity(c)
	}
	for i := 1; i < len(c.args); i += 2 {
		c.s.put(c.args[i], newStr(c.args[i+1]))
	}
	c.changed = true
	return ok
}

// incr adds to a whole number, which a missing key has as 0. sign is 1 or -1.
func incr(c *call, by string, sign int64) reply {
	add, whole := integer(by)
	if !whole {
		return errNotInteger
	}
	if sign < 0 && add == math.MinInt64 {
		return functions.Error("ERR decrement would overflow")
	}
	v, fault := change[*str](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	n := int64(0)
	if v != nil {
		if n, whole = integer(v.text); !whole {
			return errNotInteger
		}
	}
	sum, fits := plus(n, add*sign)
	if !fits {
		return functions.Error("ERR increment or decrement would overflow")
	}
	if c.changed = true; v != nil {
		v.text = itoa(sum)
	} else {
		c.s.put(c.args[1], &str{itoa(sum)})
	}
	return number(sum)
}

// plus adds, and reports whether the sum fits.
func plus(a, b int64) (sum int64, fits bool) {
	sum = a + b
	return sum, (sum >= a) == (b >= 0)
}

// setting is what SET is told beside key and value.
type setting struct {
	absent, present, old, keep bool
	unit, at                   string // EX, PX, EXAT or PXAT, and its argument; "": no time
}

// settings reads [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL].
func settings(args []string) (q setting, fault *reply) {
	for ; len(args) > 0; args = args[1:] {
		word := strings.ToUpper(args[0])
		switch {
		case word == "NX" && !q.present:
			q.absent = true
		case word == "XX" && !q.absent:
			q.present = true
		case word == "GET":
			q.old = true
		case word == "KEEPTTL" && q.unit == "":
			q.keep = true
		case (word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT") &&
			!q.keep && (q.unit == "" || q.unit == word) && len(args) > 1:
			q.unit, q.at = word, args[1]
			args = args[1:]
		default:
			return q, &errSyntax
		}
	}
	return q, nil
}

// set is SET key value with [settings]. Its effect has the time as PXAT.
func set(c *call) reply {
	key := c.args[1]
	q, fault := settings(c.args[3:])
	if fault != nil {
		return *fault
	}
	when := int64(0)
	if q.unit != "" {
		n, whole := integer(q.at)
		if !whole {
			return errNotInteger
		}
		fits := false
		if when, fits = c.s.moment(n, q.unit); !fits || n <= 0 {
			return functions.Error("ERR invalid expire time in 'set' command")
		}
	}
	answer := ok
	if q.old {
		if answer = getCommand(c); answer.Kind == functions.KindError {
			return answer
		}
	}
	e := c.s.find(key)
	if q.absent && e != nil || q.present && e == nil {
		if q.old {
			return answer
		}
		return null
	}
	if q.keep && e != nil {
		when = e.expires
	}
	e = c.s.put(key, newStr(c.args[2]))
	c.s.until(key, e, when)
	if c.changed = true; when != 0 {
		c.effect = []string{"SET", key, c.args[2], "PXAT", itoa(when)}
	}
	return answer
}

// moment turns a time into Unix milliseconds. unit is EX (seconds from now), PX (milliseconds from now), EXAT or
// PXAT (from 1970).
func (s *Store) moment(n int64, unit string) (ms int64, fits bool) {
	if strings.HasPrefix(unit, "EX") {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	if strings.HasSuffix(unit, "AT") {
		return n, true
	}
	return plus(n, s.ms)
}
