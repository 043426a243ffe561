package store

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// hash has a text for each of its fields.
type hash struct{ table }

func newHash() *hash { return &hash{table{step: 2}} }

func (*hash) kind() string   { return "hash" }
func (v *hash) clone() value { return &hash{v.copy()} }
func (v *hash) dump(key string, emit func(args ...string)) {
	inParts(v.all, []string{"HSET", key}, emit)
}

// partOfDump is how many texts one command of a dump has at most, about.
const partOfDump = 512

// inParts emits rows as some commands that begin with head. A row without text is that of a set.
func inParts(rows func(func(name, text string) bool), head []string, emit func(args ...string)) {
	args := append(make([]string, 0, partOfDump), head...)
	for name, text := range rows {
		if len(args) >= partOfDump {
			emit(args...)
			args = append(make([]string, 0, partOfDump), head...)
		}
		if args = append(args, name); head[0] == "HSET" {
			args = append(args, text)
		}
	}
	emit(args...)
}

func init() {
	read("HGET", 3, 3, hget)
	read("HMGET", 3, 0, hmget)
	read("HGETALL", 2, 2, func(c *call) reply { return hall(c, true, true) })
	read("HKEYS", 2, 2, func(c *call) reply { return hall(c, true, false) })
	read("HVALS", 2, 2, func(c *call) reply { return hall(c, false, true) })
	read("HEXISTS", 3, 3, hexists)
	read("HLEN", 2, 2, hlen)
	read("HSTRLEN", 3, 3, hstrlen)
	read("HSCAN", 3, 0, func(c *call) reply {
		v, fault := get[*hash](c.s, c.args[1])
		return scanTable(c, v.rows(), fault)
	})
	read("HRANDFIELD", 2, 0, hrandfield)
	write("HSET", 4, 0, hset)
	write("HMSET", 4, 0, func(c *call) reply {
		if n := hset(c); n.Kind == functions.KindError {
			return n
		}
		return ok
	})
	write("HSETNX", 4, 4, hsetnx)
	write("HDEL", 3, 0, hdel)
	write("HINCRBY", 4, 4, hincrby)
}

// rows is the table of a hash, nil if there is none.
func (v *hash) rows() *table {
	if v == nil {
		return nil
	}
	return &v.table
}

func hget(c *call) reply {
	v, fault := get[*hash](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return null
	}
	if s, there := v.get(c.args[2]); there {
		return text(s)
	}
	return null
}

func hmget(c *call) reply {
	v, fault := get[*hash](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	names := c.args[2:]
	items := c.items(len(names))[:len(names)]
	clear(items)
	switch {
	case v == nil:
	case v.large != nil:
		for i, name := range names {
			if s, there := v.large.Get(placed(name)); there {
				items[i] = text(s)
			}
		}
	default:
		w := want(names, 1)
		for p := v.small; p != ""; {
			var name, s string
			name, p = p.next()
			s, p = p.next()
			if w.mask&mark(name) == 0 {
				continue
			}
			for i, n := range names {
				if n == name {
					items[i] = text(s)
				}
			}
		}
	}
	return list(items)
}

func hall(c *call, names, values bool) reply {
	v, fault := get[*hash](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return list(nil)
	}
	items := c.items(2 * v.len())
	for name, s := range v.all {
		if names {
			items = append(items, text(name))
		}
		if values {
			items = append(items, text(s))
		}
	}
	return list(items)
}

func hexists(c *call) reply {
	answer := hget(c)
	if answer.Kind == functions.KindError {
		return answer
	}
	return yes(answer.Kind == functions.KindBulk)
}

func hstrlen(c *call) reply {
	answer := hget(c)
	if answer.Kind == functions.KindError {
		return answer
	}
	return number(int64(len(answer.Text)))
}

func hlen(c *call) reply {
	v, fault := get[*hash](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	default:
		return number(int64(v.len()))
	}
}

// hashOf is the hash that a command is about to put something in, a new one if there is none.
func hashOf(c *call) (v *hash, fault *reply) {
	if v, fault = change[*hash](c.s, c.args[1]); v == nil && fault == nil {
		v = newHash()
		c.s.put(c.args[1], v)
	}
	return v, fault
}

func hset(c *call) reply {
	if len(c.args)%2 != 0 {
		return arity(c)
	}
	v, fault := hashOf(c)
	if fault != nil {
		return *fault
	}
	c.changed = true
	return number(int64(v.set(c.args[2:], &c.s.buffer)))
}

func hsetnx(c *call) reply {
	if there := hexists(c); there.Kind == functions.KindError {
		return there
	} else if there.Int == 1 {
		return number(0)
	}
	return hset(c)
}

func hdel(c *call) reply {
	v, fault := change[*hash](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	return removeFrom(c, v.rows())
}

// removeFrom is HDEL and SREM.
func removeFrom(c *call, t *table) reply {
	if t == nil {
		return number(0)
	}
	n := t.remove(c.args[2:], &c.s.buffer)
	if t.len() == 0 {
		c.s.forget(c.args[1])
	}
	c.changed = n > 0
	return number(int64(n))
}

func hincrby(c *call) reply {
	add, whole := integer(c.args[3])
	if !whole {
		return errNotInteger
	}
	v, fault := change[*hash](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	n := int64(0)
	if v != nil {
		if s, there := v.get(c.args[2]); there {
			if n, whole = integer(s); !whole {
				return functions.Error("ERR hash value is not an integer")
			}
		}
	}
	sum, fits := plus(n, add)
	if !fits {
		return functions.Error("ERR increment or decrement would overflow")
	}
	if v == nil {
		v, _ = hashOf(c)
	}
	v.set([]string{c.args[2], itoa(sum)}, &c.s.buffer)
	c.changed = true
	return number(sum)
}

// scanTable is HSCAN and SSCAN.
func scanTable(c *call, t *table, fault *reply) reply {
	q, bad := newScan(c.args[2])
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	case t == nil:
		return page(0, nil)
	}
	if bad = q.options(c.args[3:], false); bad != nil {
		return *bad
	}
	items := c.items(0)
	next := t.page(q.cursor, q.count, func(name, s string) {
		if !q.takes(name) {
			return
		}
		if items = append(items, text(name)); t.step == 2 {
			items = append(items, text(s))
		}
	})
	return page(next, items)
}

// hrandfield is HRANDFIELD key [count [WITHVALUES]].
func hrandfield(c *call) reply {
	n, whole, values := int64(1), true, len(c.args) == 4
	if len(c.args) > 2 {
		n, whole = integer(c.args[2])
	}
	switch {
	case !whole:
		return errNotInteger
	case n == math.MinInt64:
		return functions.Error("ERR value is out of range, value must between " +
			"-9223372036854775807 and 9223372036854775807")
	case len(c.args) > 4 || values && !strings.EqualFold(c.args[3], "WITHVALUES"):
		return errSyntax
	case values && (n < -math.MaxInt64/2 || n > math.MaxInt64/2):
		return functions.Error("ERR value is out of range")
	}
	v, fault := get[*hash](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil && len(c.args) == 2:
		return null
	case v == nil:
		return list(nil)
	case n < -math.MaxInt64/2:
		return functions.Error("ERR value is out of range")
	case len(c.args) == 2:
		name, _ := v.at(rand.IntN(v.len()))
		return text(name)
	}
	items := c.items(0)
	v.pick(int(n), func(name, s string) {
		if items = append(items, text(name)); values {
			items = append(items, text(s))
		}
	})
	return list(items)
}
