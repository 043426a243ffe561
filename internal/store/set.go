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
	write("SREM", 3, 0, srem)
	write("SPOP", 2, 0, spop)
	read("SCARD", 2, 2, scard)
	read("SINTER", 2, 0, sinter)
	read("SISMEMBER", 3, 3, sismember)
	read("SMISMEMBER", 3, 0, smismember)
	read("SMEMBERS", 2, 2, smembers)
	read("SSCAN", 3, 0, func(c *call) reply {
		v, fault := get[*members](c.s, c.args[1])
		return scanTable(c, v.rows(), fault)
	})
}

func sadd(c *call) reply {
	v, fault := change[*members](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	if v == nil {
		v = newMembers()
		c.s.put(c.args[1], v)
	}
	n := v.set(c.args[2:], &c.s.buffer)
	c.changed = n > 0
	return number(int64(n))
}

func srem(c *call) reply {
	v, fault := change[*members](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	return removeFrom(c, v.rows())
}

func scard(c *call) reply {
	v, fault := get[*members](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	default:
		return number(int64(v.len()))
	}
}

func smembers(c *call) reply {
	v, fault := get[*members](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return list(nil)
	}
	items := c.items(v.len())
	for name := range v.all {
		items = append(items, text(name))
	}
	return list(items)
}

func sismember(c *call) reply {
	v, fault := get[*members](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	}
	_, there := v.get(c.args[2])
	return yes(there)
}

func smismember(c *call) reply {
	v, fault := get[*members](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	items := c.items(len(c.args) - 2)
	for _, name := range c.args[2:] {
		there := false
		if v != nil {
			_, there = v.get(name)
		}
		items = append(items, yes(there))
	}
	return list(items)
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

// spop is SPOP key [count]. Its effect is an SREM.
func spop(c *call) reply {
	if len(c.args) > 3 {
		return errSyntax
	}
	n := 1
	if len(c.args) == 3 {
		var fault *reply
		if n, fault = count(c.args[2]); fault != nil {
			return *fault
		}
	}
	v, fault := change[*members](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil && len(c.args) == 2:
		return null
	case v == nil || n == 0:
		return list(nil)
	}
	single := len(c.args) == 2
	effect := []string{"SREM", c.args[1]}
	v.pick(n, func(name, _ string) { effect = append(effect, name) })
	c.args, c.effect = effect, effect
	removeFrom(c, v.rows())
	if single {
		return text(effect[2])
	}
	return c.texts(effect[2:])
}
