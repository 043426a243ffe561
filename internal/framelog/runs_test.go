package framelog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// threeRuns is what run appends: two recorded frames and two that are not; the last two again and one more, recorded;
// two that are not; those again.
const threeRuns = "A1 f1..4 R2:released>2 f5..7 R3:released>7 f8..9 R4:released>7 f10..11 E1:attempt_success END:completed"

// run appends the frames of threeRuns but for its end; between is called after every append.
func (s *server) run(t testing.TB, between func()) {
	t.Helper()
	for i, n := range []int{2, 2, 3, 2, 2} {
		if i > 1 {
			s.goOn()
		}
		s.frames(t, n)
		if i == 0 || i == 2 {
			s.record()
		}
		between()
	}
}

// However its frames come, a tail tells of each run once, before the first of its frames.
func TestTailTellsOfEachRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		story func(t *testing.T, s *server, h *framelog.Hub) *tailing
	}{
		{"published", func(t *testing.T, s *server, h *framelog.Hub) *tailing {
			f := follow(t.Context(), h, framelog.TailOptions{})
			synctest.Wait()
			s.run(t, synctest.Wait)
			if s.runReads != 0 {
				t.Errorf("%d reads of what was published", s.runReads)
			}
			return f
		}},
		{"stored", func(t *testing.T, s *server, h *framelog.Hub) *tailing {
			s.run(t, func() {})
			return follow(t.Context(), h, framelog.TailOptions{})
		}},
		{"joined in the middle of a run", func(t *testing.T, s *server, h *framelog.Hub) *tailing {
			var f *tailing
			s.run(t, func() {
				if f == nil {
					f = follow(t.Context(), h, framelog.TailOptions{})
				}
				synctest.Wait()
			})
			return f
		}},
		{"published, every second message lost", func(t *testing.T, s *server, h *framelog.Hub) *tailing {
			n := 0
			s.muffle = func(channel, text string) string {
				if n++; channel == engine.FrameChannel(execution) && n%2 == 1 {
					return ""
				}
				return text
			}
			f := follow(t.Context(), h, framelog.TailOptions{})
			synctest.Wait()
			s.run(t, synctest.Wait)
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
				f := c.story(t, s, h)
				synctest.Wait()
				s.settle("T1", "attempt_success")
				f.want(t, threeRuns)
			})
		})
	}
}

// A tail that goes on after any frame tells of the runs after it and of no other, and each frame says which run it is
// of.
func TestTailGoesOnFromAnyFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.run(t, func() {})
		s.settle("T1", "attempt_success")
		whole, frames := told(t, h, framelog.TailOptions{})
		if want := "1 2 3 4 R2 5 6 7 R3 8 9 R4 10 11"; strings.Join(whole, " ") != want {
			t.Fatalf("told %s, want %s", whole, want)
		}
		for _, f := range frames {
			if want := []uint32{1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4}[f.Sequence-1]; f.Run != want {
				t.Errorf("frame %d is of run %d, want %d", f.Sequence, f.Run, want)
			}
			rest, after := told(t, h, framelog.TailOptions{From: behind(1, f)})
			if want := whole[slices.Index(whole, fmt.Sprint(f.Sequence))+1:]; !slices.Equal(rest, want) {
				t.Errorf("after %d: told %s, want %s", f.Sequence, rest, want)
			}
			for _, g := range after {
				if g.Run != frames[g.Sequence-1].Run {
					t.Errorf("after %d: frame %d is of run %d", f.Sequence, g.Sequence, g.Run)
				}
			}
		}
	})
}

// told is the frames of a tail, and their sequences with the runs in between.
func told(t *testing.T, h *framelog.Hub, o framelog.TailOptions) (words []string, frames []stream.Frame) {
	t.Helper()
	for e, err := range h.Tail(t.Context(), execution, o) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == stream.TailFrame:
			words, frames = append(words, fmt.Sprint(e.Frame.Sequence)), append(frames, e.Frame)
		case e.Kind == stream.TailResumed:
			words = append(words, fmt.Sprintf("R%d", e.Resumed.Run))
		}
	}
	return words, frames
}

