package store

import (
	"math"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// by is what the ends of a range are.
type by uint8

const (
	byRank by = iota
	byScore
	byLex
)

func init() {
	read("ZRANGE", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{free: true}) })
	read("ZREVRANGE", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{reverse: true}) })
	read("ZRANGEBYSCORE", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{by: byScore}) })
	read("ZREVRANGEBYSCORE", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{by: byScore, reverse: true}) })
	read("ZRANGEBYLEX", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{by: byLex}) })
	read("ZREVRANGEBYLEX", 4, 0, func(c *call) reply { return zrange(c, rangeQuery{by: byLex, reverse: true}) })
	read("ZCOUNT", 4, 4, func(c *call) reply { return zcount(c, byScore) })
	read("ZLEXCOUNT", 4, 4, func(c *call) reply { return zcount(c, byLex) })
	read("ZRANK", 3, 3, func(c *call) reply { return zrank(c, false) })
	read("ZREVRANK", 3, 3, func(c *call) reply { return zrank(c, true) })
	read("ZSCAN", 3, 0, zscan)
	write("ZREMRANGEBYRANK", 4, 4, func(c *call) reply { return zremrange(c, byRank) })
	write("ZREMRANGEBYSCORE", 4, 4, func(c *call) reply { return zremrange(c, byScore) })
	write("ZREMRANGEBYLEX", 4, 4, func(c *call) reply { return zremrange(c, byLex) })
}

// ends are the two ends of a range as they were given.
type ends struct {
	by         by
	from, to   int64      // byRank
	low, high  scoreLimit // byScore
	start, end string     // byLex
}

// scoreLimit is an end of a range of scores.
type scoreLimit struct {
	score    float64
	excluded bool
}

func readEnds(kind by, low, high string) (e ends, fault *reply) {
	e = ends{by: kind, start: low, end: high}
	var fine, alike bool
	switch kind {
	case byRank:
		e.from, fine = integer(low)
		if e.to, alike = integer(high); !fine || !alike {
			return e, &errNotInteger
		}
	case byScore:
		e.low, fine = readLimit(low)
		if e.high, alike = readLimit(high); !fine || !alike {
			return e, &errScoreRange
		}
	default:
		if !lexical(low) || !lexical(high) {
			return e, &errLexRange
		}
	}
	return e, nil
}

var (
	errScoreRange = functions.Error("ERR min or max is not a float")
	errLexRange   = functions.Error("ERR min or max not valid string range item")
)

// readLimit reads an end as Redis does, with C's strtod: blanks may come first, nothing at all is 0, and what is too
// large is infinite.
func readLimit(s string) (l scoreLimit, fine bool) {
	if strings.HasPrefix(s, "(") {
		l.excluded, s = true, s[1:]
	}
	s, _, _ = strings.Cut(s, "\x00")
	if s == "" {
		return l, true
	}
	l.score, fine = strtod(strings.TrimLeft(s, " \t\n\v\f\r"))
	return l, fine
}

func lexical(s string) bool { return s == "-" || s == "+" || s != "" && (s[0] == '[' || s[0] == '(') }

// edge is where a range begins or ends. behind tells whether the limit itself lies before that place.
func (l scoreLimit) edge(behind bool) edge {
	switch {
	case !behind:
		return edge{item: item{score: l.score}}
	case math.IsInf(l.score, 1):
		return edge{end: true}
	default:
		return edge{item: item{score: math.Nextafter(l.score, math.Inf(1))}}
	}
}

// lexEdge is scoreLimit.edge for a limit of members that all have one score.
func lexEdge(limit string, score float64, behind bool) edge {
	switch {
	case limit == "-":
		return beginning
	case limit == "+":
		return edge{end: true}
	case behind:
		return edge{item: item{score, limit[1:] + "\x00"}}
	default:
		return edge{item: item{score, limit[1:]}}
	}
}

// span is the part of a set between two ends. The ranks of a reverse range count from the highest item.
func (e ends) span(z *zset, reverse bool) span {
	p := span{reverse: reverse, most: -1}
	switch e.by {
	case byRank:
		n := int64(z.len())
		from, to := max(0, fromEnd(e.from, n)), min(n-1, fromEnd(e.to, n))
		switch {
		case from > to:
			p.most = 0
		case reverse:
			p.low, p.high, p.most = beginning, z.edge(int(n-from)), int(to-from+1)
		default:
			p.low, p.high, p.most = z.edge(int(from)), edge{end: true}, int(to-from+1)
		}
	case byScore:
		p.low, p.high = e.low.edge(e.low.excluded), e.high.edge(!e.high.excluded)
	default:
		score := z.at(0).score
		p.low, p.high = lexEdge(e.start, score, e.start[0] == '('), lexEdge(e.end, score, e.end[0] == '[')
	}
	return p
}

