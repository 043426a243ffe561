package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

var createScenarios = []scenario{
	{name: "a new execution waits in its queue at the score of its priority and age", run: func(w *env) {
		x := w.item(priority(5))
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
		w.no(err)
		sameDeep(w, "created", c[0], engine.Created{ID: x.ID, State: flowfabric.Waiting})
		core := w.core(x.ID)
		same(w, "state", core["s"], "R1f")
		same(w, "score", w.dump().ZSets[":q:"+core["r"]][ids.UUID(x.ID).String()], float64(w.at(x.ID, "ct"))-5e12)
		w.check()
		s := w.read(x.ID)
		same(w, "phase", s.Phase().LifecyclePhase+" "+s.Phase().AttemptState, "runnable pending_first_attempt")
	}},
	{name: "only a delay into the future makes a new execution delayed", run: func(w *env) {
		id := w.create(delay(time.Second))
		s := w.code(id, "R2af")
		same(w, "public", s.State.Public, flowfabric.Delayed)
		same(w, "delay", w.at(id, "du")-w.at(id, "ct"), 1000)
		// An instant that is the server's now, or past, is no delay.
		now := w.create(func(x *engine.NewExecution) { x.DelayUntil = time.UnixMilli(w.now()) })
		w.code(now, "R1f")
		past := w.create(func(x *engine.NewExecution) { x.DelayUntil = time.UnixMilli(1).UTC() })
		w.code(past, "R1f")
		args := createArgs(w.item())
		args[6] = "+0"
		same(w, "+0", w.must("ff_create_execution", args...).slots[1], "+R1f")
		w.check()
	}},
	{name: "a priority out of range is clamped", run: func(w *env) {
		for in, want := range map[int]int64{-3: 0, 0: 0, 9000: 9000, 9001: 9000, 1 << 40: 9000} {
			id := w.create(priority(in))
			same(w, strconv.Itoa(in), w.at(id, "pr"), want)
		}
	}},
	{name: "a repeated id is a duplicate, or a conflict if its digest differs", run: func(w *env) {
		x := w.item(payload([]byte("first")))
		x.Digest = "d1"
		again := x
		again.Payload = []byte("second")
		other := again
		other.Digest = "d2"
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x, again, other})
		w.no(err)
		w.all("in one batch", eq(c[0].Duplicate, false), eq(c[1].Duplicate, true), eq(c[2].Err != nil, true))
		w.is(c[2].Err, denied.Idempotency)
		w.unchanged("a duplicate", func() {
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{again, other})
			w.no(err)
			same(w, "duplicate", c[0].Duplicate, true)
			same(w, "state", c[0].State, flowfabric.Waiting)
			w.is(c[1].Err, denied.Idempotency)
		})
		same(w, "payload", string(w.worker("a").one(x.ID).Input), "first")
		w.unchanged("a duplicate of an active one", func() {
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{again})
			w.no(err)
			same(w, "state", c[0].State, flowfabric.Active)
		})
	}},
	{name: "ids that follow from keys differ by namespace, kind and key, and a second submit of one is a duplicate",
		run: func(w *env) {
			first := mint.Join(ids.Keyed(partitions, "default", "k", "order-1"))
			same(w, "derived twice", first,
				mint.Join(ids.Keyed(partitions, "default", "k", "order-1")))
			for _, other := range []flowfabric.ExecutionID{
				mint.Join(ids.Keyed(partitions, "default", "k", "order-2")),
				mint.Join(ids.Keyed(partitions, "other", "k", "order-1")),
				mint.Join(ids.Keyed(partitions, "default", "kk", "order-1")),
				mint.Join(ids.Keyed(partitions, "defaultk", "", "order-1")),
			} {
				if other == first {
					w.Fatalf("%s stands for two keys", first)
				}
			}
			id := mint.Join(w.p, ids.UUID(first))
			w.create(func(x *engine.NewExecution) { x.ID = id })
			w.unchanged("the second submit", func() {
				c, err := w.e.CreateExecutions(w.ctx, w.p,
					[]engine.NewExecution{w.item(func(x *engine.NewExecution) { x.ID = id })})
				w.no(err)
				same(w, "duplicate", c[0].Duplicate, true)
			})
		}},
	{name: "an invalid policy or instant is refused even if the execution exists", run: func(w *env) {
		x := w.item()
		w.create(func(y *engine.NewExecution) { y.ID = x.ID })
		for _, bad := range []string{"x", "3,0,1000", "1001,0,1000,60000,2000,0,100,10,0",
			"3,2,1000,60000,2000,0,100,10,0", "3,0,604800001,60000,2000,0,100,10,0", "3,0,1000,60000,999,0,100,10,0",
			"3,0,1000,60000,100001,0,100,10,0", "3,0,1000,60000,2000,0,10001,10,0", "03,0,1000,60000,2000,0,100,10,0",
			"3,0,1000,60000,2000,0,100,10,0;", "3,0,1000,60000,2000,0,100,10,0;a b", "-1,0,1000,60000,2000,0,100,10,0",
			"1e2,0,1000,60000,2000,0,100,10,0"} {
			args := createArgs(x)
			args[8] = bad
			w.refused(bad, "invalid_policy", args)
		}
		var reasons []flowfabric.Category
		for i := range 16 {
			reasons = append(reasons, flowfabric.Category(strings.Repeat(string(rune('a'+i)), 64)))
		}
		w.create(retry(flowfabric.RetryPolicy{MaxRetries: 1, Multiplier: 2, Categories: reasons}))
		for at, what := range map[int]string{6: "delay", 7: "deadline"} {
			args := createArgs(x)
			args[at] = "315360000000000"
			w.refused(what, "invalid_input", args)
		}
		created, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{
			w.item(func(y *engine.NewExecution) { y.ID = x.ID; y.Policy.Retry.MaxRetries = 1001 })})
		w.no(err)
		w.is(created[0].Err, denied.Policy)
	}},
	{name: "capabilities are sorted, deduplicated and bounded, and malformed ones are refused", run: capabilityTokens},
	{name: "the server's clock, not the producer's, decides whether work is delayed", run: func(w *env) {
		for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} { // of the server against this process
			w.reset()
			w.advance(skew)
			for _, d := range []time.Duration{-90 * time.Minute, -time.Minute, time.Minute, 90 * time.Minute} {
				id := w.create(func(x *engine.NewExecution) { x.DelayUntil = time.Now().Add(d) })
				want := codes.Code("R1f")
				if d > skew {
					want = "R2af"
				}
				w.code(id, want)
			}
			same(w, "a relative delay", w.at(w.create(delay(time.Minute)), "du") > w.now(), true)
		}
	}},
	{name: "a malformed id is refused", run: func(w *env) {
		for _, bad := range []string{"", "x", strings.ToUpper(ids.UUID(w.item().ID).String()),
			ids.UUID(w.item().ID).String() + " ", "1-" + ids.UUID(w.item().ID).String(),
			"00000000-0000-0000-0000-00000000000g"} {
			args := createArgs(w.item())
			args[13] = bad
			w.refused("id "+bad, "invalid_input", args)
		}
		w.check()
	}},
	{name: "items that share one header are created as if each were spelled out", run: func(w *env) {
		head := func(n string, opts ...option) []string {
			args := createArgs(w.item(opts...))
			return append(args[:len(args)-4], n)
		}
		for what, opts := range map[string][]option{
			"plain": nil, "delayed": {delay(time.Minute), priority(3)}, "retained": {retention(time.Hour), retries(2)},
			"of a lane that is new": {func(x *engine.NewExecution) { x.Lane = "new" }},
			"labelled":              {tags(map[string]string{"a.b": "c"})},
		} {
			alone, alike := w.item(opts...), w.item(opts...)
			alike.Digest, alone.Digest = "d", "d"
			args := head("2", opts...)
			args = append(args, ids.UUID(w.item().ID).String(), "", "", ids.UUID(alike.ID).String(), "d", "in")
			sameList(w, what, w.must("ff_create_execution", args...).slots, "2", "+"+w.core(alike.ID)["s"],
				"+"+w.core(alike.ID)["s"])
			w.must("ff_create_execution", createArgs(alone)...)
			want, got := w.core(alone.ID), w.core(alike.ID)
			for field := range want {
				if field != "ct" && field != "du" {
					same(w, what+": "+field, got[field], want[field])
				}
			}
			same(w, what+": fields", len(got), len(want))
			sameDeep(w, what+": tags", w.read(alike.ID).Tags, w.read(alone.ID).Tags)
			input, _, err := w.e.ReadInput(w.ctx, alike.ID)
			w.no(err)
			same(w, what+": input", string(input), "in")
		}
		one, two := ids.UUID(w.item().ID).String(), ids.UUID(w.item().ID).String()
		items := append(head("5"), one, "a", "x", one, "a", "y", one, "b", "x", "no id", "", "", two,
			strings.Repeat("d", 65), "")
		sameList(w, "each has its answer", w.must("ff_create_execution", items...).slots, "5", "+R1f", "=R1f",
			"-idempotency_conflict "+one, "-invalid_input execution id", "-invalid_input digest: at most 64 bytes")
		w.check()
		var apart []engine.NewExecution // some alike, some not, in one call
		for _, p := range []int{0, 0, 3, 3, 0} {
			apart = append(apart, w.item(priority(p), payload([]byte(strconv.Itoa(len(apart))))))
		}
		created, err := w.e.CreateExecutions(w.ctx, w.p, apart)
		w.no(err)
		for i, x := range apart {
			input, _, err := w.e.ReadInput(w.ctx, x.ID)
			w.no(err)
			w.all("in order", eq(created[i].ID, x.ID), eq(created[i].State, flowfabric.Waiting),
				eq(w.at(x.ID, "pr"), int64(x.Priority)), eq(string(input), fmt.Sprint(i)))
		}
		item := []string{two, "", "x"}
		group := func(n int) []string { // so many items in two groups
			args := head("60")
			for range 60 {
				args = append(args, ids.UUID(w.item().ID).String(), "", "")
			}
			args = append(args, head(strconv.Itoa(n - 60))[1:]...)
			for range n - 60 {
				args = append(args, ids.UUID(w.item().ID).String(), "", "")
			}
			return args
		}
		same(w, "a hundred", len(w.must("ff_create_execution", group(100)...).slots), 101)
		for what, args := range map[string][]string{
			"none": head("0"), "more than a hundred": group(101), "no number": append(head("x"), item...),
			"nothing": append(head(""), item...), "too few": append(head("2"), item...),
			"one too few": append(head("1"), item[:2]...), "too many": append(head("1"), append(item, item...)...),
			"a head that is cut short": head("1")[:12],
			"tags":                     func() []string { h := head("1"); h[11] = "1"; return append(h, item...) }(),
		} {
			w.unchanged(what, func() { same(w, what, w.fcall("ff_create_execution", args...).code, "invalid_input") })
		}
		bad := append(head("1"), item...)
		bad[5] = "5.5"
		w.refused("a head that is wrong", "invalid_input", bad)
		same(w, "drained", w.setLane("closed", flowfabric.LaneDraining, "").code, "OK")
		w.refused("a lane that is closed", "lane_closed", append(head("1", lane("closed")), item...))
		w.refused("a payload that is too large", "payload_too_large",
			append(head("1"), two, "", strings.Repeat("x", limits.MaxPayload+1)))
	}},
	{name: "an invalid item of a batch is refused, and the others are created", run: func(w *env) {
		good, long := w.item(), w.item()
		long.Namespace = strings.Repeat("n", 65)
		last := w.item(priority(1))
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{good, long, last})
		w.no(err)
		w.no(c[0].Err)
		w.is(c[1].Err, flowfabric.ErrInvalidInput)
		w.no(c[2].Err)
		w.check()
		w.unchanged("bad batches", func() {
			_, err = w.e.CreateExecutions(w.ctx, w.p, nil)
			w.is(err, flowfabric.ErrInvalidInput)
			_, err = w.e.CreateExecutions(w.ctx, w.p, make([]engine.NewExecution, 101))
			w.is(err, flowfabric.ErrInvalidInput)
			_, err = w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{{ID: mint.ID(w.p + 1)}})
			w.is(err, flowfabric.ErrInvalidInput)
		})
	}},
	{name: "a call has at most 2,000 tags", run: func(w *env) {
		labels := map[string]string{}
		for i := range 64 {
			labels[fmt.Sprint("app.k", i)] = "v"
		}
		var items []engine.NewExecution
		for range 31 {
			items = append(items, w.item(tags(labels)))
		}
		last := w.item(tags(map[string]string{}))
		for i := range 2000 - 31*64 {
			last.Tags[fmt.Sprint("app.k", i)] = "v"
		}
		items = append(items, last)
		c, err := w.e.CreateExecutions(w.ctx, w.p, items)
		w.no(err)
		for _, x := range c {
			w.no(x.Err)
		}
		last.Tags["app.more"] = "v"
		w.unchanged("one more", func() {
			_, err := w.e.CreateExecutions(w.ctx, w.p, items)
			w.is(err, flowfabric.ErrInvalidInput)
			sameDeep(w, "on the wire", w.fcall("ff_create_execution", createArgs(items...)...),
				answer{0, "invalid_input", []string{"tags: at most 2000 a call"}})
			alike := createArgs(items[0])
			alike[len(alike)-4] = "32"
			for range 31 {
				alike = append(alike, ids.UUID(w.item().ID).String(), "", "")
			}
			sameDeep(w, "the same for all", w.fcall("ff_create_execution", alike...),
				answer{0, "invalid_input", []string{"tags: at most 2000 a call"}})
		})
	}},
	{name: "executions with equal parts share a route, and claims learn of new routes", run: func(w *env) {
		a := w.create(kind("a"))
		b := w.create(kind("a"), lane("l"))
		c := w.create(kind("a"), capabilities("gpu"))
		d := w.create(kind("a"))
		same(w, "same parts, same route", w.core(a)["r"], w.core(d)["r"])
		if w.core(a)["r"] == w.core(b)["r"] || w.core(a)["r"] == w.core(c)["r"] || w.core(b)["r"] == w.core(c)["r"] {
			w.Fatal("different parts share a route")
		}
		k := w.worker("a")
		r, err := w.e.ClaimNext(w.ctx, k.request(1))
		w.no(err)
		w.all("full table", eq(r.TableFull, true), eq(len(r.Routes), 3))
		sameList(w, "capabilities", r.Routes[2].Capabilities, "gpu")
		k.table = r.Table
		w.create(kind("b"))
		r, err = w.e.ClaimNext(w.ctx, k.request(1))
		w.no(err)
		w.all("delta", eq(r.TableFull, false), eq(len(r.Routes), 1), eq(r.Routes[0].Kind, "b"),
			eq(r.Table > k.table, true))
		// A failover loses the last row, and another kind gets its id before this worker looks: it must notice.
		last := w.core(w.create(kind("b")))["r"]
		k.table = r.Table
		w.quiet = true
		w.set("HDEL", w.k.Routes(), last)
		w.set("HDEL", w.k.RouteIDs(), "default\x1fdefault\x1fb\x1f\x1f")
		w.set("ZREM", w.k.RouteLog(), last)
		w.set("HINCRBY", string(w.k), "routes", "-1")
		w.set("HSET", string(w.k), "table", strconv.FormatUint(r.Table-1, 10))
		w.advance(time.Second)
		e := w.create(kind("e"))
		same(w, "the id again", w.core(e)["r"], last)
		r, err = w.e.ClaimNext(w.ctx, k.request(1))
		w.no(err)
		w.all("delta after a loss", eq(len(r.Routes), 1), eq(r.Routes[0].Kind, "e"),
			eq(fmt.Sprint(r.Routes[0].ID), last))
		sameDeep(w, "row in the snapshot", w.read(c).Route,
			engine.Route{ID: 3, Namespace: "default", Lane: "default", Kind: "a", Capabilities: []string{"gpu"}})
	}},
	{name: "a namespace makes half of the classes of a partition, or an eighth once half exist", run: func(w *env) {
		made := 0
		makes := func(name string, most int) { // in calls that do not end where its share does
			for left := most + 1; left > 0; {
				items := make([]engine.NewExecution, min(left, 100))
				for i := range items {
					items[i] = w.item(kind("k"+strconv.Itoa(made+i)), namespace(name), payload(nil))
				}
				c, err := w.e.CreateExecutions(w.ctx, w.p, items)
				w.no(err)
				for i := range items {
					if left--; left > 0 {
						w.no(c[i].Err)
						made++
					} else {
						w.is(c[i].Err, denied.TooManyRoutes)
						same(w, "whose", strings.HasSuffix(c[i].Err.Error(), "(namespace "+name+")"), true)
					}
				}
			}
		}
		makes("loud", limits.MaxOwnClasses)
		makes("other", limits.SureClasses)
		first := w.create(kind("k0"), namespace("new")) // it makes none
		makes("new", limits.SureClasses)
		w.unchanged("one more of who has half", func() {
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(kind("more"), namespace("loud"))})
			w.no(err)
			w.is(c[0].Err, denied.TooManyRoutes)
		})
		w.cancel(first)
		w.create(kind("k600"), namespace("loud")) // a class of another
	}},
	{name: "a namespace has room again when its classes are gone", run: func(w *env) {
		for first := range 8 {
			items := make([]engine.NewExecution, 64)
			for i := range items {
				items[i] = w.item(kind("k"+strconv.Itoa(64*first+i)), payload(nil), kept(time.Minute))
			}
			c, err := w.e.CreateExecutions(w.ctx, w.p, items)
			w.no(err)
			w.no(c[63].Err)
			if first == 0 {
				for _, x := range items {
					w.cancel(x.ID)
				}
			}
		}
		refused := func() error {
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(kind("more"))})
			w.no(err)
			return c[0].Err
		}
		w.is(refused(), denied.TooManyRoutes)
		w.advance(time.Hour)
		w.settleTime()
		w.no(refused())
	}},
	{name: "a partition has at most 1,024 classes of routes, and known ones still accept work", run: func(w *env) {
		for first := 0; first < limits.MaxClasses; first += 64 {
			items := make([]engine.NewExecution, 64)
			for i := range items {
				items[i] = w.item(kind("k"+strconv.Itoa(first+i)), namespace("n"+strconv.Itoa(first/128)),
					payload(nil))
			}
			c, err := w.e.CreateExecutions(w.ctx, w.p, items)
			w.no(err)
			w.no(c[63].Err)
		}
		w.unchanged("one route more", func() {
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(kind("one more"))})
			w.no(err)
			w.is(c[0].Err, denied.TooManyRoutes)
		})
		w.create(kind("k7"))
		k := w.worker("a")
		r, err := w.e.ClaimNext(w.ctx, k.request(1))
		w.no(err)
		same(w, "rows in one reply", len(r.Routes), limits.MaxClasses)
		k.learn(r)
		if n := len(k.claim(100)); n < 64 || n > 65 { // the heads of 64 routes a call; k7 has two
			w.Fatalf("%d claims across 1,024 ready routes", n)
		}
	}},
}

