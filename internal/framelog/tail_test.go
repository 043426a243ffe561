package framelog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/stream"
)

// story writes a tail's events down in short: "A1 f1..3 E1:attempt_success END:completed"; frames must be contiguous.
type story struct {
	words       []string
	first, last uint64
}

func (s *story) add(e stream.TailEvent) {
	if e.Kind == stream.TailFrame {
		if s.last > 0 && e.Frame.Sequence == s.last+1 {
			s.last++
			return
		}
		s.flush()
		s.first, s.last = e.Frame.Sequence, e.Frame.Sequence
		return
	}
	s.flush()
	switch e.Kind {
	case stream.TailAttempt:
		s.words = append(s.words, fmt.Sprintf("A%d", e.Attempt))
	case stream.TailGap:
		s.words = append(s.words, fmt.Sprintf("gap%d", e.Trimmed))
	case stream.TailResumed:
		s.words = append(s.words, fmt.Sprintf("R%d:%s>%d", e.Resumed.Run, e.Resumed.Reason, e.Resumed.Recorded))
	case stream.TailSuspended:
		s.words = append(s.words, "S:"+e.Suspension.Name)
	case stream.TailRetry:
		s.words = append(s.words, fmt.Sprintf("%s%d", e.Type, e.Attempt))
	case stream.TailAttemptEnd:
		s.words = append(s.words, fmt.Sprintf("E%d:%s", e.Attempt, e.Reason))
	case stream.TailEnd:
		s.words = append(s.words, fmt.Sprintf("END:%s", e.State))
	}
}

func (s *story) flush() {
	if s.last > 0 {
		s.words = append(s.words, fmt.Sprintf("f%d..%d", s.first, s.last))
	}
	s.first, s.last = 0, 0
}

func (s *story) String() string {
	s.flush()
	return strings.Join(s.words, " ")
}

// tailing runs one tail in the background of a bubble.
type tailing struct {
	story story
	seen  atomic.Uint64 // last frame
	err   error
	took  time.Duration // until it ended
	group conc.WaitGroup
	leave context.CancelFunc
}

func follow(ctx context.Context, h *framelog.Hub, o framelog.TailOptions, each ...func(stream.TailEvent)) *tailing {
	f := &tailing{}
	ctx, f.leave = context.WithCancel(ctx)
	begin := time.Now()
	f.group.Go(func() {
		for e, err := range h.Tail(ctx, execution, o) {
			if err != nil {
				f.err = err
				break
			}
			f.story.add(e)
			if e.Kind == stream.TailFrame {
				f.seen.Store(e.Frame.Sequence)
			}
			for _, fn := range each {
				fn(e)
			}
		}
		f.took = time.Since(begin)
	})
	return f
}

func (f *tailing) want(t *testing.T, story string) {
	t.Helper()
	f.group.Wait()
	f.leave()
	if f.err != nil {
		t.Errorf("ended with %v", f.err)
	}
	if got := f.story.String(); got != story {
		t.Errorf("story is %s\nwant     %s", got, story)
	}
}

func inBubble(t *testing.T, body func(t *testing.T, s *server, h *framelog.Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := framelog.NewHub(s)
		defer h.Close()
		body(t, s, h)
		synctest.Wait()
		if n := s.listeners(); n != 0 {
			t.Errorf("%d subscriptions left", n)
		}
	})
}

const whole = "A1 f1..30 E1:attempt_success END:completed"

