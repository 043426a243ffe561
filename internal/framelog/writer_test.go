package framelog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
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
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func writer(s framelog.Appender, more ...func(*framelog.WriterConfig)) *framelog.Writer {
	cfg := framelog.WriterConfig{Appender: s, Fence: fence, Logger: quiet}
	for _, f := range more {
		f(&cfg)
	}
	return framelog.NewWriter(cfg)
}

func token(text string) stream.Frame { return stream.Frame{Type: "token", Payload: []byte(text)} }

func wantIs(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("error is %v, want one that matches %v", err, target)
		}
	}
}

func TestWriterBatchesTenThousandAppendsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 10_000 {
			must.No(t, w.Append(t.Context(), token(fmt.Sprintf("%d %s", i, strings.Repeat("x", r.IntN(2000))))))
		}
		must.No(t, w.Close(t.Context()))
		if s.appends > 200 {
			t.Errorf("%d calls, want at most 200", s.appends)
		}
		frames := s.stored(0)
		contiguous(t, frames, 1, 10_000)
		for i, f := range frames {
			if !strings.HasPrefix(string(f.Payload), fmt.Sprintf("%d ", i)) {
				t.Fatalf("frame %d is %.20q", i, f.Payload)
			}
		}
		if w.LastAcknowledged() != 10_000 || w.Dropped() != 0 {
			t.Errorf("acknowledged %d, dropped %d", w.LastAcknowledged(), w.Dropped())
		}
	})
}

func TestWriterSurvivesLostRepliesExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		r := rand.New(rand.NewPCG(3, 4))
		s.onAppend = func(int) (before, after error) {
			switch r.IntN(4) {
			case 0:
				return errLost, nil
			case 1:
				return nil, errLost
			}
			return nil, nil
		}
		w := writer(s)
		for i := range 3000 {
			must.No(t, w.Append(t.Context(), token(fmt.Sprint(i))))
		}
		must.No(t, w.Close(t.Context()))
		contiguous(t, s.stored(0), 1, 3000)
		if s.appends <= len(s.batches) {
			t.Fatal("no reply was lost; the test shows nothing")
		}
	})
}

func TestWriterStopsAtASequenceGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s, func(c *framelog.WriterConfig) { c.LastSequence = 5 }) // but the stream is empty
		must.No(t, w.Append(t.Context(), token("six")))
		wantIs(t, w.Close(t.Context()), denied.FrameGap, flowfabric.ErrLeaseLost, denied.Unflushed)
		if n := len(s.stored(0)); n != 0 || w.Dropped() != 1 || w.LastAcknowledged() != 5 {
			t.Errorf("%d stored, %d dropped, %d acknowledged", n, w.Dropped(), w.LastAcknowledged())
		}
	})
}

func TestWriterFencedInMidStream(t *testing.T) {
	for _, code := range []string{"stale_owner_cannot_append", "stream_closed", "execution_not_active",
		"execution_not_found"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.onAppend = func(call int) (error, error) {
					if call > 1 {
						return denied.New("ff_append_frames", code, "superseded"), nil
					}
					return nil, nil
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				w := writer(s, func(c *framelog.WriterConfig) { c.Cancel = cancel })
				for range 10 {
					must.No(t, w.Append(ctx, token("kept")))
				}
				must.No(t, w.Flush(ctx))
				for range 63 { // below the trigger: they leave when the linger ends
					must.No(t, w.Append(ctx, token("dropped")))
				}
				<-ctx.Done()
				wantIs(t, context.Cause(ctx), flowfabric.ErrLeaseLost)
				for _, err := range []error{w.Append(t.Context(), token("late")), w.Flush(t.Context()),
					w.Close(t.Context()), w.Close(t.Context())} {
					wantIs(t, err, flowfabric.ErrLeaseLost, denied.Unflushed)
					if flowfabric.CodeOf(err) != code {
						t.Errorf("code of %v is %s", err, flowfabric.CodeOf(err))
					}
				}
				contiguous(t, s.stored(0), 1, 10)
				if w.LastAcknowledged() != 10 || w.Dropped() != 63 || s.appends != 2 {
					t.Errorf("acknowledged %d, dropped %d, calls %d", w.LastAcknowledged(), w.Dropped(), s.appends)
				}
			})
		})
	}
}

