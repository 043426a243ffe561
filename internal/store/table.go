package store

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"

	"github.com/tidwall/btree"
)

// Bounds of a small table. One that has grown beyond them stays large.
const (
	smallFields = 64
	smallBytes  = 2 << 10
)

// table is what hashes and sets are made of: names, in a hash each with a text. A small one is one packed text in the
// order in which the names came. A large one is a B-tree in the order of a digest of the names, so that a cursor is a
// number and names that come and go do not move the others.
type table struct {
	step  int // texts of a row: 1 in a set, 2 in a hash
	small packed
	count int                        // of rows, while it is small
	large *btree.Map[string, string] // nil: it is small
}

func (t *table) copy() table {
	if t.large == nil {
		return *t
	}
	return table{step: t.step, large: t.large.Copy()}
}

func (t *table) len() int {
	if t.large == nil {
		return t.count
	}
	return t.large.Len()
}

// digestBytes is how much of the digest stands before a name in a large table: as much as a cursor may have so that
// every language reads it as a number.
const digestBytes = 6

var digestSeed = maphash.MakeSeed()

// placed is a name as large tables have it.
func placed(name string) string {
	b := make([]byte, digestBytes, 64)
	putDigest(b, digest(name))
	return string(append(b, name...))
}

func digest(name string) uint64 { return maphash.String(digestSeed, name) >> (64 - 8*digestBytes) }

func putDigest(to []byte, d uint64) {
	for i := range digestBytes {
		to[i] = byte(d >> (8 * (digestBytes - 1 - i)))
	}
}

func digestOf(placed string) (d uint64) {
	for i := range digestBytes {
		d = d<<8 | uint64(placed[i])
	}
	return d
}

// row cuts the first row off a small table.
func (t *table) row(p packed) (name, text string, rest packed) {
	name, rest = p.next()
	if t.step == 2 {
		text, rest = rest.next()
	}
	return name, text, rest
}

// all walks the rows.
func (t *table) all(yield func(name, text string) bool) {
	if t.large != nil {
		t.large.Scan(func(name, text string) bool { return yield(name[digestBytes:], text) })
		return
	}
	for p := t.small; p != ""; {
		var name, text string
		if name, text, p = t.row(p); !yield(name, text) {
			return
		}
	}
}

func (t *table) get(name string) (text string, there bool) {
	if t.large != nil {
		return t.large.Get(placed(name))
	}
	for p := t.small; p != ""; {
		var n string
		if n, text, p = t.row(p); n == name {
			return text, true
		}
	}
	return "", false
}

// set puts rows in, and returns how many were not there. buffer may be used for it.
func (t *table) set(rows []string, buffer *[]byte) (added int) {
	if t.large == nil && len(rows) > smallFields*t.step {
		t.grow()
	}
	if t.large != nil {
		for i := 0; i < len(rows); i += t.step {
			text := ""
			if t.step == 2 {
				text = strings.Clone(rows[i+1])
			}
			if _, there := t.large.Set(placed(rows[i]), text); !there {
				added++
			}
		}
		return added
	}
	w, used, changed := want(rows, t.step), uint64(0), false
	b := (*buffer)[:0]
	put := func(name string, at int) { // the last row of a name counts
		b = pack(b, name)
		last := at
		for ; at >= 0; at = w.from(at+t.step, name) {
			used |= 1 << (at / t.step)
			last = at
		}
		if t.step == 2 {
			b = pack(b, rows[last+1])
		}
	}
	for p := t.small; p != ""; {
		before := p
		name, _, rest := t.row(p)
		p = rest
		if at := w.from(0, name); at >= 0 {
			put(name, at)
			changed = t.step == 2
		} else {
			b = append(b, before[:len(before)-len(rest)]...)
		}
	}
	for at := 0; at < len(rows); at += t.step {
		if used&(1<<(at/t.step)) == 0 {
			put(rows[at], at)
			added++
		}
	}
	*buffer = b
	if !changed && added == 0 {
		return 0
	}
	t.small, t.count = packed(b), t.count+added
	if t.count > smallFields || len(t.small) > smallBytes {
		t.grow()
	}
	return added
}

// grow makes a small table large.
func (t *table) grow() {
	large := new(btree.Map[string, string])
	for name, text := range t.all {
		large.Set(placed(name), strings.Clone(text))
	}
	t.large, t.small, t.count = large, "", 0
}

// remove takes names out, and returns how many were there. buffer may be used for it.
func (t *table) remove(names []string, buffer *[]byte) (removed int) {
	if t.large != nil {
		for _, name := range names {
			if _, there := t.large.Delete(placed(name)); there {
				removed++
			}
		}
		return removed
	}
	w, b := want(names, 1), (*buffer)[:0]
	for p := t.small; p != ""; {
		name, _, rest := t.row(p)
		if w.from(0, name) >= 0 {
			removed++
		} else {
			b = append(b, p[:len(p)-len(rest)]...)
		}
		p = rest
	}
	if *buffer = b; removed > 0 {
		t.small, t.count = packed(b), t.count-removed
	}
	return removed
}

// page passes rows on from a cursor, and returns the next one, 0 at the end. A small table is one page. Names with
// the same digest are in the same page.
func (t *table) page(cursor uint64, count int, yield func(name, text string)) (next uint64) {
	if t.large == nil {
		for name, text := range t.all {
			yield(name, text)
		}
		return 0
	}
	if cursor>>(8*digestBytes) != 0 {
		return 0
	}
	first := make([]byte, digestBytes)
	putDigest(first, cursor)
	last := uint64(0)
	t.large.Ascend(string(first), func(name, text string) bool {
		if d := digestOf(name); count <= 0 && d != last {
			next = d
			return false
		} else {
			last = d
		}
		count--
		yield(name[digestBytes:], text)
		return true
	})
	return next
}

// at is a row by its place.
func (t *table) at(i int) (name, text string) {
	if t.large != nil {
		name, text, _ = t.large.GetAt(i)
		return name[digestBytes:], text
	}
	for p := t.small; ; i-- {
		if name, text, p = t.row(p); i == 0 {
			return name, text
		}
	}
}

// pick chooses up to count rows by chance.
func (t *table) pick(count int, yield func(name, text string)) {
	n := t.len()
	if count >= n {
		for name, text := range t.all {
			yield(name, text)
		}
		return
	}
	chosen := make(map[int]bool, count) // Floyd's way to choose without repeating
	for i := n - count; i < n; i++ {
		at := rand.IntN(i + 1)
		if chosen[at] {
			at = i
		}
		chosen[at] = true
		yield(t.at(at))
	}
}