// createArgs is the wire form of a create call. Positions in the first item: 1 namespace, 2 lane, 3 kind, 4
// capabilities, 5 priority, 6 delay, 7 deadline, 8 policy, 9 timeout, 10 creator, 11 tags; without tags: 12 count, 13
// id, 14 digest, 15 payload.
func createArgs(items ...engine.NewExecution) []string {
	args := []string{proto}
	for _, x := range items {
		args = append(args, itemArgs(x)...)
	}
	return args
}

// itemArgs is the wire form of one of them, which has nothing in common with the others.
func itemArgs(x engine.NewExecution) []string {
	args := []string{x.Namespace, x.Lane, x.Kind, strings.Join(x.Capabilities, ","), strconv.Itoa(x.Priority),
		"", "", valid.PackPolicy(x.Policy), "", x.Creator, strconv.Itoa(len(x.Tags))}
	if x.Delay > 0 {
		args[5] = "+" + strconv.FormatInt(time.Duration(x.Delay).Milliseconds(), 10)
	}
	if x.Deadline > 0 {
		args[6] = "+" + strconv.FormatInt(time.Duration(x.Deadline).Milliseconds(), 10)
	}
	if x.Policy.AttemptTimeout > 0 {
		args[8] = strconv.FormatInt(time.Duration(x.Policy.AttemptTimeout).Milliseconds(), 10)
	}
	for i, g := range x.Gates() {
		args[3] += map[bool]string{true: "\x1f", false: ","}[i == 0] + string(g)
	}
	for k, v := range x.Tags {
		args = append(args, k, v)
	}
	id := ids.UUID(x.ID).String()
	if x.Key != nil && x.Key.Debounce > 0 {
		id += " " + x.KeyID.String() + " ~" + strconv.FormatInt(x.Key.DebounceMax.Milliseconds(), 10)
	}
	return append(args, "1", id, x.Digest, string(x.Payload))
}

