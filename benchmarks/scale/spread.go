package scale

import (
	"fmt"
	"slices"
)

// slots of a cluster.
const slots = 16384

// Slot is the slot of a partition: of its hash tag, the part of its root between the braces.
func Slot(partition int) int { return int(crc16(fmt.Sprintf("fp:%d", partition))) % slots }

// crc16 is the sum that clusters use: polynomial 0x1021, initial value 0.
func crc16(s string) (crc uint16) {
	for _, b := range []byte(s) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// Primary is which of n primaries has a partition, when each has an equal range of slots.
func Primary(partition, primaries int) int { return Slot(partition) * primaries / slots }

// Spread is how many partitions each primary has.
func Spread(partitions, primaries int) []int {
	counts := make([]int, primaries)
	for p := range partitions {
		counts[Primary(p, primaries)]++
	}
	return counts
}

// Skew is how much more than an equal part the busiest primary has: 1 is even.
func Skew(partitions, primaries int) float64 {
	return float64(slices.Max(Spread(partitions, primaries))) * float64(primaries) / float64(partitions)
}
