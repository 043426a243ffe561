package conformance

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// created lists what was created in a namespace, lane and kind.
func (w *env) created(newest bool, limit int, key string) []flowfabric.ExecutionID {
	w.Helper()
	return idsOf(w.listing(engine.ListQuery{Index: engine.IndexCreated, Key: key, Limit: limit, Newest: newest}))
}

// tagged lists what has a tag.
func (w *env) tagged(key, value string) []flowfabric.ExecutionID {
	w.Helper()
	return idsOf(w.listing(engine.ListQuery{Index: engine.IndexTagged, Key: engine.TaggedKey(key, value), Limit: 3}))
}

// keep says which tags are indexed, and lists what was there before.
func (w *env) keep(tags ...string) {
	w.Helper()
	w.no(w.e.SetIndex(w.ctx, w.p, true, tags, false))
	var list []flowfabric.ExecutionID
	for key := range w.dump().Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			list = append(list, mint.Join(w.p, uuid.MustParse(id)))
		}
	}
	for part := range slices.Chunk(list, 100) {
		w.no(w.e.IndexExecutions(w.ctx, w.p, part))
	}
	w.no(w.e.SetIndex(w.ctx, w.p, true, tags, true))
	w.check()
}

// unlisted fails unless a list is not kept.
func (w *env) unlisted(index engine.Index, key string) {
	w.Helper()
	_, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: index, Key: key, Limit: 1})
	w.is(err, denied.NotIndexed)
}

// everything asks for all routes.
var everything = engine.CreatedKey("", "", "")

