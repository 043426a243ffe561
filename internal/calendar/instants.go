package calendar

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Next is the first instant of a schedule after t; the zero time when there is none, or none before Until has passed.
func Next(d schedule.Definition, t time.Time) time.Time {
	next := d.Spec.Next(t)
	if !d.Until.IsZero() && next.After(d.Until) {
		return time.Time{}
	}
	return next
}

// Upcoming are the first n instants after t, fewer when there are no more. n is at most 1000. It does not know how
// many Runs are left.
func Upcoming(d schedule.Definition, t time.Time, n int) []time.Time {
	all := d.Spec.Upcoming(t, n)
	for i, at := range all {
		if !d.Until.IsZero() && at.After(d.Until) {
			return all[:i]
		}
	}
	return all
}

// Start is when the work of an instant of the schedule called name begins: up to Jitter after the instant, and at
// most halfway to the next one. So no instant overtakes another. It follows from name and instant alone, so every
// process gets the same.
func Start(d schedule.Definition, name string, instant time.Time) time.Time {
	most := time.Duration(d.Jitter)
	if next := d.Spec.Next(instant); !next.IsZero() {
		most = min(most, next.Sub(instant)/2)
	}
	if most < time.Millisecond {
		return instant
	}
	id := ids.Derive("flowfabric schedule jitter v1", name, strconv.FormatInt(instant.UnixMilli(), 10))
	return instant.Add(time.Duration(binary.BigEndian.Uint64(id[8:])%uint64(most.Milliseconds()+1)) * time.Millisecond)
}
