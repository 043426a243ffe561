package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/stream"
)

// What the functions must guarantee for streams. Batching, cursors and tails belong to package stream.
var streamScenarios = []scenario{
	{name: "the first append stores the frame with all its fields and counts it", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
		w.no(err)
		w.all("before", eq(m.Exists, false), eq(m.Closed, false), eq(m.Attempts, 1), eq(m.Code, "A1"))
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		at := time.UnixMilli(1234).UTC()
		sent := stream.Frame{Type: "tok\x00en", Encoding: "bytes", Correlation: "c", ProducedAt: at, Payload: all}
		a, err := w.e.AppendFrames(w.ctx, f, 1, []stream.Frame{sent})
		w.no(err)
		w.check()
		got, err := w.e.ReadFrames(w.ctx, f.Execution, 1, stream.Cursor{}, 10)
		w.no(err)
		sent.ID, sent.Sequence, sent.Durables = a.LastID, 1, 1
		sameDeep(w, "frame", got, []stream.Frame{sent})
		m, err = w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
		w.no(err)
		w.all("meta", eq(m.Exists, true), eq(m.Count, 1), eq(m.Bytes, 256), eq(m.LastSequence, 1),
			eq(m.LastID, a.LastID), eq(m.Trimmed, 0), eq(m.TrimmedID, stream.Cursor{}))
	}},
	{name: "readers and live tailers are told the source of a frame", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		ear := w.listen(engine.FrameChannel(f.Execution))
		longest := strings.Repeat("c", limits.MaxCorrelation)
		sent := []stream.Frame{{Correlation: "c"}, {Source: "model"}, {Correlation: longest,
			Source: strings.Repeat("s", limits.MaxFrameSource)}, {Source: "tool"}, {}}
		_, err := w.e.AppendFrames(w.ctx, f, 1, sent)
		w.no(err)
		got, err := w.e.ReadFrames(w.ctx, f.Execution, 1, stream.Cursor{}, 10)
		w.no(err)
		heard, err := engine.DecodeFrames(ear.next())
		w.no(err)
		for _, frames := range [][]stream.Frame{got, heard.Frames} {
			same(w, "frames", len(frames), len(sent))
			for i, x := range frames {
				w.all("frame", eq(x.Correlation, sent[i].Correlation), eq(x.Source, sent[i].Source))
			}
		}
		plain := f
		plain.Execution = w.create()
		plain = w.worker("w2").one(plain.Execution).Fence
		w.frames(plain, 1, 1)
		log := keys.Of(w.p).Stream(ids.UUID(plain.Execution), 1)
		entries, err := w.raw.Do(w.ctx, w.raw.B().Xrange().Key(log).Start("-").End("+").Build()).AsXRangeSlices()
		w.no(err)
		sameDeep(w, "the entry of a frame without one", entries[0].FieldValues, []rueidis.XRangeFieldValue{
			{Field: "p"}, {Field: "token"}, {}, {Field: "1", Value: "1"}})
	}},
	{name: "frames and batches beyond their size limits are refused", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		_, err := w.e.AppendFrames(w.ctx, f, 1, []stream.Frame{{Payload: make([]byte, limits.MaxFrame)}})
		w.no(err)
		bad := map[string][]stream.Frame{
			"count of two groups": slices.Concat(make([]stream.Frame, 60),
				slices.Repeat([]stream.Frame{{Type: "other"}}, 60)),
			"batch": {{Payload: make([]byte, 1<<16)}, {Payload: make([]byte, 1<<16)}, {Payload: make([]byte, 1<<16)},
				{Payload: make([]byte, 1<<16)}, {Payload: make([]byte, 1<<16)},
				{Payload: make([]byte, 1<<16)}, {Payload: make([]byte, 1<<16)}, {Payload: make([]byte, 1<<16)},
				{Payload: []byte("1")}},
		}
		for what, frames := range bad {
			w.unchanged(what, func() {
				_, err := w.e.AppendFrames(w.ctx, f, 2, frames)
				if !errors.Is(err, flowfabric.ErrInvalidInput) && !errors.Is(err, flowfabric.ErrPayloadTooLarge) {
					w.Fatalf("%s: %v", what, err)
				}
			})
		}
	}},
	{name: "only the holder of a live lease can append frames", run: func(w *env) {
		k := w.worker("w1")
		f := k.one(w.create()).Fence
		appendAs := func(what string, f flowfabric.Fence, want error, slot string) {
			w.Helper()
			w.unchanged(what, func() {
				_, err := w.e.AppendFrames(w.ctx, f, 1, []stream.Frame{{Payload: []byte("x")}})
				w.is(err, want)
				coded, _ := errors.AsType[*flowfabric.Error](err)
				same(w, what, denied.Slot(coded, 0), slot)
			})
		}
		for what, change := range map[string]func(*flowfabric.Fence){"epoch": func(f *flowfabric.Fence) { f.Epoch++ },
			"attempt": func(f *flowfabric.Fence) { f.Attempt++ },
			"session": func(f *flowfabric.Fence) { f.Session = "w2~1" }} {
			stale := f
			change(&stale)
			appendAs(what, stale, denied.StaleAppend, "superseded")
		}
		unknown := f
		unknown.Execution = mint.ID(w.p)
		appendAs("unknown", unknown, flowfabric.ErrNotFound, "")
		done := k.one(w.create()).Fence
		w.complete(done, "")
		appendAs("terminal", done, denied.StreamClosed, "T1")
		w.advance(ttl)
		appendAs("expired", f, denied.StaleAppend, "expired")
	}},
	{name: "a frame is stored the same in a group of its own and in a group of many", run: func(w *env) {
		k := w.worker("w1")
		together, alone := k.one(w.create()).Fence, k.one(w.create()).Fence
		each := func(f flowfabric.Fence, first, n int) answer {
			args := slices.Concat([]string{proto}, fenceArgs(f), []string{strconv.Itoa(first), strconv.Itoa(n)})
			for i := range n {
				args = append(args, "d", "token", "", "", "", "1", strconv.Itoa(first+i))
			}
			return w.fcall("ff_append_frames", args...)
		}
		for _, b := range [][2]int{{1, 1}, {2, 97}, {90, 30}, {100, 80}, {150, 100}, {250, 52}} {
			// over every hundred, with repeats
			a, r := w.frames(together, uint64(b[0]), b[1]), each(alone, b[0], b[1])
			sameList(w, fmt.Sprint("answer to ", b), []string{fmt.Sprint(a.Count), fmt.Sprint(a.LastSequence)},
				r.slots[1:3]...)
		}
		w.all("meta", eq(w.meta(together).Bytes, w.meta(alone).Bytes), eq(w.meta(together).Count, 301))
		for _, f := range []flowfabric.Fence{together, alone} { // from here on there are frames of two modes
			_, err := w.e.AppendFrames(w.ctx, f, 302,
				[]stream.Frame{{Mode: stream.ModeBestEffort, TTL: time.Minute, Keep: 64}})
			w.no(err)
		}
		w.frames(together, 301, 4)
		each(alone, 303, 2)
		for _, f := range []flowfabric.Fence{together, alone} {
			got, err := w.e.ReadFrames(w.ctx, f.Execution, 1, stream.Cursor{}, 1000)
			w.no(err)
			same(w, "frames", len(got), 303)
			for i, x := range got {
				sequence := i + 1 + i/301
				w.all("frame", eq(x.Sequence, uint64(sequence)), eq(x.Type, "token"), eq(x.Encoding, "utf8"),
					eq(string(x.Payload), fmt.Sprint(sequence)), eq(x.Durables, uint64(i+1)))
				if i > 0 && x.ID.Compare(got[i-1].ID) <= 0 {
					w.Fatalf("id %s after %s", x.ID, got[i-1].ID)
				}
			}
		}
	}},
	{name: "a delayed attempt accepts no frames, and its stream continues after the delay", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		first := w.frames(f, 1, 2)
		w.delay(f, time.Second)
		w.unchanged("an append while delayed", func() {
			_, err := w.e.AppendFrames(w.ctx, f, 3, []stream.Frame{{}})
			w.is(err, denied.NotActive)
		})
		w.advance(time.Second)
		w.tick()
		c := k.one(id)
		last := w.frames(c.Fence, c.LastSequence+1, 1)
		w.all("one stream", eq(last.Count, 3), eq(last.LastSequence, 3), eq(last.LastID.Compare(first.LastID), 1))
	}},
	{name: "a closed stream states why its attempt ended", run: func(w *env) {
		end := map[string]func(k *worker, f flowfabric.Fence){
			"attempt_success":   func(_ *worker, f flowfabric.Fence) { w.complete(f, "") },
			"attempt_failure":   func(_ *worker, f flowfabric.Fence) { w.fail(f, "x") },
			"attempt_cancelled": func(_ *worker, f flowfabric.Fence) { w.cancel(f.Execution) },
			"lease_expired":     func(*worker, flowfabric.Fence) { w.advance(ttl); w.settleTime() },
			"expired": func(k *worker,
				_ flowfabric.Fence) {
				w.advance(10 * time.Second)
				w.renew(k, 0)
				w.settleTime()
			},
			"expired at the deadline": func(*worker, flowfabric.Fence) { w.advance(20 * time.Second); w.settleTime() },
		}
		for reason, run := range end {
			for _, frames := range []int{1, 0} {
				w.reset()
				opts := []option{retries(0), deadline(time.Hour)}
				switch reason {
				case "expired":
					opts = append(opts, timeout(10*time.Second))
				case "expired at the deadline":
					opts = append(opts, deadline(20*time.Second))
				}
				k := w.worker("w1")
				f := k.one(w.create(opts...)).Fence
				if frames > 0 {
					w.frames(f, 1, frames)
				}
				run(k, f)
				m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
				w.no(err)
				word, _, _ := strings.Cut(reason, " ")
				w.all(reason+" with "+strconv.Itoa(frames)+" frames", eq(m.Closed, true), eq(m.ClosedReason, word),
					eq(m.Exists, frames > 0))
			}
		}
		// The second closer changes nothing: cancelled after its attempt failed.
		w.reset()
		k := w.worker("w1")
		f := k.one(w.create(retries(1))).Fence
		w.frames(f, 1, 1)
		w.fail(f, "x")
		w.cancel(f.Execution)
		m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
		w.no(err)
		same(w, "first reason", m.ClosedReason, "attempt_failure")
	}},
	{name: "an attempt is shown with what it is, when it began and ended, and why", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(2))
		shown := func(attempt uint32, kind flowfabric.AttemptType, began, ended int64, category string) {
			w.Helper()
			m, err := w.e.ReadAttemptStream(w.ctx, id, attempt)
			w.no(err)
			at := func(t time.Time) int64 { return max(0, t.UnixMilli()) }
			w.all(fmt.Sprint("attempt ", attempt), eq(m.Type, kind), eq(at(m.BeganAt), began), eq(at(m.EndedAt), ended),
				eq(string(m.Category), category))
		}
		first := k.one(id)
		began := w.now()
		shown(1, flowfabric.AttemptInitial, began, 0, "")
		w.age()
		w.fail(first.Fence, "x")
		ended := w.now()
		w.advance(time.Minute)
		w.tick()
		k = w.worker("w2")
		second, again := k.one(id), w.now()
		w.age()
		shown(1, flowfabric.AttemptInitial, began, ended, "x")
		shown(2, flowfabric.AttemptRetry, again, 0, "")
		shown(3, "", 0, 0, "")
		w.complete(second.Fence, "")
		shown(2, flowfabric.AttemptRetry, again, w.now(), "")
	}},
	{name: "an attempt began when it was first claimed, however often it goes on", run: func(w *env) {
		for _, retried := range []bool{false, true} {
			w.reset()
			id := w.create(retries(2))
			f := w.worker("w1").one(id).Fence
			if retried {
				w.fail(f, "x")
				w.advance(time.Minute)
				w.tick()
				f = w.worker("w2").one(id).Fence
			}
			attempt, began := f.Attempt, w.now()
			shown := func(what string) {
				w.Helper()
				m, err := w.e.ReadAttemptStream(w.ctx, id, attempt)
				w.no(err)
				same(w, fmt.Sprint("attempt ", attempt, " ", what), m.BeganAt.UnixMilli(), began)
				w.age()
			}
			for i := range 3 {
				shown("claimed")
				w.release(f)
				shown("handed back")
				f = w.worker(fmt.Sprint("again", i)).one(id).Fence
			}
			w.fail(f, "x")
			shown("failed")
			w.advance(time.Minute)
			w.tick()
			next := w.worker("w3").one(id).Fence
			shown("followed")
			w.complete(next, "")
			shown("of an execution that has ended")
		}
	}},
	{name: "what was said of the end of an attempt stays, whatever follows", run: func(w *env) {
		ends := map[string]func(f flowfabric.Fence){
			"completed": func(f flowfabric.Fence) { w.complete(f, "") },
			"failed":    func(f flowfabric.Fence) { w.fail(f, "x") },
			"cancelled": func(f flowfabric.Fence) { w.cancel(f.Execution) },
			"revoked":   func(f flowfabric.Fence) { w.revoke(f.Execution) },
		}
		follows := map[string]func(id flowfabric.ExecutionID){
			"a tick":   func(flowfabric.ExecutionID) { w.tick() },
			"a cancel": func(id flowfabric.ExecutionID) { w.cancelIf(id) },
			"a replay": func(id flowfabric.ExecutionID) {
				w.cancelIf(id)
				w.replay(id, engine.Replay{Force: true, DropSteps: true})
			},
			"the next attempt": func(id flowfabric.ExecutionID) {
				if w.tick(); w.read(id).State.Terminal() {
					w.replay(id, engine.Replay{Force: true})
				}
				w.worker("w2").one(id)
			},
		}
		for end, run := range ends {
			for then, follow := range follows {
				for _, frames := range []int{0, 3} {
					w.reset()
					f := w.worker("w1").one(w.create(retries(0))).Fence
					if frames > 0 {
						w.frames(f, 1, frames)
					}
					w.age()
					run(f)
					said := func() string {
						m := w.meta(f)
						return fmt.Sprint(m.Closed, m.ClosedReason, " ", m.Type, " ", m.BeganAt.UnixMilli(), " ",
							m.EndedAt.UnixMilli(), " ", m.Category, " ", m.Message)
					}
					before := said()
					same(w, end+": ended at", w.meta(f).EndedAt.UnixMilli(), w.now())
					w.age()
					follow(f.Execution)
					same(w, fmt.Sprint(end, " with ", frames, " frames, then ", then), said(), before)
				}
			}
		}
	}},
	{name: "a stream is trimmed to about the number of frames in its policy", run: func(w *env) {
		for _, keep := range []int{3, 0} {
			f := w.worker("w1").one(w.create(func(x *engine.NewExecution) { x.Policy.StreamFrames = keep })).Fence
			for i := range 3 {
				w.frames(f, uint64(100*i+1), 100)
			}
			m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
			w.no(err)
			retained := m.Count - m.Trimmed
			if m.Count != 300 || keep == 0 && retained != 300 || keep > 0 && retained > 103 {
				w.Fatalf("keep %d: %d retained of %d", keep, retained, m.Count)
			}
			w.complete(f, "")
		}
	}},
	{name: "frame sequences have no gaps, and repeated frames are stored once", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.frames(f, 1, 3)
		w.unchanged("a gap", func() {
			_, err := w.e.AppendFrames(w.ctx, f, 5, []stream.Frame{{Payload: []byte("x")}})
			w.is(err, denied.FrameGap)
			coded, _ := errors.AsType[*flowfabric.Error](err)
			same(w, "last", denied.Slot(coded, 0), "3")
		})
		w.unchanged("a repeat", func() {
			a := w.frames(f, 2, 2)
			w.all("duplicate", eq(a.Duplicate, true), eq(a.Count, 3), eq(a.LastSequence, 3))
		})
		a := w.frames(f, 2, 4)
		w.all("an overlap is completed", eq(a.Duplicate, false), eq(a.Count, 5), eq(a.LastSequence, 5))
	}},
}
