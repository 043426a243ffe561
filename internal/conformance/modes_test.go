package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Frames that are not durable: summary deltas with their document, and best-effort frames.
var modeScenarios = []scenario{
	{name: "frames of one mode never trim those of another", run: func(w *env) {
		for _, keep := range []int{0, 200} {
			f := w.worker("w1").one(w.create(func(x *engine.NewExecution) { x.Policy.StreamFrames = keep })).Fence
			sequence := uint64(1)
			put := func(n int, mode func(version uint64) stream.Frame, version uint64) {
				for ; n > 0; n -= min(n, 100) {
					batch := make([]stream.Frame, min(n, 100))
					for i := range batch {
						batch[i] = mode(version + uint64(i))
					}
					version += uint64(len(batch))
					w.modes(f, sequence, batch...)
					sequence += uint64(len(batch))
				}
			}
			put(1, bestEffort, 0)
			put(1, durableFrame, 0)
			put(1, summaryDelta, 1)
			put(499, durableFrame, 0)
			put(400, summaryDelta, 2)
			put(400, bestEffort, 0)
			m := w.meta(f)
			retained, wanted := m.Count-m.Trimmed, uint64(500)
			if keep > 0 { // exact once in 64 appends, else approximate
				wanted = min(retained, uint64(keep)+163)
			}
			w.all("counts", eq(m.Count, 500), eq(m.Summary, 401), eq(m.Live, 401), eq(m.LastSequence, 1302),
				eq(retained, wanted))
			frames, err := w.e.ReadFrames(w.ctx, f.Execution, 1, stream.Cursor{}, 1000)
			w.no(err)
			w.all("durable frames", eq(len(frames), int(retained)), eq(frames[len(frames)-1].Durables, 500))
			for mode, most := range map[stream.FrameMode]int{stream.ModeSummary: 64 + 200,
				stream.ModeBestEffort: 64 + 200} {
				log, err := w.e.ReadLog(w.ctx, engine.LogRange{Execution: f.Execution, Attempt: 1,
					Mode: mode, Limit: 1000})
				w.no(err)
				if len(log) < 64 || len(log) > most {
					w.Fatalf("%d %s frames are kept", len(log), mode)
				}
			}
			w.complete(f, "")
		}
	}},
	{name: "patches merge into the summary document, and invalid ones change nothing", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		wr := w.writer(f, 0)
		version := uint64(0)
		put := func(patch, want string) {
			w.Helper()
			w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(patch)}))
			w.no(wr.Flush(w.ctx))
			version++
			w.document(f, version, want)
		}
		refuse := func(what, patch string, want error) {
			w.Helper()
			w.unchanged(what, func() {
				w.is(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(patch)}), want)
				w.no(wr.Flush(w.ctx))
			})
		}
		deep := func(levels int) string {
			return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
		}
		w.document(f, 0, "")
		put(`{"ms":1713100800150123,"stage":{"name":"load","rows":1},"list":[1,2]}`,
			`{"list":[1,2],"ms":1713100800150123,"stage":{"name":"load","rows":1}}`)
		put(`{"stage":{"rows":null},"list":[]}`, `{"list":[],"ms":1713100800150123,"stage":{"name":"load"}}`)
		put(`{"stage":{}}`, `{"list":[],"ms":1713100800150123,"stage":{"name":"load"}}`)
		put(`{"list":null,"stage":"__ff_null__"}`, `{"ms":1713100800150123,"stage":null}`)
		put(`{"stage":null,"ms":null}`, `{}`)
		for what, patch := range map[string]string{"array": `[]`, "scalar": `1`, "broken": `{"a"`,
			"17 levels": deep(17), "1e400": `{"a":1e400}`} {
			refuse(what, patch, flowfabric.ErrInvalidInput)
		}
		put(deep(16), deep(16))
		put(`{"a":null}`, `{}`)
		part := strings.Repeat("x", 60<<10)
		for i := range 4 {
			w.no(wr.Append(w.ctx,
				stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"p` + strconv.Itoa(i) + `":"` + part + `"}`)}))
			w.no(wr.Flush(w.ctx))
			version++
		}
		rest := limits.MaxSummary - 4*len(`"p0":"",`+part) - len(`{"q":""}`)
		refuse("256 KiB and 1", `{"q":"`+part[:rest+1]+`"}`, denied.SummaryTooLarge)
		w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"q":"` + part[:rest] + `"}`)}))
		w.no(wr.Close(w.ctx))
		s, err := w.e.ReadSummary(w.ctx, f.Execution, 1)
		w.no(err)
		w.all("256 KiB", eq(len(s.Document), limits.MaxSummary), eq(s.Version, version+1))
		deltas, err := w.e.ReadLog(w.ctx, engine.LogRange{Execution: f.Execution, Attempt: 1,
			Mode: stream.ModeSummary, Limit: 100})
		w.no(err)
		same(w, "deltas", len(deltas), int(version+1))
		w.check()
	}},
	{name: "a summary delta is accepted only on the version that it was merged into", run: func(w *env) {
		w.stop()
		f := w.worker("w1").one(w.create()).Fence
		a := w.modes(f, 1, summaryDelta(1))
		w.all("first", eq(a.Summary, 1), eq(a.Count, 0), eq(a.LastSequence, 1))
		s, err := w.e.ReadSummary(w.ctx, f.Execution, 1)
		w.no(err)
		w.all("times", eq(fmt.Sprint(s.FirstAt.UnixMilli()), w.root()["clock_pin"]),
			eq(fmt.Sprint(s.UpdatedAt.UnixMilli()), w.root()["clock_pin"]))
		w.pass(time.Second)
		w.modes(f, 2, summaryDelta(2), durableFrame(0), summaryDelta(3))
		later, err := w.e.ReadSummary(w.ctx, f.Execution, 1)
		w.no(err)
		w.all("later", eq(later.Version, 3), eq(string(later.Document), `{"version":3}`),
			eq(later.FirstAt.Equal(s.FirstAt), true), eq(later.UpdatedAt.Sub(s.UpdatedAt), time.Second))
		for _, wrong := range []uint64{1, 3, 5} {
			w.unchanged("a delta of another version", func() {
				_, err := w.e.AppendFrames(w.ctx, f, 5, []stream.Frame{summaryDelta(wrong)})
				w.is(err, denied.SummaryConflict)
				coded, _ := errors.AsType[*flowfabric.Error](err)
				same(w, "stored", denied.Slot(coded, 0), "3")
			})
		}
		w.unchanged("a repeat", func() {
			a := w.modes(f, 2, summaryDelta(2), durableFrame(0), summaryDelta(3))
			w.all("repeat", eq(a.Duplicate, true), eq(a.Summary, 3), eq(a.LastSequence, 4))
		})
		a = w.modes(f, 3, durableFrame(0), summaryDelta(3), summaryDelta(4)) // two are known
		w.all("an overlap is completed", eq(a.Duplicate, false), eq(a.Summary, 4), eq(a.LastSequence, 5),
			eq(a.Count, 1))
		w.document(f, 4, `{"version":4}`)
		large := summaryDelta(5)
		large.Document = make([]byte, limits.MaxSummary+1)
		w.unchanged("a large document", func() {
			_, err := w.e.AppendFrames(w.ctx, f, 6, []stream.Frame{large})
			w.is(err, denied.SummaryTooLarge)
		})
		large.Document = large.Document[1:]
		w.modes(f, 6, large)
	}},
	{name: "malformed frame modes are refused", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		call := func(mode string, more ...string) answer {
			first, second := []string{"1", "2", "d", "t", "", "", "", "1", "p"},
				[]string{mode, "t", "", "", "", "1", "p"}
			return w.fcall("ff_append_frames", slices.Concat([]string{proto}, fenceArgs(f), first, second, more)...)
		}
		for _, x := range [][]string{
			{""}, {"d", ""}, {"d", "0", "{}"}, {"d", "64"}, {"s"}, {"s", "0"}, {"ss", "0", "{}"}, {"s0", "0", "{}"},
			{"S", "0", "{}"}, {" s", "0", "{}"}, {"s,s", "0", "{}"},
			{"x", "64"}, {"l", "64"}, {"l999", "64"}, {"l60001", "64"}, {"l5000.5", "64"}, {"l-5000", "64"},
			{"L5000", "64"}, {"m5000", "64"},
			{"s", "", "{}"}, {"s", "-1", "{}"}, {"s", "x", "{}"}, {"s", "0", ""}, {"s", "0", "{"},
			{"s", "0", "{}", "64"}, {"s", "0", "{}", ""},
			{"l5000"}, {"l5000", ""}, {"l5000", "0"}, {"l5000", "16385"}, {"l5000", "x"}, {"l5000", "64", ""},
			{"l5000", "0", "{}", "64"}, {"l5000", "{}", "64"},
			{strings.Repeat("l", 50), "64"},
		} {
			w.unchanged("modes", func() { same(w, fmt.Sprintf("%v", x), call(x[0], x[1:]...).code, "invalid_input") })
		}
		same(w, "the least", call("l1000", "1").code, "OK")
		same(w, "a delta", call("s", "0", "{}").code, "ALREADY_SATISFIED")
		same(w, "the most", call("l60000", "16384").code, "ALREADY_SATISFIED")
		w.check()
	}},
	{name: "a summary belongs to its attempt and continues when the attempt does", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(1))
		f := k.one(id).Fence
		wr := w.writer(f, 0)
		w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"a":1,"b":1}`)}))
		w.no(wr.Close(w.ctx))
		w.delay(f, time.Second)
		w.document(f, 1, `{"a":1,"b":1}`) // nobody holds it
		w.unchanged("a delta while delayed", func() {
			_, err := w.e.AppendFrames(w.ctx, f, 2, []stream.Frame{summaryDelta(2)})
			w.is(err, denied.NotActive)
		})
		w.advance(time.Second)
		w.tick()
		c := k.one(id)
		wr = w.writer(c.Fence, c.LastSequence)
		w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"b":null,"c":2}`)}))
		w.no(wr.Close(w.ctx))
		w.document(c.Fence, 2, `{"a":1,"c":2}`)
		w.fail(c.Fence, "x")
		w.unchanged("a delta after the end", func() {
			_, err := w.e.AppendFrames(w.ctx, c.Fence, 3, []stream.Frame{summaryDelta(3)})
			w.is(err, denied.NotActive)
		})
		w.advance(2 * time.Second)
		w.settleTime()
		next := k.one(id)
		w.all("new attempt", eq(next.Fence.Attempt, 2), eq(next.LastSequence, 0))
		w.document(next.Fence, 0, "")
		w.modes(next.Fence, 1, summaryDelta(1))
		w.no(w.complete(next.Fence, "").Err)
		w.document(next.Fence, 1, `{"version":1}`)
		w.document(c.Fence, 2, `{"a":1,"c":2}`)
	}},
	{name: "best-effort frames expire, and all other frames stay", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		key := w.k.Live(ids.UUID(f.Execution), 1)
		expires := func(ttl time.Duration, frames ...stream.Frame) { // twice the ttl after it was appended
			began, first := time.Now(), w.meta(f).LastSequence+1
			w.modes(f, first, frames...)
			n, err := w.do("PTTL", key).AsInt64()
			w.no(err)
			if most := 2 * ttl.Milliseconds(); n > most || n < most-time.Since(began).Milliseconds()-1 {
				w.Fatalf("a ttl of %s leaves %d ms", ttl, n)
			}
		}
		long := bestEffort(0)
		long.TTL = time.Minute
		expires(time.Minute, durableFrame(0), long)
		short := bestEffort(0)
		short.TTL = time.Second
		expires(time.Second, short, summaryDelta(1), durableFrame(0))
		for _, key := range []string{w.k.Stream(ids.UUID(f.Execution), 1), w.k.Deltas(ids.UUID(f.Execution), 1),
			w.k.Summary(ids.UUID(f.Execution), 1), w.k.Meta(ids.UUID(f.Execution), 1)} {
			n, err := w.do("PTTL", key).AsInt64()
			w.no(err)
			same(w, key, n, -1)
		}
		before := w.meta(f)
		await(w.T, "the best-effort frames are gone", func() bool {
			n, err := w.do("PTTL", key).AsInt64()
			w.no(err)
			return n == -2
		})
		w.check()
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 10})
		w.no(err)
		w.all("left", eq(spellFrames(p.Frames), "1d 4s 5d"), eq(p.Gap, false),
			eq(p.Next.Cursor().String(), fmt.Sprint(before.LastID)))
		a := w.modes(f, 6, short)
		w.all("a new log goes on", eq(a.LastID.Compare(before.LastID), 1), eq(a.LastSequence, 6))
		w.no(w.complete(f, "").Err)
		p, err = framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 10})
		w.no(err)
		w.all("closed", eq(p.Closed, true), eq(p.EOF, true), eq(p.Next.Cursor().String(), fmt.Sprint(a.LastID)))
	}},
	{name: "frame ids never go back, even if the clock steps back or frames expire", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.advance(time.Hour) // and the lease with it: a long one is held below
		w.settleTime()
		f = w.worker("w2").one(f.Execution).Fence
		last := stream.Cursor{}
		put := func(sequence uint64, frames ...stream.Frame) {
			w.Helper()
			a := w.modes(f, sequence, frames...)
			if a.LastID.Compare(last) <= 0 {
				w.Fatalf("id %s follows %s", a.LastID, last)
			}
			last = a.LastID
		}
		put(1, bestEffort(0), bestEffort(0))
		w.set("DEL", w.k.Live(ids.UUID(f.Execution), 2)) // as after its time
		w.advance(-30 * time.Minute)
		w.quiet = true // times of the core lie ahead now
		put(3, bestEffort(0))
		put(4, durableFrame(0), summaryDelta(1))
		put(6, durableFrame(0))
		put(7, durableFrame(0), durableFrame(0))
		w.set("DEL", w.k.Live(ids.UUID(f.Execution), 2))
		put(9, bestEffort(0))
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 2, framelog.ReadOptions{Limit: 100})
		w.no(err)
		same(w, "order", spellFrames(p.Frames), "4d 5s 6d 7d 8d 9b")
		w.advance(30 * time.Minute)
		w.quiet = false
		w.check()
	}},
	{name: "at most four calls find the three durable frames in a stream of a thousand", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		for i := range 10 {
			batch := make([]stream.Frame, 100)
			for j := range batch {
				batch[j] = bestEffort(0)
				batch[j].Keep = limits.MaxLiveFrames
			}
			if i%4 == 1 {
				batch = append(batch[:99:99], durableFrame(0))
			}
			w.modes(f, uint64(100*i+1), batch...)
		}
		w.no(w.complete(f, "").Err)
		counted := &countedReader{Engine: w.e}
		var frames []stream.Frame
		var after framelog.Place
		for {
			p, err := framelog.Read(w.ctx, counted, f.Execution, 1,
				framelog.ReadOptions{Limit: 10, After: after, WithoutBestEffort: true})
			w.no(err)
			if p.Next == after {
				w.Fatal("the cursor stands still")
			}
			if frames, after = append(frames, p.Frames...), p.Next; p.EOF {
				break
			}
		}
		w.all("found", eq(spellFrames(frames), "200d 600d 1000d"), eq(counted.calls <= 4, true))
		all, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 10000})
		w.no(err)
		w.all("all", eq(len(all.Frames), 1000), eq(all.EOF, true))
	}},
	{name: "a listener receives frames of all modes exactly as a reader does", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		ear := w.listen(engine.FrameChannel(f.Execution))
		var heard []stream.Frame
		next := uint64(1)
		for _, batch := range [][]stream.Frame{
			{durableFrame(0)}, {bestEffort(0),
				{Type: "b", Encoding: "bytes", Correlation: "c", ProducedAt: time.UnixMilli(5).UTC(),
					Payload: []byte{0xff}}},
			{summaryDelta(1), durableFrame(0), summaryDelta(2)}, {durableFrame(0)},
		} {
			w.modes(f, next, batch...)
			next += uint64(len(batch))
			m, err := engine.DecodeFrames(ear.next())
			w.no(err)
			heard = append(heard, m.Frames...)
		}
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 100})
		w.no(err)
		sameDeep(w, "heard", heard, p.Frames)
		same(w, "read", spellFrames(p.Frames), "1d 2b 3d 4s 5d 6s 7d")
		w.all("what belongs to the mode", eq(p.Frames[1].TTL, 5*time.Second), eq(p.Frames[5].SummaryVersion, 2),
			eq(p.Frames[6].Durables, 4))
	}},
	{name: "a reader of a mixed stream learns how many frames were trimmed", run: func(w *env) {
		f := w.worker("w1").one(w.create(func(x *engine.NewExecution) { x.Policy.StreamFrames = 3 })).Fence
		w.modes(f, 1, durableFrame(0), bestEffort(0), durableFrame(0))
		first, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 2})
		w.no(err)
		for i := range 3 {
			w.frames(f, uint64(100*i+4), 100)
		}
		m := w.meta(f)
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 1000, After: first.Next})
		w.no(err)
		w.all("behind one of two", eq(p.Gap, true), eq(p.Trimmed, m.Trimmed-1),
			eq(uint64(len(p.Frames)), m.Count-m.Trimmed))
	}},
	{name: "a purge removes the frames of all modes and leaves only the tombstone", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(1))
		for range 2 {
			f := k.one(id).Fence
			w.modes(f, 1, durableFrame(0), summaryDelta(1), bestEffort(0))
			if f.Attempt == 1 {
				w.fail(f, "x")
				w.advance(2 * time.Second)
				w.settleTime()
			} else {
				w.no(w.complete(f, "r").Err)
			}
		}
		_, err := w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		w.check()
		left := slices.DeleteFunc(w.keys(), func(key string) bool {
			return !strings.Contains(key,
				ids.UUID(id).String())
		})
		sameList(w, "left", left, w.k.Tombstone(ids.UUID(id)))
	}},
}

