package conformance

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// refusedWhenFull are the functions that a server over its memory limit refuses, each with what it would add. Every
// other one works: what connects, ends work, hands it back, looks, repairs, deletes or moves the time on.
var refusedWhenFull = map[string]string{
	"ff_create_execution":         "executions",
	"ff_flow_create":              "a flow",
	"ff_append_log":               "lines, of which the worker counts those that were not kept",
	"ff_set_index":                "entries for what comes",
	"ff_index_executions":         "entries",
	"ff_flow_stage":               "members",
	"ff_flow_seal":                "work that may begin",
	"ff_flow_replay":              "attempts",
	"ff_make_children":            "children",
	"ff_wait_for_others":          "a list",
	"ff_fire_schedule":            "executions",
	"ff_put_schedule":             "a schedule",
	"ff_put_trigger":              "a trigger",
	"ff_publish_event":            "an event",
	"ff_put_schemas":              "schemas",
	"ff_note_times":               "times",
	"ff_claim_next":               "work that begins",
	"ff_admit":                    "work that begins",
	"ff_claim_granted":            "work that begins",
	"ff_put_gate":                 "a gate",
	"ff_spend":                    "an entry for each execution",
	"ff_reserve":                  "an entry for each reservation",
	"ff_acquire":                  "an entry for each call",
	"ff_record_step":              "a step",
	"ff_update_progress":          "a message",
	"ff_fork_execution":           "an execution",
	"ff_replay_execution":         "an attempt",
	"ff_rewind_execution":         "an attempt",
	"ff_set_tags":                 "tags",
	"ff_create_pending_waitpoint": "a waitpoint",
	"ff_suspend_execution":        "a suspension",
	"ff_expect_event":             "a wait for an event",
	"ff_deliver_signal":           "a signal",
	"ff_approve_waitpoint":        "a signal",
	"ff_send_message":             "a message",
	"ff_open_stream":              "a stream",
	"ff_write_stream":             "an entry",
	"ff_receive_messages":         "a step",
}

