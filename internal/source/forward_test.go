package source

import (
	"slices"
	"testing"
	"time"
)

// ids lists the partitions of forwards.
func ids(forwards []forward) (out []uint16) {
	for _, x := range forwards {
		out = append(out, x.partition.id)
	}
	return out
}

// A ring is owed to others exactly while no slot is free, or will be in a moment.
func TestRingsThatAreOwed(t *testing.T) {
	now := time.Now()
	rung := func(partitions ...int) (*Source, *space) {
		room := &space{free: true}
		s := testSource(4, room)
		for _, p := range s.partitions {
			p.digest = "d"
		}
		for _, i := range partitions {
			s.ringWork(s.partitions[i], now, 0)
		}
		return s, room
	}
	expect := func(what string, s *Source, at time.Time, leaving bool, again time.Duration, want ...uint16) {
		t.Helper()
		if forwards, pause := s.owed(at, leaving); !slices.Equal(ids(forwards), want) || pause != again {
			t.Errorf("%s: forwards %v, asks again in %v; want %v, %v", what, ids(forwards), pause, want, again)
		}
	}
	s, room := rung(2)
	expect("there is room", s, now, false, time.Hour)
	room.free = false
	expect("full", s, now, false, time.Hour, 2)
	expect("forwarded once", s, now, false, time.Hour)
	s.ringWork(s.partitions[2], now, 0)
	expect("rung again", s, now, false, time.Hour, 2)

	s, room = rung(2)
	s.ring(s.partitions[3]) // not for work: its route is new, and everybody was told
	room.free = false
	expect("only rings for work", s, now, false, time.Hour, 2)

	s, room = rung(1, 3)
	first, _, _ := s.Take(now, false, one)
	room.free, room.coming = false, true
	expect("a claim round may bring its room back", s, now, false, forwardPatience)
	expect("a claim round that takes long", s, now.Add(forwardPatience), false, time.Hour, 3)
	s.ringWork(s.partitions[0], now.Add(forwardPatience), 0)
	expect("a ring that is younger", s, now.Add(forwardPatience), false, forwardPatience)
	s.partitions[0].owed = time.Time{}
	s.ringWork(first, now, 0)
	expect("a partition that is being claimed from", s, now.Add(forwardPatience), false, time.Hour)
	room.coming = false
	s.Left(first)
	expect("its claim round used the room", s, now, false, time.Hour, first.id)

	s, room = rung(1)
	asked, _, _ := s.Take(now, false, one)
	s.Left(asked)
	room.free = false
	expect("a claim round has answered the ring", s, now, false, time.Hour)

	s, _ = rung(0, 1)
	expect("leaving, with room", s, now, true, time.Hour, 0, 1)
	s, room = rung(0)
	s.partitions[0].digest = ""
	room.free = false
	expect("never registered", s, now, false, time.Hour)
}

// The forwarder is told when it must look again: when a ring comes, when a claim round takes slots, and when it ends.
func TestOwedRingsWakeTheForwarder(t *testing.T) {
	s := testSource(2, &space{free: true})
	pokes := 0
	s.onOwed = func() { pokes++ }
	s.ring(s.partitions[0])
	p, _, _ := s.Take(time.Now(), false, one)
	s.Left(p)
	if pokes != 0 {
		t.Errorf("%d wake-ups although nothing is owed", pokes)
	}
	s.ringWork(s.partitions[1], time.Now(), 0)
	p, _, _ = s.Take(time.Now(), false, one) // of partition 0, which is still hot
	s.Left(p)
	if pokes != 3 || p.id != 0 {
		t.Errorf("%d wake-ups, asked %d; want 3 of partition 0", pokes, p.id)
	}
}
