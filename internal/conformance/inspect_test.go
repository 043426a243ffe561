package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// listing reads all pages of an index.
func (w *env) listing(q engine.ListQuery) (all []engine.Listed) {
	w.Helper()
	for more := true; more; {
		page, err := w.e.ListExecutions(w.ctx, w.p, q)
		w.no(err)
		all = append(all, page.Executions...)
		if more = page.More; more {
			if len(page.Executions) == 0 || len(all) > page.Size {
				w.Fatalf("%d listed of %d, %d on the last page, and there is more", len(all), page.Size, len(page.Executions))
			}
			q.After = page.Executions[len(page.Executions)-1].Position()
		}
	}
	return all
}

func idsOf(all []engine.Listed) (ids []flowfabric.ExecutionID) {
	for _, x := range all {
		ids = append(ids, x.ID)
	}
	return ids
}

// queues are those of the partition by kind.
func (w *env) queues() map[string]engine.Queue {
	w.Helper()
	all, err := w.e.Queues(w.ctx, w.p, "", 0)
	w.no(err)
	out := map[string]engine.Queue{}
	for _, q := range all {
		same(w, "partition", q.Partition, w.p)
		out[q.Route.Kind] = q
	}
	return out
}

func (w *env) describe() engine.PartitionInfo {
	w.Helper()
	p, err := w.e.DescribePartition(w.ctx, w.p)
	w.no(err)
	return p
}

