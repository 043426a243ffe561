package conformance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

var bellScenarios = []scenario{
	{name: "new work wakes an idle worker that can run it", run: func(w *env) {
		w.create(kind("other"))
		k := w.worker("w1")
		k.can = func(r engine.Route) bool { return r.Kind == "k" }
		first := w.create()
		w.complete(k.one(first).Fence, "")
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		same(w, "registered", k.nothing().Registered, true)
		w.create(kind("other"))
		ear.silent()
		w.create()
		ear.hears("w")
		w.create()
		ear.silent() // a ring takes the registration
		same(w, "two", len(k.claim(5)), 2)
		k.nothing()
		w.create(delay(time.Second))
		ear.silent()
		w.advance(time.Second)
		same(w, "not rung by the tick but by the promotion", w.tick().Rung, 0)
		ear.hears("w")
	}},
	{name: "a claim that returns less than it asks for registers the worker for a wake", run: func(w *env) {
		k := w.worker("w1")
		k.one(w.create())
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.createN(5)
		ask := func(max int) engine.ClaimReply {
			r, err := w.e.ClaimNext(w.ctx, k.request(max))
			w.no(err)
			k.number++
			w.check()
			return r
		}
		r := ask(2)
		w.all("as many as asked for, and there is more", eq(len(r.Claims), 2), eq(r.Registered, false),
			eq(r.More, true))
		r = ask(3)
		w.all("as many as asked for", eq(len(r.Claims), 3), eq(r.Registered, false), eq(r.More, false))
		w.createN(2)
		ear.silent() // it is not registered
		w.create(deadline(time.Millisecond))
		w.advance(time.Millisecond)
		r = ask(5)
		w.all("fewer, but something that is overdue is left", eq(len(r.Claims), 2), eq(r.Registered, false))
		w.tick()
		w.create()
		r = ask(5)
		w.all("fewer", eq(len(r.Claims), 1), eq(r.Registered, true), eq(r.More, false))
		w.create()
		ear.hears("w")
	}},
	{name: "work wakes an idle worker whichever way it becomes claimable", run: func(w *env) {
		for _, way := range []string{"release", "retry at once", "retry later", "requeue", "delay over"} {
			w.reset()
			id := w.create(retries(1))
			holder := w.worker("holder")
			f := holder.one(id).Fence
			k := w.worker("w1")
			k.nothing()
			ear := w.listen(engine.BellChannel(w.p, "w1"))
			w.frees(way, f, ear)
			ear.hears("w")
			k.one(id)
		}
	}},
	{name: "only as many workers are woken as there is work", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		var ears []*ear
		for i := range 5 {
			k := w.worker("w" + strconv.Itoa(i))
			k.nothing()
			ears = append(ears, w.listen(engine.BellChannel(w.p, k.instance)))
		}
		w.createN(2)
		rung := 0
		for _, e := range ears {
			rung += e.count()
		}
		same(w, "rung", rung, 2)
		// One that claims only a part passes it on.
		r := w.worker("w9").poll(1)
		same(w, "more", r.More, true)
		rung = 0
		for _, e := range ears {
			rung += e.count()
		}
		same(w, "rung by the partial claim", rung, 1)
	}},
	{name: "a claim that leaves work of many classes wakes one worker for each of eight", run: func(w *env) {
		const classes = 10
		var ears []*ear
		rung := func() (n int) {
			for _, e := range ears {
				n += e.count()
			}
			return n
		}
		for i := range classes {
			w.complete(w.worker("w0").one(w.create(kind("k"+strconv.Itoa(i)))).Fence, "")
		}
		for i := range classes {
			name := "k" + strconv.Itoa(i)
			for j := range 2 { // the first hears of new work, the second of what a claim leaves
				k := w.worker("w" + strconv.Itoa(i) + strconv.Itoa(j))
				k.can = func(r engine.Route) bool { return r.Kind == name }
				k.nothing()
				ears = append(ears, w.listen(engine.BellChannel(w.p, k.instance)))
			}
		}
		for i := range classes {
			w.create(kind("k" + strconv.Itoa(i)))
		}
		same(w, "rung by new work", rung(), classes)
		same(w, "more", w.worker("w9").poll(1).More, true)
		same(w, "rung by the claim", rung(), 8)
	}},
	{name: "a wake skips workers that do not listen", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		for i := range 6 {
			k := w.worker("unreachable" + strconv.Itoa(i))
			k.nothing()
		}
		k := w.worker("w1")
		k.nothing()
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.create()
		ear.hears("w")
		same(w, "waiters left", len(w.dump().ZSets[":w:"+k.subscription]) < 7, true)
	}},
	{name: "a wake that reached nobody is repeated by the tick", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		for i := range 20 {
			w.worker("unreachable" + strconv.Itoa(i)).nothing()
		}
		k := w.worker("z-last")
		k.nothing()
		ear := w.listen(engine.BellChannel(w.p, "z-last"))
		w.create() // rings the nine that come first, and no more
		same(w, "waiters left", len(w.dump().ZSets[":w:"+k.subscription]), 21-9)
		for i := 0; ear.count() == 0; i++ {
			if i == 5 {
				w.Fatal("the tick never rings again")
			}
			w.tick()
		}
		// A registration that is too old is dropped.
		k.claim(1)
		k.nothing()
		w.advance(4 * time.Minute)
		w.tick()
		same(w, "waiters", len(w.dump().ZSets[":w:"+k.subscription]), 0)
	}},
	{name: "subscriptions of workers that are gone do not delay the wake of a live one", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		for i := range 200 { // as after many deployments of other kinds of workers
			w.set("ZADD", w.k.Waiters("dead"+strconv.Itoa(i)), strconv.FormatInt(w.now()+180000, 10), "gone")
			w.set("SADD", w.k.Digests(), "dead"+strconv.Itoa(i))
		}
		w.advance(4 * time.Minute)
		k := w.worker("w1")
		k.nothing()
		for range 5 {
			w.tick()
		}
		same(w, "subscriptions with waiters", len(w.dump().Sets[":digests"]), 1)
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.create()
		ear.hears("w")
	}},
	{name: "a new route wakes every waiting worker", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		k := w.worker("w1")
		k.nothing()
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.create(kind("brand new"))
		ear.hears("r")
		id := w.create(kind("brand new"))
		same(w, "and finds it", len(k.claim(2)), 2)
		w.code(id, "A1")
		none := w.worker("w2")
		none.can = func(engine.Route) bool { return false }
		none.nothing()
		other := w.listen(engine.BellChannel(w.p, "w2"))
		w.create(kind("another"))
		other.hears("r")
	}},
	{name: "an earlier timer wakes the tick's owner", run: func(w *env) {
		ear := w.listen(engine.BellChannel(w.p, ticker))
		same(w, "idle", w.tick().Idle, true)
		w.create(delay(time.Hour))
		ear.hears("t") // from nothing to something
		w.create(delay(2 * time.Hour))
		ear.silent()
		w.create(delay(100 * time.Millisecond))
		ear.hears("t")
		w.create(delay(200 * time.Millisecond))
		ear.silent()
		w.advance(time.Second)
		w.settleTime()
		ear.silent() // nobody rings himself
		w.create(deadline(50 * time.Millisecond))
		ear.hears("t")
	}},
	{name: "a holder is woken when it loses an execution", run: func(w *env) {
		w.tick()
		k := w.worker("w1")
		a, b := w.create(), w.create(timeout(time.Second), retries(1))
		k.one(a)
		k.one(b)
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.cancel(a)
		ear.hears("l")
		w.advance(time.Second)
		w.settleTime()
		ear.hears("l")
		same(w, "notices", len(w.renew(k, 0).Lost), 2)
	}},
	{name: "one process listens for many workers", run: func(w *env) {
		w.tick()
		w.complete(w.worker("other").one(w.create()).Fence, "")
		k := w.worker("gate~w1")
		k.nothing()
		ear, deaf := w.listen(engine.BellChannel(w.p, "gate")), w.listen(engine.BellChannel(w.p, "w1"))
		id := w.create(reclaims(1))
		ear.hears("w")
		k.one(id)
		x := w.read(id)
		same(w, "who has it", x.Worker, "w1")
		b := w.create()
		k.one(b)
		w.cancel(b)
		ear.hears("l")
		deaf.silent()
		w.advance(ttl)
		w.tick()
		w.worker("gate~w2").one(id)
		w.advance(ttl)
		w.tick()
		x = w.read(id)
		same(w, "whose loss it was", x.Failure.Message,
			"worker w2 was lost while it ran this, loss 2 of a worker: its handler may be the cause")
	}},
}