// catch up, then live, no duplicate and no hole.
func TestTailCatchesUpAndGoesLive(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 10)
		f := follow(t.Context(), h, framelog.TailOptions{})
		synctest.Wait()
		if f.seen.Load() != 10 {
			t.Errorf("caught up to %d", f.seen.Load())
		}
		reads := s.count(&s.reads)
		if reads < 1 || reads > 2 { // a second one if the subscription stood only after the first
			t.Errorf("%d range reads to catch up", reads)
		}
		for range 20 {
			begin := time.Now()
			n := s.frames(t, 1)
			synctest.Wait()
			// timed: virtual time
			if f.seen.Load() != n || time.Since(begin) > 50*time.Millisecond {
				t.Errorf("frame %d: saw %d after %v", n, f.seen.Load(), time.Since(begin))
			}
		}
		if more := s.count(&s.reads) - reads; more != 0 {
			t.Errorf("%d range reads while live", more)
		}
		s.settle(codes.Completed, "attempt_success")
		f.want(t, whole)
	})
}

// join in the middle of a burst.
func TestTailJoinsABurst(t *testing.T) {
	s := newServer()
	h := framelog.NewHub(s)
	defer h.Close()
	var burst conc.WaitGroup
	joins := make(chan struct{}, 10)
	burst.Go(func() {
		for i := range 2000 {
			if i%200 == 0 {
				joins <- struct{}{}
			}
			s.frames(t, 1)
		}
		s.settle(codes.Completed, "attempt_success")
	})
	tails := make([]*tailing, cap(joins))
	for i := range tails {
		<-joins
		tails[i] = follow(t.Context(), h, framelog.TailOptions{})
	}
	burst.Wait()
	for _, f := range tails {
		f.want(t, "A1 f1..2000 E1:attempt_success END:completed")
	}
}

func TestTailersShareOneSubscription(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		tails := make([]*tailing, 50)
		for i := range tails {
			tails[i] = follow(t.Context(), h, framelog.TailOptions{})
		}
		synctest.Wait()
		if s.subscribe != 1 || s.listeners() != 1 {
			t.Errorf("%d subscriptions, %d live", s.subscribe, s.listeners())
		}
		s.frames(t, 30)
		synctest.Wait()
		states := s.count(&s.states)
		time.Sleep(10 * time.Second) // five routine looks each, answered together
		if looks := s.count(&s.states) - states; looks > 10 {
			t.Errorf("%d calls for the routine looks of 50 tailers in 10 s", looks)
		}
		s.settle(codes.Completed, "attempt_success")
		for _, f := range tails {
			f.want(t, whole)
		}
		synctest.Wait()
		if s.listeners() != 0 {
			t.Error("the subscription outlived its last tailer")
		}
		follow(t.Context(), h, framelog.TailOptions{}).want(t, whole) // a new feed
	})
}

// the end of the attempt wakes the tail at once.
func TestTailEndsWhenTheAttemptEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		f := follow(t.Context(), h, framelog.TailOptions{})
		s.frames(t, 1)
		time.Sleep(time.Second)
		s.settle(codes.Cancelled, "attempt_cancelled")
		f.want(t, "A1 f1..1 E1:attempt_cancelled END:cancelled")
		if f.took > 1200*time.Millisecond {
			t.Errorf("ended after %v", f.took)
		}
	})
}

func TestTailOfAnAttemptWithoutFrames(t *testing.T) {
	for name, muffled := range map[string]bool{"event": false, "event lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
				if muffled {
					s.muffle = func(string, string) string { return "" }
				}
				f := follow(t.Context(), h, framelog.TailOptions{})
				time.Sleep(time.Second)
				s.settle(codes.Failed, "attempt_failure")
				f.want(t, "A1 E1:attempt_failure END:failed")
				if limit := map[bool]time.Duration{false: time.Second, true: 4 * time.Second}[muffled]; f.took > limit {
					t.Errorf("ended after %v", f.took)
				}
			})
		})
	}
}

func TestTailRefusesItsOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		for _, err := range h.Tail(t.Context(), execution,
			framelog.TailOptions{FromNow: true, From: behind(2, stream.Frame{})}) {
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("now and from: %v", err)
			}
		}
		if s.subscribe != 0 {
			t.Error("subscribed before looking at the options")
		}
	})
}

