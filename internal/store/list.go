package store

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// sequence is a list. Its ends are cut by slicing. While a clone may see its array, nothing in the array changes.
type sequence struct {
	items  []string
	shared bool
}

func (*sequence) kind() string { return "list" }

func (v *sequence) clone() value {
	v.shared = true
	return &sequence{slices.Clip(v.items), true}
}

func (v *sequence) dump(key string, emit func(args ...string)) {
	rows := func(yield func(name, text string) bool) {
		for _, s := range v.items {
			if !yield(s, "") {
				return
			}
		}
	}
	inParts(rows, []string{"RPUSH", key}, emit)
}

// own makes the array this value's alone.
func (v *sequence) own() {
	if v.shared {
		v.items, v.shared = slices.Clone(v.items), false
	}
}

// cut leaves the items from one index up to another.
func (v *sequence) cut(from, to int) {
	if !v.shared { // what is cut off frees its texts
		clear(v.items[:from])
		clear(v.items[to:])
		v.items = v.items[from:to]
		return
	}
	v.items = v.items[from:to:to]
}

func init() {
	write("RPUSH", 3, 0, rpush)
	write("LPUSH", 3, 0, lpush)
	write("LPOP", 2, 3, func(c *call) reply { return pop(c, true) })
	write("RPOP", 2, 3, func(c *call) reply { return pop(c, false) })
	write("LTRIM", 4, 4, ltrim)
	write("LSET", 4, 4, lset)
	write("LREM", 4, 4, lrem)
	read("LRANGE", 4, 4, lrange)
	read("LLEN", 2, 2, llen)
	read("LINDEX", 3, 3, lindex)
}

// sequenceOf is the list that a command is about to put something in, a new one if there is none.
func sequenceOf(c *call) (v *sequence, fault *reply) {
	if v, fault = change[*sequence](c.s, c.args[1]); v == nil && fault == nil {
		v = &sequence{}
		c.s.put(c.args[1], v)
	}
	return v, fault
}

func rpush(c *call) reply {
	v, fault := sequenceOf(c)
	if fault != nil {
		return *fault
	}
	for _, s := range c.args[2:] {
		v.items = append(v.items, strings.Clone(s))
	}
	c.changed = true
	return number(int64(len(v.items)))
}

func lpush(c *call) reply {
	v, fault := sequenceOf(c)
	if fault != nil {
		return *fault
	}
	items := make([]string, 0, len(v.items)+len(c.args)-2)
	for _, s := range slices.Backward(c.args[2:]) {
		items = append(items, strings.Clone(s))
	}
	v.items, v.shared = append(items, v.items...), false
	c.changed = true
	return number(int64(len(v.items)))
}

// pop is LPOP and RPOP key [count].
func pop(c *call, first bool) reply {
	n := 1
	if len(c.args) == 3 {
		var fault *reply
		if n, fault = count(c.args[2]); fault != nil {
			return *fault
		}
	}
	v, fault := change[*sequence](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return null
	case n == 0:
		return list(nil)
	}
	all := len(v.items)
	n = min(n, all)
	answer := c.items(n)
	for i := range n {
		if first {
			answer = append(answer, text(v.items[i]))
		} else {
			answer = append(answer, text(v.items[all-1-i]))
		}
	}
	if first {
		v.cut(n, all)
	} else {
		v.cut(0, all-n)
	}
	c.shrunk(v)
	c.changed = true
	if len(c.args) == 2 {
		return answer[0]
	}
	return list(answer)
}

// shrunk removes a list that has become empty.
func (c *call) shrunk(v *sequence) {
	if len(v.items) == 0 {
		c.s.forget(c.args[1])
	}
}

func ltrim(c *call) reply {
	v, fault := change[*sequence](c.s, c.args[1])
	n := 0
	if v != nil {
		n = len(v.items)
	}
	from, to, bad := window(c.args[2], c.args[3], n)
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	case v == nil:
		return ok
	}
	v.cut(from, to)
	c.shrunk(v)
	c.changed = true
	return ok
}

func lrange(c *call) reply {
	v, fault := get[*sequence](c.s, c.args[1])
	n := 0
	if v != nil {
		n = len(v.items)
	}
	from, to, bad := window(c.args[2], c.args[3], n)
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	case v == nil:
		return list(nil)
	}
	return c.texts(v.items[from:to])
}

func llen(c *call) reply {
	v, fault := get[*sequence](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	default:
		return number(int64(len(v.items)))
	}
}

// index is an index of a list, of which negative ones count from the end; -1 if there is none.
func (v *sequence) index(arg string) (i int, fault *reply) {
	n, whole := integer(arg)
	if !whole {
		return 0, &errNotInteger
	}
	if n < 0 {
		n += int64(len(v.items))
	}
	if n < 0 || n >= int64(len(v.items)) {
		return -1, nil
	}
	return int(n), nil
}

func lindex(c *call) reply {
	v, fault := get[*sequence](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return null
	}
	i, fault := v.index(c.args[2])
	switch {
	case fault != nil:
		return *fault
	case i < 0:
		return null
	default:
		return text(v.items[i])
	}
}

func lset(c *call) reply {
	v, fault := change[*sequence](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return errNoKey
	}
	i, fault := v.index(c.args[2])
	switch {
	case fault != nil:
		return *fault
	case i < 0:
		return functions.Error("ERR index out of range")
	}
	v.own()
	v.items[i] = strings.Clone(c.args[3])
	c.changed = true
	return ok
}

// lrem is LREM key count text: the first ones, the last ones if count is negative, all if it is 0.
func lrem(c *call) reply {
	n, whole := integer(c.args[2])
	if !whole {
		return errNotInteger
	}
	v, fault := change[*sequence](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	}
	have := int64(0)
	for _, s := range v.items {
		if s == c.args[3] {
			have++
		}
	}
	first, last := int64(0), have // which of them go
	if n > 0 {
		last = min(n, have)
	} else if n < 0 {
		first = max(have+n, 0)
	}
	if first == last {
		return number(0)
	}
	v.own()
	at := int64(-1)
	v.items = slices.DeleteFunc(v.items, func(s string) bool {
		if s != c.args[3] {
			return false
		}
		at++
		return first <= at && at < last
	})
	c.shrunk(v)
	c.changed = true
	return number(last - first)
}
