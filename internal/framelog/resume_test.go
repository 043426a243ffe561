package framelog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// events are all that a tail delivers.
func events(t *testing.T, h *framelog.Hub, o framelog.TailOptions) (all []stream.TailEvent) {
	t.Helper()
	for e, err := range h.Tail(t.Context(), execution, o) {
		must.No(t, err)
		all = append(all, e)
	}
	return all
}

// words are events in short, each with its position.
func words(events []stream.TailEvent) (out []string) {
	for _, e := range events {
		text := fmt.Sprintf("%s %d %q", e.Kind, e.Attempt, string(e.Position))
		switch e.Kind {
		case stream.TailAttempt:
			text += fmt.Sprint(" ", e.Reused)
		case stream.TailFrame:
			text += fmt.Sprint(" ", e.Frame.Sequence)
		case stream.TailGap:
			text += fmt.Sprint(" ", e.Trimmed)
		case stream.TailResumed:
			text += fmt.Sprint(" ", e.Resumed.Run)
		case stream.TailAttemptEnd:
			text += fmt.Sprint(" ", e.Reason, e.Recorded)
		case stream.TailSuspended:
			text += " " + e.Suspension.Name
		case stream.TailRetry:
			text += fmt.Sprint(" ", e.Type, e.At.UnixMilli(), e.Category, e.Message)
		case stream.TailEnd:
			text += fmt.Sprint(" ", e.State, e.At.UnixMilli(), e.Category, e.Message)
		}
		out = append(out, text)
	}
	return out
}

// act is a random history, with pauses in which a tail that follows hears of everything.
func act(t *testing.T, s *server, r *rand.Rand, steps int) {
	for range steps {
		step(t, s, r)
	}
	s.settle(codes.Completed, "attempt_success")
}

// step is one thing that may happen to an execution that is running, after which it is running.
func step(t *testing.T, s *server, r *rand.Rand) {
	switch r.IntN(8) {
	case 0, 1, 2:
		s.frames(t, 1+r.IntN(4))
	case 3:
		s.record()
	case 4:
		s.goOn()
	case 5:
		s.suspend(fmt.Sprint("wait", r.IntN(1000)))
		time.Sleep(5 * time.Second)
		if r.IntN(2) == 0 {
			s.goOn()
			s.suspend("next")
			time.Sleep(5 * time.Second)
		}
		s.goOn()
	case 6:
		s.settle([]codes.Code{codes.RetryBackoff, codes.WaitingReclaim}[r.IntN(2)], "attempt_failure")
		if r.IntN(2) == 0 {
			time.Sleep(5 * time.Second)
		}
		s.claim()
	case 7:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
}

var kinds = []stream.TailKind{stream.TailAttempt, stream.TailGap, stream.TailResumed, stream.TailFrame,
	stream.TailSuspended, stream.TailAttemptEnd, stream.TailRetry, stream.TailEnd}

// A tail that goes on behind any event delivers exactly the rest: of what is stored, also when frames were trimmed,
// and of what another tail has heard live, but for what the execution waited for in between.
func TestTailGoesOnBehindEveryEvent(t *testing.T) {
	seen := map[stream.TailKind]int{}
	for seed := range uint64(60) {
		inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
			r := rand.New(rand.NewPCG(seed, 1))
			var heard []stream.TailEvent
			live := follow(t.Context(), h, framelog.TailOptions{},
				func(e stream.TailEvent) { heard = append(heard, e) })
			synctest.Wait()
			act(t, s, r, 25)
			live.group.Wait()
			lasting := func(from []stream.TailEvent) (out []stream.TailEvent) {
				for _, e := range from {
					if e.Kind != stream.TailSuspended && e.Kind != stream.TailRetry {
						out = append(out, e)
					}
				}
				return out
			}
			for i, e := range heard {
				seen[e.Kind]++
				rest := words(events(t, h, framelog.TailOptions{From: e.Position}))
				if want := words(lasting(heard[i+1:])); !slices.Equal(rest, want) {
					t.Fatalf("seed %d, behind %s:\n%q\nwant\n%q", seed, words(heard[i:i+1]), rest, want)
				}
			}
			for attempt := range s.attempts {
				s.trim(attempt, r.IntN(6))
			}
			stored := events(t, h, framelog.TailOptions{})
			for i, e := range stored {
				seen[e.Kind]++
				rest := words(events(t, h, framelog.TailOptions{From: e.Position}))
				if want := words(stored[i+1:]); !slices.Equal(rest, want) {
					t.Fatalf("seed %d, stored, behind %s:\n%q\nwant\n%q", seed, words(stored[i:i+1]), rest, want)
				}
			}
		})
	}
	for _, k := range kinds {
		if seen[k] == 0 {
			t.Errorf("no event was %s", k)
		}
	}
}

