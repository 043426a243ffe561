package conformance

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// homed is a worker instance that the scenario's partition registers. The rule is spelled out here because processes
// of all revisions must agree on it.
func (w *env) homed(prefix string) string {
	for i := 0; ; i++ {
		h := fnv.New32a()
		name := prefix + strconv.Itoa(i)
		_, _ = h.Write([]byte(name))
		if h.Sum32()%partitions == uint32(w.p) {
			return name
		}
	}
}

// register says that a process is there.
func (w *env) register(instance, token string) engine.Registered {
	w.Helper()
	r, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: instance, Token: token, TTL: ttl, InFlight: 3,
		Stuck: 2,
		Info:  flowfabric.WorkerInfo{Pool: "pool", Kinds: []string{"k"}}})
	w.no(err)
	w.check()
	return r
}

// workers are the rows of the scenario's partition.
func (w *env) workers() []flowfabric.Worker {
	w.Helper()
	p := w.e.Workers(w.ctx)[w.p]
	w.no(p.Err)
	return p.Reply
}

// lone is the only row of the partition.
func (w *env) lone() flowfabric.Worker {
	w.Helper()
	rows := w.workers()
	if len(rows) != 1 {
		w.Fatalf("%d workers, want one: %v", len(rows), rows)
	}
	return rows[0]
}

func (w *env) sessions() []flowfabric.WorkerSession {
	w.Helper()
	p := w.e.Sessions(w.ctx)[w.p]
	w.no(p.Err)
	return p.Reply
}

