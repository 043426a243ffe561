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

func (v *sequence) all() []string {
	if v == nil {
		return nil
	}
	return v.items
}

func init() {
	write("RPUSH", 3, 0, rpush)
	write("LTRIM", 4, 4, ltrim)
	write("LSET", 4, 4, changes(errNoKey, lset))
	write("LREM", 4, 4, lrem)
	read("LRANGE", 4, 4, lrange)
	read("LLEN", 2, 2, reads(number(0), func(_ *call, v *sequence) reply { return number(int64(len(v.items))) }))
}

func rpush(c *call) reply {
	v, fault := making(c, func() *sequence { return &sequence{} })
	if fault != nil {
		return *fault
	}
	for _, s := range c.args[2:] {
		v.items = append(v.items, strings.Clone(s))
	}
	c.changed = true
	return number(int64(len(v.items)))
}

// shrunk removes a list that has become empty.
func (c *call) shrunk(v *sequence) {
	if c.changed = true; len(v.items) == 0 {
		c.s.forget(c.args[1])
	}
}

func ltrim(c *call) reply {
	v, fault := change[*sequence](c.s, c.args[1])
	from, to, bad := window(c.args[2], c.args[3], len(v.all()))
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	case v != nil:
		v.cut(from, to)
		c.shrunk(v)
	}
	return ok
}

func lrange(c *call) reply {
	v, fault := get[*sequence](c.s, c.args[1])
	from, to, bad := window(c.args[2], c.args[3], len(v.all()))
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	}
	return c.texts(v.all()[from:to])
}

func lset(c *call, v *sequence) reply {
	i, whole := integer(c.args[2])
	if i < 0 {
		i += int64(len(v.items))
	}
	switch {
	case !whole:
		return errNotInteger
	case i < 0 || i >= int64(len(v.items)):
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
	if fault != nil {
		return *fault
	}
	have := int64(0)
	for _, s := range v.all() {
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
	return number(last - first)
}
