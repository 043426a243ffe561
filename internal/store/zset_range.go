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
	for name, q := range map[string]rangeQuery{"ZRANGE": {}, "ZREVRANGE": {reverse: true},
		"ZRANGEBYSCORE": {by: byScore}, "ZRANGEBYLEX": {by: byLex}} {
		read(name, 4, 0, func(c *call) reply { return zrange(c, q) })
	}
	read("ZCOUNT", 4, 4, zcount)
	read("ZRANK", 3, 3, reads(null, zrank))
	write("ZREMRANGEBYRANK", 4, 4, func(c *call) reply { return zremrange(c, byRank) })
	write("ZREMRANGEBYSCORE", 4, 4, func(c *call) reply { return zremrange(c, byScore) })
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
	scores  bool
	offset  int64
	most    int64
}

// read reads [WITHSCORES] [LIMIT offset count].
func (q *rangeQuery) read(args []string) *reply {
	q.most = -1
	for len(args) > 0 {
		switch option := strings.ToUpper(args[0]); {
		case option == "WITHSCORES" && q.by != byLex:
			q.scores = true
		case option == "LIMIT" && len(args) > 2 && q.by != byRank:
			var fine, alike bool
			q.offset, fine = integer(args[1])
			if q.most, alike = integer(args[2]); !fine || !alike {
				return &errNotInteger
			}
			args = args[2:]
		default:
			return &errSyntax
		}
		args = args[1:]
	}
	return nil
}

// zrange is ZRANGE and its kin: key start stop [LIMIT offset count] [WITHSCORES].
func zrange(c *call, q rangeQuery) reply {
	if fault := q.read(c.args[4:]); fault != nil {
		return *fault
	}
	e, fault := readEnds(q.by, c.args[2], c.args[3])
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

func zcount(c *call) reply {
	e, fault := readEnds(byScore, c.args[2], c.args[3])
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

func zrank(c *call, z *zset) reply {
	score, there := z.score(c.args[2])
	if !there {
		return null
	}
	return number(int64(z.rank(edge{item: item{score, c.args[2]}})))
}