// behind is the position of a frame of an attempt.
func behind(attempt uint32, f stream.Frame) stream.Position {
	return stream.Position(tailpos.Text(tailpos.Parts{Attempt: attempt, Stage: tailpos.Begun, Ms: f.ID.Ms,
		Seq: f.ID.Seq, Sequence: f.Sequence, Durables: f.Durables}))
}

func TestTailFollowsAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.attempts, s.code = nil, codes.WaitingFirst
		f := follow(t.Context(), h, framelog.TailOptions{})
		second := uint32(2)
		only := follow(t.Context(), h, framelog.TailOptions{Attempt: &second})
		from := follow(t.Context(), h,
			framelog.TailOptions{From: stream.Position(tailpos.Text(tailpos.Parts{Attempt: 3}))})
		time.Sleep(5 * time.Second)
		s.claim()
		s.frames(t, 3)
		s.settle(codes.RetryBackoff, "attempt_failure")
		time.Sleep(5 * time.Second)
		s.claim()
		s.settle(codes.WaitingReclaim, "lease_expired")
		s.claim()
		s.frames(t, 5)
		time.Sleep(time.Second)
		s.frames(t, 5)
		s.settle(codes.Completed, "attempt_success")
		f.want(t, "A1 f1..3 E1:attempt_failure retry2 A2 E2:lease_expired A3 f1..10 E3:attempt_success END:completed")
		only.want(t, "A2 E2:lease_expired")
		from.want(t, "A3 f1..10 E3:attempt_success END:completed")
		// The same afterwards, from what is stored.
		follow(t.Context(), h, framelog.TailOptions{}).want(t,
			"A1 f1..3 E1:attempt_failure A2 E2:lease_expired A3 f1..10 E3:attempt_success END:completed")
		third := uint32(4)
		follow(t.Context(), h, framelog.TailOptions{Attempt: &third}).want(t, "END:completed")
	})
}

func TestTailOfAnExecutionThatNeverRan(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.attempts, s.code = nil, codes.DelayedFirst
		f := follow(t.Context(), h, framelog.TailOptions{})
		synctest.Wait()
		s.settle(codes.CancelN, "")
		f.want(t, "END:cancelled")
	})
}

func TestTailEndsBetweenAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 1)
		s.settle(codes.RetryBackoff, "attempt_failure")
		f := follow(t.Context(), h, framelog.TailOptions{})
		time.Sleep(time.Minute)
		s.settle(codes.Cancelled, "attempt_cancelled")
		f.want(t, "A1 f1..1 E1:attempt_failure retry2 END:cancelled")
	})
}

func TestTailResumesFromACursor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 30)
		at := s.stored(0)[11]
		f := follow(t.Context(), h, framelog.TailOptions{From: behind(1, at)})
		g := follow(t.Context(), h, framelog.TailOptions{From: behind(1, stream.Frame{ID: at.ID})})
		ahead := follow(t.Context(), h,
			framelog.TailOptions{From: behind(1, stream.Frame{ID: stream.Cursor{Ms: 9999}})})
		now := follow(t.Context(), h, framelog.TailOptions{FromNow: true})
		synctest.Wait()
		s.frames(t, 10)
		s.settle(codes.Completed, "attempt_success")
		f.want(t, "f13..40 E1:attempt_success END:completed")
		g.want(t, "f13..40 E1:attempt_success END:completed")
		ahead.want(t, "E1:attempt_success END:completed")
		now.want(t, "A1 f31..40 E1:attempt_success END:completed")
	})
}

func TestTailFromNowBeginsAtTheNewestAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 3)
		s.settle(codes.WaitingRetry, "attempt_failure")
		s.claim()
		s.frames(t, 4)
		f := follow(t.Context(), h, framelog.TailOptions{FromNow: true})
		synctest.Wait()
		s.frames(t, 1)
		s.settle(codes.Completed, "attempt_success")
		f.want(t, "A2 f5..5 E2:attempt_success END:completed")
	})
}