// An event has one position, whoever is told of it: a tail that heard it live, one that joined in between, one that
// comes when all is over or frames are gone, and one that does not want what does not last.
func TestEveryReaderHasOnePositionOfAnEvent(t *testing.T) {
	told := map[stream.TailKind]int{}
	for seed := range uint64(60) {
		inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
			r := rand.New(rand.NewPCG(seed, 2))
			var mu sync.Mutex
			positions, readers := map[string]stream.Position{}, []*tailing{}
			note := func(reader string, e stream.TailEvent) {
				what := fmt.Sprint(e.Kind, " ", e.Attempt, " ", e.Frame.Sequence, " ", e.Resumed.Run)
				if e.Suspension != nil {
					what += " " + e.Suspension.ID.String()
				}
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == stream.TailGap { // which tells of one reader
					return
				}
				told[e.Kind]++
				if p, ok := positions[what]; ok && p != e.Position {
					t.Errorf("seed %d: %s: %q of %s, %q of another reader", seed, what, e.Position, reader, p)
				}
				positions[what] = e.Position
			}
			join := func(reader string, o framelog.TailOptions) {
				first := true
				readers = append(readers, follow(t.Context(), h, o, func(e stream.TailEvent) {
					if !first || !o.FromNow { // the first says where such a tail began
						note(reader, e)
					}
					first = false
				}))
			}
			join("who was there", framelog.TailOptions{})
			join("who was there for what lasts", framelog.TailOptions{WithoutBestEffort: true})
			for range 25 {
				step(t, s, r)
				switch r.IntN(6) {
				case 0:
					join("who joined", framelog.TailOptions{WithoutBestEffort: r.IntN(2) == 0})
				case 1:
					join("who joined for what comes", framelog.TailOptions{FromNow: true})
				case 2, 3:
					s.live(t)
				}
				synctest.Wait()
			}
			s.settle(codes.Completed, "attempt_success")
			for _, reader := range readers {
				reader.group.Wait()
			}
			late := func(reader string) {
				for _, durable := range []bool{false, true} {
					for _, e := range events(t, h, framelog.TailOptions{WithoutBestEffort: durable}) {
						note(reader, e)
					}
				}
			}
			late("who comes late")
			for attempt := range s.attempts {
				s.expire(attempt, stream.ModeBestEffort)
			}
			late("who comes when frames have expired")
			for attempt := range s.attempts {
				s.trim(attempt, r.IntN(6))
			}
			late("who comes when frames were trimmed")
		})
	}
	for _, k := range kinds {
		if told[k] == 0 && k != stream.TailGap {
			t.Errorf("no event was %s", k)
		}
	}
}

