package store

import "github.com/tidwall/btree"

// places finds the items of a large sorted set. An item is under the digest of its member, or, if that place is
// taken, under the next number that is free. So a search compares numbers, and a number is a cursor.
type places struct {
	home func(member string) uint64
	all  *btree.Map[uint64, item]
}

// find is where a member is, or where it goes if it is not there.
func (m *places) find(member string) (at uint64, it item, there bool) {
	for at = m.home(member); ; at++ {
		switch it, taken := m.all.Get(at); {
		case !taken:
			return at, it, false
		case it.member == member:
			return at, it, true
		}
	}
}

func (m *places) set(it item) {
	at, _, _ := m.find(it.member)
	m.all.Set(at, it)
}

// remove takes out a member that is there. Those behind it that may have found its place taken go in again.
func (m *places) remove(member string) {
	at, _, _ := m.find(member)
	m.all.Delete(at)
	for at++; ; at++ {
		next, there := m.all.Delete(at)
		if !there {
			return
		}
		m.set(next)
	}
}

// page passes items on from a cursor, and returns the next one, 0 at the end. A page ends only where a place is free,
// so that no member can move to a place before its page.
func (m *places) page(cursor uint64, count int, yield func(item)) (next uint64) {
	last := uint64(0)
	m.all.Ascend(cursor, func(at uint64, it item) bool {
		if count <= 0 && at != last+1 {
			next = at
			return false
		}
		count--
		last = at
		yield(it)
		return true
	})
	return next
}

// page is the page of a set. A small one is one page.
func (z *zset) page(cursor uint64, count int, yield func(item)) (next uint64) {
	if z.places != nil {
		return z.places.page(cursor, count, yield)
	}
	for _, it := range z.small {
		yield(it)
	}
	return 0
}