// a stalled tailer costs the others nothing and loses nothing.
func TestTailStalledTailer(t *testing.T) {
	for name, c := range map[string]struct{ frames, size int }{"many": {5000, 10}, "large": {100, 60_000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
				stall := make(chan struct{})
				slow := follow(t.Context(), h, framelog.TailOptions{}, func(e stream.TailEvent) {
					if e.Kind == stream.TailFrame && e.Frame.Sequence == 3 {
						<-stall
					}
				})
				fast := follow(t.Context(), h, framelog.TailOptions{})
				synctest.Wait()
				w := writer(s)
				for range c.frames {
					must.No(t, w.Append(t.Context(), token(strings.Repeat("x", c.size))))
					if c.size > 100 {
						time.Sleep(time.Second)
					}
				}
				must.No(t, w.Close(t.Context()))
				synctest.Wait()
				if fast.seen.Load() != uint64(c.frames) || slow.seen.Load() != 3 {
					t.Errorf("fast saw %d, slow %d", fast.seen.Load(), slow.seen.Load())
				}
				time.Sleep(time.Minute)
				s.settle(codes.Completed, "attempt_success")
				want := fmt.Sprintf("A1 f1..%d E1:attempt_success END:completed", c.frames)
				fast.want(t, want)
				close(stall)
				slow.want(t, want)
			})
		})
	}
}

func TestTailReportsATrimGap(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 100)
		stall := make(chan struct{})
		slow := follow(t.Context(), h, framelog.TailOptions{}, func(e stream.TailEvent) {
			if e.Kind == stream.TailFrame && e.Frame.Sequence == 100 {
				<-stall
			}
		})
		synctest.Wait()
		s.trim(0, 40)
		late := follow(t.Context(), h, framelog.TailOptions{})
		resumed := follow(t.Context(), h, framelog.TailOptions{From: behind(1, stream.Frame{ID: cursor(t, "1000-5")})})
		synctest.Wait()
		s.frames(t, 900)
		synctest.Wait()
		s.trim(0, 300)
		close(stall)
		synctest.Wait()
		s.settle(codes.Completed, "attempt_success")
		slow.want(t, "A1 f1..100 gap600 f701..1000 E1:attempt_success END:completed")
		late.want(t, "A1 gap60 f61..1000 E1:attempt_success END:completed")
		resumed.want(t, "gap60 f61..1000 E1:attempt_success END:completed")
		s.trim(0, 0)
		follow(t.Context(), h, framelog.TailOptions{}).want(t, "A1 gap1000 E1:attempt_success END:completed")
	})
}

func TestTailReadsWhatAMessageLost(t *testing.T) {
	for name, muffle := range map[string]func(string, string) string{
		"lost":        func(_, text string) string { return "" },
		"undecodable": func(_, text string) string { return "0 1 broken" }, // T23
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
				f := follow(t.Context(), h, framelog.TailOptions{})
				synctest.Wait()
				s.frames(t, 10)
				s.muffle = muffle
				s.frames(t, 10)
				s.muffle = nil
				s.frames(t, 10)
				synctest.Wait()
				if f.seen.Load() != 30 {
					t.Errorf("saw %d", f.seen.Load())
				}
				s.settle(codes.Completed, "attempt_success")
				f.want(t, whole)
			})
		})
	}
}

func TestTailSurvivesALostConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		f := follow(t.Context(), h, framelog.TailOptions{})
		synctest.Wait()
		s.frames(t, 10)
		s.disconnect(nil)
		s.frames(t, 5) // nobody hears it
		time.Sleep(time.Second)
		if f.seen.Load() != 15 || s.subscribe != 2 {
			t.Errorf("saw %d, subscribed %d times", f.seen.Load(), s.subscribe)
		}
		// Subscribing stays impossible: the routine look carries the tail.
		s.disconnect(errLost)
		s.frames(t, 5)
		time.Sleep(3 * time.Second)
		if f.seen.Load() != 20 {
			t.Errorf("saw %d without a subscription", f.seen.Load())
		}
		// Nor can it read: it waits and goes on.
		s.mu.Lock()
		s.onRead = func() error { return errLost }
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.onRead = nil
		s.mu.Unlock()
		s.reconnect()
		time.Sleep(10 * time.Second)
		s.frames(t, 10)
		synctest.Wait()
		if f.seen.Load() != 30 || s.listeners() != 1 {
			t.Errorf("saw %d, %d listeners", f.seen.Load(), s.listeners())
		}
		s.settle(codes.Completed, "attempt_success")
		f.want(t, whole)
	})
}

func TestTailErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		errs := func(ctx context.Context, id flowfabric.ExecutionID) (out []error) {
			for _, err := range h.Tail(ctx, id, framelog.TailOptions{}) {
				if err != nil {
					out = append(out, err)
				}
			}
			return out
		}
		id := mint.Join(execution.Partition(), ids.UUID(mint.ID(0)))
		if got := errs(t.Context(), id); len(got) != 1 || !errors.Is(got[0], flowfabric.ErrNotFound) {
			t.Errorf("unknown execution: %v", got)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(time.Minute, func() { cancel(why) })
		defer stop.Stop()
		if got := errs(ctx, execution); len(got) != 1 || !errors.Is(got[0], why) {
			t.Errorf("cancelled: %v", got)
		}
		s.disconnect(flowfabric.ErrAuth)
		if got := errs(t.Context(), execution); len(got) != 1 || !errors.Is(got[0], flowfabric.ErrAuth) {
			t.Errorf("refused subscription: %v", got)
		}
		s.reconnect()
		s.mu.Lock()
		s.onRead = func() error { return denied.PartitionMissing }
		s.mu.Unlock()
		if got := errs(t.Context(), execution); len(got) != 1 || !errors.Is(got[0], denied.PartitionMissing) {
			t.Errorf("missing partition: %v", got)
		}
	})
}

func TestTailBreakReleasesEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 10)
		for _, kind := range []stream.TailKind{stream.TailAttempt, stream.TailFrame} {
			for e, err := range h.Tail(t.Context(), execution, framelog.TailOptions{}) {
				must.No(t, err)
				if e.Kind == kind {
					break
				}
			}
			synctest.Wait()
			if s.listeners() != 0 {
				t.Errorf("subscribed after break at %v", kind)
			}
		}
	})
}

func TestHubCloseEndsTails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		idle := follow(t.Context(), h, framelog.TailOptions{})
		body := make(chan struct{})
		busy := follow(t.Context(), h, framelog.TailOptions{}, func(stream.TailEvent) { <-body })
		synctest.Wait()
		h.Close() // does not wait for loop bodies
		h.Close()
		close(body)
		for _, f := range []*tailing{idle, busy, follow(t.Context(), h, framelog.TailOptions{})} {
			f.group.Wait()
			f.leave()
			wantIs(t, f.err, framelog.ErrHubClosed)
		}
	})
}

func TestWriterToTail(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		var payloads []string
		f := follow(t.Context(), h, framelog.TailOptions{}, func(e stream.TailEvent) {
			if e.Kind == stream.TailFrame {
				payloads = append(payloads, string(e.Frame.Payload))
			}
		})
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		w := writer(s)
		must.No(t, w.Append(t.Context(), stream.Frame{Type: "blob", Encoding: stream.Bytes, Payload: all}))
		must.No(t, w.Append(t.Context(), stream.Frame{Type: "done", Encoding: stream.JSON, Payload: []byte(`{}`)}))
		must.No(t, w.Close(t.Context()))
		s.settle(codes.Completed, "attempt_success")
		f.want(t, "A1 f1..2 E1:attempt_success END:completed")
		if !slices.Equal(payloads, []string{string(all), "{}"}) {
			t.Errorf("payloads %q", payloads)
		}
	})
}
