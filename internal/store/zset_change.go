package store

import (
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

func init() {
	write("ZADD", 4, 0, func(c *call) reply { return zadd(c, addOptions{}) })
	write("ZINCRBY", 4, 4, func(c *call) reply { return zadd(c, addOptions{incr: true}) })
	write("ZREM", 3, 0, changes(number(0), zrem))
	write("ZPOPMIN", 2, 3, zpop)
	write("ZUNIONSTORE", 4, 6, zunionstore)
	read("ZSCORE", 3, 3, reads(null, func(c *call, z *zset) reply { return z.scoreReply(c.args[2]) }))
	read("ZMSCORE", 3, 0, zmscore)
	read("ZCARD", 2, 2, reads(number(0), func(_ *call, z *zset) reply { return number(int64(z.len())) }))
}

// addOptions are the options of ZADD; incr is ZINCRBY.
type addOptions struct{ nx, xx, incr bool }

// zadd is ZADD key [NX | XX] score member …
func zadd(c *call, o addOptions) reply {
	pairs := c.args[2:]
	for ; len(pairs) > 0; pairs = pairs[1:] {
		nx, xx := strings.EqualFold(pairs[0], "NX"), strings.EqualFold(pairs[0], "XX")
		if o.nx, o.xx = o.nx || nx, o.xx || xx; !nx && !xx {
			break
		}
	}
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return errSyntax
	}
	if o.nx && o.xx {
		return functions.Error("ERR XX and NX options at the same time are not compatible")
	}
	for i := 0; i < len(pairs); i += 2 {
		if _, fine := parseScore(pairs[i]); !fine {
			return errNotFloat
		}
	}
	z, fault := change[*zset](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case z == nil && o.xx:
		return number(0)
	case z == nil:
		z = &zset{}
	}
	added, moved, last := 0, 0, null
	for i := 0; i < len(pairs); i += 2 {
		score, _ := parseScore(pairs[i])
		member := pairs[i+1]
		old, there := z.score(member)
		if there && o.incr {
			if score += old; math.IsNaN(score) {
				return functions.Error("ERR resulting score is not a number (NaN)")
			}
		}
		switch {
		case there && o.nx, !there && o.xx:
			continue
		case !there:
			z.add(item{score, strings.Clone(member)})
			added++
		case score != old:
			z.move(item{old, member}, score)
			moved++
		}
		last = text(formatScore(score))
	}
	if c.changed = added+moved > 0; added > 0 && added == z.len() {
		c.s.put(c.args[1], z)
	}
	if o.incr {
		return last
	}
	return number(int64(added))
}

func zrem(c *call, z *zset) reply {
	n := 0
	for _, member := range c.args[2:] {
		if score, there := z.score(member); there {
			z.remove(item{score, member})
			n++
		}
	}
	return removed(c, z, n)
}

// removed ends a command that took n items out of a set.
func removed(c *call, z *zset, n int) reply {
	c.changed = n > 0
	if z.len() == 0 {
		c.s.forget(c.args[1])
	}
	return number(int64(n))
}

// orNumber is the answer of a command that counts, for a key that is not there.
func orNumber(fault *reply) reply {
	if fault != nil {
		return *fault
	}
	return number(0)
}

// orEmpty is the answer of a command that lists, for a key that is not there.
func orEmpty(fault *reply) reply {
	if fault != nil {
		return *fault
	}
	return list(nil)
}

// zpop is ZPOPMIN key [count].
func zpop(c *call) reply {
	most := 1
	if len(c.args) == 3 {
		var bad *reply
		if most, bad = count(c.args[2]); bad != nil {
			return *bad
		}
	}
	z, fault := change[*zset](c.s, c.args[1])
	if z == nil {
		return orEmpty(fault)
	}
	all := z.items(span{low: beginning, high: edge{end: true}, most: most})
	for _, it := range all {
		z.remove(it)
	}
	removed(c, z, len(all))
	items := c.items(2 * len(all))
	for _, it := range all {
		items = append(items, text(it.member), text(formatScore(it.score)))
	}
	return list(items)
}

// items are the items of a part.
func (z *zset) items(p span) []item {
	var all []item
	z.pick(p, func(it item) { all = append(all, it) })
	return all
}

func (z *zset) scoreReply(member string) reply {
	if z == nil {
		return null
	}
	if score, there := z.score(member); there {
		return text(formatScore(score))
	}
	return null
}

func zmscore(c *call) reply {
	z, fault := get[*zset](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	items := c.items(len(c.args) - 2)
	for _, member := range c.args[2:] {
		items = append(items, z.scoreReply(member))
	}
	return list(items)
}

// zunionstore is ZUNIONSTORE destination 1 key [WEIGHTS weight].
func zunionstore(c *call) reply {
	if c.args[2] != "1" {
		return functions.Error("ERR the embedded server joins one set only")
	}
	z, fault := get[*zset](c.s, c.args[3])
	weight, fine := 1.0, true
	switch rest := c.args[4:]; {
	case fault != nil:
		return *fault
	case len(rest) == 2 && strings.EqualFold(rest[0], "WEIGHTS"):
		if weight, fine = parseScore(rest[1]); !fine {
			return functions.Error("ERR weight value is not a float")
		}
	case len(rest) > 0:
		return errSyntax
	}
	if z == nil {
		c.changed = c.s.drop(c.args[1])
		return number(0)
	}
	items := z.items(span{low: beginning, high: edge{end: true}, most: -1})
	for i := range items {
		if items[i].score *= weight; math.IsNaN(items[i].score) {
			items[i].score = 0
		}
	}
	slices.SortFunc(items, item.compare)
	if len(items) <= mostSmall {
		c.s.put(c.args[1], &zset{small: items})
	} else {
		c.s.put(c.args[1], large(items))
	}
	c.changed = true
	return number(int64(len(items)))
}
