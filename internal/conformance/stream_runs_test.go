package conformance

import (
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
)

// A run is one run of a handler: what goes on in the same attempt repeats the frames that no recorded step covers,
// and says so.
var runScenarios = []scenario{
	{name: "every continuation of an attempt begins a run and states its reason", run: func(w *env) {
		w.seed()
		k := w.worker("w1")
		early := func(f flowfabric.Fence, key string) engine.Minted {
			m := w.pend(f, key)
			w.signal(f.Execution, m, "go", waitwords.EffectBuffered)
			return m
		}
		for _, x := range []struct {
			reason string
			stop   func(f flowfabric.Fence) (goesOn bool) // true: under the claim that it has
		}{
			{"released", func(f flowfabric.Fence) bool { w.release(f); return false }},
			{"delayed", func(f flowfabric.Fence) bool {
				w.delay(f, time.Second)
				w.advance(time.Second)
				w.settleTime()
				return false
			}},
			{"delayed", func(f flowfabric.Fence) bool { w.delay(f, 0); return false }},
			{"suspended", func(f flowfabric.Fence) bool {
				w.signal(f.Execution, w.stopped(f), "go", waitwords.EffectSatisfied)
				return false
			}},
			{"suspended", func(f flowfabric.Fence) bool {
				w.stopped(f, within(time.Second, "auto_resume"))
				w.advance(time.Second)
				w.settleTime()
				return false
			}},
			{"suspended", func(f flowfabric.Fence) bool {
				q := suspension(onPending(early(f, "early")))
				for range 2 { // the second call repeats the first
					s, err := w.e.SuspendExecution(w.ctx, f, q)
					w.no(err)
					same(w, "satisfied", s.Satisfied, true)
					w.check()
				}
				return true
			}},
		} {
			f := k.one(w.create()).Fence
			ear := w.listen(engine.FrameChannel(f.Execution))
			w.frames(f, 1, 2)
			w.recordStep(f, "first")
			w.frames(f, 3, 2)
			kept := w.meta(f).Recorded
			same(w, x.reason+": recorded", kept.Sequence, 2)
			goesOn := x.stop(f)
			next := f
			if !goesOn {
				c := k.one(f.Execution)
				w.all("claim", eq(c.Fence.Attempt, 1), eq(c.LastSequence, 4))
				next = c.Fence
			}
			w.frames(next, 5, 2)
			w.frames(next, 7, 1) // the same run
			m := w.meta(next)
			w.all(x.reason+": runs, recorded", eq(m.Runs, 2), eq(m.Recorded, kept))
			runs, err := w.e.ReadRuns(w.ctx, f.Execution, 1, stream.Cursor{}, 10)
			w.no(err)
			p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 100})
			w.no(err)
			want := stream.Resumption{Run: 2, Epoch: next.Epoch, Reason: x.reason, First: p.Frames[4].ID,
				Durables: 4, Recorded: kept.Sequence}
			sameList(w, "stored", runs, want)
			sameList(w, "read", p.Resumed, runs...)
			same(w, "runs of the frames", ofRuns(p.Frames), "1111222")
			sameList(w, "kept", sequences(keptFrames(p.Frames, p.Resumed)), 1, 2, 5, 6, 7)

			var heard []stream.Frame
			for i := range 4 {
				message, err := engine.DecodeFrames(ear.next())
				w.no(err)
				if i == 2 {
					same(w, "heard", *message.Resumed, want)
				} else {
					same(w, "heard of a run", message.Resumed == nil, true)
				}
				heard = append(heard, message.Frames...)
			}
			sameDeep(w, "frames heard", heard, p.Frames)
			w.no(w.complete(next, "").Err)
			_, err = w.e.PurgeExecution(w.ctx, f.Execution, 24*time.Hour)
			w.no(err)
			w.check() // nothing of it is left
		}
	}},
	{name: "a recorded step covers only frames that its own run has appended", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		w.recordStep(f, "before any frame")
		same(w, "nothing", w.meta(f).Recorded, engine.FramePlace{})
		w.frames(f, 1, 3)
		w.release(f)
		f = k.one(id).Fence
		w.recordStep(f, "without a frame") // what the run before it appended is repeated all the same
		same(w, "still nothing", w.meta(f).Recorded, engine.FramePlace{})
		last := w.frames(f, 4, 2).LastID
		w.recordStep(f, "with frames")
		same(w, "recorded", w.meta(f).Recorded, engine.FramePlace{Sequence: 5, ID: last})
		w.frames(f, 6, 1)
		// a repeat covers no more than the call did
		already, err := w.e.RecordStep(w.ctx, f, "with frames", []byte("v"), 0)
		w.no(err)
		w.all("already, recorded", eq(already, true), eq(w.meta(f).Recorded.Sequence, 5))
		w.release(f)
		f = k.one(id).Fence
		w.frames(f, 7, 1)
		p, err := framelog.Read(w.ctx, w.e, id, 1, framelog.ReadOptions{Limit: 100})
		w.no(err)
		w.all("recorded before each run", eq(len(p.Resumed), 2), eq(p.Resumed[0].Recorded, 0),
			eq(p.Resumed[1].Recorded, 5))
		sameList(w, "kept", sequences(keptFrames(p.Frames, p.Resumed)), 4, 5, 7)
	}},
	{name: "a claim that appends no frame counts as no run", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		for range 2 { // before the first frame, too
			w.release(k.one(id).Fence)
		}
		f := k.one(id).Fence
		w.frames(f, 1, 1)
		same(w, "runs", w.meta(f).Runs, 1)
		w.release(f)
		w.delay(k.one(id).Fence, 0)
		f = k.one(id).Fence
		w.frames(f, 2, 1)
		runs, err := w.e.ReadRuns(w.ctx, id, 1, stream.Cursor{}, 10)
		w.no(err)
		w.all("runs", eq(len(runs), 1), eq(runs[0].Run, 2), eq(runs[0].Reason, "delayed"), eq(runs[0].Epoch, f.Epoch))
	}},
	{name: "a later attempt has its own runs, and the closed stream names the last recorded frame", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(3), reclaims(3))
		f := k.one(id).Fence
		w.frames(f, 1, 2)
		w.recordStep(f, "first")
		w.frames(f, 3, 1)
		w.advance(ttl)
		w.settleTime()
		f = w.worker("w2").one(id).Fence
		w.frames(f, 1, 1)
		w.all("attempt, runs, recorded", eq(f.Attempt, 2), eq(w.meta(f).Runs, 1), eq(w.meta(f).Recorded.Sequence, 0))
		m, err := w.e.ReadAttemptStream(w.ctx, id, 1)
		w.no(err)
		w.all("the first one", eq(m.Closed, true), eq(m.ClosedReason, "lease_expired"), eq(m.Recorded.Sequence, 2))
		w.no(w.complete(f, "").Err)

		w.replay(id, engine.Replay{Force: true})
		m, err = w.e.ReadAttemptStream(w.ctx, id, 1)
		w.no(err)
		same(w, "replayed with its steps", m.Recorded.Sequence, 2)
		w.cancel(id)
		w.replay(id, engine.Replay{DropSteps: true})
		m, err = w.e.ReadAttemptStream(w.ctx, id, 1)
		w.no(err)
		same(w, "replayed without", m.Recorded, engine.FramePlace{})
		f = w.worker("w3").one(id).Fence
		w.frames(f, 1, 1)
		w.recordStep(f, "first")
		same(w, "recorded anew", w.meta(f).Recorded.Sequence, 1)
	}},
	{name: "frames of every mode belong to runs", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		w.modes(f, 1, durableFrame(0), bestEffort(0))
		w.release(f)
		f = k.one(id).Fence
		w.modes(f, 3, bestEffort(0), summaryDelta(1))
		w.recordStep(f, "first")
		w.release(f)
		f = k.one(id).Fence
		w.modes(f, 5, summaryDelta(2), durableFrame(0))
		p, err := framelog.Read(w.ctx, w.e, id, 1, framelog.ReadOptions{Limit: 100})
		w.no(err)
		w.all("runs", eq(ofRuns(p.Frames), "112233"), eq(len(p.Resumed), 2), eq(p.Resumed[0].Recorded, 0),
			eq(p.Resumed[1].Recorded, 4))
		p, err = framelog.Read(w.ctx, w.e, id, 1, framelog.ReadOptions{Limit: 100, WithoutBestEffort: true})
		w.no(err)
		w.all("runs whose first frame is not shown", eq(ofRuns(p.Frames), "1233"), eq(len(p.Resumed), 2))
	}},
	{name: "runs are removed when their frames are trimmed", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(func(x *engine.NewExecution) { x.Policy.StreamFrames = 1 })
		const rounds = 400
		for i := range rounds {
			f := k.one(id).Fence
			_, err := w.e.AppendFrames(w.ctx, f, uint64(i+1), []stream.Frame{{Payload: []byte("x")}})
			w.no(err)
			_, err = w.e.ReleaseExecution(w.ctx, f)
			w.no(err)
		}
		w.check()
		runs, err := w.e.ReadRuns(w.ctx, id, 1, stream.Cursor{}, 10_000)
		w.no(err)
		if n := len(runs); n < 257 || n >= rounds-1 || runs[n-1].Run != rounds {
			w.Fatalf("%d runs of %d are kept", n, rounds)
		}
	}},
}

// recordStep records a step.
func (w *env) recordStep(f flowfabric.Fence, name string) {
	w.Helper()
	already, err := w.e.RecordStep(w.ctx, f, name, []byte("v"), 0)
	w.no(err)
	same(w, "recorded already", already, false)
	w.check()
}

// ofRuns has a digit for each frame: the run it belongs to.
func ofRuns(frames []stream.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprint(&b, f.Run)
	}
	return b.String()
}

func sequences(frames []stream.Frame) (all []uint64) {
	for _, f := range frames {
		all = append(all, f.Sequence)
	}
	return all
}

// keptFrames are the frames that a transcript of an attempt keeps.
func keptFrames(frames []stream.Frame, resumed []stream.Resumption) []stream.Frame {
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