var serverScenarios = []scenario{
	{name: "the library refuses callers and stores of another protocol number", run: func(w *env) {
		other := strconv.Itoa(limits.Protocol + 1)
		told := func(caller, store string, details ...string) {
			w.Helper()
			w.set("HSET", string(w.k), "protocol", store)
			for _, name := range []string{"ff_poll", "ff_list_token_keys"} { // each has an entrance of its own
				a := w.fcall(name, caller)
				sameDeep(w, name+" with protocol "+caller+" on a store of "+store, a,
					answer{0, "protocol_mismatch", details})
			}
		}
		defer w.set("HSET", string(w.k), "protocol", proto)
		told(other, other, proto, other, "library")
		told(proto, other, other, proto, "store")
		told(other, proto, proto, other, "store")
	}},
	{name: "over the memory limit, running work can end but no new work begins", needs: []string{"OOM"},
		run: func(w *env) {
			k := w.worker("w1")
			k.ttl = time.Hour
			var f []flowfabric.Fence
			for range 6 {
				f = append(f, k.one(w.create(retries(1))).Fence)
			}
			waiting := w.create(deadline(time.Second))
			w.create(delay(time.Second))
			full := func() { w.set("CONFIG", "SET", "maxmemory", "1") }
			full()
			defer w.set("CONFIG", "SET", "maxmemory", "0")
			w.unchanged("what needs memory", func() {
				_, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item()})
				w.is(err, flowfabric.ErrOutOfMemory)
				_, err = w.e.ClaimNext(w.ctx, k.request(1))
				w.is(err, flowfabric.ErrOutOfMemory)
				_, err = w.e.RecordStep(w.ctx, f[0], "s", nil, 0)
				w.is(err, flowfabric.ErrOutOfMemory)
			})
			w.renew(k, 0)
			w.frames(f[0], 1, 1) // a handler whose frames are refused could never settle
			w.no(w.complete(f[0], "result").Err)
			same(w, "fail", w.fail(f[1], "x").Retry, true)
			w.delay(f[2], time.Second)
			w.release(f[3])
			w.cancel(f[4].Execution)
			w.set("CONFIG", "SET", "maxmemory", "0") // moving the test clock takes memory
			w.advance(time.Second)
			full()
			r, _ := w.settleTime()
			w.all("time goes on", eq(r.Expired, 1), eq(r.Promoted, 3))
			w.code(waiting, "T4n")
			w.no(w.complete(f[5], "").Err)
			w.no(w.e.CloseSession(w.ctx, w.p, k.session))
		}},
	{name: "over the memory limit, only calls that make the store grow are refused", needs: []string{"OOM"},
		run: func(w *env) {
			w.set("CONFIG", "SET", "maxmemory", "1")
			defer w.set("CONFIG", "SET", "maxmemory", "0")
			for _, h := range contract.Functions() {
				err := w.raw.Do(w.ctx,
					w.raw.B().Fcall().Function(h.Name).Numkeys(1).Key(string(w.k)).Arg("0").Build()).Error()
				refused := err != nil && strings.HasPrefix(err.Error(), "OOM ")
				if why := refusedWhenFull[h.Name]; refused != (why != "") {
					w.Errorf("%s over the memory limit: %v; the table says it is refused because %q", h.Name, err, why)
				}
			}
			for name := range refusedWhenFull {
				if functionsByName()[name].Name == "" {
					w.Errorf("the table names %s, which does not exist", name)
				}
			}
		}},
	{name: "an idle execution takes at most 2 KiB of memory", needs: []string{"MemoryFigures"}, run: func(w *env) {
		policy := flowfabric.Policy{Retry: valid.DefaultRetry(), AttemptTimeout: flowfabric.Millis(time.Minute)}
		policy.Retry.MaxRetries = 50
		id := w.create(func(x *engine.NewExecution) {
			x.Namespace, x.Lane, x.Kind, x.Creator = strings.Repeat("n", 64), strings.Repeat("l", 64),
				strings.Repeat("k", 64), strings.Repeat("c", 64)
			x.Policy, x.Priority, x.Deadline, x.Payload = policy, 9000, flowfabric.Millis(24*time.Hour), []byte("{}")
			x.Digest = strings.Repeat("d", 64)
		}, tags(map[string]string{"a.b": "c"}))
		core := w.k.Core(ids.UUID(id))
		w.atMost(core, "fresh", 448)
		k := w.worker(strings.Repeat("i", 48))
		k.ttl = time.Hour
		c := k.one(id)
		w.atMost(core, "active", 600)
		w.release(c.Fence)
		c = k.one(id)
		w.frames(c.Fence, 1, 1)
		_, err := w.e.RecordStep(w.ctx, c.Fence, "s", []byte("v"), 0)
		w.no(err)
		for range 3 {
			_, err := w.e.FailExecution(w.ctx, c.Fence,
				engine.Failure{Category: flowfabric.Category(strings.Repeat("f", 64)), Reason: strings.Repeat("r",
					10<<10)})
			w.no(err)
			w.advance(2 * time.Minute)
			w.settleTime()
			c = k.one(id)
		}
		w.atMost(core, "after retries with 10 KiB reasons", 768)
		w.advance(2 * time.Hour)
		w.settleTime()
		k = w.worker("w2")
		c = k.one(id)
		_, err = w.e.CancelExecution(trail.As(w.ctx, "", strings.Repeat("r", 10<<10)), id,
			engine.Cancellation{Source: engine.CancelOwner, Fence: &c.Fence})
		w.no(err)
		w.check()
		w.atMost(core, "cancelled", 768)
		plain := w.create(retries(3), payload(make([]byte, 64)))
		total := int64(128) // its entry in the route's queue
		for _, key := range w.keys() {
			if strings.Contains(key, ids.UUID(plain).String()) {
				n, err := w.do("MEMORY", "USAGE", key).AsInt64()
				w.no(err)
				total += n
			}
		}
		if total > 2048 {
			w.Fatalf("an idle execution takes %d bytes, want at most 2 KiB", total)
		}
		w.Logf("an idle execution with 64 B of input takes %d bytes", total)
	}},
	{name: "a lost library is loaded again exactly once, however many calls miss it", needs: []string{"Native"},
		run: func(w *env) {
			loads := func() (n int) {
				info, err := w.do("INFO", "commandstats").ToString()
				w.no(err)
				for line := range strings.Lines(info) {
					if rest, ok := strings.CutPrefix(line, "cmdstat_function|load:calls="); ok {
						rest, _, _ = strings.Cut(rest, ",")
						n, _ = strconv.Atoi(rest)
					}
				}
				return n
			}
			for _, lost := range []string{"flush", "older"} {
				before := loads()
				// Valkey 8.0 may die when it frees a library in the background and is given another
				w.set("FUNCTION", "FLUSH", "SYNC")
				if lost == "older" {
					w.set("FUNCTION", "LOAD",
						"#!lua name="+library.Name+
							"\nredis.register_function{function_name='ff_version', callback=function() return {1,'OK','"+
							proto+"','0','old'} end, flags={'no-writes'}}")
					before++
				}
				var failed atomic.Int32
				together(20, func(i int) {
					if _, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item()}); err != nil {
						w.Error(err)
						failed.Add(1)
					}
				})
				same(w, "failed", failed.Load(), 0)
				same(w, "loads after "+lost, loads()-before, 1)
			}
			w.check()
		}},
	{name: "a newer library is never replaced, and one of another protocol is refused", run: func(w *env) {
		for revision, want := range map[string]error{proto + "','999": nil, strconv.Itoa(limits.Protocol+1) +
			"','1": flowfabric.ErrProtocol, strconv.Itoa(limits.Protocol-1) + "','1": flowfabric.ErrProtocol} {
			w.set("FUNCTION", "FLUSH", "SYNC")
			w.set("FUNCTION", "LOAD",
				"#!lua name="+library.Name+
					"\nredis.register_function{function_name='ff_version', callback=function() return {1,'OK','"+
					revision+"','x'} end, flags={'no-writes'}}")
			text, err := w.do("FUNCTION", "LIST").ToMessage()
			w.no(err)
			_, callErr := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item()})
			if callErr == nil || want != nil && !errors.Is(callErr, want) {
				w.Fatalf("revision %s: %v", revision, callErr)
			}
			if _, err := w.open(engine.Config{}); want != nil {
				w.is(err, want)
			}
			still, err := w.do("FUNCTION", "LIST").ToMessage()
			w.no(err)
			same(w, "library", still.String(), text.String())
		}
		w.set("FUNCTION", "FLUSH", "SYNC")
		w.create()
	}},
	{name: "an older library in place of a lost one is replaced", run: func(w *env) {
		before := strconv.Itoa(library.Revision - 1)
		older := strings.ReplaceAll(library.Library(library.Variant{Sharded: w.srv.Features.ShardedPubSub,
			TestClock: true}), library.Hash(), library.Hash()+"t")
		for _, said := range []string{"reply.ok('" + strconv.Itoa(limits.Protocol) + "', '",
			"'renewed' or 'registered', expiry, '"} {
			if strings.Count(older, said+strconv.Itoa(library.Revision)) != 1 {
				w.Fatalf("the library does not say %q once", said)
			}
			older = strings.Replace(older, said+strconv.Itoa(library.Revision), said+before, 1)
		}
		revision := func() string { return w.fcallOn(nil, "ff_version").slots[1] }
		lacks := func(function string) string {
			return strings.ReplaceAll(older, "function_name='"+function+"'", "function_name='ff_other'")
		}
		for _, c := range []struct {
			what, text string
			notice     func()
		}{
			{"by a worker that renews its registration", older, func() { w.register(w.homed("w"), "t") }},
			{"by a call that it does not have", lacks("ff_read_history"), func() {
				_, err := w.e.ReadHistory(w.ctx, w.create())
				w.no(err)
			}},
		} {
			w.set("FUNCTION", "FLUSH", "SYNC")
			w.set("FUNCTION", "LOAD", c.text)
			w.create() // most calls are as they are
			w.worker("w1").claim(1)
			same(w, "revision", revision(), before)
			c.notice()
			same(w, "revision, noticed "+c.what, revision(), strconv.Itoa(library.Revision))
		}
	}},
	{name: "the first boot of an empty store fixes the partition counts", run: func(w *env) {
		no := false
		e, err := w.open(engine.Config{Partitions: 7, CreateConfig: &no})
		w.no(err)
		same(w, "partitions", e.Partitions(), partitions)
		e.Close()
		_, err = w.e.CreateExecutions(w.ctx, partitions,
			[]engine.NewExecution{{ID: mint.ID(partitions)}})
		w.is(err, flowfabric.ErrInvalidInput)
		w.set("RENAME", "ff:config:partitions", "lost{ff:config:partitions}")
		for _, cfg := range []engine.Config{{CreateConfig: &no}, {Partitions: partitions}} {
			_, err = w.open(cfg)
			w.is(err, flowfabric.ErrCorrupt) // others than the store had would hide what is there
		}
		w.set("RENAME", "lost{ff:config:partitions}", "ff:config:partitions")
	}},
	{name: "the first call after a flush boots the partition again, without its former contents", run: func(w *env) {
		x := w.state("A1")
		w.set(append([]string{"DEL"}, w.keys()...)...)
		_, err := w.e.RenewSession(w.ctx, w.p, x.worker.session, ttl, 0)
		w.is(err, denied.LeaseExpired)
		_, err = w.e.ReadExecution(w.ctx, x.id)
		w.is(err, flowfabric.ErrNotFound)
		w.reset()
		w.worker("w1").one(w.create())
	}},
}