var registryScenarios = []scenario{
	{name: "a worker registers, renews and leaves", run: func(w *env) {
		name := w.homed("w")
		first := w.register(name, "t1")
		same(w, "renewed", first.Renewed, false)
		row := w.lone()
		w.all("row", eq(row.Instance, name), eq(row.Alive, true), eq(row.Dead, false), eq(row.Reported, 3),
			eq(row.Stuck, 2), eq(row.Pool, "pool"), eqList(row.Kinds, "k"))
		same(w, "expiry", row.ExpiresAt, first.ExpiresAt)
		same(w, "ttl", row.ExpiresAt.Sub(row.SeenAt), ttl)
		same(w, "registered", row.RegisteredAt, row.SeenAt)
		w.advance(ttl / 3)
		again := w.register(name, "t1")
		same(w, "renewed", again.Renewed, true)
		later := w.lone()
		same(w, "registered", later.RegisteredAt, row.RegisteredAt)
		if later.SeenAt.Sub(row.SeenAt) < ttl/3 || later.ExpiresAt != again.ExpiresAt {
			w.Fatalf("seen %v after %v", later.SeenAt, row.SeenAt)
		}
		w.unchanged("leaving with another's token", func() {
			already, err := w.e.LeaveWorker(w.ctx, name, "t2")
			w.no(err)
			same(w, "already", already, true)
		})
		for _, want := range []bool{false, true} {
			already, err := w.e.LeaveWorker(w.ctx, name, "t1")
			w.no(err)
			same(w, "already", already, want)
			same(w, "workers", len(w.workers()), 0)
			w.check()
		}
		same(w, "a free name", w.register(name, "t2").Renewed, false)
	}},
	{name: "the name of a live worker cannot be taken, and that of a lost one is free at its expiry",
		run: func(w *env) {
			name := w.homed("w")
			first := w.register(name, "t1")
			w.advance(ttl / 2)
			refusal := func() error {
				_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: name, Token: "t2", TTL: ttl})
				return err
			}
			w.unchanged("another process", func() {
				err := refusal()
				w.is(err, denied.InstanceInUse)
				until, left := engine.TakenFor(err)
				same(w, "until", until, first.ExpiresAt)
				if left <= 0 || left > ttl/2 {
					w.Fatalf("%v are left of half a ttl", left)
				}
			})
			w.register(name, "t1") // it lives
			w.advance(ttl / 2)
			w.is(refusal(), denied.InstanceInUse)
			w.advance(ttl / 2)
			row := w.lone()
			w.all("a lost worker", eq(row.Alive, false), eq(row.Dead, false))
			same(w, "its successor", w.register(name, "t2").Renewed, false)
			row = w.lone()
			same(w, "registered anew", row.RegisteredAt, row.SeenAt)
			_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: name, Token: "t1", TTL: ttl})
			w.is(err, denied.InstanceInUse) // the first was only cut off, and has lost its name
		}},
	{name: "a worker that is marked dead loses its name, not its leases", run: func(w *env) {
		name := w.homed("w")
		_, err := w.e.MarkWorkerDead(trail.As(w.ctx, "", "gone"), name)
		w.is(err, denied.NoWorker)
		w.register(name, "t1")
		k := w.worker(name)
		f := k.one(w.create()).Fence
		for _, want := range []bool{false, true} {
			already, err := w.e.MarkWorkerDead(trail.As(w.ctx, "", "does not answer"), name)
			w.no(err)
			same(w, "already", already, want)
			row := w.lone()
			w.all("row", eq(row.Alive, false), eq(row.Dead, true), eq(row.Reason, "does not answer"))
			w.check()
		}
		w.renew(k, 0)
		w.no(w.complete(f, "").Err)
		same(w, "who lives registers again", w.register(name, "t1").Renewed, false)
		row := w.lone()
		w.all("row", eq(row.Alive, true), eq(row.Dead, false), eq(row.Reason, ""))
		_, err = w.e.MarkWorkerDead(w.ctx, name)
		w.no(err)
		same(w, "another takes the name", w.register(name, "t2").Renewed, false)
	}},
	{name: "a lost worker is shown for an hour", run: func(w *env) {
		name := w.homed("w")
		w.register(name, "t1")
		seen := w.lone().SeenAt
		w.advance(ttl + time.Hour - time.Second)
		r := w.tick()
		same(w, "last seen", w.lone().SeenAt, seen)
		if r.Idle || r.Next > time.Second {
			w.Fatalf("the next tick is in %v (%v), a worker is forgotten in a second", r.Next, r.Idle)
		}
		w.advance(2 * time.Second)
		same(w, "idle", w.tick().Idle, true)
		same(w, "workers", len(w.workers()), 0)
		ms, err := w.do("PTTL", w.k.Worker(name)).AsInt64()
		w.no(err)
		if ms < time.Hour.Milliseconds() || ms > (ttl+time.Hour).Milliseconds() {
			w.Fatalf("the record goes in %d ms", ms)
		}
	}},
	{name: "listings of workers and sessions miss nobody, however long they are",
		damaged: "sessions leave the index between two pages", run: func(w *env) {
			const many = 230
			for i := range many {
				w.must("ff_register_worker", proto, fmt.Sprintf("w%03d", i), "t", "30000", "0", "0", "{}", "")
				s := fmt.Sprintf("w%03d~1", i)
				w.set("HSET", w.k.Session(s), "exp", strconv.FormatInt(w.now()+30000, 10), "cl", "0", "ttl", "30000")
				// most at the same time
				w.set("ZADD", w.k.Sessions(), strconv.FormatInt(w.now()/1000000*1000000, 10), s)
			}
			rows, sessions := w.workers(), w.sessions()
			same(w, "workers", len(rows), many)
			same(w, "sessions", len(sessions), many)
			for i := range many {
				same(w, "worker", rows[i].Instance, fmt.Sprintf("w%03d", i))
				same(w, "session", sessions[i].ID, fmt.Sprintf("w%03d~1", i))
			}
			// Who renews between two pages comes again; nobody is missed.
			seen, after := map[string]int{}, ""
			for page := 0; page == 0 || after != ""; page++ {
				a := w.must("ff_list_workers", proto, after, "50")
				after = a.slots[1]
				for i := 3; i < len(a.slots); i += 9 {
					seen[a.slots[i]]++
				}
				if page == 1 { // the one that the cursor names, and one that comes later
					_, last, _ := strings.Cut(after, " ")
					for _, name := range []string{last, "w229"} {
						w.must("ff_register_worker", proto, name, "t", "40000", "0", "0", "{}", "")
					}
				}
				if page > 10 {
					w.Fatal("the listing never ends")
				}
			}
			same(w, "workers", len(seen), many)
			after = ""
			gone := map[string]bool{}
			for page := 0; page == 0 || after != ""; page++ {
				a := w.must("ff_list_sessions", proto, after, "50")
				after = a.slots[1]
				for i := 3; i < len(a.slots); i += 5 {
					gone[a.slots[i]] = true
				}
				if _, last, ok := strings.Cut(after, " "); ok { // the cursor's session ends between two pages
					w.set("ZREM", w.k.Sessions(), last)
				}
				if page > 10 {
					w.Fatal("the listing never ends")
				}
			}
			same(w, "sessions", len(gone), many)
		}},
	{name: "a page of large worker rows stays small, and a row that is too large is shortened", run: func(w *env) {
		large := `{"pool":"` + strings.Repeat("x", engine.MaxWorkerInfo-len(`{"pool":""}`)) + `"}`
		for i := range 9 {
			w.must("ff_register_worker", proto, fmt.Sprintf("w%d", i), "t", "30000", "0", "0", large, "")
		}
		bytes := 0
		for _, slot := range w.must("ff_list_workers", proto, "", "100").slots {
			bytes += len(slot)
		}
		if bytes > 700<<10 {
			w.Fatalf("a page of %d bytes", bytes)
		}
		same(w, "workers", len(w.workers()), 9)
		same(w, "one byte more", w.fcall("ff_register_worker", proto, "x", "t", "30000", "0", "0", large+" ", "").code,
			"invalid_input")
		name := w.homed("very")
		_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: name, Token: "t", TTL: ttl,
			Info: flowfabric.WorkerInfo{Pool: "p", Kinds: slices.Repeat([]string{strings.Repeat("k", 64)}, 10_000),
				Lanes: []string{"l"}}})
		w.no(err)
		i := slices.IndexFunc(w.workers(), func(r flowfabric.Worker) bool { return r.Instance == name })
		row := w.workers()[i]
		w.all("shortened", eq(row.Truncated, true), eq(row.Pool, "p"), eqList(row.Lanes, "l"))
		if n := len(row.Kinds); n < 500 || n > 2000 {
			w.Fatalf("%d of 10,000 kinds are left", n)
		}
	}},
	{name: "the newest versions of applications are known when the rows of their workers are gone", run: func(w *env) {
		known := func() map[string]time.Time {
			w.Helper()
			p := w.e.Versions(w.ctx)[w.p]
			w.no(p.Err)
			return p.Reply
		}
		same(w, "versions", len(known()), 0)
		name := w.homed("of")
		leave := func() {
			w.Helper()
			_, err := w.e.LeaveWorker(w.ctx, name, "t")
			w.no(err)
		}
		say := func(version string) {
			w.Helper()
			_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: name, Token: "t", TTL: ttl,
				Info: flowfabric.WorkerInfo{Version: version}})
			w.no(err)
		}
		say("")
		same(w, "none is said", len(known()), 0)
		say("12")
		first := known()["12"]
		w.advance(time.Second)
		say("12")
		same(w, "seen later", known()["12"].Sub(first), time.Second)
		leave()
		same(w, "after it left", len(known()), 1)
		for i := range 300 {
			w.advance(time.Millisecond)
			say("v" + strconv.Itoa(i))
			leave()
		}
		got := known()
		_, oldest := got["12"]
		_, newest := got["v299"]
		w.all("the newest 256", eq(len(got), 256), eq(oldest, false), eq(newest, true))
		w.check()
	}},
	{name: "what a list of workers or sessions goes on from must be of its form", run: func(w *env) {
		for _, after := range []string{"x", "1", "1 ", " w", "-1 w", "1.5 w", "99999999999999999999 w"} {
			same(w, label("after %q", after), w.fcall("ff_list_workers", proto, after, "10").code, "invalid_input")
			same(w, label("after %q", after), w.fcall("ff_list_sessions", proto, after, "10").code, "invalid_input")
		}
	}},
	{name: "sessions are listed as alive, declared dead or expired", run: func(w *env) {
		a, b, c := w.worker("a"), w.worker("b"), w.worker("c")
		c.ttl = ttl / 2
		w.createN(6)
		a.claim(1)
		b.claim(2)
		c.claim(3)
		_, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "asked to"), w.p, b.session)
		w.no(err)
		w.advance(ttl / 2)
		type row struct {
			instance    string
			alive, dead bool
			reason      string
			held        int
		}
		rows := func() (all []row) {
			for _, s := range w.sessions() {
				all = append(all, row{ids.Worker(s.ID), s.Alive, s.Dead, s.Reason, s.Held})
			}
			return all
		}
		sameList(w, "sessions", rows(), row{"a", true, false, "", 1}, row{"b", false, true, "asked to", 2},
			row{"c", false, false, "", 3})
		w.settleTime()
		sameList(w, "after the tick", rows(), row{"a", true, false, "", 1})
	}},
	{name: "workers can renew and leave over the memory limit", needs: []string{"OOM"}, run: func(w *env) {
		name, other := w.homed("w"), w.homed("v")
		w.register(name, "t")
		w.register(other, "t")
		w.set("CONFIG", "SET", "maxmemory", "1")
		defer w.set("CONFIG", "SET", "maxmemory", "0")
		same(w, "renewed", w.register(name, "t").Renewed, true)
		_, err := w.e.LeaveWorker(w.ctx, name, "t")
		w.no(err)
		_, err = w.e.MarkWorkerDead(w.ctx, other)
		w.no(err)
	}},
}
