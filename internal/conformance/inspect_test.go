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
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
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
				w.Fatalf("%d listed of %d, %d on the last page, and there is more", len(all), page.Size,
					len(page.Executions))
			}
			q.After = page.Executions[len(page.Executions)-1].Position()
		}
	}
	return all
}

func idsOf(all []engine.Listed) (made []flowfabric.ExecutionID) {
	for _, x := range all {
		made = append(made, x.ID)
	}
	return made
}

// queues are those of the partition by kind.
func (w *env) queues() map[string]engine.Queue {
	w.Helper()
	all, err := w.e.Queues(w.ctx, w.p, "", 0)
	w.no(err)
	out := map[string]engine.Queue{}
	for _, q := range all {
		out[q.Route.Kind] = q
	}
	return out
}

func (w *env) describe() flowfabric.Partition {
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
		w.setLane("slow", flowfabric.LanePaused, "")
		all := w.queues()
		a, b := all["a"], all["b"]
		w.all("a", eq(a.Route.Lane, "default"), eqList(a.Route.Capabilities), eq(a.State, "active"), eq(a.Depth, 3),
			eq(a.Priority, 5), eq(a.Retained, 3), eq(a.Oldest.UnixMilli(), w.at(old, "ct")), eq(a.Drift, ""))
		w.all("b", eq(b.Route.Lane, "default"), eqList(b.Route.Capabilities, "eu", "gpu"), eq(b.State, "active"),
			eq(b.Depth, 0), eq(b.Priority, 0), eq(b.Retained, 1), eq(b.Oldest.IsZero(), true), eq(b.Drift, ""))
		slow := all["c"]
		w.all("c", eq(slow.State, "paused"), eq(slow.Depth, 1), eq(slow.Priority, 9000), eq(slow.Retained, 2))
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
				w.all("depth, priority", eq(q.Depth, groups+1), eq(q.Priority, (groups-1)*7))
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
			w.all("queue", eq(q.Route.Namespace, "n7"), eq(q.Depth, 1), eq(q.Retained, 1))
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
			{engine.IndexWaiting, route, flowfabric.Waiting, waiting},
			{engine.IndexDelayed, "", flowfabric.Delayed, delayed},
			{engine.IndexActive, k.session, flowfabric.Active, held},
			{engine.IndexSuspended, "", flowfabric.Suspended, parked},
			{engine.IndexEnded, "", flowfabric.Cancelled, ended},
			{engine.IndexUnsuccessful, "", flowfabric.Cancelled, ended},
		} {
			for _, newest := range []bool{false, true} {
				want := slices.Clone(h.want)
				if newest {
					slices.Reverse(want)
				}
				for limit := 1; limit <= len(want)+1; limit++ {
					got := w.listing(engine.ListQuery{Index: h.index, Key: h.key, Newest: newest, Limit: limit})
					sameList(w, label("%s, newest %v, limit %d", h.index, newest, limit), idsOf(got), want...)
					for _, l := range got {
						w.all("state and drift", eq(l.State.Public, h.state), eq(l.Drift, ""))
					}
				}
			}
			page, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: h.index, Key: h.key, Limit: 2})
			w.no(err)
			w.all("size", eq(page.Size, len(h.want)), eq(page.More, true))
		}
		for _, empty := range []engine.ListQuery{{Index: engine.IndexWaiting, Key: "77"},
			{Index: engine.IndexActive, Key: "nobody~1"}} {
			empty.Limit = 5
			same(w, "empty", len(w.listing(empty)), 0)
		}
	}},
	{name: "a listed entry has the same fields as a snapshot of the execution", run: func(w *env) {
		w.seed()
		id := w.create(priority(7), retries(2), deadline(time.Hour), tags(map[string]string{"a.b": "c", "a.c": ""}),
			capabilities("gpu"))
		k := w.worker("w1")
		c := k.one(id)
		read := func(index engine.Index, key string, tagged bool) engine.Listed {
			all := w.listing(engine.ListQuery{Index: index, Key: key, Limit: 10, Tags: tagged})
			sameList(w, "entries", idsOf(all), id)
			s, x := w.read(id), all[0]
			w.all("like its snapshot", eq(x.State, s.State), eqDeep(x.Route, s.Route), eq(x.Priority, s.Priority),
				eq(x.CreatedAt, s.CreatedAt), eq(x.StartedAt, s.StartedAt), eq(x.EndedAt, s.EndedAt),
				eq(x.ClaimedAt, s.ClaimedAt), eq(x.DelayUntil, s.DelayUntil), eq(x.DeadlineAt, s.DeadlineAt),
				eq(x.Attempts, s.Attempts), eq(x.AttemptType, s.AttemptType), eq(x.Retries, s.Retries),
				eq(x.Reclaims, s.Reclaims), eq(x.Epoch, s.Epoch), eq(x.Session, s.Session),
				eq(x.Failure.Category, s.Failure.Category), eq(x.CancelledBy, s.CancelledBy),
				eq(x.CancelSource, s.CancelSource), eq(x.Drift, ""))
			return x
		}
		same(w, "no tags", len(read(engine.IndexActive, k.session, false).Tags), 0)
		sameDeep(w, "tags", read(engine.IndexActive, k.session, true).Tags, map[string]string{"a.b": "c", "a.c": ""})
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
		same(w, "a dead session's", x.Code, codes.LeaseExpired)
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
		made := w.createN(100) // in one call, so with one score
		slices.SortFunc(made, func(a, b flowfabric.ExecutionID) int {
			return strings.Compare(ids.UUID(a).String(), ids.UUID(b).String())
		})
		for _, newest := range []bool{false, true} {
			q := engine.ListQuery{Index: engine.IndexWaiting, Key: "1", Limit: 1, Newest: newest}
			order := slices.Clone(made)
			if newest {
				slices.Reverse(order)
			}
			for i, id := range order[:len(order)-1] {
				q.After = engine.Position{Score: w.at(id, "ct"), Member: ids.UUID(id).String()}
				page, err := w.e.ListExecutions(w.ctx, w.p, q)
				w.no(err)
				w.all("behind it", eqList(idsOf(page.Executions), order[i+1:i+2]...), eq(page.More, i+2 < len(order)))
			}
			gone := order[10]
			q.After = engine.Position{Score: w.at(gone, "ct"), Member: ids.UUID(gone).String()}
			score := strconv.FormatInt(q.After.Score, 10)
			w.set("ZREM", w.k.Queue("1"), ids.UUID(gone).String())
			page, err := w.e.ListExecutions(w.ctx, w.p, q)
			w.no(err)
			sameList(w, "behind one that is gone", idsOf(page.Executions), order[11:12]...)
			w.set("ZADD", w.k.Queue("1"), "-5", ids.UUID(gone).String()) // it went elsewhere in the queue
			page, err = w.e.ListExecutions(w.ctx, w.p, q)
			w.no(err)
			sameList(w, "behind the place where it was", idsOf(page.Executions), order[11:12]...)
			w.set("ZADD", w.k.Queue("1"), score, ids.UUID(gone).String())
		}
	}},
	{name: "what ended other than completed is listed by the time of its end, until it is replayed or purged",
		run: func(w *env) {
			w.seed()
			k := w.worker("w1")
			list := func(what string, want ...flowfabric.ExecutionID) {
				w.Helper()
				got := w.listing(engine.ListQuery{Index: engine.IndexUnsuccessful, Limit: 3})
				sameList(w, what, idsOf(got), want...)
				for _, x := range got {
					w.all("time and drift", eq(x.Score, x.EndedAt.UnixMilli()), eq(x.Drift, ""))
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
			w.replay(cancelled, engine.Replay{Request: mint.UUID()})
			_, err := w.e.PurgeExecution(w.ctx, never, day)
			w.no(err)
			w.check()
			w.quiet = true
			w.advance(2 * time.Hour)
			w.settleTime() // purges what is kept for an hour
			w.quiet = false
			w.check()
			got := w.listing(engine.ListQuery{Index: engine.IndexUnsuccessful, Limit: 10})
			w.all("left", eq(len(got), 3), eq(got[0].ID, expired))
		}},
	{name: "a damaged entry is reported and does not stop the listing", damaged: "it damages indexes and routes",
		run: func(w *env) {
			w.quiet = true
			sound, odd, lost := w.create(), w.create(), w.create(kind("lost"))
			for _, id := range []flowfabric.ExecutionID{sound, odd, lost} {
				w.cancel(id)
			}
			missing := uuid.NewString()
			w.set("ZADD", w.k.Done(), "5", missing, "6", "no id at all")
			w.editRecord(ids.UUID(odd), func(f fields) { f["pr"], f["s"] = "many", "T2" })
			w.set("HDEL", w.k.Routes(), "2")
			all := w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100, Tags: true})
			said := map[string]string{}
			for _, x := range all {
				said[x.Member] = x.Drift
			}
			same(w, "entries", len(all), 5)
			same(w, "without a core", said[missing], "there is no such execution")
			same(w, "no id", said["no id at all"], `"no id at all" is no execution id`)
			same(w, "a number", said[ids.UUID(odd).String()], `it is no record`)
			same(w, "a route", said[ids.UUID(lost).String()], "route 2 has 1 parts, want 5")
			same(w, "sound", said[ids.UUID(sound).String()], "")
			w.editRecord(ids.UUID(odd), func(f fields) {
				f["s"] = "X9"
				delete(f, "pr")
			})
			for _, x := range w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100}) {
				if x.ID == odd {
					same(w, "an unknown state", x.Drift, `state "X9"`)
				}
			}
			w.editRecord(ids.UUID(odd), func(f fields) { f["s"] = "R1f" })
			for _, x := range w.listing(engine.ListQuery{Index: engine.IndexEnded, Limit: 100}) {
				if x.ID == odd {
					w.all("one that lives elsewhere", eq(x.Drift, "its state is R1f"), eq(x.State.Public, "waiting"))
				}
			}
			w.set("HSET", w.k.Routes(), "9", "damaged")
			q, err := w.e.Queues(w.ctx, w.p, "", 0)
			w.no(err)
			w.all("queues", eq(len(q), 2), eq(q[1].Route.ID, 9), eq(q[1].Drift, "route 9 has 1 parts, want 5"))
		}},
	{name: "malformed arguments of a listing are refused", run: func(w *env) {
		w.create()
		good := []string{proto, "waiting", "1", "0", "", "", "10", "0", "0"}
		for at, bad := range map[int][]string{1: {"", "parked", "done"}, 2: {"", "0", "x", "-1"}, 3: {"", "2", "yes"},
			4: {"5", "x", "-", "-0", "1.5", "1e3"}, 5: {"m"}, 6: {"", "0", "101", "-1"}, 7: {"", "2"}, 8: {"", "2"}} {
			for _, b := range bad {
				args := slices.Clone(good)
				if args[at] = b; at == 4 && b != "5" {
					args[5] = "m"
				}
				same(w, fmt.Sprintf("argument %d %q", at, b), w.fcall("ff_list_executions", args...).code,
					"invalid_input")
			}
		}
		for _, index := range []string{"delayed", "suspended", "ended", "unsuccessful"} {
			same(w, index+" has no key", w.fcall("ff_list_executions", proto, index, "1", "0", "", "", "10", "0",
				"0").code, "invalid_input")
		}
		same(w, "a session that is too long", w.fcall("ff_list_executions", proto, "active", strings.Repeat("s", 65),
			"0", "", "", "10", "0", "0").code, "invalid_input")
		for _, score := range []string{"0", "-8998000000000000", "9007199254740991"} {
			w.must("ff_list_executions", proto, "waiting", "1", "0", score, "m", "10", "0", "0")
		}
		_, err := w.e.ListExecutions(w.ctx, partitions, engine.ListQuery{Index: engine.IndexEnded, Limit: 1})
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a queue is listed as long as it has executions that wait or are kept", run: func(w *env) {
		w.complete(w.worker("w1").one(w.create(kept(time.Minute))).Fence, "")
		w.create(namespace("b"))
		kept := func() (list []string) {
			all, err := w.e.Queues(w.ctx, w.p, "", 0)
			w.no(err)
			for _, q := range all {
				list = append(list, fmt.Sprint(q.Route.Namespace, q.Depth, q.Retained))
			}
			slices.Sort(list)
			return list
		}
		sameList(w, "one has ended", kept(), "b1 1", "default0 1")
		w.advance(2 * time.Minute)
		w.tick()
		sameList(w, "it is purged", kept(), "b1 1")
	}},
	{name: "the members of a flow are listed in the order in which they came", run: func(w *env) {
		g := w.flow()
		for _, node := range []string{"c", "a", "d", "b", "e"} {
			g.node(node, nil)
		}
		g.submit(engine.SealClosed)
		g.complete(g.claim()["d"], "")
		var made []flowfabric.ExecutionID
		for _, m := range g.nodes {
			made = append(made, m.ID)
		}
		for _, m := range g.nodes {
			w.all("shown", eq(g.shown(m.Node).Kind, "k"), eq(g.shown(m.Node).Lane, "default"))
		}
		q := engine.ListQuery{Index: engine.IndexFlow, Key: ids.UUID(g.id).String(), Limit: 2}
		sameList(w, "members", idsOf(w.listing(q)), made...)
		for _, key := range []string{"", q.Key + "0", "x"} {
			q.Key = key
			_, err := w.e.ListExecutions(w.ctx, w.p, q)
			w.is(err, flowfabric.ErrInvalidInput)
		}
	}},
	{name: "a page with many tags is shorter and says that there is more", run: func(w *env) {
		w.quiet = true
		many := map[string]string{}
		for i := range 64 {
			many[fmt.Sprintf("tag.n%02d", i)] = strings.Repeat("v", 256)
		}
		var made []flowfabric.ExecutionID
		for range 4 { // a call has at most 2,000 tags
			made = append(made, w.createN(25, tags(many))...)
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
		same(w, "all", len(seen), len(made))
		q.Tags = false
		page, err = w.e.ListExecutions(w.ctx, w.p, q)
		w.no(err)
		w.all("without them", eq(len(page.Executions), 100), eq(page.More, false))
	}},
	{name: "a partition lists its sessions and what they hold", run: func(w *env) {
		w.quiet = true
		made := w.createN(300)
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
		same(w, "in order", slices.IsSortedFunc(all, func(a, b flowfabric.WorkerSession) int {
			return strings.Compare(a.ID, b.ID)
		}), true)
		seen := map[flowfabric.ExecutionID]bool{}
		for _, h := range all {
			w.all(h.ID, eq(h.Held, held[h.ID]), eq(h.Alive, true), eq(h.ExpiresAt.UnixMilli() > w.now(), true))
			for _, x := range w.listing(engine.ListQuery{Index: engine.IndexActive, Key: h.ID, Limit: 10}) {
				same(w, "session", x.Session, h.ID)
				seen[x.ID] = true
			}
		}
		same(w, "held", len(seen), len(made))
		w.advance(ttl)
		all, err = w.e.PartitionSessions(w.ctx, w.p)
		w.no(err)
		w.all("dead", eq(len(all), 299), eq(all[0].Alive, false))
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
		w.all("empty", eq(empty.Partition, w.p), eq(empty.Protocol, limits.Protocol), eq(empty.Frozen, false),
			eq(empty.Owner, ""), eq(empty.TickOverdue, false), eq(empty.Ready, 0), eq(empty.Routes, 0),
			eq(empty.Lag, 0), eq(empty.WakeAt.IsZero(), true), eq(empty.Delayed, flowfabric.Timer{}),
			eq(empty.Ended, flowfabric.Timer{}))
		same(w, "booted", strconv.FormatInt(empty.BootedAt.UnixMilli(), 10), w.root()["booted"])
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
		w.setLane("other", flowfabric.LanePaused, "")
		w.tick()
		p := w.describe()
		heads := func(what string, t flowfabric.Timer, count int, head int64) {
			w.Helper()
			w.all(what, eq(t.Count, count), eq(t.Head.UnixMilli(), head))
		}
		score := func(key string) int64 {
			list, err := w.do("ZRANGE", key, "0", "0", "WITHSCORES").AsZScores()
			w.no(err)
			return int64(list[0].Score)
		}
		heads("delayed", p.Delayed, 2, w.at(late, "du"))
		heads("alarms", p.Alarms, 3, score(w.k.Alarms()))
		heads("sessions", p.Sessions, 1, score(w.k.Sessions()))
		heads("pending", p.Pending, 1, score(w.k.Pending()))
		heads("parked", p.Suspended, 1, score(w.k.Parked()))
		heads("done", p.Ended, 1, w.at(ended, "en")+14*day.Milliseconds())
		w.all("the rest", eq(p.Ready, 1), eq(p.Routes, 4), eq(p.Lanes, 1), eq(p.Feed, 0), eq(p.Workers.Count, 0),
			eq(p.Schedules.Count, 0))
		w.all("root", eq(p.Owner, ticker), eq(p.TickOverdue, false),
			eq(strconv.FormatInt(p.WakeAt.UnixMilli(), 10), w.root()["wake"]),
			eq(strconv.FormatUint(p.Table, 10), w.root()["table"]))
		same(w, "nothing is late", p.Lag, 0)
		w.advance(time.Minute + 5*time.Second)
		p = w.describe()
		if lag := time.Duration(p.Lag); lag < 30*time.Second || lag > 40*time.Second ||
			!p.TickOverdue { // the session was due first
			w.Fatalf("lag %s, overdue %v", lag, p.TickOverdue)
		}
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "slot move"), w.p))
		p = w.describe()
		w.all("frozen", eq(p.Frozen, true), eq(p.FrozenReason, "slot move"), eq(p.Delayed.Count, 2))
		_, err := w.e.Queues(w.ctx, w.p, "", 0)
		w.is(err, flowfabric.ErrPartitionFrozen)
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.settleTime()
		same(w, "caught up", w.describe().Lag, 0)
		_, err = w.e.DescribePartition(w.ctx, partitions)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
}