// the new attempt's stream starts empty with sequence 1.
func TestWriterOfTheNextAttemptStartsAtOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		old := writer(s)
		must.No(t, old.Append(t.Context(), token("a")))
		must.No(t, old.Flush(t.Context()))
		s.settle(codes.WaitingReclaim, "lease_expired")
		next := s.claim()
		must.No(t, old.Append(t.Context(), token("b")))
		wantIs(t, old.Close(t.Context()), denied.StaleAppend)
		w := writer(s, func(c *framelog.WriterConfig) { c.Fence = next })
		must.No(t, w.Append(t.Context(), token("c")))
		must.No(t, w.Close(t.Context()))
		contiguous(t, s.stored(0), 1, 1)
		contiguous(t, s.stored(1), 1, 1)
	})
}

// after a pause the same stream continues.
func TestWriterContinuesAfterAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := writer(s)
		must.No(t, first.Append(t.Context(), token("a")))
		must.No(t, first.Close(t.Context()))
		second := writer(s, func(c *framelog.WriterConfig) { c.LastSequence = 1 })
		must.No(t, second.Append(t.Context(), token("b")))
		must.No(t, second.Close(t.Context()))
		contiguous(t, s.stored(0), 1, 2)
	})
}

func TestWriterFlushBeforeTheTerminalCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		for i := range 100 {
			must.No(t, w.Append(t.Context(), token(fmt.Sprint(i))))
		}
		start := time.Now()
		must.No(t, w.Flush(t.Context()))
		contiguous(t, s.stored(0), 1, 100)
		if time.Since(start) != 0 {
			t.Errorf("flush lingered %v", time.Since(start))
		}
		s.mu.Lock()
		s.onAppend = func(int) (error, error) { return errLost, nil }
		s.mu.Unlock()
		must.No(t, w.Append(t.Context(), token("last")))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		wantIs(t, w.Flush(ctx), denied.Unflushed, context.DeadlineExceeded)
		if w.Dropped() != 0 {
			t.Error("a flush that gives up drops nothing")
		}
		wantIs(t, w.Close(ctx), denied.Unflushed)
		if w.Dropped() != 1 || w.LastAcknowledged() != 100 {
			t.Errorf("acknowledged %d, dropped %d", w.LastAcknowledged(), w.Dropped())
		}
		if s.appends < 4 || s.appends > 30 {
			t.Errorf("%d calls in 3 s", s.appends)
		}
	})
}

func TestWriterOutageShorterThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		begin := time.Now()
		s.onAppend = func(int) (error, error) {
			if time.Since(begin) < 20*time.Second {
				return errLost, nil
			}
			return nil, nil
		}
		w := writer(s)
		must.No(t, w.Append(t.Context(), token("a")))
		must.No(t, w.Close(t.Context()))
		contiguous(t, s.stored(0), 1, 1)
		if d := time.Since(begin); d > 24*time.Second {
			t.Errorf("took %v after an outage of 20 s", d)
		}
	})
}

// a batch that cannot be delivered while the lease lasts is fenced.
func TestWriterFencedByTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.onAppend = func(int) (error, error) { return errLost, nil }
		lease, end := context.WithCancelCause(t.Context())
		causes := make(chan error, 2)
		w := writer(s, func(c *framelog.WriterConfig) {
			c.Context, c.Cancel = lease,
				func(err error) { causes <- err }
		})
		must.No(t, w.Append(t.Context(), token("a")))
		time.Sleep(5 * time.Second)
		end(flowfabric.ErrCancelled)
		wantIs(t, <-causes, flowfabric.ErrLeaseLost, flowfabric.ErrCancelled)
		wantIs(t, w.Append(t.Context(), token("b")), flowfabric.ErrLeaseLost)
		wantIs(t, w.Close(t.Context()), flowfabric.ErrLeaseLost, denied.Unflushed)
		if w.Dropped() != 1 || len(causes) != 0 {
			t.Errorf("dropped %d, cancelled %d times more", w.Dropped(), len(causes))
		}
	})
}

