package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	durations "github.com/flowfabric/flowfabric-go/internal/spread"
)

// minute is the one of the server's clock.
func (w *env) minute() int64 { return w.now() / 60000 }

// measured is a tally of one execution that completed.
func measured(waited, ran time.Duration) *durations.Tally {
	t := &durations.Tally{Completed: 1}
	t.Waited.Add(waited)
	t.Ran.Add(ran)
	return t
}

// times are those of a kind in the last minutes, as "<minutes ago> <tally>".
func (w *env) times(space, kind string, minutes int) (out []string) {
	w.Helper()
	_, all, err := w.e.ReadTimes(w.ctx, space, kind, w.minute()-int64(minutes)+1, minutes)
	w.no(err)
	for _, x := range all {
		out = append(out, fmt.Sprint(w.minute()-x.Minute, " ", x.Tally.Text()))
	}
	return out
}

// note tells times of a kind, by how many minutes ago it was.
func (w *env) note(space, sender string, number uint64, rows ...engine.Times) {
	w.Helper()
	for i := range rows {
		rows[i].Minute = w.minute() - rows[i].Minute
	}
	w.no(w.e.NoteTimes(w.ctx, space, sender, number, rows))
}

var timesScenarios = []scenario{
	{name: "what processes measured is added up by kind and minute, and a repeat adds nothing", run: func(w *env) {
		space, a, b := w.spaceHere(), measured(time.Second, time.Minute), measured(time.Second, time.Hour)
		w.note(space, "one", 1, engine.Times{Kind: "k", Tally: a}, engine.Times{Kind: "k", Minute: 2, Tally: a},
			engine.Times{Kind: engine.EveryKind, Tally: a})
		w.note(space, "two", 7, engine.Times{Kind: "k", Tally: b})
		sum := *a
		sum.Merge(b)
		want := []string{"2 " + a.Text(), "0 " + sum.Text()}
		sameDeep(w, "sums", w.times(space, "k", 5), want)
		sameDeep(w, "of all kinds", w.times(space, engine.EveryKind, 5), []string{"0 " + a.Text()})
		sameDeep(w, "of the newest minute", w.times(space, "k", 1), want[1:])
		w.check()
		w.unchanged("repeats", func() {
			w.note(space, "one", 1, engine.Times{Kind: "k", Tally: a})
			w.note(space, "two", 6, engine.Times{Kind: "k", Tally: a})
		})
		w.note(space, "one", 2, engine.Times{Kind: "k", Minute: -3, Tally: b}) // its clock is ahead
		sum.Merge(b)
		sameDeep(w, "a later minute is this one", w.times(space, "k", 1), []string{"0 " + sum.Text()})
		w.check()
	}},
	{name: "times are kept for a day, and a kind that was silent so long makes room", run: func(w *env) {
		space, x := w.spaceHere(), measured(0, 0)
		number := uint64(0)
		put := func(kinds ...string) {
			for part := range slices.Chunk(kinds, engine.MaxTimes) {
				var rows []engine.Times
				for _, kind := range part {
					rows = append(rows, engine.Times{Kind: kind, Tally: x})
				}
				number++
				w.note(space, "s", number, rows...)
			}
		}
		known := func() int {
			kinds, _, err := w.e.ReadTimes(w.ctx, space, "", w.minute(), 1)
			w.no(err)
			return len(kinds)
		}
		var many []string
		for i := range 256 {
			many = append(many, "k"+strconv.Itoa(i))
		}
		put(many...)
		put("more", "further", "k7")
		two := *x
		two.Merge(x)
		same(w, "kinds", known(), 256)
		sameDeep(w, "one that is known", w.times(space, "k7", 1), []string{"0 " + two.Text()})
		sameDeep(w, "those above the bound", w.times(space, "", 1), []string{"0 " + two.Text()})
		sameDeep(w, "a kind above the bound", len(w.times(space, "more", 1)), 0)
		w.advance(23 * time.Hour)
		put("k0", "more")
		w.advance(2 * time.Hour)
		put("more")
		same(w, "kinds that were heard of", known(), 2)
		sameDeep(w, "what is new", w.times(space, "more", 1), []string{"0 " + x.Text()})
		sameDeep(w, "of more than a day ago", len(w.times(space, "k7", 1440)), 0)
		sameDeep(w, "of two hours ago", w.times(space, "k0", 1440), []string{"120 " + x.Text()})
		w.note(space, "old", 1, engine.Times{Kind: "k0", Minute: 1440, Tally: x})
		sameDeep(w, "an old minute is dropped", w.times(space, "k0", 1440), []string{"120 " + x.Text()})
		w.check()
	}},
	{name: "a tally that cannot be read is refused, and nothing of its call is added", run: func(w *env) {
		space, now := w.spaceHere(), strconv.FormatInt(w.minute(), 10)
		for _, bad := range []string{"1", "1,2,3;;", "1,2,3,4,5;;", "1,2,3,x;;", "01,2,3,4;;", "1,2,3,4;229:1;",
			"1,2,3,4;1:0;", "1,2,3,4;1:1,,2:1;", "1,2,3,4;1;",
			"1,2,3,4;;1:100000000000000", "1,2,3,4;;1:1;"} {
			w.unchanged(bad, func() {
				a := w.fcall("ff_note_times", proto, space, "s", "1", "2", "k", now, "1,0,0,0;;", "k", now, bad)
				same(w, bad, a.code, "invalid_input")
			})
		}
	}},
	{name: "an answer with more minutes than fit is continued", run: func(w *env) {
		space, wide := w.spaceHere(), &durations.Tally{}
		for d := time.Millisecond; d < 60*day; d += d / 20 {
			wide.Waited.Add(d)
			wide.Ran.Add(d)
		}
		for i := range 200 {
			var rows []engine.Times
			for j := range 5 {
				rows = append(rows, engine.Times{Kind: "k", Minute: int64(5*i + j), Tally: wide})
			}
			w.note(space, "s", uint64(i+1), rows...)
		}
		first := w.must("ff_read_times", proto, space, "k", strconv.FormatInt(w.minute()-999, 10), "1000")
		if first.slots[1] == "0" {
			w.Fatal("one answer had all of it")
		}
		same(w, "minutes", len(w.times(space, "k", 1440)), 1000)
	}},
}
