package testserver

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
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

// Migrates tells whether the nodes move slots by themselves, as a whole: Valkey from 9.0 on.
func (c *Nodes) Migrates() bool {
	c.t.Helper()
	help := c.live()[0].do("CLUSTER", "HELP").([]any)
	return slices.ContainsFunc(help, func(line any) bool { return strings.HasPrefix(fmt.Sprint(line), "MIGRATESLOTS") })
}

// MigrateSlot tells a primary to give a slot to another, and returns when all nodes know it. Clients may go on: they
// are redirected once the whole slot is there.
func (c *Nodes) MigrateSlot(slot int, to *Server) {
	c.t.Helper()
	from, number := c.NodeOf(slot), strconv.Itoa(slot)
	if from == to {
		c.t.Fatalf("slot %d is there already", slot)
	}
	from.do("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", number, number, "NODE", to.do("CLUSTER", "MYID").(string))
	c.awaitOr("a slot has moved", func() bool { return c.NodeOf(slot) == to }, func() string {
		return fmt.Sprint(from.do("CLUSTER", "GETSLOTMIGRATIONS"))
	})
	c.Settled()
}