var catalogueScenarios = []scenario{
	{name: "executions of all states and routes are listed by their creation, a page at a time", run: func(w *env) {
		w.unlisted(engine.IndexCreated, everything)
		w.keep()
		var made []flowfabric.ExecutionID
		for i := range 12 {
			w.advance(time.Millisecond)
			opts := []option{kind("k" + strconv.Itoa(i%3)), priority(i % 4),
				namespace([]string{"default", "blue"}[i%2])}
			if i%4 == 1 {
				opts = append(opts, delay(time.Hour))
			}
			made = append(made, w.create(opts...))
			if i%4 == 2 {
				w.cancel(made[i])
			}
		}
		back := slices.Clone(made)
		slices.Reverse(back)
		for limit := 1; limit <= 13; limit += 3 {
			sameList(w, "oldest first", w.created(false, limit, everything), made...)
			sameList(w, "newest first", w.created(true, limit, everything), back...)
		}
		sameList(w, "of a kind", w.created(false, 2, engine.CreatedKey("", "", "k1")), made[1], made[4], made[7],
			made[10])
		sameList(w, "of a namespace and kind", w.created(true, 2, engine.CreatedKey("blue", "default", "k1")), made[7],
			made[1])
		sameList(w, "of another lane", w.created(true, 2, engine.CreatedKey("", "none", "")))
		counts, more, err := w.e.CountExecutions(w.ctx, w.p, everything, "", time.Time{}, 5000)
		w.no(err)
		sameDeep(w, "counts", counts, map[codes.Code]int{"R1f": 6, "R2af": 3, "T3n": 3})
		same(w, "more", more, false)
		counts, more, err = w.e.CountExecutions(w.ctx, w.p, engine.CreatedKey("blue", "", ""), "",
			time.UnixMilli(w.at(made[9], "ct")), 5000)
		w.no(err)
		sameDeep(w, "of a namespace since then", counts, map[codes.Code]int{"R1f": 1, "R2af": 1})
		same(w, "more since then", more, false)
		_, err = w.e.PurgeExecution(w.ctx, made[2], 0)
		w.no(err)
		w.check()
		same(w, "without what was purged", len(w.created(true, 100, everything)), 11)
		// a cursor goes on where it was, also when its own entry is gone
		page, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: engine.IndexCreated, Key: everything,
			Limit: 1, After: engine.Position{Score: w.at(made[1], "ct") + 1, Member: ids.UUID(made[2]).String()}})
		w.no(err)
		sameList(w, "behind what is gone", idsOf(page.Executions), made[3])
	}},
	{name: "a tag that is indexed lists what has it, through changes of tags, until it is purged", run: func(w *env) {
		old := w.create(tags(map[string]string{"a.b": "x", "c.d": "y"}))
		w.unlisted(engine.IndexTagged, "a.b=x")
		w.keep("a.b")
		w.unlisted(engine.IndexTagged, "c.d=y")
		w.advance(time.Millisecond)
		next := w.create(tags(map[string]string{"a.b": "x"}), delay(time.Hour))
		w.create(tags(map[string]string{"a.b": "x="}))
		sameList(w, "both", w.tagged("a.b", "x"), old, next)
		w.no(w.e.SetTags(w.ctx, old, map[string]string{"a.b": "z"}, nil))
		w.check()
		sameList(w, "one that changed", w.tagged("a.b", "z"), old)
		sameList(w, "the one that is left", w.tagged("a.b", "x"), next)
		w.no(w.e.SetTags(w.ctx, next, nil, []string{"a.b"}))
		w.check()
		same(w, "none is left", len(w.tagged("a.b", "x")), 0)
		c, err := w.e.ReadIndex(w.ctx, w.p)
		w.no(err)
		sameDeep(w, "what is kept", c, engine.Catalogue{All: true,
			Tags: []engine.CataloguedTag{{Key: "a.b", Ready: true, Values: 2}}})
		w.cancel(old)
		counts, _, err := w.e.CountExecutions(w.ctx, w.p, engine.CreatedKey("default", "", ""), "a.b=z", time.Time{},
			100)
		w.no(err)
		sameDeep(w, "counts of a tag", counts, map[codes.Code]int{"T3n": 1})
		_, err = w.e.PurgeExecution(w.ctx, old, 0)
		w.no(err)
		w.check()
		same(w, "purged", len(w.tagged("a.b", "z")), 0)
	}},
	{name: "a list by creation says since when what is suspended is so", run: func(w *env) {
		w.seed()
		w.keep()
		w.create(delay(time.Hour))
		_, c := w.holder()
		w.advance(time.Second)
		w.suspend(c.Fence)
		suspended := w.listing(engine.ListQuery{Index: engine.IndexSuspended, Limit: 10})
		same(w, "suspended", len(suspended), 1)
		for _, x := range w.listing(engine.ListQuery{Index: engine.IndexCreated, Key: everything, Limit: 10}) {
			want := time.Time{}
			if x.ID == c.Fence.Execution {
				want = suspended[0].Since
				same(w, "later than its creation", want.After(x.CreatedAt), true)
			}
			same(w, "since", x.Since, want)
		}
	}},
	{name: "what has tags is claimed, completed and purged as what has none, alone and by many", run: func(w *env) {
		want := map[string]string{"a.b": "x", "c.d": "y=z"}
		w.keep("a.b", "c.d")
		made, none := w.createN(3, tags(want)), w.createN(2)
		made = append(made, w.createN(2, tags(want), priority(3))...)
		made = append(made, w.createN(2, tags(want), payload(make([]byte, 4096)))...)
		made = append(made, w.createN(2, tags(want), deadline(time.Hour))...)
		made = append(made, w.create(tags(want), key("k", retained)), w.create(tags(want), key("l", 0)))
		g := w.flow().node("a", nil, as(tags(want))).node("b", []string{"a"}, as(tags(want))).submit(engine.SealClosed)
		made = append(made, g.id.Member("a"), g.id.Member("b"))
		listed := w.tagged("a.b", "x")
		same(w, "listed", len(listed), len(made))
		for _, id := range made {
			same(w, "is listed", slices.Contains(listed, id), true)
		}
		k := w.worker("w")
		done := map[flowfabric.ExecutionID]bool{}
		for _, most := range []int{2, 1, 100, 100} { // the last has the member that waits for the other
			var ends []engine.Completion
			for _, c := range k.claim(most) {
				if slices.Contains(none, c.Fence.Execution) {
					same(w, "no tags", len(c.Tags), 0)
				} else {
					sameDeep(w, "tags", c.Tags, want)
				}
				done[c.Fence.Execution] = true
				ends = append(ends, engine.Completion{Fence: c.Fence, Result: []byte("out")})
			}
			settled, _, err := w.e.CompleteExecutions(w.ctx, w.p, ends, nil)
			w.no(err)
			for _, s := range settled {
				w.no(s.Err)
			}
			w.check()
		}
		same(w, "claimed once", len(done), len(made)+len(none))
		for _, id := range made {
			w.code(id, "T1")
			_, err := w.e.PurgeExecution(w.ctx, id, 0)
			w.no(err)
		}
		w.check()
		same(w, "purged", len(w.tagged("c.d", "y=z")), 0)
	}},
	{name: "what is not kept is not listed, and goes a part at a time", run: func(w *env) {
		w.keep("a.b", "c.d")
		for i := range 250 {
			w.quiet = true
			w.create(tags(map[string]string{"a.b": strconv.Itoa(i), "c.d": "same"}))
		}
		w.check()
		w.no(w.e.SetIndex(w.ctx, w.p, false, []string{"c.d"}, true))
		w.check()
		w.unlisted(engine.IndexCreated, everything)
		w.unlisted(engine.IndexTagged, "a.b=1")
		same(w, "the other tag", len(w.tagged("c.d", "same")), 250)
		same(w, "values that are left", len(w.dump().Sets[":cv:a.b"]), 0)
		w.no(w.e.SetIndex(w.ctx, w.p, true, nil, true)) // ready, though nothing was listed since
		w.check()
		w.unlisted(engine.IndexCreated, everything)
		w.unlisted(engine.IndexTagged, "c.d=same")
		c, err := w.e.ReadIndex(w.ctx, w.p)
		w.no(err)
		sameDeep(w, "what is kept", c, engine.Catalogue{Building: true})
	}},
	{name: "a partition tells whether its catalogue was ever set", run: func(w *env) {
		for _, never := range []bool{true, false} {
			c, err := w.e.ReadIndex(w.ctx, w.p)
			w.no(err)
			sameDeep(w, "what is kept", c, engine.Catalogue{New: never})
			w.no(w.e.SetIndex(w.ctx, w.p, false, nil, false))
		}
	}},
	{name: "many that are made at once with a tag are in a set that is not compact", run: func(w *env) {
		w.keep("a.b", "c.d")
		w.create(tags(map[string]string{"a.b": "some"}))
		made := w.createN(2, tags(map[string]string{"c.d": "few"}))
		for range 2 {
			made = append(made, w.createN(16, tags(map[string]string{"a.b": "some", "c.d": "many"}))...)
			w.check() // nothing else is in it
		}
		same(w, "listed", len(w.tagged("a.b", "some")), 33)
		for label, want := range map[string]string{"c.d=few": "listpack", "a.b=some": "skiplist",
			"c.d=many": "skiplist"} {
			if form, err := w.do("OBJECT", "ENCODING", string(w.k)+":ct:"+label).ToString(); err == nil {
				same(w, label, form, want)
			} // else the server does not say it
		}
		for _, id := range made {
			w.quiet = true
			w.cancel(id)
			_, err := w.e.PurgeExecution(w.ctx, id, 0)
			w.no(err)
		}
		w.check()
		same(w, "none is left", len(w.dump().ZSets[":ct:c.d=many"]), 0)
	}},
	{name: "what has a value too many of a tag is made, and in no set", run: func(w *env) {
		w.keep("a.b")
		w.create(tags(map[string]string{"a.b": "known"}))
		values := make([]string, 99_999)
		for i := range values {
			values[i] = "v" + strconv.Itoa(i)
		}
		w.set(append([]string{"SADD", string(w.k) + ":cv:a.b"}, values...)...)
		w.quiet = true
		w.create(tags(map[string]string{"a.b": "known"})) // a value that is there is not one too many
		same(w, "listed", len(w.tagged("a.b", "known")), 2)
		w.createN(20, tags(map[string]string{"a.b": "other"}))
		w.unlisted(engine.IndexTagged, "a.b=known")
		d := w.dump()
		same(w, "set of the value", len(d.ZSets[":ct:a.b=other"]), 0)
		same(w, "values", len(d.Sets[":cv:a.b"]), 100_000)
		same(w, "other is none", slices.Contains(d.Sets[":cv:a.b"], "other"), false)
		w.set(append([]string{"SREM", string(w.k) + ":cv:a.b"}, values...)...)
		w.check()
	}},
	{name: "a tag with too many values is not listed any more", run: func(w *env) {
		w.keep("a.b")
		w.create(tags(map[string]string{"a.b": "x"}))
		w.set("HSET", string(w.k), "full:a.b", "1")
		w.unlisted(engine.IndexTagged, "a.b=x")
		c, err := w.e.ReadIndex(w.ctx, w.p)
		w.no(err)
		same(w, "full since", c.Tags[0].Full.UnixMilli(), 1)
		w.no(w.e.SetIndex(w.ctx, w.p, true, nil, false))
		w.keep("a.b")
		sameList(w, "kept anew", w.tagged("a.b", "x"), w.created(true, 1, everything)...)
	}},
}
