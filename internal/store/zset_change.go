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
	write("ZREM", 3, 0, zrem)
	write("ZPOPMIN", 2, 0, func(c *call) reply { return zpop(c, false) })
	write("ZPOPMAX", 2, 0, func(c *call) reply { return zpop(c, true) })
	write("ZUNIONSTORE", 4, 0, zunionstore)
	read("ZSCORE", 3, 3, zscore)
	read("ZMSCORE", 3, 0, zmscore)
	read("ZCARD", 2, 2, zcard)
}

// addOptions are the options of ZADD.
type addOptions struct{ nx, xx, gt, lt, ch, incr bool }

// read takes the options from the front of args, and returns the rest.
func (o *addOptions) read(args []string) []string {
	for ; len(args) > 0; args = args[1:] {
		switch strings.ToUpper(args[0]) {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GT":
			o.gt = true
		case "LT":
			o.lt = true
		case "CH":
			o.ch = true
		case "INCR":
			o.incr = true
		default:
			return args
		}
	}
	return args
}

func (o *addOptions) fault(pairs int) string {
	switch {
	case o.nx && o.xx:
		return "ERR XX and NX options at the same time are not compatible"
	case o.gt && (o.nx || o.lt) || o.lt && o.nx:
		return "ERR GT, LT, and/or NX options at the same time are not compatible"
	case o.incr && pairs > 1:
		return "ERR INCR option supports a single increment-element pair"
	default:
		return ""
	}
}

// zadd is ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …
func zadd(c *call, o addOptions) reply {
	pairs := c.args[2:]
	if _, plain := parseScore(pairs[0]); !plain {
		pairs = o.read(pairs)
	}
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return errSyntax
	}
	if text := o.fault(len(pairs) / 2); text != "" {
		return functions.Error(text)
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
	case z == nil && o.xx && o.incr:
		return null
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
		case there && (o.nx || o.gt && score <= old || o.lt && score >= old), !there && o.xx:
			continue
		case !there:
			z.add(item{score, strings.Clone(member)})
			added++
		case score != old:
			z.move(item{old, member}, score)
			moved++
		}
		if o.incr {
			last = text(formatScore(score))
		}
	}
	if c.changed = added+moved > 0; added > 0 && added == z.len() {
		c.s.put(c.args[1], z)
	}
	switch {
	case o.incr:
		return last
	case o.ch:
		return number(int64(added + moved))
	default:
		return number(int64(added))
	}
}

func zrem(c *call) reply {
	z, fault := change[*zset](c.s, c.args[1])
	if z == nil {
		return orNumber(fault)
	}
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

func zpop(c *call, highest bool) reply {
	most := 1
	if len(c.args) > 3 {
		return errSyntax
	}
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
	all := z.items(span{low: beginning, high: edge{end: true}, reverse: highest, most: most})
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

func zscore(c *call) reply {
	z, fault := get[*zset](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case z == nil:
		return null
	default:
		return z.scoreReply(c.args[2])
	}
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

func zcard(c *call) reply {
	z, fault := get[*zset](c.s, c.args[1])
	if z == nil {
		return orNumber(fault)
	}
	return number(int64(z.len()))
}

// zunionstore is ZUNIONSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX].
func zunionstore(c *call) reply {
	u, fault := readUnion(c)
	if fault != nil {
		return *fault
	}
	scores := map[string]float64{}
	// Redis adds from the smallest set to the largest, which decides how a sum is rounded.
	slices.SortStableFunc(u.sets, func(a, b weighted) int { return a.set.len() - b.set.len() })
	for _, w := range u.sets {
		w.set.walk(beginning, func(it item) bool {
			score := w.weight * it.score
			if math.IsNaN(score) {
				score = 0
			}
			if old, there := scores[it.member]; there {
				score = u.join(old, score)
			}
			scores[it.member] = score
			return true
		})
	}
	items := make([]item, 0, len(scores))
	for member, score := range scores {
		items = append(items, item{score, member})
	}
	slices.SortFunc(items, item.compare)
	switch {
	case len(items) == 0:
		c.changed = c.s.drop(c.args[1])
		return number(0)
	case len(items) <= mostSmall:
		c.s.put(c.args[1], &zset{small: items})
	default:
		c.s.put(c.args[1], large(items))
	}
	c.changed = true
	return number(int64(len(items)))
}

type weighted struct {
	set    *zset
	weight float64
}

type union struct {
	sets []weighted
	join func(a, b float64) float64
}

// sum adds; infinities that cancel out are 0, as in Redis.
func sum(a, b float64) float64 {
	if f := a + b; !math.IsNaN(f) {
		return f
	}
	return 0
}

func readUnion(c *call) (u union, fault *reply) {
	n, whole := integer(c.args[2])
	rest := c.args[3:]
	switch {
	case !whole:
		return u, &errNotInteger
	case n < 1:
		few := functions.Error("ERR at least 1 input key is needed for 'zunionstore' command")
		return u, &few
	case n > int64(len(rest)):
		return u, &errSyntax
	}
	for _, key := range rest[:n] {
		z, fault := get[*zset](c.s, key)
		if fault != nil {
			return u, fault
		}
		if z == nil {
			z = &zset{}
		}
		u.sets = append(u.sets, weighted{z, 1})
	}
	u.join = sum
	for rest = rest[n:]; len(rest) > 0; {
		switch option := strings.ToUpper(rest[0]); {
		case option == "WEIGHTS" && len(rest) > int(n):
			for i := range u.sets {
				weight, fine := parseScore(rest[1+i])
				if !fine {
					bad := functions.Error("ERR weight value is not a float")
					return u, &bad
				}
				u.sets[i].weight = weight
			}
			rest = rest[1+n:]
		case option == "AGGREGATE" && len(rest) > 1:
			if u.join = joins[strings.ToUpper(rest[1])]; u.join == nil {
				return u, &errSyntax
			}
			rest = rest[2:]
		default:
			return u, &errSyntax
		}
	}
	return u, nil
}

var joins = map[string]func(a, b float64) float64{"SUM": sum, "MIN": math.Min, "MAX": math.Max}
