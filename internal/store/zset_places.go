package store

import "github.com/tidwall/btree"

// places finds the items of a large sorted set. An item is under the digest of its member, or, if that place is
// taken, under the next number that is free. So a search compares numbers.
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