// durableFrame and bestEffort make a frame; the argument is there to be like summaryDelta.
func durableFrame(uint64) stream.Frame {
	return stream.Frame{Type: "token", Payload: []byte("durable")}
}

// summaryDelta makes a version; its document tells which.
func summaryDelta(version uint64) stream.Frame {
	text := []byte(`{"version":` + strconv.FormatUint(version, 10) + `}`)
	return stream.Frame{Type: "summary", Encoding: "json", Payload: text, Mode: stream.ModeSummary,
		SummaryVersion: version, Document: text}
}

func bestEffort(uint64) stream.Frame {
	return stream.Frame{Type: "token", Payload: []byte("live"), Mode: stream.ModeBestEffort, TTL: 5 * time.Second,
		Keep: 64}
}

// modes appends frames of any modes.
func (w *env) modes(f flowfabric.Fence, first uint64, frames ...stream.Frame) engine.Appended {
	w.Helper()
	a, err := w.e.AppendFrames(w.ctx, f, first, frames)
	w.no(err)
	w.check()
	return a
}

func (w *env) meta(f flowfabric.Fence) engine.StreamMeta {
	w.Helper()
	m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, f.Attempt)
	w.no(err)
	return m
}

func (w *env) writer(f flowfabric.Fence, last uint64) *framelog.Writer {
	return framelog.NewWriter(framelog.WriterConfig{Appender: w.e, Fence: f, LastSequence: last, Summaries: w.e})
}

// document fails unless the attempt's summary is as wanted.
func (w *env) document(f flowfabric.Fence, version uint64, text string) {
	w.Helper()
	s, err := w.e.ReadSummary(w.ctx, f.Execution, f.Attempt)
	w.no(err)
	w.all("summary", eq(s.Version, version), eq(string(s.Document), text))
}

// spellFrames is the sequence and mode of each frame.
func spellFrames(frames []stream.Frame) string {
	out := make([]string, len(frames))
	for i, f := range frames {
		out[i] = strconv.FormatUint(f.Sequence, 10) + f.Mode.String()[:1]
	}
	return strings.Join(out, " ")
}

// countedReader is the engine with its reads counted.
type countedReader struct {
	*engine.Engine
	calls int
}

func (c *countedReader) ReadLog(ctx context.Context, q engine.LogRange) ([]stream.Frame, error) {
	c.calls++
	return c.Engine.ReadLog(ctx, q)
}

func (c *countedReader) ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID,
	attempt uint32) (engine.StreamMeta, error) {
	c.calls++
	return c.Engine.ReadAttemptStream(ctx, id, attempt)
}