// refused makes a create call whose one item must be refused with a code and leave no trace.
func (w *env) refused(what, code string, args []string) {
	w.Helper()
	w.unchanged(what, func() {
		a := w.fcall("ff_create_execution", args...)
		if got := outcome("ff_create_execution", a); got != code {
			w.Fatalf("%q: got %s, want %s", what, got, code)
		}
	})
}

func capabilityTokens(w *env) {
	tokens := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("t%03d", i)
		}
		return list
	}
	long := func(bytes int) []string {
		return []string{strings.Repeat("a", bytes/2-1), strings.Repeat("b", bytes-bytes/2)}
	}
	for _, good := range [][]string{nil, {"gpu"}, {"东京-gpu", "a"}, tokens(256), long(4096)} {
		n, err := valid.Capabilities(good)
		w.no(err)
		id := w.create(capabilities(n...))
		sameList(w, "stored", w.read(id).Route.Capabilities, n...)
	}
	n, err := valid.Capabilities([]string{"b", "a", "b"})
	w.no(err)
	sameList(w, "duplicates collapse", n, "a", "b")
	for what, bad := range map[string][]string{"empty_token": {""}, "comma_in_token": {"a,b"},
		"control_or_whitespace": {"a b"}, "too_many_tokens": tokens(257), "too_many_bytes": long(4097),
		"invalid_utf8": {"\xff"}} {
		_, err := valid.Capabilities(bad)
		w.is(err, denied.Capabilities)
		if !strings.Contains(err.Error(), what) {
			w.Fatalf("%v does not name %s", err, what)
		}
	}
	for _, bad := range []string{"a\x00", "a\tb", "a\x7f", "a\u00a0b", "\u2003", "a\u0085"} {
		_, err := valid.Capabilities([]string{bad})
		w.is(err, denied.Capabilities)
	}
	// The library re-checks the structure.
	for _, bad := range []string{",", "a,,b", ",a", "a,", "a b", "a\tb", "a\x00b", "a\x7f", strings.Repeat("a", 4097)} {
		args := createArgs(w.item())
		args[4] = bad
		w.refused("capabilities "+bad, "invalid_capabilities", args)
	}
}