// frees makes held work claimable: release, retry at once, retry later, requeue or delay over.
func (w *env) frees(way string, f flowfabric.Fence, ear *ear) {
	w.Helper()
	switch way {
	case "release":
		w.release(f)
	case "retry at once":
		zero := time.Duration(0)
		_, err := w.e.FailExecution(w.ctx, f, engine.Failure{Category: "x", RetryAfter: &zero})
		w.no(err)
	case "retry later":
		w.fail(f, "x")
		ear.silent()
		w.advance(time.Second)
		w.tick()
	case "requeue":
		w.advance(ttl)
		w.tick()
	case "delay over":
		w.delay(f, time.Second)
		w.advance(time.Second)
		w.tick()
	default:
		w.Fatalf("no way %q", way)
	}
}

// ear hears one channel. Silence is proven without waiting: a message sent by the test arrives next.
type ear struct {
	w       *env
	channel string
	heard   chan string
}

const mark = "end of the silence"

// beginning begins what an ear says to itself first. Ears of a test share a connection, and what was sent to an older
// one may be under way when another begins to listen.
const beginning = "from here on I listen "

var ears atomic.Int64

func (w *env) listen(channel string) *ear {
	w.Helper()
	e := &ear{w: w, channel: channel, heard: make(chan string, 256)}
	ctx, cancel := context.WithCancel(w.ctx)
	ready, gone, began := make(chan struct{}), make(chan struct{}), make(chan struct{})
	mine := fmt.Sprint(beginning, ears.Add(1))
	go func() {
		defer close(gone)
		_ = w.e.Subscribe(ctx, w.p, []string{channel}, func() { close(ready) }, func(_, message string) {
			if message == mine {
				close(began)
			}
			select {
			case <-began:
				if !strings.HasPrefix(message, beginning) {
					e.heard <- message
				}
			default:
			}
		})
	}()
	w.Cleanup(func() { cancel(); <-gone })
	select {
	case <-ready:
	case <-gone:
		w.Fatalf("no subscription of %s", channel)
	}
	e.say(mine)
	select {
	case <-began:
	case <-w.ctx.Done():
		w.Fatalf("nothing on %s", channel)
	}
	return e
}

func (e *ear) next() string {
	e.w.Helper()
	select {
	case m := <-e.heard:
		return m
	case <-e.w.ctx.Done():
		e.w.Fatalf("nothing on %s", e.channel)
		return ""
	}
}

func (e *ear) hears(want string) {
	e.w.Helper()
	e.mark()
	if got := e.next(); got != want {
		e.w.Fatalf("heard %q on %s, want %q", got, e.channel, want)
	}
	if got := e.next(); got != mark {
		e.w.Fatalf("heard %q on %s after %q", got, e.channel, want)
	}
}

// silent fails if anything was heard up to now.
func (e *ear) silent() {
	e.w.Helper()
	if n := e.count(); n != 0 {
		e.w.Fatalf("heard %d messages on %s, want silence", n, e.channel)
	}
}

// count is how many messages were heard up to now.
func (e *ear) count() int {
	e.w.Helper()
	e.mark()
	n := 0
	for e.next() != mark {
		n++
	}
	return n
}

func (e *ear) mark() { e.say(mark) }

func (e *ear) say(text string) {
	publish := "PUBLISH"
	if e.w.srv.Features.ShardedPubSub {
		publish = "SPUBLISH"
	}
	e.w.set(publish, e.channel, text)
}
