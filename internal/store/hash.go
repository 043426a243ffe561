package store

import (
	"math"
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
	read("HGETALL", 2, 2, reads(list(nil), func(c *call, v *hash) reply { return c.rows(&v.table, true, true) }))
	read("HKEYS", 2, 2, reads(list(nil), func(c *call, v *hash) reply { return c.rows(&v.table, true, false) }))
	read("HVALS", 2, 2, reads(list(nil), func(c *call, v *hash) reply { return c.rows(&v.table, false, true) }))
	read("HEXISTS", 3, 3, reads(number(0), func(c *call, v *hash) reply {
		_, there := v.get(c.args[2])
		return yes(there)
	}))
	read("HLEN", 2, 2, reads(number(0), func(_ *call, v *hash) reply { return number(int64(v.len())) }))
	read("HSTRLEN", 3, 3, reads(number(0), func(c *call, v *hash) reply {
		s, _ := v.get(c.args[2])
		return number(int64(len(s)))
	}))
	read("HSCAN", 3, 0, func(c *call) reply {
		v, fault := get[*hash](c.s, c.args[1])
		return scanTable(c, v.rows(), fault)
	})
	read("HRANDFIELD", 2, 4, hrandfield)
	write("HSET", 4, 0, hset)
	write("HSETNX", 4, 4, func(c *call) reply {
		if v, _ := get[*hash](c.s, c.args[1]); v != nil {
			if _, there := v.get(c.args[2]); there {
				return number(0)
			}
		}
		return hset(c)
	})
	write("HDEL", 3, 0, changes(number(0), func(c *call, v *hash) reply { return removeFrom(c, &v.table) }))
	write("HINCRBY", 4, 4, hincrby)
}

// rows is the table of a hash, nil if there is none.
func (v *hash) rows() *table {
	if v == nil {
		return nil
	}
	return &v.table
}

var hget = reads(null, func(c *call, v *hash) reply {
	if s, there := v.get(c.args[2]); there {
		return text(s)
	}
	return null
})

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

// rows is the answer of a command that lists a table.
func (c *call) rows(t *table, names, texts bool) reply {
	items := c.items(t.step * t.len())
	for name, s := range t.all {
		if names {
			items = append(items, text(name))
		}
		if texts {
			items = append(items, text(s))
		}
	}
	return list(items)
}

func hset(c *call) reply {
	if len(c.args)%2 != 0 {
		return arity(c)
	}
	v, fault := making(c, newHash)
	if fault != nil {
		return *fault
	}
	c.changed = true
	return number(int64(v.set(c.args[2:], &c.s.buffer)))
}

// removeFrom is HDEL and SREM.
func removeFrom(c *call, t *table) reply {
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
		return errOverflow
	}
	if v == nil {
		v, _ = making(c, newHash)
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

var errNegative = functions.Error("ERR the embedded server takes no negative count")

// hrandfield is HRANDFIELD key [count [WITHVALUES]], where count is not negative.
func hrandfield(c *call) reply {
	n, whole, values := int64(1), true, len(c.args) == 4
	if len(c.args) > 2 {
		n, whole = integer(c.args[2])
	}
	v, fault := get[*hash](c.s, c.args[1])
	switch {
	case !whole:
		return errNotInteger
	case n < 0:
		return errNegative
	case values && !strings.EqualFold(c.args[3], "WITHVALUES"):
		return errSyntax
	case values && n > math.MaxInt64/2:
		return functions.Error("ERR value is out of range")
	case fault != nil:
		return *fault
	case v == nil && len(c.args) == 2:
		return null
	case v == nil:
		return list(nil)
	}
	items := c.items(0)
	v.pick(int(min(n, int64(v.len()))), func(name, s string) {
		if items = append(items, text(name)); values {
			items = append(items, text(s))
		}
	})
	if len(c.args) == 2 {
		return items[0]
	}
	return list(items)
}
