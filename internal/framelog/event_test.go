package framelog_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// line is a frame as the readers of these tests write it.
func line(e stream.TailEvent) string {
	return fmt.Sprintf("%s %d %s %s\n", e.Position, e.Frame.Sequence, e.Frame.Mode, e.Frame.Payload)
}

// lines is what a tail of some options writes of what is stored.
func lines(t *testing.T, h *framelog.Hub, o framelog.TailOptions) string {
	t.Helper()
	var all strings.Builder
	o.Stored = true
	for e, err := range h.Tail(t.Context(), execution, o) {
		must.No(t, err)
		if e.Kind == stream.TailFrame {
			all.WriteString(line(e))
		}
	}
	return all.String()
}

// A frame that many readers follow is written once in each form, whenever they joined and whatever they are shown, and
// it is passed on before the tail waits.
func TestReadersShareWhatTheyWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		const readers, forms = 100, 2
		var made [forms]atomic.Int64
		var passed [readers]strings.Builder
		var group conc.WaitGroup
		options := func(i int) framelog.TailOptions { return framelog.TailOptions{WithoutBestEffort: i%3 == 0} }
		join := func(from, to int) {
			for i := from; i < to; i++ {
				form := i % forms
				write := func(e stream.TailEvent) []byte {
					made[form].Add(1)
					return []byte(line(e))
				}
				group.Go(func() {
					var collected []byte
					for e, err := range h.Follow(t.Context(), execution, options(i)) {
						switch {
						case err != nil:
							t.Error(err)
						case e.Idle:
							passed[i].Write(collected)
							collected = nil
						case e.Kind == stream.TailFrame:
							collected = append(collected, e.Text(fmt.Sprint(form), write)...)
						}
					}
					passed[i].Write(collected)
				})
			}
			synctest.Wait()
		}
		check := func(when string) {
			synctest.Wait()
			for i := range passed {
				if got, want := passed[i].String(), lines(t, h, options(i)); got != want {
					t.Fatalf("%s: reader %d passed on\n%s\nwant\n%s", when, i, got, want)
				}
			}
		}
		join(0, readers/2)
		s.run(t, func() {})
		s.live(t)
		synctest.Wait()
		for form := range made { // and the best-effort frame
			if got := made[form].Swap(0); got != 12 {
				t.Errorf("12 frames for %d readers were written %d times in form %d", readers/2, got, form)
			}
		}
		join(readers/2, readers)
		check("others joined")
		for form := range made { // what was stored before they came
			made[form].Store(0)
		}
		s.goOn()
		s.frames(t, 120)
		check("another run")
		for form := range made {
			if got := made[form].Load(); got != 120 {
				t.Errorf("120 frames for %d readers were written %d times in form %d", readers, got, form)
			}
		}
		s.settle(codes.Completed, "attempt_success")
		group.Wait()
	})
}

// What is written of a frame that was read is the reader's own.
func TestReadEventsAreNotShared(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, h *framelog.Hub) {
		s.frames(t, 20)
		made := 0
		for range 2 {
			for e, err := range h.Follow(t.Context(), execution, framelog.TailOptions{Stored: true}) {
				must.No(t, err)
				if e.Kind == stream.TailFrame {
					e.Text("a", func(stream.TailEvent) []byte { made++; return nil })
				}
			}
		}
		if made != 40 {
			t.Errorf("20 frames were written %d times for two readers, want 40", made)
		}
	})
}
