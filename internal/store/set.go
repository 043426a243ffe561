package store

import "slices"

// members is a set.
type members struct{ table }

func newMembers() *members { return &members{table{step: 1}} }

func (*members) kind() string   { return "set" }
func (v *members) clone() value { return &members{v.copy()} }
func (v *members) dump(key string, emit func(args ...string)) {
	inParts(v.all, []string{"SADD", key}, emit)
}

func (v *members) rows() *table {
	if v == nil {
		return nil
	}
	return &v.table
}

func init() {
	write("SADD", 3, 0, sadd)
	write("SREM", 3, 0, changes(number(0), func(c *call, v *members) reply { return removeFrom(c, &v.table) }))
	read("SCARD", 2, 2, reads(number(0), func(_ *call, v *members) reply { return number(int64(v.len())) }))
	read("SINTER", 2, 0, sinter)
	read("SISMEMBER", 3, 3, reads(number(0), func(c *call, v *members) reply {
		_, there := v.get(c.args[2])
		return yes(there)
	}))
	read("SMEMBERS", 2, 2, reads(list(nil), func(c *call, v *members) reply {
		return c.rows(&v.table, true, false)
	}))
	read("SSCAN", 3, 0, func(c *call) reply {
		v, fault := get[*members](c.s, c.args[1])
		return scanTable(c, v.rows(), fault)
	})
}

func sadd(c *call) reply {
	v, fault := making(c, newMembers)
	if fault != nil {
		return *fault
	}
	n := v.set(c.args[2:], &c.s.buffer)
	c.changed = n > 0
	return number(int64(n))
}

// sinter walks the smallest set.
func sinter(c *call) reply {
	sets, none := make([]*members, 0, len(c.args)-1), false
	for _, key := range c.args[1:] {
		v, fault := get[*members](c.s, key)
		if fault != nil {
			return *fault
		}
		none = none || v == nil
		sets = append(sets, v)
	}
	if none {
		return list(nil)
	}
	slices.SortFunc(sets, func(a, b *members) int { return a.len() - b.len() })
	items := c.items(0)
	for name := range sets[0].all {
		if !slices.ContainsFunc(sets[1:], func(v *members) bool { _, there := v.get(name); return !there }) {
			items = append(items, text(name))
		}
	}
	return list(items)
}
