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
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What a suspension means for streams, delays, sessions and memory.
var pauseScenarios = []scenario{
	{name: "a suspended attempt accepts no frames, and its stream continues after it resumes", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		first := w.frames(c.Fence, 1, 2)
		m := w.stopped(c.Fence, resumedAfter(time.Second))
		refuse := func(code string) {
			w.Helper()
			w.code(id, codes.Code(code))
			w.refuses("an append in "+code, denied.NotActive, code, func() error {
				_, err := w.e.AppendFrames(w.ctx, c.Fence, 3, []stream.Frame{{}})
				return err
			})
		}
		refuse("S1")
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		refuse("R2c")
		w.advance(time.Second)
		w.tick()
		refuse("R1i")
		again := k.one(id)
		w.all("last sequence", eq(again.Fence.Attempt, 1), eq(again.LastSequence, 2))
		last := w.frames(again.Fence, 3, 2)
		w.all("one stream", eq(last.Count, 4), eq(last.LastSequence, 4), eq(last.LastID.Compare(first.LastID), 1))
		w.refuses("an append of the old holder", denied.StaleAppend, "superseded", func() error {
			_, err := w.e.AppendFrames(w.ctx, c.Fence, 5, []stream.Frame{{}})
			return err
		})
		list, err := w.e.ReadFrames(w.ctx, id, 1, stream.Cursor{}, 10)
		w.no(err)
		for i, x := range list {
			w.all("frame", eq(x.Sequence, uint64(i+1)), eq(string(x.Payload), fmt.Sprint(i+1)))
		}
		same(w, "frames", len(list), 4)
	}},
	{name: "the closed stream of a suspended attempt states why it ended", run: func(w *env) {
		type end struct {
			behaviour, reason string
			run               func(id flowfabric.ExecutionID)
		}
		later := func(flowfabric.ExecutionID) { w.advance(time.Minute); w.settleTime() }
		ends := []end{
			{"fail", "suspension_timeout", later}, {"cancel", "suspension_timeout", later},
			{"expire", "suspension_timeout", later},
			{"auto_resume", "", later}, {"auto_resume_with_timeout_signal", "", later}, {"escalate", "", later},
			{"fail", "attempt_cancelled", w.cancel}, {"fail", "", w.resume},
			{"escalate", "expired", func(flowfabric.ExecutionID) { w.advance(time.Hour); w.settleTime() }},
		}
		for _, e := range ends {
			for _, frames := range []int{2, 0} {
				w.reset()
				w.seed()
				_, c := w.holder(retries(3), deadline(time.Hour))
				id := c.Fence.Execution
				if frames > 0 {
					w.frames(c.Fence, 1, frames)
				}
				w.stopped(c.Fence, within(time.Minute, e.behaviour))
				stream := func() engine.StreamMeta {
					m, err := w.e.ReadAttemptStream(w.ctx, id, 1)
					w.no(err)
					return m
				}
				same(w, "open while it waits", stream().Closed, false)
				e.run(id)
				m := stream()
				what := fmt.Sprintf("%s, %q, %d frames", e.behaviour, e.reason, frames)
				w.all(what, eq(m.Closed, e.reason != ""), eq(m.ClosedReason, e.reason), eq(m.Exists, frames > 0),
					eq(m.Count, uint64(frames)))
				if e.reason == "" {
					continue
				}
				_, err := w.e.ReplayExecution(w.ctx, id, engine.Replay{Force: true})
				w.no(err)
				w.cancel(id)
				same(w, what+", replayed", stream().ClosedReason, e.reason)
			}
		}
	}},
	{name: "a resume delay ends at its exact millisecond", run: func(w *env) {
		w.seed()
		w.stop()
		k, c := w.holder()
		k.ttl = time.Hour
		id := c.Fence.Execution
		by := map[string]func(m engine.Minted){
			"policy": func(m engine.Minted) { w.signal(id, m, "go", waitwords.EffectSatisfied) },
			"operator": func(engine.Minted) {
				_, err := w.e.ResumeExecution(trail.As(w.ctx, "op", ""), id,
					engine.ResumeRequest{Delay: 200 * time.Millisecond})
				w.no(err)
				w.check()
			},
		}
		for _, who := range []string{"policy", "operator", "policy"} { // a second time as well: the first was cleared
			m := w.stopped(c.Fence, resumedAfter(200*time.Millisecond))
			by[who](m)
			s := w.code(id, "R2c")
			pin, _ := strconv.ParseInt(w.root()["clock_pin"], 10, 64)
			w.all(who, eq(s.State.Public, "delayed"), eq(s.State.BlockingReason, "waiting_for_resume_delay"),
				eq(s.DelayUntil.UnixMilli()-pin, 200))
			w.pass(199 * time.Millisecond)
			same(w, "early", w.tick().Promoted, 0)
			w.pass(time.Millisecond)
			same(w, "on time", w.tick().Promoted, 1)
			same(w, "cleared", w.code(id, "R1i").DelayUntil.IsZero(), true)
			c = k.one(id)
		}
	}},
	{name: "a token of an earlier suspension never affects a later one", run: func(w *env) {
		w.seed()
		replay := func(s sleeper) { w.replay(s.id, engine.Replay{Force: true}) }
		ends := map[string]func(s sleeper){
			"signal":   func(s sleeper) { w.signal(s.id, s.wp, "go", waitwords.EffectSatisfied) },
			"operator": func(s sleeper) { w.resume(s.id) },
			"timeout":  func(sleeper) { w.advance(time.Minute); w.settleTime() },
			"cancel":   func(s sleeper) { w.cancel(s.id); replay(s) },
			"deadline": func(s sleeper) { w.advance(time.Hour); w.settleTime(); replay(s) },
		}
		for what, end := range ends {
			_, c := w.holder(deadline(time.Hour))
			s := sleeper{c.Fence.Execution, c.Fence, engine.Minted{}}
			pending := w.pend(c.Fence, "pending")
			behaviour := map[string]string{"timeout": "auto_resume", "deadline": "escalate", "signal": "fail",
				"operator": "fail", "cancel": "fail"}[what]
			s.wp = w.stopped(c.Fence, within(time.Minute, behaviour))
			end(s)
			old := w.delivering(s.id, s.wp, suspend.SentSignal{Name: "go"})
			w.refuses(what+": while it is claimable", flowfabric.ErrWaitpointClosed, "", old)
			c = w.claims(s.id)
			w.refuses(what+": while it runs", flowfabric.ErrWaitpointClosed, "", old)
			next := w.stopped(c.Fence)
			w.refuses(what+": while it waits anew", flowfabric.ErrWaitpointClosed, "", old)
			if what == "cancel" || what == "deadline" {
				w.refuses(what+": a pending one", flowfabric.ErrWaitpointClosed, "attempt_ended",
					w.delivering(s.id, pending, suspend.SentSignal{Name: "go"}))
			} else {
				w.signal(s.id, pending, "go", waitwords.EffectBuffered) // it is not of the old suspension
				w.code(s.id, "S1")
			}
			w.signal(s.id, next, "go", waitwords.EffectSatisfied)
			w.no(w.complete(w.claims(s.id).Fence, "").Err)
		}
	}},
	{name: "a suspended execution is held by no session and takes at most 1,200 bytes besides its payload",
		needs: []string{"MemoryFigures"}, run: func(w *env) {
			w.seed()
			k := w.worker(strings.Repeat("i", 48))
			k.ttl = time.Hour
			const n = 1000
			w.quiet = true
			all := w.sleepers(k, n, within(24*time.Hour, "fail"))
			w.quiet = false
			w.check()
			held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
			w.no(err)
			same(w, "held", len(held), 0)
			for key, z := range w.dump().ZSets {
				if strings.HasPrefix(key, ":h:") && len(z) > 0 {
					w.Fatalf("%s has %d members", key, len(z))
				}
			}
			byArea, total := map[string]int64{}, int64(0)
			for _, key := range w.keys() {
				rest := strings.TrimPrefix(key, string(w.k))
				own := strings.Contains(rest, ids.UUID(all[0].id).String())
				_, indexed := map[string]bool{w.k.Alarms(): true, w.k.Open(kid): true, w.k.Delayed(): true,
					w.k.Pending(): true, w.k.Done(): true, w.k.Parked(): true}[key]
				if !own && !indexed {
					continue
				}
				bytes, err := w.do("MEMORY", "USAGE", key, "SAMPLES", "0").AsInt64()
				w.no(err)
				if indexed {
					bytes /= n
				}
				area := ":" + strings.SplitN(rest[1:], ":", 2)[0]
				byArea[area] += bytes
				total += bytes
			}
			w.Logf("%d bytes: %v", total, byArea)
			if own := total - int64(len("in")); own > 1200 { // the worker's name is as long as may be
				w.Fatalf("a suspended execution takes %d bytes beyond its payload, want at most 1,200: %v", own, byArea)
			}
		}},
}
