package framelog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func delta(text string) stream.Frame {
	return stream.Frame{Type: "summary", Mode: stream.ModeSummary, Payload: []byte(text)}
}

func live(text string) stream.Frame {
	return stream.Frame{Type: "token", Mode: stream.ModeBestEffort, TTL: 5 * time.Second, Payload: []byte(text)}
}

// document fails unless the stored document is as wanted.
func document(t *testing.T, s *server, attempt int, version uint64, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.attempts[attempt].summary; got.Version != version || string(got.Document) != text {
		t.Fatalf("version %d: %.200s, want %d: %.200s", got.Version, got.Document, version, text)
	}
}

// spell is what frames are, in short: mode and payload.
func spell(frames []stream.Frame) string {
	var out []string
	for _, f := range frames {
		out = append(out, fmt.Sprintf("%d%c%s", f.Sequence, f.Mode.String()[0], f.Payload))
	}
	return strings.Join(out, " ")
}

// merged by the holder, in order with frames, each delta a version.
func TestWriterMergesDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		must.No(t, w.Append(t.Context(), token("a")))
		must.No(t, w.Append(t.Context(), delta(`{ "n": 1, "x": {"y": 1} }`)))
		must.No(t, w.Append(t.Context(), live("b")))
		must.No(t, w.Append(t.Context(), delta(`{"n":2,"x":{"y":null}}`)))
		must.No(t, w.Append(t.Context(), token("c")))
		must.No(t, w.Flush(t.Context()))
		document(t, s, 0, 2, `{"n":2,"x":{}}`)
		want := `1da 2s{"n":1,"x":{"y":1}} 3bb 4s{"n":2,"x":{"y":null}} 5dc`
		if got := spell(s.stored(0)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		must.No(t, w.Append(t.Context(), delta(`{"m":[]}`)))
		must.No(t, w.Close(t.Context()))
		document(t, s, 0, 3, `{"m":[],"n":2,"x":{}}`)
		if !slices.Equal(s.batches, []int{5, 1}) || s.documents != 0 {
			t.Errorf("batches %v, %d documents were read", s.batches, s.documents)
		}
	})
}

