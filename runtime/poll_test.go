package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"
)

// serving runs an idle worker on s for d of virtual time.
func serving(t *testing.T, s *silent, d time.Duration) {
	t.Helper()
	servingAs(t, s, Config{}, d)
}

func servingAs(t *testing.T, s *silent, cfg Config, d time.Duration) {
	t.Helper()
	w := s.worker(cfg, func(context.Context) error { return nil })
	// timed: virtual time
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var running conc.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	running.Wait()
}

// Off-cluster one call a second asks for everything; in a cluster every partition is asked at least every 20 s.
func TestPollTurns(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSilent(50, 0)
			s.cluster = cluster
			serving(t, s, 2*time.Minute)
			s.polls = s.polls[:len(s.polls)-1] // the farewell
			asked, begun := map[uint16]time.Time{}, s.polls[0].at
			for _, p := range s.polls {
				if cluster != (len(p.partitions) == 1) {
					t.Fatalf("%d partitions in one call", len(p.partitions))
				}
				for _, id := range p.partitions {
					last, again := asked[id]
					if !again {
						last = begun
					}
					if gap := p.at.Sub(last); gap > 20*time.Second {
						t.Errorf("partition %d was not asked for %v", id, gap)
					}
					asked[id] = p.at
				}
			}
			calls := map[bool]int{false: 120, true: 480}[cluster] // ⌈50/16⌉ = 4 a second
			if n := len(s.polls); len(asked) != 50 || n < calls*8/10 || n > calls*12/10 {
				t.Errorf("%d calls in two minutes for %d partitions, want about %d", n, len(asked), calls)
			}
		})
	}
}

// Many workers share the polls among them: each makes fewer, and none so few that it would seem not to be ready.
func TestPollsAreShared(t *testing.T) {
	for _, c := range []struct {
		fleet, window, least, most int // workers, s, and polls in two minutes
	}{{1, 15, 105, 140}, {4, 15, 90, 140}, {12, 15, 30, 50}, {1000, 15, 13, 20}, {1000, 60, 12, 19},
		{1000, 1, 105, 140}} {
		for _, cluster := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newSilent(16, 0) // in a cluster, too, one call a poll
				s.cluster, s.fleet = cluster, c.fleet
				servingAs(t, s, Config{ReadyWindow: time.Duration(c.window) * time.Second}, 2*time.Minute)
				if n := len(s.polls) - 1; n < c.least || n > c.most+4 {
					// a cluster's workers are counted in the first turns
					t.Errorf("%d workers, window %d s, cluster %v: %d polls in two minutes", c.fleet, c.window, cluster,
						n)
				}
			})
		}
	}
}

// Of more workers than can poll as seldom as they should, each asks for a part of the partitions, and a different one
// each time.
func TestPollsOfALargeFleetAreSmall(t *testing.T) {
	for fleet, want := range map[int]int{30: 64, 300: 8, 100_000: 1} {
		// 64 partitions, 4 a second, and each worker every 7.5 s
		synctest.Test(t, func(t *testing.T) {
			s := newSilent(64, 0)
			s.fleet = fleet
			servingAs(t, s, Config{}, 20*time.Minute)
			// the first knows of no others, the last is the farewell
			polls, asked := s.polls[1:len(s.polls)-1], map[uint16]bool{}
			for _, p := range polls {
				if n := len(p.partitions); n > want || 4*n < want {
					t.Fatalf("%d workers: a poll asked for %d partitions, want about %d", fleet, n, want)
				}
				for _, id := range p.partitions {
					asked[id] = true
				}
			}
			if len(asked) != 64 {
				t.Errorf("%d workers: %d partitions were asked for in the end, want all 64", fleet, len(asked))
			}
		})
	}
}

// In a cluster a poll is a call for each partition that it asks for. Those of a large fleet are few, and cover all
// partitions.
func TestPollsOfALargeFleetAreFewInACluster(t *testing.T) {
	for fleet, want := range map[int]int{100: 16, 1_000: 2, 100_000: 1} {
		// 256 partitions, each asked at least once a second, every 7.5 s by a worker
		synctest.Test(t, func(t *testing.T) {
			s := newSilent(256, 0)
			s.cluster, s.fleet = true, fleet
			servingAs(t, s, Config{}, 100*time.Minute)
			// the first knows of no others, the last is the farewell
			polls, asked := s.polls[16:len(s.polls)-1], map[uint16]bool{}
			for _, p := range polls {
				asked[p.partitions[0]] = true
			}
			if n, most := len(polls), want*100*60*12/75; n > most || n < most/2 {
				t.Errorf("%d workers: %d calls in 100 minutes, want about %d", fleet, n, most*10/12)
			}
			if len(asked) != 256 {
				t.Errorf("%d workers: %d partitions were asked for in the end, want all 256", fleet, len(asked))
			}
		})
	}
}

// The ticks of a dead owner become overdue one after the other. The first is heard of by an ordinary poll; then the
// worker listens closely and takes over the rest within half a second each, in a cluster, too.
func TestDeadOwnersTicksAreTakenOver(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSilent(64, 0)
			s.cluster = cluster
			died := time.Now().Add(30 * time.Second)
			for p := range uint16(64) {
				s.overdue[p] = died.Add(time.Duration(p) * 15 * time.Millisecond)
			}
			serving(t, s, time.Minute)
			var first, worst time.Duration
			for p := range uint16(64) {
				took, ok := s.ticks[p]
				if !ok {
					t.Fatalf("partition %d was never taken over", p)
				}
				late := took.Sub(died)
				if first == 0 || late < first {
					first = late
				}
				worst = max(worst, late)
			}
			if first > 2500*time.Millisecond || worst-first > 1500*time.Millisecond {
				t.Errorf("cluster %v: the first after %v, the last after %v", cluster, first, worst)
			}
		})
	}
}