var persistenceScenarios = []scenario{
	{name: "acknowledged work survives a killed server", run: func(w *env) {
		w.createN(30, retries(1), tags(map[string]string{"a.b": "c"}))
		k := w.worker("w1")
		claims := k.claim(10)
		for i, c := range claims[:6] {
			if i < 3 {
				w.no(w.complete(c.Fence, "r").Err)
			} else {
				w.frames(c.Fence, 1, 5)
				w.modes(c.Fence, 6, summaryDelta(1), durableFrame(0), summaryDelta(2))
				w.fail(c.Fence, "x")
			}
		}
		w.modes(claims[8].Fence, 1, summaryDelta(1))
		before := w.digest()
		w.srv.Restart()
		await(w.T, "the clients are back", func() bool { return w.do("PING").Error() == nil && w.e.Ping(w.ctx) == nil })
		if after := w.digest(); after != before {
			w.Fatalf("lost:\n%s", difference(before, after))
		}
		last := w.meta(claims[8].Fence).LastID
		w.frames(claims[8].Fence, 2, 1)
		same(w, "ids go on", w.meta(claims[8].Fence).LastID.Compare(last), 1)
		w.no(w.complete(claims[7].Fence, "r").Err)
		w.renew(k, 0)
		same(w, "claims go on", len(k.claim(100)), 20)
	}},
}

// open opens a second engine on the same store.
func (w *env) open(cfg engine.Config) (*engine.Engine, error) {
	ctx, cancel := testwait.Context(w.T, w.ctx)
	defer cancel()
	cfg.URL, cfg.TestClock, cfg.Logger = w.srv.URL, true, slog.New(slog.DiscardHandler)
	e, err := engine.Open(ctx, cfg)
	if err == nil {
		w.Cleanup(e.Close)
	}
	return e, err
}

// atMost checks the size and the compact encoding of a core.
func (w *env) atMost(key, what string, bytes int64) {
	w.Helper()
	n, err := w.do("MEMORY", "USAGE", key).AsInt64()
	w.no(err)
	w.Logf("record, %s: %d bytes", what, n)
	if n > bytes {
		w.Errorf("record, %s: %d bytes, want at most %d", what, n, bytes)
	}
}
