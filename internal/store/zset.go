package store

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/btree"
)

// item is a member of a sorted set.
type item struct {
	score  float64
	member string
}

func (a item) compare(b item) int {
	switch {
	case a.score < b.score:
		return -1
	case a.score > b.score:
		return 1
	default:
		return strings.Compare(a.member, b.member)
	}
}

func (a item) less(b item) bool { return a.compare(b) < 0 }

// zset is a sorted set. A small one is a slice; one that has become large stays a pair of trees.
type zset struct {
	small  []item // in order
	shared bool   // small belongs to a clone too
	order  *btree.BTreeG[item]
	places *places // nil: small
}

// mostSmall is the number of members up to which a search from member to member is as fast as a tree.
const mostSmall = 128

func (*zset) kind() string { return "zset" }

func (z *zset) clone() value {
	if z.places != nil {
		return &zset{order: z.order.Copy(), places: &places{z.places.home, z.places.all.Copy()}}
	}
	z.shared = true
	return &zset{small: z.small, shared: true}
}

// dumpRow is the number of elements in one command of a dump.
const dumpRow = 256

func (z *zset) dump(key string, emit func(args ...string)) {
	args := []string{"ZADD", key}
	z.walk(beginning, func(it item) bool {
		if len(args) >= 2+2*dumpRow {
			emit(args...)
			args = []string{"ZADD", key}
		}
		args = append(args, strconv.FormatFloat(it.score, 'g', -1, 64), it.member)
		return true
	})
	emit(args...)
}

func (z *zset) len() int {
	if z.places != nil {
		return z.places.all.Len()
	}
	return len(z.small)
}

func (z *zset) score(member string) (float64, bool) {
	if z.places != nil {
		_, it, there := z.places.find(member)
		return it.score, there
	}
	for i := range z.small {
		if z.small[i].member == member {
			return z.small[i].score, true
		}
	}
	return 0, false
}

// add puts in a member that is not there. It keeps the member's text.
func (z *zset) add(it item) {
	if z.places == nil && len(z.small) >= mostSmall {
		*z = *large(z.small)
	}
	if z.places != nil {
		z.order.Set(it)
		z.places.set(it)
		return
	}
	at, _ := slices.BinarySearchFunc(z.small, it, item.compare)
	z.own()
	z.small = slices.Insert(z.small, at, it)
}

// move gives a member another score.
func (z *zset) move(from item, score float64) {
	if z.places != nil {
		kept, _ := z.order.Delete(from)
		kept.score = score
		z.order.Set(kept)
		z.places.set(kept)
		return
	}
	kept := z.take(from)
	kept.score = score
	z.add(kept)
}

// remove takes out a member that is there.
func (z *zset) remove(it item) {
	if z.places == nil {
		z.take(it)
		return
	}
	z.order.Delete(it)
	z.places.remove(it.member)
}

// take removes from a small set, and returns the item as it was kept.
func (z *zset) take(it item) item {
	at, _ := slices.BinarySearchFunc(z.small, it, item.compare)
	z.own()
	kept := z.small[at]
	z.small = slices.Delete(z.small, at, at+1)
	return kept
}

// own copies the slice if a clone has it too.
func (z *zset) own() {
	if z.shared {
		z.small, z.shared = append(make([]item, 0, len(z.small)+4), z.small...), false
	}
}

// large makes a large set of items in order.
func large(items []item) *zset {
	z := &zset{order: btree.NewBTreeGOptions(item.less, btree.Options{NoLocks: true}),
		places: &places{digest, new(btree.Map[uint64, item])}}
	for _, it := range items {
		z.order.Load(it)
		z.places.set(it)
	}
	return z
}

// edge is a place between the items of a set: before all that are not less than its item, or behind all.
type edge struct {
	item
	end bool
}

// beginning is before all items.
var beginning = edge{item: item{score: math.Inf(-1)}}

// before reports whether an item lies behind the edge.
func (e edge) before(it item) bool { return !e.end && !it.less(e.item) }

// at is the item of a rank.
func (z *zset) at(rank int) item {
	if z.places == nil {
		return z.small[rank]
	}
	it, _ := z.order.GetAt(rank)
	return it
}

// edge is the place before the item of a rank.
func (z *zset) edge(rank int) edge {
	if rank >= z.len() {
		return edge{end: true}
	}
	return edge{item: z.at(rank)}
}

// rank is the number of items before an edge.
func (z *zset) rank(e edge) int {
	switch {
	case e.end:
		return z.len()
	case e == beginning:
		return 0
	default:
		return sort.Search(z.len(), func(i int) bool { return e.before(z.at(i)) })
	}
}

// walk gives each the items behind an edge in order, until it returns false.
func (z *zset) walk(from edge, each func(item) bool) {
	switch {
	case from.end:
	case z.places != nil:
		z.order.Ascend(from.item, each)
	default:
		for _, it := range z.small[z.rank(from):] {
			if !each(it) {
				return
			}
		}
	}
}

// back gives each the items before an edge in falling order, until it returns false.
func (z *zset) back(from edge, each func(item) bool) {
	switch {
	case z.places == nil:
		for i := z.rank(from) - 1; i >= 0 && each(z.small[i]); i-- {
		}
	case from.end:
		z.order.Reverse(each)
	default:
		z.order.Descend(from.item, func(it item) bool { return from.before(it) || each(it) })
	}
}

// span is a part of a set.
type span struct {
	low, high  edge
	reverse    bool
	skip, most int // of the items, in the order asked for; a negative most is no bound
}

// pick gives each the items of a part.
func (z *zset) pick(p span, each func(item)) {
	take := func(it item) bool {
		if out := p.reverse && !p.low.before(it) || !p.reverse && p.high.before(it); out || p.most == 0 {
			return false
		}
		if p.skip > 0 {
			p.skip--
			return true
		}
		each(it)
		p.most--
		return p.most != 0
	}
	switch {
	case p.skip < 0 || p.most == 0:
	case p.reverse:
		z.back(p.high, take)
	default:
		z.walk(p.low, take)
	}
}

// count is the number of items between two edges.
func (z *zset) count(low, high edge) int { return max(0, z.rank(high)-z.rank(low)) }

// formatScore writes a score as C's %.17g. Of 0 it writes no sign: Redis does so in small sets only.
func formatScore(f float64) string {
	switch {
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatInt(int64(f), 10)
	default:
		return strconv.FormatFloat(f, 'g', 17, 64)
	}
}

// parseScore reads what C's strtod reads as a whole; it takes no text for a number that is too large or too small.
func parseScore(s string) (f float64, fine bool) {
	f, fine = strtod(s)
	digits, _, _ := strings.Cut(strings.ToLower(s), "e")
	switch {
	case strings.Contains(digits, "inf"):
		return f, fine
	case math.IsInf(f, 0),
		f == 0 && !strings.Contains(digits, "x") && strings.ContainsAny(digits, "123456789"):
		return f, false
	default:
		return f, fine
	}
}

// strtod reads a number. One that is too large is infinite.
func strtod(s string) (f float64, fine bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		return float64(n), true
	}
	if strings.Contains(s, "_") {
		return 0, false
	}
	if lower := strings.ToLower(s); strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, (err == nil || math.IsInf(f, 0)) && !math.IsNaN(f)
}