func TestWriterWithEverythingStoredIsNotFencedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lease, end := context.WithCancel(t.Context())
		w := writer(s, func(c *framelog.WriterConfig) {
			c.Context, c.Cancel = lease, func(err error) { t.Error("cancelled:", err) }
		})
		must.No(t, w.Append(t.Context(), token("a")))
		must.No(t, w.Flush(t.Context()))
		end()
		synctest.Wait()
		wantIs(t, w.Append(t.Context(), token("b")), flowfabric.ErrLeaseLost)
		must.No(t, w.Close(t.Context()))
	})
}

func TestWriterFullQueueBlocks(t *testing.T) {
	for name, c := range map[string]struct{ frames, size int }{"frames": {1024, 1}, "bytes": {16, 64 << 10}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				s := newServer()
				w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
					frames []stream.Frame) (engine.Appended, error) {
					<-gate
					return s.AppendFrames(ctx, f, first, frames)
				}))
				text := strings.Repeat("x", c.size)
				for range c.frames {
					must.No(t, w.Append(t.Context(), token(text)))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				start := time.Now()
				wantIs(t, w.Append(ctx, token(text)), context.DeadlineExceeded)
				cancel()
				if time.Since(start) != time.Minute {
					t.Errorf("blocked %v", time.Since(start))
				}
				var waiting conc.WaitGroup
				var through atomic.Int32
				for range 3 {
					waiting.Go(func() {
						if err := w.Append(t.Context(), token(text)); err == nil {
							through.Add(1)
						}
					})
				}
				synctest.Wait()
				if through.Load() != 0 {
					t.Error("an append went through a full queue")
				}
				close(gate)
				waiting.Wait()
				must.No(t, w.Close(t.Context()))
				contiguous(t, s.stored(0), 1, uint64(c.frames)+3)
			})
		})
	}
}

// A frame that fits does not overtake one that waits for room.
func TestWriterBlockedAppendsStayInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := newServer()
		w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
			frames []stream.Frame) (engine.Appended, error) {
			<-gate
			return s.AppendFrames(ctx, f, first, frames)
		}))
		large := strings.Repeat("x", 64<<10)
		for range 15 {
			must.No(t, w.Append(t.Context(), token(large)))
		}
		must.No(t, w.Append(t.Context(), token("leaves room for little")))
		var waiting conc.WaitGroup
		waiting.Go(func() { _ = w.Append(t.Context(), stream.Frame{Type: "large", Payload: []byte(large)}) })
		synctest.Wait()
		for range 3 {
			waiting.Go(func() { _ = w.Append(t.Context(), stream.Frame{Type: "small", Payload: []byte("s")}) })
		}
		synctest.Wait()
		close(gate)
		waiting.Wait()
		must.No(t, w.Close(t.Context()))
		if frames := s.stored(0); len(frames) != 20 || frames[16].Type != "large" {
			t.Errorf("%d frames, the 17th is %s", len(frames), frames[16].Type)
		}
	})
}

func TestWriterCloseReleasesABlockedAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := writer(appender(func(ctx context.Context, _ flowfabric.Fence, _ uint64,
			_ []stream.Frame) (engine.Appended, error) {
			<-ctx.Done()
			return engine.Appended{}, ctx.Err()
		}))
		for range 1024 {
			must.No(t, w.Append(t.Context(), token("x")))
		}
		var waiting conc.WaitGroup
		waiting.Go(func() {
			if err := w.Append(t.Context(), token("x")); !errors.Is(err, denied.TaskConsumed) {
				t.Errorf("append during close: %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, w.Close(ctx), denied.Unflushed)
		waiting.Wait()
		if w.Dropped() != 1024 {
			t.Errorf("dropped %d", w.Dropped())
		}
	})
}

type appender func(context.Context, flowfabric.Fence, uint64, []stream.Frame) (engine.Appended, error)

func (a appender) AppendFrames(ctx context.Context, f flowfabric.Fence, first uint64,
	frames []stream.Frame) (engine.Appended, error) {
	return a(ctx, f, first, frames)
}

// linger, frame and byte triggers.
func TestWriterTriggers(t *testing.T) {
	for name, c := range map[string]struct {
		frames, size int
		linger       time.Duration
		want         time.Duration
		batches      []int
	}{
		"linger": {frames: 3, size: 10, want: 20 * time.Millisecond, batches: []int{3}},
		"own linger": {frames: 3, size: 10, linger: 5 * time.Millisecond, want: 5 * time.Millisecond,
			batches: []int{3}},
		"63 frames wait": {frames: 63, size: 10, want: 20 * time.Millisecond, batches: []int{63}},
		"64 frames":      {frames: 64, size: 10, batches: []int{64}},
		"128 KiB":        {frames: 2, size: 64 << 10, batches: []int{2}},
		"below 128 KiB":  {frames: 2, size: 64<<10 - 1, want: 20 * time.Millisecond, batches: []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				done := make(chan time.Time, 10)
				w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
					frames []stream.Frame) (engine.Appended, error) {
					done <- time.Now()
					return s.AppendFrames(ctx, f, first, frames)
				}), func(cfg *framelog.WriterConfig) { cfg.Linger = c.linger })
				start := time.Now()
				for range c.frames {
					must.No(t, w.Append(t.Context(), token(strings.Repeat("x", c.size))))
					synctest.Wait() // the flusher has seen it
				}
				if got := (<-done).Sub(start); got != c.want {
					t.Errorf("sent after %v, want %v", got, c.want)
				}
				must.No(t, w.Close(t.Context()))
				if !slices.Equal(s.batches, c.batches) {
					t.Errorf("batches %v, want %v", s.batches, c.batches)
				}
			})
		})
	}
}

// at most 100 frames and 512 KiB, split but not reordered.
func TestWriterSplitsBatches(t *testing.T) {
	for name, c := range map[string]struct {
		frames, size int
		batches      []int
	}{
		"frames": {250, 1, []int{100, 100, 50}},
		"bytes":  {16, 64 << 10, []int{8, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				gate := make(chan struct{})
				w := writer(appender(func(ctx context.Context, f flowfabric.Fence, first uint64,
					frames []stream.Frame) (engine.Appended, error) {
					<-gate
					return s.AppendFrames(ctx, f, first, frames)
				}))
				must.No(t, w.Append(t.Context(), token("first")))
				time.Sleep(time.Second) // in flight
				for i := range c.frames - 1 {
					must.No(t, w.Append(t.Context(), token(strings.Repeat("x", min(c.size, 64<<10)-i%2))))
				}
				must.No(t, w.Append(t.Context(), token("last")))
				close(gate)
				must.No(t, w.Close(t.Context()))
				if !slices.Equal(s.batches[1:], c.batches) {
					t.Errorf("batches %v, want 1 and %v", s.batches, c.batches)
				}
				contiguous(t, s.stored(0), 1, uint64(c.frames)+1)
			})
		})
	}
}

func TestWriterValidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		for name, c := range map[string]struct {
			frame stream.Frame
			want  error
			names []string
		}{
			"payload at the limit": {stream.Frame{Payload: make([]byte, 65536), Encoding: stream.Bytes}, nil, nil},
			"payload over": {stream.Frame{Payload: make([]byte, 65537)}, flowfabric.ErrPayloadTooLarge,
				[]string{"payload", "65536"}},
			"type at the limit": {stream.Frame{Type: strings.Repeat("t", 128)}, nil, nil},
			"type over": {stream.Frame{Type: strings.Repeat("t", 129)}, flowfabric.ErrInvalidInput,
				[]string{"type", "128"}},
			"correlation at the limit": {stream.Frame{Correlation: strings.Repeat("c", 256)}, nil, nil},
			"correlation over": {stream.Frame{Correlation: strings.Repeat("c", 257)},
				flowfabric.ErrInvalidInput, []string{"correlation", "256"}},
			"source at the limit": {stream.Frame{Source: strings.Repeat("s", 64)}, nil, nil},
			"source over": {stream.Frame{Source: strings.Repeat("s", 65)}, flowfabric.ErrInvalidInput,
				[]string{"source", "64"}},
			"a separator in the source": {stream.Frame{Source: "a\x1f"}, flowfabric.ErrInvalidInput,
				[]string{"U+001F"}},
			"a separator in the correlation": {stream.Frame{Correlation: "\x1f"}, flowfabric.ErrInvalidInput,
				[]string{"U+001F"}},
			"encoding": {stream.Frame{Encoding: "latin1"}, flowfabric.ErrInvalidInput,
				[]string{"encoding", "latin1"}},
			"broken utf8": {stream.Frame{Payload: []byte{0xff}}, flowfabric.ErrInvalidInput,
				[]string{"UTF-8"}},
			"named utf8": {stream.Frame{Payload: []byte("ä"), Encoding: stream.UTF8}, nil, nil},
			"bytes":      {stream.Frame{Payload: []byte{0xff}, Encoding: stream.Bytes}, nil, nil},
			"json":       {stream.Frame{Payload: []byte(`{"a":1}`), Encoding: stream.JSON}, nil, nil},
			"broken json": {stream.Frame{Payload: []byte(`{"a":`), Encoding: stream.JSON},
				flowfabric.ErrInvalidInput, []string{"JSON"}},
			"empty json": {stream.Frame{Encoding: stream.JSON}, flowfabric.ErrInvalidInput,
				[]string{"JSON"}},
			"before 1970": {stream.Frame{ProducedAt: time.UnixMilli(-1)}, flowfabric.ErrInvalidInput,
				[]string{"produced"}},
		} {
			err := w.Append(t.Context(), c.frame)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
				continue
			}
			for _, part := range c.names {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not name %s", name, err, part)
				}
			}
		}
		must.No(t, w.Close(t.Context()))
		contiguous(t, s.stored(0), 1, 7)
	})
}

func TestWriterKeepsItsOwnCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := writer(s)
		buffer := []byte("before")
		must.No(t, w.Append(t.Context(), stream.Frame{Payload: buffer}))
		copy(buffer, "after!")
		must.No(t, w.Close(t.Context()))
		if got := s.stored(0)[0].Payload; !bytes.Equal(got, []byte("before")) {
			t.Errorf("stored %q", got)
		}
	})
}

func TestWriterOtherErrorsStickWithoutFencing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.onAppend = func(int) (error, error) { return flowfabric.ErrAuth, nil }
		w := writer(s, func(c *framelog.WriterConfig) { c.Cancel = func(err error) { t.Error("cancelled:", err) } })
		must.No(t, w.Append(t.Context(), token("a")))
		err := w.Flush(t.Context())
		wantIs(t, err, flowfabric.ErrAuth, denied.Unflushed)
		if errors.Is(err, flowfabric.ErrLeaseLost) {
			t.Error("the lease is not lost")
		}
		wantIs(t, w.Append(t.Context(), token("b")), flowfabric.ErrAuth)
		wantIs(t, w.Close(t.Context()), flowfabric.ErrAuth)
		if w.Dropped() != 1 {
			t.Errorf("dropped %d", w.Dropped())
		}
	})
}

func TestWriterRefusesAShortAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := writer(appender(func(context.Context, flowfabric.Fence, uint64, []stream.Frame) (engine.Appended, error) {
			return engine.Appended{}, nil
		}))
		must.No(t, w.Append(t.Context(), token("a")))
		wantIs(t, w.Close(t.Context()), denied.Reply, denied.Unflushed)
	})
}

func TestWriterWithoutFramesIsFree(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newServer()
	writers := make([]*framelog.Writer, 100)
	for i := range writers {
		writers[i] = writer(s)
		must.No(t, writers[i].Flush(t.Context()))
	}
	if n := runtime.NumGoroutine(); n != before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	for _, w := range writers {
		must.No(t, w.Close(t.Context()))
		must.No(t, w.Close(t.Context()))
		wantIs(t, w.Append(t.Context(), token("late")), denied.TaskConsumed)
	}
	if s.appends != 0 {
		t.Errorf("%d calls", s.appends)
	}
	if n := testing.AllocsPerRun(100, func() {
		w := framelog.NewWriter(framelog.WriterConfig{Appender: s, Fence: fence})
		_ = w.Close(t.Context())
	}); n > 1 {
		t.Errorf("%v allocations for a task without frames", n)
	}
}

func TestWriterConcurrentAppends(t *testing.T) {
	s := newServer()
	w := writer(s)
	var producers conc.WaitGroup
	for p := range 8 {
		producers.Go(func() {
			for i := range 500 {
				if err := w.Append(t.Context(),
					stream.Frame{Type: fmt.Sprint(p), Payload: fmt.Appendf(nil, "%d", i)}); err != nil {
					t.Error(err)
				}
				if i%100 == 0 {
					if err := w.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	producers.Wait()
	must.No(t, w.Close(t.Context()))
	frames := s.stored(0)
	contiguous(t, frames, 1, 4000)
	next := map[string]int{}
	for _, f := range frames {
		if string(f.Payload) != fmt.Sprint(next[f.Type]) {
			t.Fatalf("producer %s: frame %s, want %d", f.Type, f.Payload, next[f.Type])
		}
		next[f.Type]++
	}
}

func TestWriterPanicSurfacesInClose(t *testing.T) {
	w := writer(appender(func(context.Context, flowfabric.Fence, uint64, []stream.Frame) (engine.Appended, error) {
		panic("appender")
	}))
	must.No(t, w.Append(t.Context(), token("a")))
	wantIs(t, w.Flush(t.Context()), denied.Unflushed)
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "appender") {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = w.Close(t.Context())
}

func BenchmarkWriterAppend(b *testing.B) {
	w := writer(appender(func(_ context.Context, _ flowfabric.Fence, first uint64,
		frames []stream.Frame) (engine.Appended, error) {
		return engine.Appended{LastSequence: first + uint64(len(frames)) - 1}, nil
	}))
	f := token(strings.Repeat("x", 64))
	b.ReportAllocs()
	for b.Loop() {
		must.No(b, w.Append(b.Context(), f))
	}
	must.No(b, w.Close(context.Background()))
}

func BenchmarkWriterWithoutFrames(b *testing.B) {
	s := newServer()
	b.ReportAllocs()
	for b.Loop() {
		w := framelog.NewWriter(framelog.WriterConfig{Appender: s, Fence: fence})
		_ = w.Close(context.Background())
	}
}

// Where frames and summaries are encrypted there is less room in them, and what has too much is refused alone.
func TestRoomForACipher(t *testing.T) {
	w := framelog.NewWriter(framelog.WriterConfig{Room: 256})
	for _, f := range []stream.Frame{
		{Type: "t", Payload: make([]byte, limits.MaxFrame-255)},
		{Type: "t", Mode: stream.ModeSummary,
			Payload: []byte(`{"a":"` + strings.Repeat("x", limits.MaxFrame-256) + `"}`)},
	} {
		if err := w.Append(t.Context(), f); !errors.Is(err, flowfabric.ErrPayloadTooLarge) {
			t.Errorf("%s: %v", f.Mode, err)
		}
	}
}