// fromEnd is a rank of which a negative one counts from the end of n items.
func fromEnd(rank, n int64) int64 {
	if rank < 0 {
		return rank + n
	}
	return rank
}

// rangeQuery is one of the commands that list a part of a set.
type rangeQuery struct {
	by      by
	reverse bool
	free    bool // the options decide about by and reverse
	scores  bool
	offset  int64
	most    int64
}

// read reads the options.
func (q *rangeQuery) read(args []string) *reply {
	q.most = -1
	direction := q.free
	for len(args) > 0 {
		switch option := strings.ToUpper(args[0]); {
		case option == "WITHSCORES":
			q.scores = true
		case option == "LIMIT" && len(args) > 2:
			var fine, alike bool
			q.offset, fine = integer(args[1])
			if q.most, alike = integer(args[2]); !fine || !alike {
				return &errNotInteger
			}
			args = args[2:]
		case option == "REV" && direction:
			q.reverse, direction = true, false
		case option == "BYSCORE" && q.free:
			q.by, q.free = byScore, false
		case option == "BYLEX" && q.free:
			q.by, q.free = byLex, false
		default:
			return &errSyntax
		}
		args = args[1:]
	}
	return nil
}

func (q *rangeQuery) fault() string {
	switch {
	case q.most != -1 && q.by == byRank:
		return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	case q.scores && q.by == byLex:
		return "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
	default:
		return ""
	}
}

// zrange is ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES], and its older forms.
func zrange(c *call, q rangeQuery) reply {
	if fault := q.read(c.args[4:]); fault != nil {
		return *fault
	}
	if text := q.fault(); text != "" {
		return functions.Error(text)
	}
	low, high := c.args[2], c.args[3]
	if q.reverse && q.by != byRank {
		low, high = high, low
	}
	e, fault := readEnds(q.by, low, high)
	if fault != nil {
		return *fault
	}
	z, fault := get[*zset](c.s, c.args[1])
	if z == nil {
		return orEmpty(fault)
	}
	p := e.span(z, q.reverse)
	if q.by != byRank {
		p.skip, p.most = int(q.offset), int(q.most)
	}
	items := c.items(0)
	z.pick(p, func(it item) {
		items = append(items, text(it.member))
		if q.scores {
			items = append(items, text(formatScore(it.score)))
		}
	})
	return list(items)
}

func zcount(c *call, kind by) reply {
	e, fault := readEnds(kind, c.args[2], c.args[3])
	if fault != nil {
		return *fault
	}
	z, fault := get[*zset](c.s, c.args[1])
	if z == nil {
		return orNumber(fault)
	}
	p := e.span(z, false)
	return number(int64(z.count(p.low, p.high)))
}

func zremrange(c *call, kind by) reply {
	e, fault := readEnds(kind, c.args[2], c.args[3])
	if fault != nil {
		return *fault
	}
	z, fault := change[*zset](c.s, c.args[1])
	if z == nil {
		return orNumber(fault)
	}
	all := z.items(e.span(z, false))
	for _, it := range all {
		z.remove(it)
	}
	return removed(c, z, len(all))
}

func zrank(c *call, reverse bool) reply {
	z, fault := get[*zset](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case z == nil:
		return null
	}
	score, there := z.score(c.args[2])
	if !there {
		return null
	}
	rank := z.rank(edge{item: item{score, c.args[2]}})
	if reverse {
		rank = z.len() - 1 - rank
	}
	return number(int64(rank))
}

func zscan(c *call) reply {
	q, bad := newScan(c.args[2])
	z, fault := get[*zset](c.s, c.args[1])
	switch {
	case bad != nil:
		return *bad
	case fault != nil:
		return *fault
	case z == nil:
		return page(0, nil)
	}
	if bad = q.options(c.args[3:], false); bad != nil {
		return *bad
	}
	items := c.items(0)
	next := z.page(q.cursor, q.count, func(it item) {
		if q.takes(it.member) {
			items = append(items, text(it.member), text(formatScore(it.score)))
		}
	})
	return page(next, items)
}