// What the execution waits for is told once to a tail that is there, to one that comes while it waits, and to none
// that knows it.
func TestTailTellsWhatIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		there := follow(t.Context(), h, framelog.TailOptions{})
		s.frames(t, 2)
		s.suspend("approval")
		time.Sleep(10 * time.Second)
		looks := s.count(&s.looks)
		time.Sleep(10 * time.Minute)
		if got := s.count(&s.looks); got != looks {
			t.Errorf("the suspension was read %d times more", got-looks)
		}
		late := events(t, h, framelog.TailOptions{Stored: true})
		if last := late[len(late)-1]; last.Kind != stream.TailSuspended || last.Suspension.Name != "approval" {
			t.Fatalf("%q", words(late))
		} else if again := events(t, h, framelog.TailOptions{Stored: true, From: last.Position}); len(again) != 0 {
			t.Errorf("it was told again: %q", words(again))
		}
		s.goOn()
		s.frames(t, 1)
		time.Sleep(10 * time.Second)
		s.suspend("payment")
		time.Sleep(10 * time.Second)
		s.goOn()
		s.settle(codes.RetryBackoff, "attempt_failure")
		time.Sleep(10 * time.Second)
		late = events(t, h, framelog.TailOptions{Stored: true})
		last := late[len(late)-1]
		if last.Kind != stream.TailRetry || last.Attempt != 2 || last.Type != flowfabric.AttemptRetry ||
			last.At.UnixMilli() != 77_000 || last.Category != "io" || last.Message != "no ink" {
			t.Fatalf("%+v", last)
		}
		if again := events(t, h, framelog.TailOptions{Stored: true, From: last.Position}); len(again) != 0 {
			t.Errorf("it was told again: %q", words(again))
		}
		s.claim()
		s.settle(codes.Completed, "attempt_success")
		there.want(t,
			"A1 f1..2 S:approval R2:released>0 f3..3 S:payment E1:attempt_failure retry2 A2 E2:attempt_success END:completed")
	})
}

// Behind the end there is nothing, unless the execution was replayed, also if it ends without running again.
func TestTailGoesOnBehindTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 1)
		s.settle(codes.Failed, "attempt_failure")
		all := events(t, h, framelog.TailOptions{})
		end := all[len(all)-1].Position
		if rest := events(t, h, framelog.TailOptions{From: end}); len(rest) != 0 {
			t.Errorf("behind the end: %q", words(rest))
		}
		s.code = "R1p"
		waits := events(t, h, framelog.TailOptions{From: end, Stored: true})
		if len(waits) != 1 || waits[0].Kind != stream.TailRetry || waits[0].Type != flowfabric.AttemptReplay ||
			waits[0].Attempt != 2 {
			t.Errorf("replayed: %q", words(waits))
		}
		s.settle("T3", "")
		if rest := events(t, h, framelog.TailOptions{From: end}); len(rest) != 1 || rest[0].Kind != stream.TailEnd ||
			rest[0].State != flowfabric.Cancelled {
			t.Errorf("it ended again: %q", words(rest))
		}
		s.claim()
		s.settle(codes.Completed, "attempt_success")
		follow(t.Context(), h, framelog.TailOptions{From: end}).want(t, "A2 E2:attempt_success END:completed")
	})
}

// A tail of one attempt goes on within it, and knows when it is over.
func TestTailOfOneAttemptGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 3)
		s.record()
		s.settle(codes.WaitingReclaim, "lease_expired")
		s.claim()
		s.frames(t, 3)
		s.settle(codes.Completed, "attempt_success")
		first, second := uint32(1), uint32(2)
		all := events(t, h, framelog.TailOptions{})
		middle := all[2].Position // behind the second frame
		follow(t.Context(), h, framelog.TailOptions{Attempt: &first, From: middle}).want(t, "f3..3 E1:lease_expired")
		follow(t.Context(), h, framelog.TailOptions{Attempt: &second, From: middle}).want(t,
			"A2 f1..3 E2:attempt_success")
		follow(t.Context(), h, framelog.TailOptions{Attempt: &first, From: all[4].Position}).want(t, "")
		for _, o := range []framelog.TailOptions{{}, {Attempt: &second}, {From: all[4].Position}} {
			for _, e := range events(t, h, o) {
				if e.Kind == stream.TailAttempt && e.Attempt == 2 &&
					!slices.Equal(e.Reused, []stream.Covered{{Attempt: 1, Recorded: 3}}) {
					t.Errorf("%+v: reused %v", o, e.Reused)
				}
			}
		}
	})
}
