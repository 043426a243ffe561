package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// writtenAs refers to a stream of this partition.
func (w *env) writtenAs(name string) engine.StreamRef {
	s := w.e.Written("default", name)
	s.Partition = w.p
	return s
}

// writes makes a stream of texts, each of which is appended.
func (w *env) writes(name string, ttl time.Duration, texts ...string) engine.StreamRef {
	w.Helper()
	s, q := w.writtenAs(name), engine.NewStream{Media: "text/plain"}
	if seconds := int(ttl / time.Second); seconds > 0 {
		q.TTL = &seconds
	}
	_, already, err := w.e.OpenStream(w.ctx, s, q)
	w.no(err)
	same(w, name+" was there", already, false)
	for _, text := range texts {
		w.pens(s, text)
	}
	return s
}

// penned numbers the appends of a test.
var penned int

func (w *env) pens(s engine.StreamRef, text string) {
	w.Helper()
	_, err := w.e.WriteStream(w.ctx, s, w.append(text))
	w.no(err)
}

func (w *env) append(text string) engine.StreamWrite {
	penned++
	return engine.StreamWrite{Call: fmt.Sprintf("%016x", penned), Media: "text/plain", Units: len(text),
		Payload: []byte(text)}
}

// forks makes a stream of another one: what that has in front of a position, and sub bytes more.
func (w *env) forks(name string, from engine.StreamRef, at, sub int) engine.StreamRef {
	w.Helper()
	s := w.writtenAs(name)
	_, already, err := w.e.OpenStream(w.ctx, s, engine.NewStream{Source: &from, At: &at, Sub: sub})
	w.no(err)
	same(w, name+" was there", already, false)
	return s
}

// reads is what a stream has behind a position, read so many bytes at a time.
func (w *env) reads(s engine.StreamRef, after, most int) string {
	w.Helper()
	var b strings.Builder
	for {
		about, entries, err := w.e.ReadStream(w.ctx, s, engine.StreamPart{After: after, Most: most})
		w.no(err)
		for _, x := range entries {
			b.Write(x.Payload[max(after, x.From)-x.From : x.To-x.From])
			after = x.To
		}
		if after >= about.End {
			return b.String()
		}
		if len(entries) == 0 {
			w.Fatalf("nothing is read behind %d of %d", after, about.End)
		}
	}
}

// streamIs wants a stream not to be there, or to be kept for its forks.
func (w *env) streamIs(s engine.StreamRef, want error) {
	w.Helper()
	_, _, err := w.e.ReadStream(w.ctx, s, engine.StreamPart{})
	w.is(err, want)
}

// drops deletes a stream; already: it was not there, or only kept.
func (w *env) drops(s engine.StreamRef, already bool) {
	w.Helper()
	_, before, err := w.e.DropStream(w.ctx, s)
	w.no(err)
	same(w, s.Name+" was gone", before, already)
}

// stageStreams makes written streams and a good call of every function about them.
func (w *env) stageStreams() []call {
	w.Helper()
	s := w.writes("staged/live", time.Hour, "one", "two")
	fork := w.forks("staged/fork", s, 3, 1)
	w.pens(fork, "three")
	gone := w.writes("staged/gone", 0, "four")
	w.forks("staged/heir", gone, 2, 0)
	w.drops(gone, false)
	last := w.writes("staged/last", time.Hour, "five")
	due := strconv.FormatInt(w.now()+time.Hour.Milliseconds()-1, 10) // so that a read has something to write
	w.inflict("HSET " + w.k.Written(s.ID) + " du " + due)
	w.inflict("ZADD " + w.k.StreamsDue() + " " + due + " " + s.ID.String())
	id := func(name string) string { return w.writtenAs(name).ID.String() }
	return []call{
		{"ff_open_stream", []string{proto, id("staged/new"), "default/staged/new", "text/plain", "60", "",
			s.ID.String(), "3", "1", "0", "4", "text"}},
		{"ff_open_stream", []string{proto, id("staged/plain"), "default/staged/plain", "text/plain", "",
			"99999999999999", "", "", "0", "1", "4", "text"}},
		{"ff_write_stream", []string{proto, s.ID.String(), "00000000000000ff", "text/plain", "a", "0", "4", "text",
			"pen", "1", "0"}},
		{"ff_write_stream", []string{proto, fork.ID.String(), "00000000000000fe", "", "", "1", "0", "", "", "", ""}},
		{"ff_read_stream", []string{proto, s.ID.String(), "1", "1", "100"}},
		{"ff_drop_stream", []string{proto, last.ID.String()}},
	}
}