// Pages of every size have all runs, each where its first frame is; what is kept of them has every recorded frame once.
func TestReadTellsOfEachRun(t *testing.T) {
	s := newServer()
	s.run(t, func() {})
	s.settle("T1", "attempt_success")
	for limit := 1; limit <= 12; limit++ {
		var frames []stream.Frame
		var resumed []stream.Resumption
		for after, eof := (framelog.Place{}), false; !eof; {
			page := read(t, s, framelog.ReadOptions{After: after, Limit: limit})
			for _, r := range page.Resumed {
				if !slices.ContainsFunc(page.Frames, func(f stream.Frame) bool {
					return f.ID == r.First && f.Run == r.Run
				}) {
					t.Errorf("limit %d: run %d begins with %s, which is not on its page", limit, r.Run, r.First)
				}
			}
			if page.Recorded != 7 {
				t.Errorf("limit %d: recorded up to %d, want 7", limit, page.Recorded)
			}
			frames, resumed = append(frames, page.Frames...), append(resumed, page.Resumed...)
			after, eof = page.Next, page.EOF
		}
		contiguous(t, frames, 1, 11)
		var stay []uint64
		for _, f := range kept(frames, resumed) {
			stay = append(stay, f.Sequence)
		}
		if want := []uint64{1, 2, 5, 6, 7, 10, 11}; !slices.Equal(stay, want) || len(resumed) != 3 {
			t.Errorf("limit %d: %d runs, kept %d, want 3 and %d", limit, len(resumed), stay, want)
		}
	}
}

// An attempt that never went on is read as cheaply as ever.
func TestOneRunCostsNoRead(t *testing.T) {
	s := newServer()
	s.frames(t, 10)
	page := read(t, s, framelog.ReadOptions{Limit: 10})
	if s.runReads != 0 || len(page.Resumed) != 0 || page.Frames[9].Run != 1 {
		t.Errorf("%d reads, %d runs, run %d", s.runReads, len(page.Resumed), page.Frames[9].Run)
	}
}

// The first frame of a run may be gone, or not be shown: its reader is still told.
func TestRunsThatBeginWithWhatIsNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 2)
		s.goOn()
		live := stream.Frame{Sequence: 3, Type: "tick", Mode: stream.ModeBestEffort, TTL: limits.MaxLiveTTL}
		if _, err := s.AppendFrames(t.Context(), s.holder, 3, []stream.Frame{live}); err != nil {
			t.Fatal(err)
		}
		f := follow(t.Context(), h, framelog.TailOptions{WithoutBestEffort: true})
		synctest.Wait()
		s.goOn()
		live.Sequence = 4
		if _, err := s.AppendFrames(context.Background(), s.holder, 4, []stream.Frame{live}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.frames(t, 1)
		s.settle("T1", "attempt_success")
		f.want(t, "A1 f1..2 R2:released>0 R3:released>0 f5..5 E1:attempt_success END:completed")

		s.trim(0, 0)
		page := read(t, s, framelog.ReadOptions{Limit: 10})
		if len(page.Frames) != 0 || len(page.Resumed) != 2 || !page.EOF {
			t.Errorf("%d frames, %d runs, EOF %t after everything was trimmed", len(page.Frames), len(page.Resumed),
				page.EOF)
		}
	})
}

// kept are the frames that a transcript of an attempt keeps.
func kept(frames []stream.Frame, resumed []stream.Resumption) []stream.Frame {
	var t stream.Transcript
	for _, f := range frames {
		for len(resumed) > 0 && resumed[0].First.Compare(f.ID) <= 0 {
			t.Add(stream.TailEvent{Kind: stream.TailResumed, Attempt: 1, Resumed: resumed[0]})
			resumed = resumed[1:]
		}
		t.Add(stream.TailEvent{Kind: stream.TailFrame, Attempt: 1, Frame: f})
	}
	return t.Frames()
}
