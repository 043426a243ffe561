package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/stream"
)

// logged is what an attempt has been given: all frames of its logs, as a reader should find them.
type logged struct {
	fence           flowfabric.Fence
	next            uint64 // sequence
	durables, delta uint64
	logs            [3][]stream.Frame // by mode
}

// batch makes frames of random sizes; neighbours are often alike, so that they share entries.
func (l *logged) batch(r *rand.Rand) []stream.Frame {
	frames := make([]stream.Frame, 1+r.IntN(100))
	size, most := 0, []int{1, 20, 300, 20_000}[r.IntN(4)]
	var alike stream.Frame
	for i := range frames {
		if i == 0 || r.IntN(10) == 0 {
			alike = anyKind(r)
		}
		f := alike
		f.Payload = make([]byte, r.IntN(most))
		if f.Mode == stream.ModeSummary {
			f.Payload, f.Document = []byte("{}"), []byte("{}")
		}
		for k := range f.Payload {
			if f.Mode != stream.ModeSummary {
				f.Payload[k] = byte(r.IntN(256))
			}
		}
		if size += len(f.Payload); size > 512<<10 {
			return frames[:i]
		}
		frames[i] = f
	}
	return frames
}

// anyKind is what frames of one entry have in common.
func anyKind(r *rand.Rand) stream.Frame {
	texts := []string{"", "p", "1", "token", "\x00\xff", "d,3"}
	f := stream.Frame{Type: texts[r.IntN(6)], Encoding: []string{"utf8", "bytes", "json"}[r.IntN(3)],
		Correlation: texts[r.IntN(6)], Source: texts[r.IntN(6)]}
	if r.IntN(3) == 0 {
		f.ProducedAt = time.UnixMilli(int64(r.IntN(50))).UTC()
	}
	switch r.IntN(4) {
	case 0:
		f.Mode = stream.ModeSummary
	case 1:
		f.Mode, f.TTL, f.Keep = stream.ModeBestEffort, time.Minute-time.Duration(r.IntN(3))*time.Millisecond, 16384
	}
	return f
}

// appended notes a batch that was stored, with the id of its last frame.
func (l *logged) appended(frames []stream.Frame, last stream.Cursor) {
	for i, f := range frames {
		f.Sequence, f.Document, f.Keep = l.next, nil, 0
		f.ID = stream.Cursor{Ms: last.Ms, Seq: l.next}
		switch f.Mode {
		case stream.ModeDurable:
			l.durables++
		case stream.ModeSummary:
			l.delta++
			f.SummaryVersion = l.delta
		}
		frames[i].SummaryVersion = f.SummaryVersion
		f.Durables = l.durables
		l.logs[f.Mode] = append(l.logs[f.Mode], f)
		l.next++
	}
}

// versions gives the deltas of a batch the versions that they make.
func (l *logged) versions(frames []stream.Frame) {
	version := l.delta
	for i := range frames {
		if frames[i].Mode == stream.ModeSummary {
			version++
			frames[i].SummaryVersion = version
		}
	}
}

// A range of a log has exactly the frames that were appended between its ends, whatever entries they share.
func TestRangesOfFrames(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		e := open(t, Config{URL: url, Partitions: 1})
		for i, f := range fences(t, e, 6, 10_000) {
			seed := time.Now().UnixNano()
			t.Run(fmt.Sprintf("%d_%d", i, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(seed)))
				l := &logged{fence: f, next: 1}
				for range 12 {
					l.grow(t, e, r)
					for range 12 {
						l.read(t, e, r)
					}
				}
			})
		}
	}
}

// grow appends a batch, now and then once more or with the end of the one before.
func (l *logged) grow(t *testing.T, e *Engine, r *rand.Rand) {
	frames := l.batch(r)
	l.versions(frames)
	if known := r.IntN(len(frames)); r.IntN(2) == 0 && known > 0 {
		a, err := e.AppendFrames(t.Context(), l.fence, l.next, frames[:known])
		must.No(t, err)
		first := l.next
		l.appended(frames[:known], a.LastID)
		a, err = e.AppendFrames(t.Context(), l.fence, first, frames)
		must.No(t, err)
		l.appended(frames[known:], a.LastID)
		return
	}
	a, err := e.AppendFrames(t.Context(), l.fence, l.next, frames)
	must.No(t, err)
	l.appended(frames, a.LastID)
}

