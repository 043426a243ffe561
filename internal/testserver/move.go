package testserver

import (
	"net"
	"strconv"
)

// MoveSlot gives a slot to another primary the classic way: key by key, while both nodes redirect clients for what
// they do not have. halfway, unless nil, is called when half of the keys that were there have been moved.
func (c *Nodes) MoveSlot(slot int, to *Server, halfway func()) (moved int) {
	c.t.Helper()
	from, number := c.NodeOf(slot), strconv.Itoa(slot)
	if from == to {
		c.t.Fatalf("slot %d is there already", slot)
	}
	source, target := from.do("CLUSTER", "MYID").(string), to.do("CLUSTER", "MYID").(string)
	to.do("CLUSTER", "SETSLOT", number, "IMPORTING", source)
	from.do("CLUSTER", "SETSLOT", number, "MIGRATING", target)
	half := int(from.do("CLUSTER", "COUNTKEYSINSLOT", number).(int64)) / 2
	host, port, _ := net.SplitHostPort(to.address)
	for {
		keys := from.do("CLUSTER", "GETKEYSINSLOT", number, "10").([]any)
		for _, key := range keys {
			from.do("MIGRATE", host, port, key.(string), "0", "3600000")
			if moved++; moved == half && halfway != nil {
				halfway()
			}
		}
		if len(keys) == 0 {
			break
		}
	}
	// The new owner first: with the old one first nobody would serve the slot for a moment.
	to.do("CLUSTER", "SETSLOT", number, "NODE", target)
	from.do("CLUSTER", "SETSLOT", number, "NODE", target)
	for _, s := range c.Primaries() {
		if s != to && s != from {
			s.do("CLUSTER", "SETSLOT", number, "NODE", target)
		}
	}
	c.Settled()
	return moved
}
