package coalesce

import (
	"math/rand/v2"
	"time"
)

// A plain batch of one item that comes loneAfter the batch before it, or later, goes to the same partition: a worker
// has a session there, and would have to open one elsewhere first. maxStay bounds how many batches in a row do, and
// so how unevenly partitions are filled.
const (
	loneAfter = 2 * time.Millisecond
	maxStay   = 16
)

// placement decides where plain batches go: to the partitions in rotation, but for lone ones. Coalescer.mu guards it.
type placement struct {
	partitions uint16
	turn       uint16    // the next partition in rotation
	last       uint16    // partition of the last batch
	stayed     int       // how many batches in a row it has got
	formed     time.Time // when the last of them was made
}

func newPlacement(partitions uint16) placement {
	// short-lived producers must not all begin at partition 0
	return placement{partitions: partitions, turn: uint16(rand.N(int(partitions)))}
}

// place returns the partition of a batch.
func (p *placement) place(items int, now time.Time) uint16 {
	if lone := items == 1 && now.Sub(p.formed) >= loneAfter; !lone || p.stayed == 0 || p.stayed == maxStay {
		p.last, p.stayed = p.rotate(), 0
	}
	p.stayed++
	p.formed = now
	return p.last
}

// rotate returns the next partition.
func (p *placement) rotate() uint16 {
	partition := p.turn
	p.turn = (p.turn + 1) % p.partitions
	return partition
}