var inspectScenarios = []scenario{
	{name: "every queue reports its depth, next priority and oldest age", run: func(w *env) {
		old := w.create(kind("a"))
		w.advance(time.Minute)
		w.create(kind("a"), priority(5))
		w.advance(time.Minute)
		w.create(kind("a"), priority(5))
		gone := w.create(kind("b"), capabilities("eu", "gpu"))
		w.cancel(gone)
		w.create(kind("c"), lane("slow"), priority(limits.MaxPriority))
		w.create(kind("c"), lane("slow"), delay(time.Hour)) // retained, but not waiting
		w.setLane("slow", engine.LanePaused, "")
		all := w.queues()
		show := func(kind string) string {
			q := all[kind]
			return words(q.Route.Lane, q.Route.Capabilities, q.Lane, q.Depth, q.Priority, q.Retained, q.Oldest.UnixMilli(), q.Drift)
		}
		same(w, "a", show("a"), words("default", []string(nil), "active", 3, 5, 3, w.at(old, "ct"), ""))
		same(w, "b", show("b"), words("default", []string{"eu", "gpu"}, "active", 0, 0, 1, time.Time{}.UnixMilli(), ""))
		slow := all["c"]
		same(w, "c", words(slow.Lane, slow.Depth, slow.Priority, slow.Retained), "paused 1 9000 2")
		same(w, "queues", len(all), 3)
		k := w.worker("w1")
		k.can = func(r engine.Route) bool { return r.Kind == "z" }
		k.one(w.create(kind("z"))) // alone in its queue and claimed
		same(w, "z", w.queues()["z"].Depth, 0)
	}},
	{name: "the oldest of a queue is found among its 15 highest priorities and priority 0", run: func(w *env) {
		w.quiet = true
		for _, groups := range []int{2, 15, 16, 17, 40} { // priority 0 is one of them
			for _, oldest := range []int{0, 1, groups - 1} {
				w.reset()
				want := w.create(priority(oldest * 7))
				for p := range groups {
					w.advance(time.Second)
					w.create(priority(p * 7))
				}
				q := w.queues()["k"]
				same(w, "depth, priority", words(q.Depth, q.Priority), words(groups+1, (groups-1)*7))
				seen := oldest == 0 || oldest > groups-16 // of the fifteen highest, or priority 0
				if exact := q.Oldest.UnixMilli() == w.at(want, "ct"); exact != seen {
					w.Fatalf("%d groups, oldest in %d: exact %v, want %v", groups, oldest, exact, seen)
				}
			}
		}
		w.quiet = false
		w.check()
	}},
	{name: "the queues of a partition, or of one namespace, are listed in bounded pages", run: func(w *env) {
		w.quiet = true
		var items []engine.NewExecution
		for i := range 600 {
			x := w.item(kind(strconv.Itoa(i % 30)))
			x.Namespace = "n" + strconv.Itoa(i/30)
			items = append(items, x)
		}
		for chunk := range slices.Chunk(items, 100) {
			_, err := w.e.CreateExecutions(w.ctx, w.p, chunk)
			w.no(err)
		}
		pages := 0
		for cursor, more := "", true; more; more = cursor != "" {
			a := w.must("ff_read_queues", proto, cursor, "")
			if n := number64(a.slots[2]); n > 200 && pages > 0 { // a small table comes at once
				w.Fatalf("a page has %d queues", n)
			}
			cursor = a.slots[1]
			pages++
		}
		all := w.queues()
		same(w, "kinds", len(all), 30)
		one, err := w.e.Queues(w.ctx, w.p, "n7", 0)
		w.no(err)
		same(w, "of a namespace", len(one), 30)
		for _, q := range one {
			same(w, "queue", words(q.Route.Namespace, q.Depth, q.Retained), "n7 1 1")
		}
		none, err := w.e.Queues(w.ctx, w.p, "n", 0)
		w.no(err)
		same(w, "of no namespace", len(none), 0)
		w.check()
	}},
	{name: "every index lists its executions in order, in both directions and pages of any size", run: func(w *env) {
		w.quiet = true
		w.seed()
		x := retry(flowfabric.RetryPolicy{MaxRetries: 3})
		var waiting, delayed, parked, held, ended []flowfabric.ExecutionID
		k := w.worker("w1")
		for range 7 {
			held = append(held, w.create(kind("held")))
			k.one(held[len(held)-1])
			w.advance(time.Millisecond)
		}
		s := w.worker("w2")
		for range 7 {
			id := w.create(x, kind("parked"))
			w.stopped(s.one(id).Fence)
			parked = append(parked, id)
			w.advance(time.Millisecond)
		}
		for i := range 7 {
			id := w.create(delay(time.Duration(i+1) * time.Hour))
			delayed = append(delayed, id)
		}
		for range 7 {
			id := w.create()
			w.cancel(id)
			ended = append(ended, id)
			w.advance(time.Millisecond)
		}
		for i := range 4 {
			waiting = append(waiting, w.create(kind("waiting")))
			w.advance(time.Millisecond)
			waiting = slices.Insert(waiting, i, w.create(kind("waiting"), priority(9-i)))
		}
		w.quiet = false
		w.check()
		route := strconv.FormatUint(w.queues()["waiting"].Route.ID, 10)
		for _, h := range []struct {
			index engine.Index
			key   string
			state flowfabric.PublicState
			want  []flowfabric.ExecutionID
		}{
			{engine.IndexWaiting, route, flowfabric.Waiting, waiting}, {engine.IndexDelayed, "", flowfabric.Delayed, delayed},
			{engine.IndexActive, k.session, flowfabric.Active, held}, {engine.IndexSuspended, "", flowfabric.Suspended, parked},
			{engine.IndexEnded, "", flowfabric.Cancelled, ended}, {engine.IndexUnsuccessful, "", flowfabric.Cancelled, ended},
		} {
			for _, newest := range []bool{false, true} {
				want := slices.Clone(h.want)
				if newest {
					slices.Reverse(want)
				}
				for limit := 1; limit <= len(want)+1; limit++ {
					got := w.listing(engine.ListQuery{Index: h.index, Key: h.key, Newest: newest, Limit: limit})
					same(w, label("%s, newest %v, limit %d", h.index, newest, limit), words(idsOf(got)), words(want))
					for _, l := range got {
						same(w, "state and drift", words(l.State.Public, l.Drift), words(h.state, ""))
					}
				}
			}
			page, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: h.index, Key: h.key, Limit: 2})
			w.no(err)
			same(w, "size", words(page.Size, page.More), words(len(h.want), true))
		}
		for _, empty := range []engine.ListQuery{{Index: engine.IndexWaiting, Key: "77"}, {Index: engine.IndexActive, Key: "nobody~1"}} {
			empty.Limit = 5
			same(w, "empty", len(w.listing(empty)), 0)
		}
	}},
	{name: "a listed entry has the same fields as a snapshot of the execution", run: func(w *env) {
		w.seed()
		id := w.create(priority(7), retries(2), deadline(time.Hour), tags(map[string]string{"a.b": "c", "a.c": ""}), capabilities("gpu"))
		k := w.worker("w1")
		c := k.one(id)
		read := func(index engine.Index, key string, tagged bool) engine.Listed {
			all := w.listing(engine.ListQuery{Index: index, Key: key, Limit: 10, Tags: tagged})
			same(w, "entries", words(idsOf(all)), words([]flowfabric.ExecutionID{id}))
			s, x := w.read(id), all[0]
			same(w, "like its snapshot", words(x.State, x.Route, x.Priority, x.CreatedAt, x.StartedAt, x.EndedAt, x.ClaimedAt, x.DelayUntil,
				x.DeadlineAt, x.Attempts, x.AttemptType, x.Retries, x.Reclaims, x.Epoch, x.Session, x.FailureCategory, x.CancelledBy, x.Drift),
				words(s.State, s.Route, s.Priority, s.CreatedAt, s.StartedAt, s.CompletedAt, s.ClaimedAt, s.DelayUntil,
					s.DeadlineAt, s.Attempts, s.AttemptType, s.Retries, s.Reclaims, s.Epoch, s.Session, s.FailureCategory, s.CancelledBy, ""))
			return x
		}
		same(w, "no tags", len(read(engine.IndexActive, k.session, false).Tags), 0)
		same(w, "tags", words(read(engine.IndexActive, k.session, true).Tags), "map[a.b:c a.c:]")
		w.fail(c.Fence, "io")
		read(engine.IndexDelayed, "", true)
		w.advance(time.Minute)
		w.settleTime()
		read(engine.IndexWaiting, strconv.FormatUint(c.Route, 10), true)
		k = w.worker("w2") // the other's session has ended
		c = k.one(id)
		w.stopped(c.Fence)
		same(w, "suspended since", read(engine.IndexSuspended, "", true).Since.Before(time.UnixMilli(w.now()+1)), true)
		w.resume(id)
		c = k.one(id)
		w.advance(ttl)
		x := read(engine.IndexActive, k.session, true)
		same(w, "a dead session's", x.State.Code, codes.LeaseExpired)
		w.settleTime()
		w.worker("w3").one(id)
		w.cancel(id)
		for _, index := range []engine.Index{engine.IndexEnded, engine.IndexUnsuccessful} {
			x = read(index, "", true)
			same(w, "purge", x.PurgeAt.Sub(x.EndedAt), 14*day)
		}
	}},
	{name: "a cursor continues among entries of equal score, even if its own entry is gone", run: func(w *env) {
		w.quiet = true
		ids := w.createN(100) // in one call, so with one score
		slices.SortFunc(ids, func(a, b flowfabric.ExecutionID) int { return strings.Compare(a.UUID().String(), b.UUID().String()) })
		for _, newest := range []bool{false, true} {
			q := engine.ListQuery{Index: engine.IndexWaiting, Key: "1", Limit: 1, Newest: newest}
			order := slices.Clone(ids)
			if newest {
				slices.Reverse(order)
			}
			for i, id := range order[:len(order)-1] {
				q.After = engine.Position{Score: w.at(id, "ct"), Member: id.UUID().String()}
				page, err := w.e.ListExecutions(w.ctx, w.p, q)
				w.no(err)
				same(w, "behind it", words(idsOf(page.Executions), page.More), words(order[i+1:i+2], i+2 < len(order)))
			}
			gone := order[10]
			q.After = engine.Position{Score: w.at(gone, "ct"), Member: gone.UUID().String()}
			score := strconv.FormatInt(q.After.Score, 10)
			w.set("ZREM", w.k.Queue("1"), gone.UUID().String())
			page, err := w.e.ListExecutions(w.ctx, w.p, q)
			w.no(err)
			same(w, "behind one that is gone", words(idsOf(page.Executions)), words(order[11:12]))
			w.set("ZADD", w.k.Queue("1"), "-5", gone.UUID().String()) // it went elsewhere in the queue
			page, err = w.e.ListExecutions(w.ctx, w.p, q)
			w.no(err)
			same(w, "behind the place where it was", words(idsOf(page.Executions)), words(order[11:12]))
			w.set("ZADD", w.k.Queue("1"), score, gone.UUID().String())
		}
	}},
	{name: "what ended other than completed is listed by the time of its end, until it is replayed or purged", run: func(w *env) {
		w.seed()
		k := w.worker("w1")
		list := func(what string, want ...flowfabric.ExecutionID) {
			w.Helper()
			got := w.listing(engine.ListQuery{Index: engine.IndexUnsuccessful, Limit: 3})
			same(w, what, words(idsOf(got)), words(want))
			for _, x := range got {
				same(w, "time and drift", words(x.Score, x.Drift), words(x.EndedAt.UnixMilli(), ""))
			}
		}
		none := w.create(retries(0))
		w.complete(k.one(none).Fence, "r")
		list("a success")
		failed := w.create(retries(0), retention(time.Hour)) // purged first
		w.fail(k.one(failed).Fence, "io")
		w.advance(time.Second)
		cancelled := w.create(retries(0))
		k.one(cancelled)
		w.cancel(cancelled)
		w.advance(time.Second)
		never := w.create()
		w.cancel(never)
		expired := w.create(deadline(time.Second))
		w.advance(2 * time.Second)
		w.settleTime()
		list("in order", failed, cancelled, never, expired)
		w.advance(time.Second)
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		g.fail(g.claim()["a"])
		g.drain()
		all := w.listing(engine.ListQuery{Index: engine.IndexUnsuccessful, Limit: 3})
		same(w, "with the flow", len(all), 6)
		same(w, "skipped", w.read(g.id.Member("b")).State.Public, flowfabric.Skipped)
		w.replay(cancelled, engine.Replay{Request: uuid.New()})
		_, err := w.e.PurgeExecution(w.ctx, never, day)
		w.no(err)
		w.check()
		w.quiet = true
		w.advance(2 * time.Hour)
		w.settleTime() // purges what is kept for an hour
		w.quiet = false
		w.check()
		got := w.listing(engine.ListQuery{Index: engine.IndexUnsuccessful, Limit: 10})
		same(w, "left", words(len(got), got[0].ID), words(3, expired))
	}},
	{name: "a damaged entry is reported and does not stop the listing", damaged: "it damages indexes and routes", run: func(w *env) {
		w.quiet = true
		sound, odd, lost := w.create(), w.create(), w.create(kind("lost"))
		for _, id := range []flowfabric.ExecutionID{sound, odd, lost} {
			w.cancel(id)
		}
		missing := uuid.NewString()
		w.set("ZADD", w.k.Done(), "5", missing, "6", "no id at all")
		w.set("HSET", w.k.Core(odd.UUID()), "pr", "many", "s", "T2")
		w.set("HDEL", w.k.Routes(), "2")
		all := w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100, Tags: true})
		said := map[string]string{}
		for _, x := range all {
			said[x.Member] = x.Drift
		}
		same(w, "entries", len(all), 5)
		same(w, "without a core", said[missing], "there is no such execution")
		same(w, "no id", said["no id at all"], `"no id at all" is no execution id`)
		same(w, "a number", said[odd.UUID().String()], `it is no record`)
		same(w, "a route", said[lost.UUID().String()], "route 2 has 1 parts, want 5")
		same(w, "sound", said[sound.UUID().String()], "")
		w.set("HSET", w.k.Core(odd.UUID()), "s", "X9")
		w.set("HDEL", w.k.Core(odd.UUID()), "pr")
		for _, x := range w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100}) {
			if x.ID == odd {
				same(w, "an unknown state", x.Drift, `state "X9"`)
			}
		}
		w.set("HSET", w.k.Core(odd.UUID()), "s", "R1f")
		for _, x := range w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100}) {
			if x.ID == odd {
				same(w, "one that lives elsewhere", words(x.Drift, x.State.Public), "its state is R1f waiting")
			}
		}
		w.set("HSET", w.k.Routes(), "9", "damaged")
		q, err := w.e.Queues(w.ctx, w.p, "", 0)
		w.no(err)
		same(w, "queues", words(len(q), q[1].Route.ID, q[1].Drift), "2 9 route 9 has 1 parts, want 5")
	}},
	{name: "malformed arguments of a listing are refused", run: func(w *env) {
		w.create()
		good := []string{proto, "waiting", "1", "0", "", "", "10", "0", "0"}
		for at, bad := range map[int][]string{1: {"", "parked", "done"}, 2: {"", "0", "x", "-1"}, 3: {"", "2", "yes"}, 4: {"5", "x", "-", "-0", "1.5", "1e3"},
			5: {"m"}, 6: {"", "0", "101", "-1"}, 7: {"", "2"}, 8: {"", "2"}} {
			for _, b := range bad {
				args := slices.Clone(good)
				if args[at] = b; at == 4 && b != "5" {
					args[5] = "m"
				}
				same(w, fmt.Sprintf("argument %d %q", at, b), w.fcall("ff_list_executions", args...).code, "invalid_input")
			}
		}
		for _, index := range []string{"delayed", "suspended", "ended", "unsuccessful"} {
			same(w, index+" has no key", w.fcall("ff_list_executions", proto, index, "1", "0", "", "", "10", "0", "0").code, "invalid_input")
		}
		same(w, "a session that is too long", w.fcall("ff_list_executions", proto, "active", strings.Repeat("s", 65), "0", "", "", "10", "0", "0").code, "invalid_input")
		for _, score := range []string{"0", "-8998000000000000", "9007199254740991"} {
			w.must("ff_list_executions", proto, "waiting", "1", "0", score, "m", "10", "0", "0")
		}
		_, err := w.e.ListExecutions(w.ctx, partitions, engine.ListQuery{Index: engine.IndexEnded, Limit: 1})
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a page with many tags is shorter and says that there is more", run: func(w *env) {
		w.quiet = true
		many := map[string]string{}
		for i := range 64 {
			many[fmt.Sprintf("tag.n%02d", i)] = strings.Repeat("v", 256)
		}
		var ids []flowfabric.ExecutionID
		for range 4 { // a call has at most 2,000 tags
			ids = append(ids, w.createN(25, tags(many))...)
		}
		q := engine.ListQuery{Index: engine.IndexWaiting, Key: "1", Limit: 100, Tags: true}
		page, err := w.e.ListExecutions(w.ctx, w.p, q)
		w.no(err)
		if n := len(page.Executions); n < 20 || n > 40 || !page.More {
			w.Fatalf("%d entries, more %v", n, page.More)
		}
		seen := map[flowfabric.ExecutionID]bool{}
		for _, x := range w.listing(q) {
			same(w, "tags", len(x.Tags), 64)
			seen[x.ID] = true
		}
		same(w, "all", len(seen), len(ids))
		q.Tags = false
		page, err = w.e.ListExecutions(w.ctx, w.p, q)
		w.no(err)
		same(w, "without them", words(len(page.Executions), page.More), "100 false")
	}},
	{name: "a partition lists its sessions and what they hold", run: func(w *env) {
		w.quiet = true
		ids := w.createN(300)
		held := map[string]int{}
		for i := range 299 { // more than a page
			k := w.worker(fmt.Sprintf("w%03d", i))
			n := 1
			if i == 0 {
				n = 2
			}
			same(w, "claimed", len(k.claim(n)), n)
			held[k.session] = n
		}
		all, err := w.e.PartitionSessions(w.ctx, w.p)
		w.no(err)
		same(w, "sessions", len(all), len(held))
		same(w, "in order", slices.IsSortedFunc(all, func(a, b engine.SessionRow) int { return strings.Compare(a.ID, b.ID) }), true)
		seen := map[flowfabric.ExecutionID]bool{}
		for _, h := range all {
			same(w, h.ID, words(h.Held, h.Alive, h.ExpiresAt.UnixMilli() > w.now()), words(held[h.ID], true, true))
			for _, x := range w.listing(engine.ListQuery{Index: engine.IndexActive, Key: h.ID, Limit: 10}) {
				same(w, "session", x.Session, h.ID)
				seen[x.ID] = true
			}
		}
		same(w, "held", len(seen), len(ids))
		w.advance(ttl)
		all, err = w.e.PartitionSessions(w.ctx, w.p)
		w.no(err)
		same(w, "dead", words(len(all), all[0].Alive), "299 false")
		w.quiet = false
		for range 20 {
			if r := w.tick(); !r.More {
				break
			}
		}
		all, err = w.e.PartitionSessions(w.ctx, w.p)
		w.no(err)
		same(w, "gone", len(all), 0)
	}},
	{name: "a partition can be described, also while it is frozen", run: func(w *env) {
		empty := w.describe()
		same(w, "empty", words(empty.Partition, empty.Protocol, empty.Frozen, empty.Owner, empty.TickOverdue, empty.Ready, empty.Routes, empty.Lag(),
			empty.Wake.IsZero(), empty.Delayed, empty.Done), words(w.p, limits.Protocol, false, "", false, 0, 0, time.Duration(0), true, engine.Timer{}, engine.Timer{}))
		same(w, "booted", strconv.FormatInt(empty.Booted.UnixMilli(), 10), w.root()["booted"])
		w.seed()
		late := w.create(kind("late"), delay(time.Minute))
		w.create(kind("later"), delay(time.Hour), deadline(2*time.Hour))
		ended := w.create()
		w.cancel(ended)
		k := w.worker("w1")
		parked := w.create()
		w.stopped(k.one(parked).Fence, within(3*time.Hour, "fail"))
		held := w.create(timeout(4 * time.Hour))
		f := k.one(held).Fence
		w.pend(f, "pending")
		w.create(kind("waits"))
		w.setLane("other", engine.LanePaused, "")
		w.tick()
		p := w.describe()
		head := func(t engine.Timer) string { return words(t.Count, t.Head.UnixMilli()) }
		score := func(key string) string {
			list, err := w.do("ZRANGE", key, "0", "0", "WITHSCORES").AsZScores()
			w.no(err)
			return strconv.FormatInt(int64(list[0].Score), 10)
		}
		same(w, "delayed", head(p.Delayed), words(2, w.at(late, "du")))
		same(w, "alarms", head(p.Alarms), words(3, score(w.k.Alarms())))
		same(w, "sessions", head(p.Sessions), words(1, score(w.k.Sessions())))
		same(w, "pending", head(p.Pending), words(1, score(w.k.Pending())))
		same(w, "parked", head(p.Parked), words(1, score(w.k.Parked())))
		same(w, "done", head(p.Done), words(1, w.at(ended, "en")+14*day.Milliseconds()))
		same(w, "the rest", words(p.Ready, p.Routes, p.Lanes, p.Feed, p.Workers.Count, p.Schedules.Count), "1 4 1 0 0 0")
		same(w, "root", words(p.Owner, p.TickOverdue, strconv.FormatInt(p.Wake.UnixMilli(), 10), strconv.FormatUint(p.Table, 10)),
			words(ticker, false, w.root()["wake"], w.root()["table"]))
		same(w, "nothing is late", p.Lag(), time.Duration(0))
		w.advance(time.Minute + 5*time.Second)
		p = w.describe()
		if lag := p.Lag(); lag < 30*time.Second || lag > 40*time.Second || !p.TickOverdue { // the session was due first
			w.Fatalf("lag %s, overdue %v", lag, p.TickOverdue)
		}
		w.no(w.e.FreezePartition(w.ctx, w.p, "slot move"))
		p = w.describe()
		same(w, "frozen", words(p.Frozen, p.FrozenReason, p.Delayed.Count), "true slot move 2")
		_, err := w.e.Queues(w.ctx, w.p, "", 0)
		w.is(err, flowfabric.ErrPartitionFrozen)
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.settleTime()
		same(w, "caught up", w.describe().Lag(), time.Duration(0))
		_, err = w.e.DescribePartition(w.ctx, partitions)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
}
