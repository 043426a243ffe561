package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/stream"
)

var claimScenarios = []scenario{
	{name: "a claim returns the fence, input, tags and limits of a fresh execution", run: func(w *env) {
		w.advance(time.Hour)
		id := w.create(priority(7), timeout(time.Minute), deadline(time.Hour), tags(map[string]string{"a.b": "c"}),
			payload([]byte("\x00\xff in")))
		k := w.worker("w1")
		before := w.now()
		c := k.one(id)
		same(w, "fence", c.Fence, flowfabric.Fence{Execution: id, Session: k.session, Claim: 1, Epoch: c.Fence.Epoch,
			Attempt: 1})
		if c.Fence.Epoch < uint64(before) {
			w.Fatalf("epoch %d is below the server's clock", c.Fence.Epoch)
		}
		same(w, "type", c.Type, flowfabric.AttemptInitial)
		same(w, "input", string(c.Input), "\x00\xff in")
		sameDeep(w, "tags", c.Tags, map[string]string{"a.b": "c"})
		w.all("the rest", eq(c.Priority, 7), eq(c.Retries, 0), eq(c.Reclaims, 0), eq(c.LastSequence, 0),
			eq(c.TimeLeft, time.Minute), eq(len(c.Steps), 0))
		if c.DeadlineIn > time.Hour || c.DeadlineIn < 59*time.Minute {
			w.Fatalf("deadline in %s", c.DeadlineIn)
		}
		s := w.code(id, "A1")
		w.all("snapshot", eq(s.Attempts, 1), eq(s.AttemptType, "initial"), eq(s.Session, k.session),
			eq(s.Epoch, c.Fence.Epoch))
		same(w, "lease", s.LeaseExpiresAt.Sub(s.ClaimedAt), ttl)
		held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
		w.no(err)
		sameList(w, "held", held, engine.Held{Execution: id, Claim: 1})
		k.nothing()
	}},
	{name: "a claim repeated under its number returns the same claims", run: func(w *env) {
		ids := w.createN(5, timeout(time.Minute))
		k := w.worker("w1")
		k.nothingYet()
		request := k.request(3)
		first, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		same(w, "claimed", len(first.Claims), 3)
		w.sameBut("the repeated claim", func() {
			again, err := w.e.ClaimNext(w.ctx, request)
			w.no(err)
			same(w, "duplicate", again.Duplicate, true)
			byID := map[flowfabric.ExecutionID]engine.Claim{}
			for _, c := range again.Claims {
				c.TimeLeft = 0
				byID[c.Fence.Execution] = c
			}
			for _, c := range first.Claims {
				c.TimeLeft = 0
				sameDeep(w, "slots", byID[c.Fence.Execution], c)
			}
		}, ":s:")
		// What was settled meanwhile is not handed out again.
		w.complete(first.Claims[0].Fence, "")
		again, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		same(w, "still held", len(again.Claims), 2)
		w.check()
		for _, number := range []uint64{3, 7} {
			w.unchanged("a claim out of order", func() {
				request.Number = number
				_, err := w.e.ClaimNext(w.ctx, request)
				w.is(err, denied.ClaimOrder)
			})
		}
		request.Number = 2
		next, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		same(w, "the rest", len(next.Claims), 2)
		for _, c := range next.Claims {
			same(w, "one of ours", slices.Contains(ids[3:], c.Fence.Execution), true)
		}
		request.Number = 1
		_, err = w.e.ClaimNext(w.ctx, request)
		w.is(err, denied.ClaimOrder)
		w.check()
	}},
	{name: "a route that a claim empties with a full slice leaves the ready set", run: func(w *env) {
		ids := w.createN(64, kind("a"))
		for _, k := range []string{"b", "c", "d"} {
			ids = append(ids, w.create(kind(k)))
		}
		k := w.worker("w1")
		claimed := 0
		for range 8 { // four routes share 256 heads, 64 each: the first route's slice is exactly its queue
			claimed += len(k.claim(64))
		}
		same(w, "claimed", claimed, len(ids))
		same(w, "ready", len(w.ready()), 0)
	}},
	{name: "claims merge several routes into one order of priority and age", run: func(w *env) {
		total := 0
		for k, n := range []int{1, 3, 50, 7, 20} {
			for i := range n {
				w.create(kind("k"+strconv.Itoa(k)), priority((i*7+k*3)%5))
				if total++; total%3 == 0 {
					w.advance(time.Millisecond)
				}
			}
		}
		k := w.worker("w1")
		var all []engine.Claim
		for _, size := range []int{1, 2, 20, 20, 3, 20, 20} {
			all = append(all, k.claim(size)...)
		}
		same(w, "claimed", len(all), total)
		sorted := slices.SortedFunc(slices.Values(all), func(a, b engine.Claim) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.CreatedAt.Compare(b.CreatedAt),
				strings.Compare(a.Fence.Execution.String(), b.Fence.Execution.String()))
		})
		for i := range all {
			same(w, fmt.Sprintf("place %d", i), all[i].Fence.Execution, sorted[i].Fence.Execution)
		}
	}},
	{name: "a completion cleans up deadlines, timeouts, frames and waitpoints in any combination", run: func(w *env) {
		ways := map[string]option{"nothing": payload(nil), "deadline": deadline(time.Hour),
			"timeout": timeout(time.Minute), "both": func(x *engine.NewExecution) {
				deadline(time.Hour)(x)
				timeout(time.Minute)(x)
			}, "retention": retention(time.Hour), "frames": payload(nil), "waitpoint": payload(nil),
			"waitpoint, and claimed again":     payload(nil),
			"frames, and no tag any more":      tags(map[string]string{"a.b": "c"}),
			"frames, and no priority any more": priority(3)}
		w.rotate("k1", 0)
		k := w.worker("w1")
		for way, with := range ways {
			id := w.create(with)
			c := k.one(id)
			switch way {
			case "frames, and no tag any more":
				w.no(w.e.SetTags(w.ctx, id, nil, []string{"a.b"}))
			case "frames, and no priority any more":
				_, _, err := w.e.ChangePriority(w.ctx, id, 0)
				w.no(err)
			}
			if strings.HasPrefix(way, "frames") {
				_, err := w.e.AppendFrames(w.ctx, c.Fence, 1, []stream.Frame{{Type: "token", Payload: []byte("x")}})
				w.no(err)
			}
			switch way {
			case "waitpoint":
				w.pend(c.Fence, "p")
			case "waitpoint, and claimed again":
				w.pend(c.Fence, "p")
				w.release(c.Fence)
				c = k.one(id)
			}
			w.check()
			w.complete(c.Fence, "r")
			w.code(id, "T1")
			kept, err := w.do("ZSCORE", w.k.Done(), ids.UUID(id).String()).AsFloat64()
			w.no(err)
			want := 24 * time.Hour
			if way == "retention" {
				want = time.Hour
			}
			same(w, way+": kept until", int64(kept), w.at(id, "en")+want.Milliseconds())
			if strings.HasPrefix(way, "frames") {
				same(w, "why the stream ended", w.hash(w.k.Meta(ids.UUID(id), 1))["y"], "attempt_success")
			}
		}
	}},
	{name: "racing workers never claim the same execution", run: func(w *env) {
		w.createN(60)
		var mu sync.Mutex
		got := map[flowfabric.ExecutionID]int{}
		workers := make([]*worker, 6)
		for i := range workers {
			workers[i] = w.worker("w" + strconv.Itoa(i))
			workers[i].nothingYet()
		}
		together(len(workers), func(i int) {
			k := workers[i]
			for {
				r, err := w.e.ClaimNext(w.ctx, k.request(4))
				if err != nil {
					w.Error(err)
					return
				}
				if len(r.Claims) == 0 {
					return
				}
				k.number++
				mu.Lock()
				for _, c := range r.Claims {
					got[c.Fence.Execution]++
				}
				mu.Unlock()
			}
		})
		same(w, "claimed", len(got), 60)
		for id, n := range got {
			same(w, id.String(), n, 1)
		}
		w.check()
	}},
	{name: "a claim of released work continues the attempt under a newer epoch", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		c := k.one(id)
		w.release(c.Fence)
		w.code(id, "R1i")
		again := w.worker("w2").one(id)
		same(w, "type", again.Type, flowfabric.AttemptResumed)
		same(w, "attempt", again.Fence.Attempt, c.Fence.Attempt)
		same(w, "newer", again.Fence.Epoch > c.Fence.Epoch, true)
		same(w, "attempts", w.read(id).Attempts, 1)
	}},
	{name: "a claim for a session without a name is refused", run: func(w *env) {
		w.create()
		k := w.worker("w1")
		k.nothingYet()
		good := claimArgs(k.request(1))
		for _, v := range []string{"", "x", "~x", "x~", "no suffix", "a{b~x", "tab\t~x"} {
			args := slices.Clone(good)
			args[1] = v
			w.unchanged(v, func() { same(w, v, w.fcall("ff_claim_next", args...).code, "invalid_input") })
		}
	}},
	{name: "claims follow priority, then age, then order of creation", run: func(w *env) {
		low, high := w.create(priority(1)), w.create(priority(9))
		k := w.worker("w1")
		k.one(high)
		k.one(low)
		older := w.create(priority(3))
		w.advance(time.Millisecond)
		younger := w.create(priority(3))
		k.one(older)
		k.one(younger)
		w.reset()
		k = w.worker("w1")
		ids := w.createN(100) // one call, one millisecond
		var got []flowfabric.ExecutionID
		for _, n := range []int{1, 9, 30, 60} {
			for _, c := range k.claim(n) {
				got = append(got, c.Fence.Execution)
			}
		}
		if !slices.Equal(got, ids) {
			w.Fatal("the order of creation is lost")
		}
		// Across routes the best head wins, whichever route it is in.
		w.reset()
		k = w.worker("w1")
		var want []flowfabric.ExecutionID
		for i := range 12 {
			want = append(want, w.create(kind("k"+strconv.Itoa(i%4)), priority(12-i)))
		}
		for i, c := range k.claim(12) {
			same(w, "across routes", c.Fence.Execution, want[i])
		}
	}},
	{name: "retried work keeps its age", run: func(w *env) {
		old := w.create(retries(3))
		w.advance(time.Second)
		young := w.create()
		k := w.worker("w1")
		w.fail(k.one(old).Fence, "x")
		w.advance(2 * time.Second)
		w.tick()
		k.one(old)
		k.one(young)
	}},
	{name: "a claimed execution does not block those behind it in its queue", run: func(w *env) {
		ids := w.createN(3)
		w.worker("w1").one(ids[0])
		w.worker("w2").one(ids[1])
		w.worker("w3").one(ids[2])
	}},
	{name: "a claim takes no more than it asks for, and released work is claimable at once", run: func(w *env) {
		ids := w.createN(3)
		k := w.worker("w1")
		r := k.poll(2)
		same(w, "only what was asked for", len(r.Claims), 2)
		same(w, "and more is there", r.More, true)
		w.release(r.Claims[0].Fence)
		other := w.worker("w2").poll(5)
		same(w, "claimable", len(other.Claims), 2)
		same(w, "the older first", other.Claims[0].Fence.Execution, ids[0])
		same(w, "and no more", other.More, false)
	}},
	{name: "a worker claims only from routes that it can run", run: func(w *env) {
		plain := w.create(kind("a"))
		gpu := w.create(kind("a"), capabilities("gpu", "ssd"))
		other := w.create(kind("b"))
		slow := w.create(kind("a"), lane("slow"))
		k := w.worker("cpu")
		k.can = func(r engine.Route) bool { return r.Kind == "a" && r.Lane == "default" && len(r.Capabilities) == 0 }
		k.one(plain)
		same(w, "waits instead", k.nothing().Registered, true)
		big := w.worker("gpu")
		big.can = func(r engine.Route) bool { return r.Kind == "a" && r.Lane == "default" }
		big.one(gpu)
		big.nothing()
		for _, id := range []flowfabric.ExecutionID{other, slow} {
			w.code(id, "R1f")
		}
		none := w.worker("none")
		none.can = func(engine.Route) bool { return false }
		none.nothing()
	}},
	{name: "equal sets of routes are one subscription, and a claim with an unknown one is refused", run: func(w *env) {
		w.create()
		k := w.worker("w1")
		k.subscription = "abcdef"
		w.unchanged("an unknown subscription", func() {
			_, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.is(err, denied.UnknownSubscription)
		})
		a, err := w.e.SetSubscription(w.ctx, w.p, engine.Subscription{Classes: []uint64{3, 1, 2, 2}})
		w.no(err)
		b, err := w.e.SetSubscription(w.ctx, w.p, engine.Subscription{Classes: []uint64{1, 2, 3}})
		w.no(err)
		same(w, "digest", a, b)
		c, err := w.e.SetSubscription(w.ctx, w.p, engine.Subscription{})
		w.no(err)
		same(w, "another", a != c, true)
		sameList(w, "members", w.dump().Sets[":sub:"+a], "0", "1", "2", "3", "c1", "c2", "c3")
		w.check()
	}},
	{name: "a claim inlines up to 512 KiB of inputs, and the engine reads the rest", run: func(w *env) {
		big := strings.Repeat("x", 300<<10)
		for _, in := range []string{big + "0", big + "1", "small"} {
			w.create(payload([]byte(in)))
		}
		k := w.worker("w1")
		k.nothingYet()
		a := w.must("ff_claim_next", claimArgs(k.request(3))...)
		modes := []string{}
		for _, slot := range a.slots {
			if h := strings.Fields(slot); len(h) == claimWords {
				modes = append(modes, h[13])
			}
		}
		sameList(w, "on the wire", modes, "1", "2", "1")
		r, err := w.e.ClaimNext(w.ctx, k.request(3)) // the repeat, decoded
		w.no(err)
		for i, want := range []string{big + "0", big + "1", "small"} {
			same(w, "input "+strconv.Itoa(i), string(r.Claims[i].Input) == want, true)
		}
		w.check()
	}},
	{name: "every later claim returns the recorded steps", run: func(w *env) {
		id := w.create(retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		big := strings.Repeat("s", limits.MaxStepBytes)
		for i := range 3 {
			already, err := w.e.RecordStep(w.ctx, f, "step "+strconv.Itoa(i), []byte(big), 0)
			w.no(err)
			same(w, "already", already, false)
		}
		w.check()
		w.fail(f, "x")
		w.advance(time.Second)
		w.tick()
		c := k.one(id)
		same(w, "type", c.Type, flowfabric.AttemptRetry)
		same(w, "steps", len(c.Steps), 3) // more than is inlined
		same(w, "step", string(c.Steps["step 2"]) == big, true)
		w.release(c.Fence)
		w.reset()
		id = w.create()
		f = k.fresh().one(id).Fence
		_, err := w.e.RecordStep(w.ctx, f, "s", []byte("\x00v"), 0)
		w.no(err)
		w.release(f)
		same(w, "inlined", string(w.worker("w2").one(id).Steps["s"]), "\x00v")
	}},
	{name: "steps beyond 1,000, 256 KiB each or 8 MiB in total are refused", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		args := append([]string{proto}, fenceArgs(f)...)
		for i := range limits.MaxSteps {
			w.must("ff_record_step", append(slices.Clone(args), "s"+strconv.Itoa(i), "", "0", "")...)
		}
		w.check()
		w.unchanged("one step more", func() {
			_, err := w.e.RecordStep(w.ctx, f, "one more", nil, 0)
			w.is(err, denied.StepLimit)
			_, err = w.e.RecordStep(w.ctx, f, "s1", []byte("other"), 0)
			w.is(err, denied.StepConflict)
			_, err = w.e.RecordStep(w.ctx, f, "big", make([]byte, limits.MaxStepBytes+1), 0)
			w.is(err, flowfabric.ErrPayloadTooLarge)
			already, err := w.e.RecordStep(w.ctx, f, "s1", nil, 0)
			w.no(err)
			same(w, "already", already, true)
		})
		w.reset()
		f = w.worker("w1").one(w.create()).Fence
		for i := range 31 {
			_, err := w.e.RecordStep(w.ctx, f, "s"+strconv.Itoa(i), make([]byte, limits.MaxStepBytes), 0)
			w.no(err)
		}
		w.unchanged("more than 8 MiB", func() {
			_, err := w.e.RecordStep(w.ctx, f, "last", make([]byte, limits.MaxStepBytes), 0)
			w.is(err, denied.StepLimit)
		})
	}},
	{name: "a claim repairs queue entries that contradict the record", run: func(w *env) {
		waiting, delayed, active, ended := w.create(), w.create(delay(time.Hour)), w.create(priority(9)),
			w.create(priority(8))
		k := w.worker("w1")
		k.one(active)
		w.complete(k.one(ended).Fence, "")
		elsewhere := w.create(kind("other"))
		queue := ":q:" + w.core(waiting)["r"]
		for i, id := range []string{ids.UUID(delayed).String(), ids.UUID(active).String(), ids.UUID(ended).String(),
			ids.UUID(elsewhere).String(), ids.UUID(mint.ID(0)).String()} {
			w.set("ZADD", string(w.k)+queue, strconv.Itoa(-1000+i), id)
		}
		w.set("ZREM", string(w.k)+":delayed", ids.UUID(delayed).String())
		k.can = func(r engine.Route) bool { return r.Kind == "k" }
		k.subscription = ""
		k.table = 0
		c := k.claim(100)
		same(w, "claimed", len(c) == 1 && c[0].Fence.Execution == waiting, true)
		w.code(delayed, "R2af")
		k.can = func(engine.Route) bool { return true }
		k.subscription, k.table = "", 0
		k.one(elsewhere)
	}},
	{name: "a record of an unknown state holds up no claim behind it and can be cancelled", run: func(w *env) {
		broken, good := w.create(priority(9)), w.create()
		w.quiet = true
		w.editRecord(ids.UUID(broken), func(f fields) { f["s"] = "R9f" })
		c := w.worker("w1").claim(2)
		same(w, "claimed", len(c) == 1 && c[0].Fence.Execution == good, true)
		w.cancel(broken)
		w.code(broken, "T3n")
	}},
	{name: "a completion can claim the next execution in the same call", run: func(w *env) {
		ids := w.createN(3)
		k := w.worker("w1")
		c := k.one(ids[0])
		next := k.request(1)
		s, r, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: c.Fence, Result: []byte("r")}},
			&next)
		w.no(err)
		w.no(s[0].Err)
		same(w, "claimed", r.Claims[0].Fence.Execution, ids[1])
		k.number++
		w.check()
		w.sameBut("the same call again", func() {
			s, again, err := w.e.CompleteExecutions(w.ctx, w.p,
				[]engine.Completion{{Fence: c.Fence, Result: []byte("r")}}, &next)
			w.no(err)
			same(w, "already", s[0].Already, true)
			same(w, "duplicate", again.Duplicate, true)
			sameDeep(w, "the same claim", again.Claims, r.Claims)
		}, ":s:")
		// A refused claim does not undo the completion.
		bad := k.request(1)
		bad.Number = 99
		s, r2, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: r.Claims[0].Fence}}, &bad)
		w.is(err, denied.ClaimOrder)
		same(w, "settled", len(s) == 1 && s[0].Err == nil && r2 == nil, true)
		w.code(ids[1], "T1")
		w.check()
	}},
}
