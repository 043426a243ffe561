package source

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

// space is the room of a test.
type space struct{ free, coming bool }

func (r *space) Free() bool   { return r.free }
func (r *space) Coming() bool { return r.coming }

// still is a store of so many partitions that no test of the state machine asks anything but their number.
type still uint16

func (s still) Partitions() uint16 { return uint16(s) }
func (still) Cluster() bool        { return false }
func (still) Subscribe(context.Context, uint16, []string, func(), func(channel, message string)) error {
	panic("not expected")
}
func (still) Poll(context.Context, []uint16) ([]engine.PollState, int, error) { panic("not expected") }
func (still) ForwardRing(context.Context, uint16, string) (int, error)        { panic("not expected") }
func (still) SetSubscription(context.Context, uint16, engine.Subscription) (string, error) {
	return "aa", nil
}

func one(*Partition) int { return 1 }

func always(bool) bool { return true }

func testSource(partitions uint16, room Room) *Source {
	return New(Config{Partitions: partitions, Offer: offer.New([]string{"n"}, []string{"l"}, []string{"k"}, nil),
		Store: still(partitions), Room: room, Logger: slog.New(slog.DiscardHandler), OnHot: func() {}})
}

// A ring during a claim round is not forgotten; polls that lead to nothing become rarer.
func TestRings(t *testing.T) {
	s := testSource(1, &space{free: true})
	p, now := s.partitions[0], time.Now()
	s.ring(p)
	s.Take(now, false, one)
	s.registered(p, now)
	s.ring(p)
	s.Left(p)
	if len(s.hot) != 1 {
		t.Fatal("a ring during a claim round was lost")
	}
	suspects := 0
	for i := range 100 { // one a second
		poll := now.Add(time.Duration(i) * time.Second)
		if s.suspect(p, poll) {
			suspects++
		}
		if q, _, _ := s.Take(now.Add(time.Hour), false, one); q != nil {
			s.registered(q, poll)
			s.Left(q)
		}
	}
	if suspects < 3 || suspects > 8 {
		t.Errorf("%d of 100 polls led to a claim round, want few", suspects)
	}
	s.sweep(now.Add(100*time.Second + registration + time.Second))
	if p.registered || len(s.hot) != 1 {
		t.Error("an expiring registration is not renewed")
	}
}

// A call that claims as well registers anew when a ring came before the registration was recorded, or a poll saw work;
// and it keeps away from partitions whose work has gates, and from those that are claimed from.
func TestJoinedClaims(t *testing.T) {
	room := &space{free: true}
	s, now := testSource(1, room), time.Now()
	s.RingAll()
	p, _, _ := s.Take(now, false, one)
	p.digest = "aa"
	s.ring(p) // the message overtakes the reply
	s.registered(p, now)
	s.Left(p)
	join := func(what string, registered, joined bool) {
		t.Helper()
		if got, ok := s.Join(p, always); got != registered || ok != joined {
			t.Errorf("%s: registered %v, joined %v; want %v, %v", what, got, ok, registered, joined)
		}
	}
	join("rung before it was recorded", false, true)
	s.registered(p, now)
	s.Left(p)
	join("registered", true, true)
	join("claimed from already", false, false)
	s.Left(p)
	s.suspect(p, now)
	join("suspected", false, true)
	s.registered(p, now)
	s.Left(p)
	if _, joined := s.Join(p, func(bool) bool { return false }); joined || p.claiming {
		t.Error("joined without room")
	}
	p.gated = true
	join("with gates", false, false)
}
