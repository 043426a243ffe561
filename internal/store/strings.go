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
	read("STRLEN", 2, 2, reads(number(0), func(c *call, v *str) reply { return number(int64(len(v.text))) }))
	write("SET", 3, 0, set)
	write("MSET", 3, 0, mset)
	write("INCR", 2, 2, func(c *call) reply { return incr(c, "1") })
	write("INCRBY", 3, 3, func(c *call) reply { return incr(c, c.args[2]) })
}

var getCommand = reads(null, func(_ *call, v *str) reply { return text(v.text) })

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

// incr adds to a whole number, which a missing key has as 0.
func incr(c *call, by string) reply {
	add, whole := integer(by)
	if !whole {
		return errNotInteger
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
	sum, fits := plus(n, add)
	if !fits {
		return errOverflow
	}
	if c.changed = true; v != nil {
		v.text = itoa(sum)
	} else {
		c.s.put(c.args[1], &str{itoa(sum)})
	}
	return number(sum)
}

var errOverflow = functions.Error("ERR increment or decrement would overflow")

// plus adds, and reports whether the sum fits.
func plus(a, b int64) (sum int64, fits bool) {
	sum = a + b
	return sum, (sum >= a) == (b >= 0)
}

// set is SET key value [NX | XX] [EX s | PX ms | EXAT s | PXAT ms]. Its effect has the time as PXAT.
func set(c *call) reply {
	absent, present, unit, at := false, false, "", ""
	for args := c.args[3:]; len(args) > 0; args = args[1:] {
		word := strings.ToUpper(args[0])
		switch {
		case word == "NX" && !present:
			absent = true
		case word == "XX" && !absent:
			present = true
		case (word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT") &&
			(unit == "" || unit == word) && len(args) > 1:
			unit, at = word, args[1]
			args = args[1:]
		default:
			return errSyntax
		}
	}
	when := int64(0)
	if unit != "" {
		n, whole := integer(at)
		if !whole {
			return errNotInteger
		}
		fits := false
		if when, fits = c.s.moment(n, unit); !fits || n <= 0 {
			return functions.Error("ERR invalid expire time in 'set' command")
		}
	}
	key := c.args[1]
	if there := c.s.find(key) != nil; absent && there || present && !there {
		return null
	}
	c.s.until(key, c.s.put(key, newStr(c.args[2])), when)
	if c.changed = true; when != 0 {
		c.effect = []string{"SET", key, c.args[2], "PXAT", itoa(when)}
	}
	return ok
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
