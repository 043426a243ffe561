package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

var loggedAt = time.UnixMilli(1234).UTC()

// logs appends lines with these messages, numbered from first on.
func (w *env) logs(f flowfabric.Fence, first uint64, messages ...string) {
	w.Helper()
	lines := make([]stream.LogLine, len(messages))
	for i, m := range messages {
		lines[i] = stream.LogLine{At: loggedAt, Level: "info", Message: m}
	}
	w.no(w.e.AppendLog(w.ctx, f, first, lines))
	w.check()
}

// log is what is stored of the log of an execution, read in pages of so many lines.
func (w *env) log(id flowfabric.ExecutionID, q stream.LogRange, page int) (out []stream.LogLine) {
	w.Helper()
	for {
		p, err := w.e.ReadLogLines(w.ctx, id, q, page)
		w.no(err)
		out = append(out, p.Lines...)
		if !p.More {
			return out
		}
		q.After = p.After
	}
}

// messages are those of lines, with the attempt of each.
func messages(lines []stream.LogLine) (out []string) {
	for _, x := range lines {
		out = append(out, fmt.Sprintf("%d %s", x.Attempt, x.Message))
	}
	return out
}

// countTo has n numbers from first on.
func countTo(first, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(first+i))
	}
	return out
}

// What is kept of what handlers log.
var jobLogScenarios = []scenario{
	{name: "a log line keeps its time, level, message, attributes and what was dropped before it", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		same(w, "before", len(w.log(f.Execution, stream.LogRange{}, 10)), 0)
		ear := w.listen(engine.LogChannel(f.Execution))
		sent := []stream.LogLine{
			{At: loggedAt, Level: "debug", Message: "a\x00b\"", Attributes: []byte(`{"http.code":200,"x":"y"}`)},
			{At: loggedAt, Level: "warn", Dropped: 7},
			{At: loggedAt.Add(-time.Second), Level: "error", Message: "late"}}
		w.no(w.e.AppendLog(w.ctx, f, 1, sent))
		w.check()
		same(w, "told", ear.next(), "1")
		got := w.log(f.Execution, stream.LogRange{}, 2)
		for i := range got {
			sent[i].Attempt, sent[i].Cursor = 1, got[i].Cursor
		}
		sameDeep(w, "lines", got, sent)
		sameDeep(w, "errors, and that lines are missing",
			w.log(f.Execution, stream.LogRange{Level: "error"}, 10), sent[1:])
		sameDeep(w, "behind the first", w.log(f.Execution, stream.LogRange{After: got[0].Cursor}, 10), sent[1:])
	}},
	{name: "a log line that is sent again is stored once, and numbers may have gaps", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.logs(f, 1, "1", "2")
		w.unchanged("repeat", func() { w.logs(f, 1, "1", "2") })
		w.logs(f, 2, "2", "3")
		w.logs(f, 9, "9")
		sameList(w, "lines", messages(w.log(f.Execution, stream.LogRange{}, 10)), "1 1", "1 2", "1 3", "1 9")
	}},
	{name: "the log of an attempt keeps its last 1,000 lines", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		for n := 0; n < limits.MaxLogLines+250; n += 50 {
			w.logs(f, uint64(n+1), countTo(n+1, 50)...)
		}
		got := w.log(f.Execution, stream.LogRange{}, 1000)
		w.all("lines", eq(len(got), limits.MaxLogLines), eq(got[0].Message, "251"), eq(got[999].Message, "1250"))
	}},
	{name: "the log of an attempt keeps its last 256 KiB", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		long := strings.Repeat("x", 8000)
		for n := uint64(1); n <= 40; n++ {
			w.logs(f, n, fmt.Sprint(n, " ", long))
		}
		got := w.log(f.Execution, stream.LogRange{}, 1000)
		bytes := 0
		for _, x := range got {
			bytes += len(x.Message) + len(`{"m":""}`)
		}
		w.all("newest", eq(got[len(got)-1].Message[:2], "40"), eq(bytes <= limits.MaxLogBytes, true),
			eq(bytes+8000+11 > limits.MaxLogBytes, true))
	}},
	{name: "only the holder of a live lease can log", run: func(w *env) {
		k := w.worker("w1")
		f := k.one(w.create()).Fence
		logAs := func(what string, f flowfabric.Fence, want error) {
			w.Helper()
			w.unchanged(what, func() {
				w.is(w.e.AppendLog(w.ctx, f, 1, []stream.LogLine{{At: loggedAt, Level: "info", Message: "x"}}), want)
			})
		}
		stale := f
		stale.Epoch++
		logAs("epoch", stale, denied.StaleLease)
		done := k.one(w.create()).Fence
		w.complete(done, "")
		logAs("ended", done, denied.NotActive)
		w.advance(ttl)
		logAs("expired", f, denied.LeaseExpired)
	}},
	{name: "each attempt has a log of its own, which a purge removes", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		first := k.one(id).Fence
		w.logs(first, 1, "a", "b")
		w.complete(first, "")
		page, err := w.e.ReadLogLines(w.ctx, id, stream.LogRange{}, 10)
		w.no(err)
		same(w, "it has ended", page.Over, true)
		w.replay(id, engine.Replay{Force: true})
		second := k.one(id).Fence
		w.logs(second, 1, "c")
		sameList(w, "both", messages(w.log(id, stream.LogRange{}, 1)), "1 a", "1 b", "2 c")
		sameList(w, "the second", messages(w.log(id, stream.LogRange{Attempt: 2}, 10)), "2 c")
		page, err = w.e.ReadLogLines(w.ctx, id, stream.LogRange{Attempt: 1}, 10)
		w.no(err)
		w.all("the first is over", eq(page.Over, true), eq(len(page.Lines), 2))
		page, err = w.e.ReadLogLines(w.ctx, id, stream.LogRange{Attempt: 2}, 10)
		w.no(err)
		same(w, "the second is not", page.Over, false)
		w.complete(second, "")
		w.purge(id)
		same(w, "left", slices.ContainsFunc(w.keys(), func(key string) bool { return strings.Contains(key, ":lg:") }),
			false)
		_, err = w.e.ReadLogLines(w.ctx, id, stream.LogRange{}, 10)
		w.is(err, flowfabric.ErrResultPurged)
	}},
	{name: "a fork has no log of the attempts that it takes over", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		c := k.one(id)
		_, err := w.speaks(c.Fence, "one", "")
		w.no(err)
		w.logs(c.Fence, 1, "a")
		w.complete(c.Fence, "")
		fork := w.fork(id, "one").ID
		same(w, "lines", len(w.log(fork, stream.LogRange{}, 10)), 0)
		own := k.one(fork).Fence
		w.logs(own, 1, "b")
		sameList(w, "its own", messages(w.log(fork, stream.LogRange{}, 10)), fmt.Sprintf("%d b", own.Attempt))
		sameList(w, "the first", messages(w.log(id, stream.LogRange{}, 10)), "1 a")
	}},
	{name: "a range of a log that is none is refused by name", run: func(w *env) {
		id := w.create()
		for what, q := range map[string]stream.LogRange{"level": {Level: "loud"}, "cursor": {After: "x"},
			"attempt": {After: "1.0-1", Attempt: 2}} {
			_, err := w.e.ReadLogLines(w.ctx, id, q, 10)
			w.is(err, flowfabric.ErrInvalidInput)
			if !strings.Contains(err.Error(), what) {
				w.Fatalf("%s: %v", what, err)
			}
		}
	}},
}