var writtenScenarios = []scenario{
	{name: "a written stream is read as it was written, from every position, in pieces of any size", run: func(w *env) {
		var want strings.Builder
		s := w.writes("s", 0)
		for i := range 700 {
			text := strings.Repeat(strconv.Itoa(i%10), 1+i%37)
			w.quiet = true
			w.pens(s, text)
			want.WriteString(text)
		}
		w.quiet = false
		for _, most := range []int{1, 100, 5000, 1 << 20} {
			same(w, "all of it", w.reads(s, 0, most), want.String())
		}
		for at := 0; at < want.Len(); at += 211 {
			same(w, fmt.Sprintf("behind %d", at), w.reads(s, at, 700), want.String()[at:])
		}
		_, _, err := w.e.ReadStream(w.ctx, s, engine.StreamPart{After: want.Len() + 1, Most: 1})
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a read takes few entries at a time, however short the first ones are", needs: []string{"Native"},
		run: func(w *env) {
			s := w.writes("s", 0)
			w.quiet = true
			for range 60 {
				w.pens(s, "x")
			}
			mark := strconv.Itoa(1 << 19)
			_, commands := w.monitor().call("ff_read_stream", mark, proto, s.ID.String(), "0", "0", mark)
			seen := 0
			for _, c := range commands {
				if _, count, _ := strings.Cut(c, `"COUNT" "`); strings.HasPrefix(c, `"XRANGE"`) {
					n, err := strconv.Atoi(strings.Trim(count, `"`))
					w.no(err)
					if seen++; n > 16 {
						w.Errorf("%s: %d entries may have 1 MiB each", c, n)
					}
				}
			}
			if seen < 4 {
				w.Errorf("%q", commands)
			}
		}},
	{name: "forks of forks share what they begin with, and nothing that comes later", run: func(w *env) {
		a := w.writes("a", 0, "one ", "two ", "three ")
		b := w.forks("b", a, 4, 2)
		w.pens(b, "B1 ")
		w.pens(a, "four ")
		c := w.forks("c", b, 6, 1) // into the first append of b
		w.pens(c, "C1 ")
		d := w.forks("d", c, 2, 0) // what a wrote, behind which neither b nor c has a part
		w.pens(d, "D1 ")
		for s, want := range map[engine.StreamRef]string{a: "one two three four ", b: "one twB1 ", c: "one twBC1 ",
			d: "onD1 "} {
			for at := range len(want) {
				same(w, fmt.Sprintf("%s behind %d", s.Name, at), w.reads(s, at, 2), want[at:])
			}
		}
		for _, x := range []struct{ at, sub int }{{4, 5}, {19, 1}, {20, 0}} {
			_, _, err := w.e.OpenStream(w.ctx, w.writtenAs("e"), engine.NewStream{Source: &a, At: &x.at, Sub: x.sub})
			w.is(err, flowfabric.ErrInvalidInput)
		}
		// of which type are its units?
		unsaid := engine.NewStream{Source: &a, Units: 1, Payload: []byte("[1]")}
		_, _, err := w.e.OpenStream(w.ctx, w.writtenAs("e"), unsaid)
		w.is(err, denied.StreamConflict)
		deep := a
		for i := range 32 {
			deep = w.forks(fmt.Sprintf("deep%d", i), deep, 3, 0)
		}
		same(w, "deep", w.reads(deep, 0, 1), "one")
		_, _, err = w.e.OpenStream(w.ctx, w.writtenAs("deeper"), engine.NewStream{Source: &deep})
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a deleted stream stays for its forks, and goes with the last of them", run: func(w *env) {
		a := w.writes("a", 0, "one")
		b := w.forks("b", a, 3, 0)
		c := w.forks("c", b, 3, 0)
		other := w.forks("other", a, 1, 0)
		w.drops(a, false)
		w.drops(b, false)
		same(w, "its fork reads on", w.reads(c, 0, 10), "one")
		w.streamIs(a, denied.StreamGone)
		w.unchanged("what is gone stays so", func() {
			w.drops(a, true)
			_, err := w.e.WriteStream(w.ctx, a, w.append("x"))
			w.is(err, denied.StreamGone)
			_, _, err = w.e.OpenStream(w.ctx, a, engine.NewStream{Media: "text/plain"})
			w.is(err, denied.StreamConflict)
			_, _, err = w.e.OpenStream(w.ctx, w.writtenAs("d"), engine.NewStream{Source: &a})
			w.is(err, denied.StreamConflict)
		})
		w.drops(c, false)
		w.streamIs(b, denied.NoStream)
		w.streamIs(a, denied.StreamGone)
		w.drops(other, false)
		w.streamIs(a, denied.NoStream)
		same(w, "keys of streams", w.streamKeys(), 0)
		w.writes("a", 0, "again")
	}},
	{name: "a stream expires some time after it was used last, before the tick has removed it", run: func(w *env) {
		a := w.writes("a", 10*time.Second, "one")
		b := w.forks("b", a, 3, 0)
		w.advance(8 * time.Second)
		_, _, err := w.e.ReadStream(w.ctx, a, engine.StreamPart{Touch: true})
		w.no(err)
		_, _, err = w.e.ReadStream(w.ctx, b, engine.StreamPart{})
		w.no(err)
		w.advance(8 * time.Second)
		w.tick()
		same(w, "it was read", w.reads(a, 0, 10), "one")
		w.streamIs(b, denied.NoStream)
		w.pens(a, "two")
		c := w.forks("c", a, 6, 0)
		w.advance(9 * time.Second)
		_, _, err = w.e.ReadStream(w.ctx, c, engine.StreamPart{Touch: true})
		w.no(err)
		w.advance(2 * time.Second)
		w.streamIs(a, denied.StreamGone)
		same(w, "its fork reads on", w.reads(c, 0, 10), "onetwo")
		w.tick()
		w.streamIs(a, denied.StreamGone)
		w.advance(20 * time.Second)
		w.streamIs(c, denied.NoStream)
		w.tick()
		same(w, "keys of streams", w.streamKeys(), 0)
		at := w.e.Written("default", "at")
		at.Partition = w.p
		_, _, err = w.e.OpenStream(w.ctx, at, engine.NewStream{Media: "a/b", Expires: time.UnixMilli(w.now() + 5000)})
		w.no(err)
		w.advance(4 * time.Second)
		_, _, err = w.e.ReadStream(w.ctx, at, engine.StreamPart{Touch: true})
		w.no(err)
		w.advance(2 * time.Second)
		w.streamIs(at, denied.NoStream)
		made, already, err := w.e.OpenStream(w.ctx, at, engine.NewStream{Media: "a/c"})
		w.no(err)
		w.all("another one", eq(already, false), eq(made.Media, "a/c"), eq(made.End, 0))
	}},
	{name: "an append is known again by its call, or by the sequence of its producer", run: func(w *env) {
		s := w.writes("s", 0)
		first := w.append("one")
		for i := range 2 {
			r, err := w.e.WriteStream(w.ctx, s, first)
			w.no(err)
			w.all("its call", eq(r.Already, i > 0), eq(r.End, 3))
		}
		for i := range 8 {
			w.pens(s, strconv.Itoa(i))
		}
		pen := func(epoch, number int, text string) (engine.StreamWrote, error) {
			q := w.append(text)
			q.Producer, q.Epoch, q.Number = "pen", epoch, number
			return w.e.WriteStream(w.ctx, s, q)
		}
		for range 2 {
			_, err := pen(1, 0, "a")
			w.no(err)
		}
		_, err := pen(1, 1, "b")
		w.no(err)
		r, err := pen(1, 0, "a")
		w.no(err)
		w.all("the last one is told", eq(r.Already, true), eq(r.Number, 1))
		for _, x := range []struct {
			epoch, number int
			slots         string
		}{{1, 3, "gap 2"}, {0, 5, "epoch 1"}} {
			w.unchanged("refused", func() {
				_, err := pen(x.epoch, x.number, "x")
				w.is(err, denied.StreamConflict)
				same(w, "why", strings.Join(err.(*flowfabric.Error).Detail, " "), x.slots)
			})
		}
		_, err = pen(2, 1, "x")
		w.is(err, flowfabric.ErrInvalidInput)
		ordered := w.append("c")
		ordered.Seq = "b"
		_, err = w.e.WriteStream(w.ctx, s, ordered)
		w.no(err)
		for seq, want := range map[string]error{"a": denied.StreamConflict, "b": denied.StreamConflict} {
			late := w.append("x")
			late.Seq = seq
			_, err = w.e.WriteStream(w.ctx, s, late)
			w.is(err, want)
		}
		same(w, "all of it", w.reads(s, 0, 100), "one01234567abc")
		last := w.append("d")
		last.Producer, last.Epoch, last.Number, last.Close = "pen", 1, 2, true
		for range 2 {
			r, err = w.e.WriteStream(w.ctx, s, last)
			w.no(err)
			same(w, "closed", r.Closed, true)
			last.Call = w.append("").Call
		}
		_, err = w.e.WriteStream(w.ctx, s, w.append("x"))
		w.is(err, denied.StreamClosed)
	}},
	{name: "an audit repairs every damage to written streams that the checker sees", run: func(w *env) {
		w.quiet = true
		w.stageStreams()
		w.quiet = false
		w.check()
		same(w, "a sound store", found(w.audit(false)), "")
		r, nobody := string(w.k), uuid.UUID{}.String()
		id := func(name string) string { return w.writtenAs("staged/" + name).ID.String() }
		damages := map[string][]string{
			"an expiry that is not filed":        {"ZREM " + r + ":dsdue " + id("live")},
			"an expiry that is filed too late":   {"ZADD " + r + ":dsdue 9999999999999 " + id("live")},
			"an expiry of nobody":                {"ZADD " + r + ":dsdue 5 " + nobody},
			"a log of nobody":                    {"XADD " + r + ":dl:" + nobody + " 1-0 u 1 p x"},
			"producers of nobody":                {"HSET " + r + ":dp:" + nobody + " a b"},
			"forks of nobody":                    {"SADD " + r + ":df:" + nobody + " " + id("fork")},
			"a fork that its source forgot":      {"SREM " + r + ":df:" + id("live") + " " + id("fork")},
			"a fork that is not there":           {"SADD " + r + ":df:" + id("live") + " " + nobody},
			"what was kept for a fork that left": {"DEL " + r + ":ds:" + id("heir")},
		}
		for _, what := range slices.Sorted(maps.Keys(damages)) {
			for _, damage := range damages[what] {
				w.inflict(damage)
			}
			if len(w.violations(w.dump())) == 0 {
				w.Fatalf("%s: the checker sees nothing", what)
			}
			before := w.fingerprint()
			look := w.audit(false)
			same(w, what+": a look wrote something", w.fingerprint(), before)
			w.audit(true)
			repaired := w.audit(true) // what another repair leaves behind
			if left := w.violations(w.dump()); len(left) > 0 || look.Repairable == 0 || repaired.Lost > 0 {
				w.Fatalf("%s: found %v, left:\n%s", what, look.Kinds, strings.Join(left, "\n"))
			}
			if again := found(w.audit(true)); again != "" {
				w.Fatalf("a third audit after %s finds %s", what, again)
			}
		}
	}},
}

// streamKeys is how many keys there are of written streams.
func (w *env) streamKeys() (n int) {
	w.Helper()
	for _, key := range w.keys() {
		if rest, ok := strings.CutPrefix(key, string(w.k)+":d"); ok && len(rest) > 2 && rest[1] == ':' ||
			rest == "sdue" && ok {
			n++
		}
	}
	return n
}