func (l *logged) read(t *testing.T, e *Engine, r *rand.Rand) {
	t.Helper()
	q := LogRange{Execution: l.fence.Execution, Attempt: l.fence.Attempt, Mode: stream.FrameMode(r.IntN(3)),
		Limit: []int{1, 2, 7, 100, 10_000}[r.IntN(5)]}
	all := l.logs[q.Mode]
	if q.Mode == stream.ModeSummary { // of which the newest 64 stay
		q.Limit = 10_000
		stored, err := e.ReadLog(t.Context(), q)
		must.No(t, err)
		if len(stored) != min(len(all), 64) {
			t.Fatalf("%d deltas are there of %d", len(stored), len(all))
		}
		all = all[len(all)-len(stored):]
	}
	want := all
	if len(all) > 0 && r.IntN(4) > 0 {
		q.After = l.near(r, all)
		want = slices.DeleteFunc(slices.Clone(want), func(f stream.Frame) bool { return f.ID.Compare(q.After) <= 0 })
	}
	if len(all) > 0 && r.IntN(2) == 0 {
		to := l.near(r, all)
		q.To = &to
		want = slices.DeleteFunc(slices.Clone(want), func(f stream.Frame) bool { return f.ID.Compare(to) > 0 })
	}
	want = want[:min(len(want), q.Limit)]
	got, err := e.ReadLog(t.Context(), q)
	must.No(t, err)
	if len(got) > len(want) || len(got) < len(want) && size(got) < 4<<20-64<<10 {
		t.Fatalf("%+v: %d frames, want %d", q, len(got), len(want))
	}
	for i, f := range got {
		same := f.ProducedAt.Equal(want[i].ProducedAt) && string(f.Payload) == string(want[i].Payload)
		plain, expected := f, want[i]
		plain.Payload, expected.Payload, plain.ProducedAt, expected.ProducedAt = nil, nil, time.Time{}, time.Time{}
		if !same || fmt.Sprintf("%+v", plain) != fmt.Sprintf("%+v", expected) {
			t.Fatalf("%+v: frame %d is\n%+v, want\n%+v (same time and payload: %v)", q, i, plain, expected, same)
		}
	}
}

// near is the id of a frame that is stored, or of one of another log, which is no id of this one.
func (l *logged) near(r *rand.Rand, all []stream.Frame) stream.Cursor {
	if other := l.logs[r.IntN(3)]; len(other) > 0 && r.IntN(3) == 0 {
		return other[r.IntN(len(other))].ID
	}
	return all[r.IntN(len(all))].ID
}

func size(frames []stream.Frame) (n int) {
	for _, f := range frames {
		n += len(f.Payload)
	}
	return n
}

// An attempt keeps at least as many frames as its policy says, and at most 64 or a 64th and one call more.
func TestFramesKept(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t), Partitions: 1})
	for _, keep := range []int{1, 64, 1000, 10_000} {
		for i, f := range fences(t, e, 4, keep) {
			each := []int{1, 7, 32, 100}[i]
			t.Run(fmt.Sprintf("%d_of_%d", keep, each), func(t *testing.T) {
				frames := make([]stream.Frame, each)
				for k := range frames {
					frames[k] = stream.Frame{Type: "token", Payload: []byte("x")}
				}
				calls := min(2*(keep+400)/each, 3000)
				for call := range calls {
					sent := uint64((call + 1) * each)
					_, err := e.AppendFrames(t.Context(), f, sent-uint64(each)+1, frames)
					must.No(t, err)
					if call%(1+calls/100) != 0 && call != calls-1 {
						continue
					}
					m, err := e.ReadAttemptStream(t.Context(), f.Execution, f.Attempt)
					must.No(t, err)
					got, err := e.ReadFrames(t.Context(), f.Execution, f.Attempt, stream.Cursor{}, 10_000)
					must.No(t, err)
					there := sent - m.Trimmed
					if there < min(sent, uint64(keep)) || there > uint64(keep+max(64, keep/64)+100) {
						t.Fatalf("%d of %d frames are there, keep %d", there, sent, keep)
					}
					if uint64(len(got)) != min(there, 10_000) || got[0].Sequence != m.Trimmed+1 ||
						m.Trimmed > 0 && m.TrimmedID.Seq != m.Trimmed {
						t.Fatalf("%d frames from %d, %d trimmed up to %v of %d", len(got), got[0].Sequence, m.Trimmed,
							m.TrimmedID, sent)
					}
				}
			})
		}
	}
}