// deltas that wait together go together, unless their order would be lost.
func TestWriterComposesWaitingDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		for i := range 100 {
			must.No(t, w.Append(t.Context(), delta(fmt.Sprintf(`{"n":%d,"k%d":1}`, i, i%3))))
		}
		must.No(t, w.Append(t.Context(), delta(`{"n":null}`)))
		must.No(t, w.Append(t.Context(), delta(`{"n":{"a":1}}`))) // a merge patch cannot say both at once
		must.No(t, w.Append(t.Context(),
			stream.Frame{Type: "other", Mode: stream.ModeSummary, Payload: []byte(`{"n":{"b":2}}`)}))
		must.No(t, w.Close(t.Context()))
		document(t, s, 0, 3, `{"k0":1,"k1":1,"k2":1,"n":{"a":1,"b":2}}`)
		if got, want := spell(s.stored(0)),
			`1s{"k0":1,"k1":1,"k2":1,"n":null} 2s{"n":{"a":1}} 3s{"n":{"b":2}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// what is refused changes nothing.
func TestWriterRefusesDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		must.No(t, w.Append(t.Context(), delta(`{"a":1}`)))
		must.No(t, w.Flush(t.Context()))
		for text, want := range map[string]error{
			`[]`: flowfabric.ErrInvalidInput, `"x"`: flowfabric.ErrInvalidInput, `{"a":`: flowfabric.ErrInvalidInput,
			``: flowfabric.ErrInvalidInput, `{"a":1e400}`: flowfabric.ErrInvalidInput,
			`{"a":"` + strings.Repeat("x", limits.MaxFrame) + `"}`: flowfabric.ErrPayloadTooLarge,
		} {
			wantIs(t, w.Append(t.Context(), delta(text)), want)
		}
		bytes := delta(`{}`)
		bytes.Encoding = stream.Bytes
		wantIs(t, w.Append(t.Context(), bytes), flowfabric.ErrInvalidInput)
		big := strings.Repeat("x", 60<<10)
		for i := range 4 {
			must.No(t, w.Append(t.Context(), delta(fmt.Sprintf(`{"big%d":%q}`, i, big))))
		}
		wantIs(t, w.Append(t.Context(), delta(fmt.Sprintf(`{"big4":%q}`, big))), denied.SummaryTooLarge)
		must.No(t, w.Append(t.Context(), delta(`{"big0":null,"big1":null,"big2":null,"big3":null}`)))
		must.No(t, w.Append(t.Context(), token("b")))
		must.No(t, w.Close(t.Context()))
		frames := s.stored(0)
		document(t, s, 0, frames[len(frames)-2].SummaryVersion, `{"a":1}`)
		contiguous(t, frames, 1, uint64(len(frames)))
	})
}

// A later run reads the document once and goes on with it.
func TestWriterGoesOnWithTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		must.No(t, w.Append(t.Context(), delta(`{"a":1,"b":{"c":1}}`)))
		must.No(t, w.Append(t.Context(), token("x")))
		must.No(t, w.Close(t.Context()))

		blind := writer(s, func(c *framelog.WriterConfig) { c.LastSequence = 2 })
		wantIs(t, blind.Append(t.Context(), delta(`{"d":1}`)), flowfabric.ErrConfig)
		must.No(t, blind.Close(t.Context()))

		next := writer(s, func(c *framelog.WriterConfig) { c.LastSequence, c.Summaries = 2, s })
		for i := range 5 {
			must.No(t, next.Append(t.Context(), delta(fmt.Sprintf(`{"b":{"c":null,"d":%d}}`, i))))
			must.No(t, next.Flush(t.Context()))
		}
		must.No(t, next.Close(t.Context()))
		document(t, s, 0, 6, `{"a":1,"b":{"d":4}}`)
		if s.documents != 1 {
			t.Errorf("%d documents were read", s.documents)
		}
		s.claim()
		other := writer(s, func(c *framelog.WriterConfig) { c.Fence = s.holder; c.Summaries = s })
		must.No(t, other.Append(t.Context(), delta(`{"z":1}`)))
		must.No(t, other.Close(t.Context()))
		document(t, s, 1, 1, `{"z":1}`)
		if s.documents != 1 {
			t.Error("a new attempt has no document to read")
		}
	})
}

type brokenSummaries struct{ err error }

func (b brokenSummaries) ReadSummary(context.Context, flowfabric.ExecutionID, uint32) (stream.Summary, error) {
	return stream.Summary{Document: []byte("[]"), Version: 3}, b.err
}

func TestWriterCannotReadTheDocument(t *testing.T) {
	s := newServer()
	s.frames(t, 1)
	for want, r := range map[error]brokenSummaries{flowfabric.ErrTransport: {errLost}, flowfabric.ErrCorrupt: {}} {
		w := writer(s, func(c *framelog.WriterConfig) { c.LastSequence, c.Summaries = 1, r })
		wantIs(t, w.Append(t.Context(), delta(`{}`)), want)
		must.No(t, w.Append(t.Context(), stream.Frame{}))
		must.No(t, w.Close(t.Context()))
		s.mu.Lock()
		s.attempts[0] = &attempt{count: 1, durable: 1}
		s.mu.Unlock()
	}
}

// exact although replies are lost at random.
func TestWriterModesSurviveLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		fate, r := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
		s.onAppend = func(int) (before, after error) {
			return []error{nil, nil, errLost}[fate.IntN(3)], []error{nil, nil, errLost}[fate.IntN(3)]
		}
		w := writer(s)
		want := []byte{}
		for i := range 2000 {
			switch r.IntN(3) {
			case 0:
				must.No(t, w.Append(t.Context(), token(fmt.Sprint(i))))
			case 1:
				patch := fmt.Sprintf(`{"k%d":%d,"k%d":null,"o":{"k%d":%d}}`, r.IntN(20), i, r.IntN(20), r.IntN(20), i)
				must.No(t, w.Append(t.Context(), delta(patch)))
				var err error
				want, err = stream.MergeSummary(want, []byte(patch))
				must.No(t, err)
			case 2:
				must.No(t, w.Append(t.Context(), live(fmt.Sprint(i))))
			}
		}
		must.No(t, w.Close(t.Context()))
		frames := s.stored(0)
		contiguous(t, frames, 1, w.LastAcknowledged())
		versions, replayed := uint64(0), []byte{}
		for _, f := range frames {
			if f.Mode == stream.ModeSummary {
				if versions++; f.SummaryVersion != versions {
					t.Fatalf("version %d follows %d", f.SummaryVersion, versions-1)
				}
				var err error
				replayed, err = stream.MergeSummary(replayed, f.Payload)
				must.No(t, err)
			}
		}
		document(t, s, 0, versions, string(want))
		if string(replayed) != string(want) {
			t.Error("the deltas do not make the document")
		}
		if s.appends <= len(s.batches) || w.Shed() != 0 && w.LastAcknowledged() == 2000 {
			t.Error("the test shows nothing")
		}
	})
}

// A document that somebody else has changed means that there is another writer.
func TestWriterFencedByAnotherDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.attempts[0].version = 1
		var cause error
		w := writer(s, func(c *framelog.WriterConfig) { c.Cancel = func(err error) { cause = err } })
		must.No(t, w.Append(t.Context(), delta(`{}`)))
		wantIs(t, w.Close(t.Context()), denied.SummaryConflict, flowfabric.ErrLeaseLost)
		wantIs(t, cause, denied.SummaryConflict)
	})
}

func TestWriterValidatesModes(t *testing.T) {
	w := writer(newServer())
	for name, c := range map[string]struct {
		frame stream.Frame
		names []string
	}{
		"mode":   {stream.Frame{Mode: 3}, []string{"mode", "best_effort"}},
		"no ttl": {stream.Frame{Mode: stream.ModeBestEffort}, []string{"ttl", "1s..1m0s"}},
		"short ttl": {stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Second - 1},
			[]string{"ttl", "1s..1m0s"}},
		"long ttl": {stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Minute + 1},
			[]string{"ttl", "1s..1m0s"}},
		"durable ttl": {stream.Frame{TTL: time.Second}, []string{"ttl", "durable"}},
		"ttl of a delta": {stream.Frame{Mode: stream.ModeSummary, TTL: time.Second, Payload: []byte(`{}`)},
			[]string{"ttl", "summary"}},
		"text in a delta": {stream.Frame{Mode: stream.ModeSummary, Encoding: stream.UTF8, Payload: []byte(`{}`)},
			[]string{"encoding", "json"}},
	} {
		err := w.Append(t.Context(), c.frame)
		wantIs(t, err, flowfabric.ErrInvalidInput)
		for _, part := range c.names {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not name %s", name, err, part)
			}
		}
	}
	must.No(t, w.Append(t.Context(), stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Second}))
	must.No(t, w.Append(t.Context(), stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Minute}))
	must.No(t, w.Close(t.Context()))
}

// The number of best-effort frames to keep follows the rate of the batches.
func TestWriterSizesTheLiveLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keeps []int
		w := writer(appender(func(_ context.Context, _ flowfabric.Fence, first uint64,
			frames []stream.Frame) (engine.Appended, error) {
			for i, f := range frames {
				if last := i == len(frames)-1; f.Keep > 0 != last {
					t.Errorf("frame %d of %d keeps %d", i, len(frames), f.Keep)
				}
			}
			keeps = append(keeps, frames[len(frames)-1].Keep)
			return engine.Appended{LastSequence: first + uint64(len(frames)) - 1}, nil
		}), func(c *framelog.WriterConfig) { c.Live.Ceiling = 3000 })
		for _, pause := range []time.Duration{0, 100 * time.Millisecond, time.Millisecond} {
			time.Sleep(pause)
			for range 20 {
				must.No(t, w.Append(t.Context(), live("x")))
			}
			must.No(t, w.Flush(t.Context()))
		}
		must.No(t, w.Close(t.Context()))
		if !slices.Equal(keeps, []int{64, 452, 3000}) { // 45.12 Hz, then 4,036 Hz
			t.Errorf("keeps %v", keeps)
		}
	})
}

func TestWriterFullQueueDropsTheOldestLiveFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := newServer()
		w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
			frames []stream.Frame) (engine.Appended, error) {
			<-gate
			return s.AppendFrames(ctx, f, first, frames)
		}))
		must.No(t, w.Append(t.Context(), live("in flight")))
		time.Sleep(time.Second)
		must.No(t, w.Append(t.Context(), token("first")))
		for i := range 1500 {
			must.No(t, w.Append(t.Context(), live(fmt.Sprint(i))))
		}
		if w.Shed() != 1500-1022 {
			t.Errorf("%d were dropped", w.Shed())
		}
		var waiting conc.WaitGroup
		waiting.Go(func() { must.No(t, w.Append(t.Context(), token("last"))) }) // a durable frame waits
		synctest.Wait()
		must.No(t, w.Append(t.Context(), live("late"))) // goes: it does not push in
		if w.Shed() != 1500-1022+1 {
			t.Errorf("%d were dropped", w.Shed())
		}
		var flushed error
		waiting.Go(func() { flushed = w.Flush(t.Context()) })
		synctest.Wait()
		close(gate)
		waiting.Wait()
		must.No(t, flushed)
		must.No(t, w.Close(t.Context()))
		frames := s.stored(0)
		contiguous(t, frames, 1, 1025)
		if got := spell(append(frames[:3:3], frames[1023:]...)); got !=
			"1bin flight 2dfirst 3b478 1024b1499 1025dlast" {
			t.Errorf("stored %s", got)
		}
		if w.Dropped() != 0 || w.LastAcknowledged() != 1025 {
			t.Errorf("%d given up, %d acknowledged", w.Dropped(), w.LastAcknowledged())
		}
	})
}

// Nothing to drop: durable frames fill the queue, so the best-effort frame itself goes, and never waits.
func TestWriterLiveFrameNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := writer(appender(func(ctx context.Context, _ flowfabric.Fence, _ uint64,
			_ []stream.Frame) (engine.Appended, error) {
			<-ctx.Done()
			return engine.Appended{}, ctx.Err()
		}))
		for range 1024 {
			must.No(t, w.Append(t.Context(), token("x")))
		}
		must.No(t, w.Append(t.Context(), live("x")))
		if w.Shed() != 1 {
			t.Errorf("%d were dropped", w.Shed())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, w.Append(ctx, stream.Frame{Type: "s", Mode: stream.ModeSummary, Payload: []byte(`{}`)}),
			context.DeadlineExceeded)
		wantIs(t, w.Close(ctx), denied.Unflushed)
		wantIs(t, w.Append(t.Context(), live("x")), denied.Unflushed)
	})
}

// A delta counts with its document, so that neither queue nor batch grows beyond its bounds.
func TestWriterCountsDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := newServer()
		most := 0
		w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
			frames []stream.Frame) (engine.Appended, error) {
			<-gate
			size := 0
			for _, x := range frames {
				size += len(x.Payload) + len(x.Document)
			}
			most = max(most, size)
			return s.AppendFrames(ctx, f, first, frames)
		}))
		big := strings.Repeat("x", 60<<10)
		for i := range 4 {
			must.No(t, w.Append(t.Context(), delta(fmt.Sprintf(`{"big%d":%q}`, i, big))))
		}
		var waiting conc.WaitGroup
		done := 0
		waiting.Go(func() {
			for i := range 10 {
				must.No(t, w.Append(t.Context(), token("x"))) // keeps the deltas apart
				must.No(t, w.Append(t.Context(), delta(fmt.Sprintf(`{"n":%d}`, i))))
				done++
			}
		})
		synctest.Wait()
		if done == 10 {
			t.Error("ten documents of 240 KiB fit the queue")
		}
		close(gate)
		waiting.Wait()
		must.No(t, w.Close(t.Context()))
		if most > limits.MaxAppendBytes {
			t.Errorf("a batch of %d bytes", most)
		}
		var stored map[string]any
		must.No(t, json.Unmarshal(s.attempts[0].summary.Document, &stored))
		if len(stored) != 5 || stored["n"] != 9.0 {
			t.Errorf("%d members, n is %v", len(stored), stored["n"])
		}
	})
}

// mixed appends n frames of one mode to the fake server.
func (s *server) mixed(t testing.TB, mode stream.FrameMode, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[s.holder.Attempt-1]
	for range n {
		f := stream.Frame{Sequence: a.count + 1, Mode: mode, Payload: fmt.Appendf(nil, "%d", a.count+1)}
		if mode == stream.ModeSummary {
			f.SummaryVersion = a.version + 1
		}
		if _, err := s.append(s.holder, a.count+1, []stream.Frame{f}); err != nil {
			t.Fatal(err)
		}
		s.clock++
	}
}

// one order; every page size gives the same frames.
func TestReadMergesTheLogs(t *testing.T) {
	s := newServer()
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		s.mixed(t, stream.FrameMode(r.IntN(3)), 1+r.IntN(4))
	}
	s.settle(codes.Completed, "attempt_success")
	all := s.stored(0)
	hidden := slices.DeleteFunc(slices.Clone(all), func(f stream.Frame) bool { return f.Mode == stream.ModeBestEffort })
	for without, want := range map[bool][]stream.Frame{false: all, true: hidden} {
		for _, limit := range []int{1, 2, 3, 7, 50, 10_000} {
			var got []stream.Frame
			var after framelog.Place
			for {
				page := read(t, s, framelog.ReadOptions{After: after, Limit: limit, WithoutBestEffort: without})
				if page.Gap || !page.EOF && page.Next == after {
					t.Fatalf("limit %d: gap %t, next %v after %v", limit, page.Gap, page.Next, after)
				}
				got, after = append(got, page.Frames...), page.Next
				if page.EOF {
					break
				}
			}
			if spell(got) != spell(want) {
				t.Fatalf("limit %d, without best effort %t: %d frames, want %d", limit, without, len(got), len(want))
			}
		}
	}
}

// what is not shown is passed over, not counted, and never asked for twice.
func TestReadPassesOverWhatIsHidden(t *testing.T) {
	s := newServer()
	for range 3 {
		s.mixed(t, stream.ModeBestEffort, 333)
		s.mixed(t, stream.ModeDurable, 1)
	}
	s.mixed(t, stream.ModeBestEffort, 1)
	page := read(t, s, framelog.ReadOptions{Limit: 10, WithoutBestEffort: true})
	if got := spell(page.Frames); got != "334d334 668d668 1002d1002" || s.reads > 2 || page.EOF || page.Gap {
		t.Fatalf("%s in %d reads, eof %t, gap %t", got, s.reads, page.EOF, page.Gap)
	}
	s.settle(codes.Completed, "attempt_success")
	if rest := read(t, s, framelog.ReadOptions{Limit: 10, WithoutBestEffort: true, After: page.Next}); len(
		rest.Frames) > 0 || !rest.EOF {
		t.Fatalf("%d frames, eof %t", len(rest.Frames), rest.EOF)
	}
	only := newServer() // nothing to show at all
	only.mixed(t, stream.ModeBestEffort, 50)
	page = read(t, only, framelog.ReadOptions{Limit: 10, WithoutBestEffort: true})
	if page.Next == (framelog.Place{}) || !page.Exists {
		t.Fatal("the cursor did not move over what is hidden")
	}
	var all []stream.Frame // a log that is longer than the page is not skipped for being the only one
	for after := (framelog.Place{}); len(all) < 50; {
		page = read(t, only, framelog.ReadOptions{Limit: 10, After: after})
		if all, after = append(all, page.Frames...), page.Next; len(page.Frames) != 10 {
			t.Fatalf("%d frames after %d", len(page.Frames), len(all))
		}
	}
	contiguous(t, all, 1, 50)
}

// What has expired is no gap, and no reason to wait; durable frames that were trimmed are still counted exactly.
func TestReadAfterExpiry(t *testing.T) {
	s := newServer()
	s.mixed(t, stream.ModeDurable, 10)
	s.mixed(t, stream.ModeBestEffort, 5)
	s.mixed(t, stream.ModeDurable, 10)
	s.mixed(t, stream.ModeSummary, 2)
	s.mixed(t, stream.ModeBestEffort, 5)
	first := read(t, s, framelog.ReadOptions{Limit: 12})
	s.expire(0, stream.ModeBestEffort)
	s.settle(codes.Completed, "attempt_success")
	page := read(t, s, framelog.ReadOptions{Limit: 100})
	if len(page.Frames) != 22 || page.Gap || !page.EOF {
		t.Fatalf("%d frames, gap %t, eof %t", len(page.Frames), page.Gap, page.EOF)
	}
	s.trim(0, 7) // 5 durable frames and the deltas
	for after, trimmed := range map[framelog.Place]uint64{{}: 15, first.Next: 5, framelog.PlaceOf(first.Frames[11]): 5,
		framelog.PlaceOf(first.Frames[9]): 5, framelog.PlaceOf(first.Frames[7]): 7} {
		page = read(t, s, framelog.ReadOptions{Limit: 100, After: after})
		if page.Trimmed != trimmed || !page.Gap || !page.EOF || len(page.Frames) != 7 {
			t.Errorf("after %v: %d trimmed, want %d; eof %t, %d frames", after, page.Trimmed, trimmed, page.EOF,
				len(page.Frames))
		}
	}
	to := first.Frames[10].ID // best effort: gone
	page = read(t, s, framelog.ReadOptions{Limit: 100, After: framelog.PlaceOf(first.Frames[9]), To: to})
	if len(page.Frames) != 0 || page.EOF || page.Next.Cursor() != to {
		t.Errorf("up to a place that is gone: %d frames, eof %t, next %v", len(page.Frames), page.EOF, page.Next)
	}
}

// A tail sees all modes as they are published, or those it wants, and is never held up by the others.
func TestTailModes(t *testing.T) {
	for without, want := range map[bool]string{
		false: "1d 2s 3b 4d 5s 6b 7b 8d end",
		true:  "1d 2s 4d 5s 8d end",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			hub := framelog.NewHub(s)
			defer hub.Close()
			put := func(modes ...stream.FrameMode) {
				for _, m := range modes {
					s.mixed(t, m, 1)
				}
			}
			put(stream.ModeDurable, stream.ModeSummary, stream.ModeBestEffort)
			var seen []string
			var owner conc.WaitGroup
			owner.Go(func() {
				for e, err := range hub.Tail(t.Context(), execution, framelog.TailOptions{WithoutBestEffort: without}) {
					switch {
					case err != nil || e.Kind == stream.TailGap:
						t.Error(e, err)
					case e.Kind == stream.TailFrame:
						seen = append(seen, fmt.Sprintf("%d%c", e.Frame.Sequence, e.Frame.Mode.String()[0]))
					case e.Kind == stream.TailEnd:
						seen = append(seen, "end")
					}
				}
			})
			synctest.Wait()
			reads := s.count(&s.reads)
			put(stream.ModeDurable, stream.ModeSummary, stream.ModeBestEffort, stream.ModeBestEffort)
			put(stream.ModeDurable)
			synctest.Wait()
			if n := s.count(&s.reads); n != reads {
				t.Errorf("%d reads for what was published", n-reads)
			}
			s.settle(codes.Completed, "attempt_success")
			owner.Wait()
			if got := strings.Join(seen, " "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// a tail that fell behind is told how many frames it missed for good; one that joins late is not.
func TestTailFallsBehindLiveFrames(t *testing.T) {
	for without, want := range map[bool]string{
		false: "1d gap0+499 501d gap2+1 505s gap0+10",
		true:  "1d 501d gap2+0 505s",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			hub := framelog.NewHub(s)
			defer hub.Close()
			s.mixed(t, stream.ModeDurable, 1)
			var seen []string
			stalled := make(chan struct{})
			var owner conc.WaitGroup
			ctx, leave := context.WithCancel(t.Context())
			owner.Go(func() {
				for e, err := range hub.Tail(ctx, execution, framelog.TailOptions{WithoutBestEffort: without}) {
					switch {
					case errors.Is(err, context.Canceled):
					case err != nil:
						t.Error(err)
					case e.Kind == stream.TailFrame && e.Frame.Sequence == 2:
						<-stalled
					case e.Kind == stream.TailFrame:
						seen = append(seen, fmt.Sprintf("%d%c", e.Frame.Sequence, e.Frame.Mode.String()[0]))
					case e.Kind == stream.TailGap:
						seen = append(seen, fmt.Sprintf("gap%d+%d", e.Trimmed, e.Missed))
					}
				}
			})
			synctest.Wait() // it is up to date
			s.disconnect(errLost)
			s.mixed(t, stream.ModeBestEffort, 499)
			s.expire(0, stream.ModeBestEffort)
			s.mixed(t, stream.ModeDurable, 1)
			s.reconnect()
			time.Sleep(time.Minute)
			s.disconnect(errLost)
			s.mixed(t, stream.ModeDurable, 2)
			s.mixed(t, stream.ModeBestEffort, 1)
			s.trim(0, 0)
			s.attempts[0].trimmed = s.attempts[0].durable
			s.mixed(t, stream.ModeSummary, 1)
			s.mixed(t, stream.ModeBestEffort, 10)
			s.expire(0, stream.ModeBestEffort)
			s.reconnect()
			time.Sleep(time.Minute)
			leave()
			close(stalled)
			owner.Wait()
			if got := strings.Join(seen, " "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			late := ""
			for e := range hub.Tail(t.Context(), execution, framelog.TailOptions{WithoutBestEffort: without}) {
				if late += fmt.Sprint(e.Kind, e.Missed, " "); e.Kind == stream.TailFrame {
					break
				}
			}
			if late != "attempt0 gap0 frame0 " {
				t.Errorf("late: %s", late)
			}
		})
	}
}
