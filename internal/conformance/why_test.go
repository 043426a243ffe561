package conformance

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// why explains an execution, and fails if that changed anything, or if the explanation is not one.
func (w *env) why(id flowfabric.ExecutionID) explanation {
	w.Helper()
	var e explanation
	w.unchanged("an explanation", func() {
		w.Helper()
		var err error
		e, err = w.explain(id)
		w.no(err)
	})
	if bad := unexplained(e.Explanation, id); bad != "" || strings.Contains(e.String(), "1970-01-01") {
		w.Fatalf("%s of %s: %+v\n%s", bad, id, e.Reason, e)
	}
	return e
}

// facts are what an explanation is made of.
func (w *env) facts(id flowfabric.ExecutionID) engine.Facts {
	w.Helper()
	f, err := w.e.Explain(w.ctx, id)
	w.no(err)
	return f
}

// explanation is one with the code of the state that it explains.
type explanation struct {
	flowfabric.Explanation
	Code codes.Code
}

func (w *env) explain(id flowfabric.ExecutionID) (explanation, error) {
	e, err := explain.Of(w.ctx, w.e, id)
	f, refused := w.e.Explain(w.ctx, id)
	if gone, ok := errors.AsType[*flowfabric.Error](refused); ok && errors.Is(refused, flowfabric.ErrResultPurged) {
		f.Code = codes.Code(denied.Slot(gone, 0))
	}
	return explanation{e, f.Code}, err
}

// unexplained tells what makes an explanation none; "" when it is one.
func unexplained(e flowfabric.Explanation, id flowfabric.ExecutionID) string {
	text := strings.ToLower(e.String())
	switch {
	case e.ID != id:
		return "another id"
	case !slices.Contains(explain.Causes(), e.Reason):
		return "a reason that is not listed"
	case !strings.HasSuffix(e.Sentence, ".") || !strings.HasSuffix(e.Next, "."):
		return "no sentence"
	case strings.Contains(text, "unknown") || strings.Contains(text, "%!") || strings.Contains(text, "<nil>"):
		return "words that explain nothing"
	case strings.Contains(text, "0001-01-01"):
		return "an instant that is none"
	case strings.Contains(text, "  ") || strings.Contains(text, "..") || strings.Contains(text, ", ,") ||
		strings.Contains(text, `""`):
		return "a hole in the sentence"
	}
	return ""
}

// says fails unless an explanation has the reason and contains every text.
func (w *env) says(e explanation, reason string, texts ...string) {
	w.Helper()
	if e.Reason != reason {
		w.Fatalf("reason %s, want %s: %s", e.Reason, reason, e)
	}
	for _, text := range texts {
		if !strings.Contains(e.String(), text) {
			w.Fatalf("%s does not say %q: %s", e.Reason, text, e)
		}
	}
}

// silent fails if an explanation contains a text.
func (w *env) silent(e explanation, texts ...string) {
	w.Helper()
	for _, text := range texts {
		if strings.Contains(e.String(), text) {
			w.Fatalf("%s says %q: %s", e.Reason, text, e)
		}
	}
}

// spoken is an instant in server ms as explanations write it.
func spoken(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// late is what a reason that waits for a tick ends with, as a poll tells it.
func (w *env) late() string {
	w.Helper()
	states, _, err := w.e.Poll(w.ctx, []uint16{w.p})
	w.no(err)
	wake, _ := strconv.ParseInt(w.hash(string(w.k))["wake"], 10, 64)
	if states[0].TickOverdue && w.now()-wake > 5000 {
		return "_tick_overdue"
	}
	return ""
}

// explained is one code: what explains it, read independently, and how what comes next is done.
type explained struct {
	cause string
	late  bool                                  // it waits for a tick now, so the reason may say that there is none
	says  func(w *env, x placed) []string       // what the explanation must contain
	at    func(w *env, x placed) (ms int64)     // 0 when no clock decides; nil: the same
	move  func(w *env, x placed)                // does what Next says
	to    codes.Code                            // where that leads; "" to a tombstone
	place func(w *env, x *placed) (done placed) // brings it into the state; nil: env.state does
}

func text(texts ...string) func(*env, placed) []string {
	return func(*env, placed) []string { return texts }
}

// stored is a number of the core, as an instant that is said.
func stored(fields ...string) func(*env, placed) []string {
	return func(w *env, x placed) (out []string) {
		for _, f := range fields {
			out = append(out, spoken(w.at(x.id, f)))
		}
		return out
	}
}

func both(all ...func(*env, placed) []string) func(*env, placed) []string {
	return func(w *env, x placed) (out []string) {
		for _, f := range all {
			out = append(out, f(w, x)...)
		}
		return out
	}
}

func field(name string) func(*env, placed) int64 {
	return func(w *env, x placed) int64 { return w.at(x.id, name) }
}

// claimed has a new worker take it.
func taken(w *env, x placed) { w.worker("w9").one(x.id) }

// due waits until At and ticks.
func due(w *env, x placed) {
	w.Helper()
	if at := w.why(x.id).At; at.UnixMilli() > w.now() {
		w.advance(time.Duration(at.UnixMilli()-w.now()+1) * time.Millisecond)
	}
	w.settleTime()
}

func went(w *env, x placed) { w.signal(x.id, x.waitpoint, "go", waitwords.EffectSatisfied) }

// halted suspends for a reason that env.state does not know.
func halted(reason string) func(*env, *placed) placed {
	return func(w *env, x *placed) placed {
		*x = w.state("A1")
		w.halt(x, because(reason))
		return *x
	}
}

// skipped makes an ended execution one that a flow would have skipped.
func skipped(from, to codes.Code) func(*env, *placed) placed {
	return func(w *env, x *placed) placed {
		w.quiet = true // nothing skips yet, and the checker knows
		*x = w.state(from)
		w.editRecord(ids.UUID(x.id), func(f fields) {
			f["s"] = string(to)
			delete(f, "cb")
			delete(f, "cs")
		})
		return *x
	}
}

func purgeTime(w *env, x placed) int64 {
	if w.core(x.id)["s"] == "T1" {
		return w.at(x.id, "en") + day.Milliseconds()
	}
	return w.at(x.id, "en") + 14*day.Milliseconds()
}

// purgeSaid is what every ended execution says.
func purgeSaid(w *env, x placed) []string {
	return []string{spoken(purgeTime(w, x)), spoken(w.at(x.id, "en")), "Nothing moves it by itself."}
}

func waitingSaid(w *env, x placed) []string {
	return []string{`no live worker takes kind "k" in lane "default" of namespace "default"`,
		"it is the first in its queue"}
}

// suspendedSaid is what every suspended execution says of the wait that env.halt makes.
func suspendedSaid(w *env, x placed) []string {
	u := w.waits(x.id).Suspension
	ms, _ := strconv.ParseInt(u["cr"], 10, 64)
	return []string{spoken(ms), `under the name "` + u["nm"] + `"`, `the signal "go" on waitpoint "wp"`,
		`1 waitpoint of it is open ("wp")`,
		"It has no timeout.", "admin.Resume"}
}

// leaseSaid is the end of the holder's lease.
func leaseSaid(w *env, x placed) []string {
	ms, _ := strconv.ParseInt(w.hash(w.k.Session(x.fence.Session))["exp"], 10, 64)
	return []string{spoken(ms), strconv.Quote(x.worker.instance), "attempt 1"}
}

// explanations is every legal code. One that is not here fails.
var explanations = map[codes.Code]explained{
	"R1f": {cause: explain.WhyWaitingNoWorker, says: both(waitingSaid, text("It has never run.")), move: taken,
		to: "A1"},
	"R1t": {cause: explain.WhyWaitingNoWorker, says: both(waitingSaid,
		text(`retry 1 of 1 is due, because attempt 1 ended with "x": "because"`)), move: taken, to: "A1"},
	"R1p": {cause: explain.WhyWaitingNoWorker,
		says: both(waitingSaid, text("replayed, for the 1st time of at most 10")), move: taken, to: "A1"},
	"R1i": {cause: explain.WhyWaitingNoWorker,
		says: both(waitingSaid, text(`worker "w1" handed it back, and attempt 1 goes on`)), move: taken, to: "A1"},
	"R1r": {cause: explain.WhyWaitingNoWorker,
		says: both(waitingSaid,
			text(`worker "w1" was lost, attempt 1 ended with "lease_expired"; this is reclaim 1 of at most 10`)),
		move: taken, to: "A1"},

	"R2af": {cause: explain.WhyDelayed, says: both(stored("du"), text("has never run")), at: field("du"), move: due,
		to: "R1f"},
	"R2ai": {cause: explain.WhyDelayedByWorker, says: both(stored("du"), text(`worker "w1" delayed attempt 1`)),
		at: field("du"), move: due, to: "R1i"},
	"R2b": {cause: explain.WhyRetryBackoff, says: both(stored("du"),
		text(`retry 1 of 1, because attempt 1 ended with "x": "because"`)), at: field("du"), move: due, to: "R1t"},
	"R2r": {cause: explain.WhyReclaimBackoff,
		says: both(stored("du"), text("reclaim 5 of at most 10, because workers were lost while they ran it",
			`The last was "w1"; attempt 5 ended with "lease_expired"`)), at: field("du"), move: due, to: "R1r"},
	"R2c": {cause: explain.WhyResumeDelay, says: both(stored("du"), text("resumed by a signal")), at: field("du"),
		move: due, to: "R1i"},

	"R3f": {cause: explain.WhyAwaitingOthers, says: text(`all of its 2 upstreams: 0 of 2 have succeeded`,
		`2 upstreams are open: `, `"a" is active`, `"c" is active`), to: "R1f",
		place: func(w *env, _ *placed) placed {
			g := w.flow().node("a", nil).node("c", nil).node("b", []string{"a", "c"}).submit(engine.SealClosed)
			return placed{id: g.id.Member("b"), upstream: g.claim()}
		}, move: func(w *env, x placed) {
			for _, c := range x.upstream {
				w.complete(c.Fence, "x")
			}
		}},
	"R3p": {cause: explain.WhyAwaitingReplay,
		says: text("It was replayed", "1 upstream ended without success before that and was not replayed",
			`"a" is failed`, "admin.ReplayFlow"), to: "R1p",
		place: func(w *env, _ *placed) placed {
			g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
			g.fail(g.claim()["a"])
			_, err := w.e.ReplayExecution(w.ctx, g.id.Member("b"), engine.Replay{})
			w.no(err)
			return placed{id: g.id.Member("b"),
				upstream: map[string]engine.Claim{"a": {Fence: flowfabric.Fence{Execution: g.id.Member("a")}}}}
		}, move: func(w *env, x placed) {
			a := x.upstream["a"].Fence.Execution
			_, err := w.e.ReplayExecution(w.ctx, a, engine.Replay{})
			w.no(err)
			w.says(w.why(x.id), explain.WhyAwaitingOthers, `"a" is waiting`)
			again := w.worker("again").one(a)
			w.says(w.why(x.id), explain.WhyAwaitingOthers, `"a" is active`)
			w.complete(again.Fence, "x")
		}},
	"G1f": askedBy("R1f", "It has never run."),
	"G1t": askedBy("R1t", "retry 1 of 1 is due"),
	"G1p": askedBy("R1p", "replayed, for the 1st time"),
	"G1i": askedBy("R1i", `worker "w1" handed it back`),
	"G1r": askedBy("R1r", `worker "w1" was lost`),

	"R4f": held("R1f", "It has never run."),
	"R4t": held("R1t", "retry 1 of 1 is due"),
	"R4p": held("R1p", "replayed, for the 1st time"),
	"R4i": held("R1i", `worker "w1" handed it back`),
	"R4r": held("R1r", `worker "w1" was lost`),

	"A1": {cause: explain.WhyActive, says: both(leaseSaid, stored("la"), text("(initial)")),
		move: func(w *env, x placed) { w.complete(x.fence, "r") }, to: "T1"},
	"A2": {cause: explain.WhyLeaseExpired, late: true,
		says: both(leaseSaid, text("did not renew", "as reclaim 1 of at most 10")), move: due, to: "R1r",
		at: func(w *env, x placed) int64 {
			ms, _ := strconv.ParseInt(w.hash(w.k.Session(x.fence.Session))["exp"], 10, 64)
			return ms
		}},
	"A3": {cause: explain.WhyRevoked, late: true, says: text("revoked", `"w1"`, "as reclaim 1 of at most 10"),
		move: due, to: "R1r",
		at: func(w *env, x placed) int64 {
			at, err := w.do("ZSCORE", w.k.Alarms(), ids.UUID(x.id).String()).AsInt64()
			w.no(err)
			return at
		}},

	"S1": {cause: explain.WhyAwaitingSignal, says: both(suspendedSaid, text("suspended for a signal")), move: went,
		to: "R1i"},
	"S2": {cause: explain.WhyAwaitingApproval, says: both(suspendedSaid, text("suspended for an approval")), move: went,
		to: "R1i"},
	"S3": {cause: explain.WhyAwaitingCallback, says: both(suspendedSaid, text("suspended for a callback")), move: went,
		to: "R1i", place: halted("waiting_for_callback")},
	"S4": {cause: explain.WhyAwaitingTool, says: both(suspendedSaid, text("for the result of a tool")), move: went,
		to: "R1i", place: halted("waiting_for_tool_result")},
	"S5": {cause: explain.WhyPausedByOperator, says: both(suspendedSaid, text("as a manual pause")), to: "R1i",
		move: func(w *env, x placed) { w.resume(x.id) }},
	"S6": {cause: explain.WhyPausedByPolicy, says: both(suspendedSaid, text("by a policy")), move: went, to: "R1i",
		place: halted("paused_by_policy")},
	"S7": {cause: explain.WhyAwaitingBudget, says: both(suspendedSaid, text("for want of budget")), move: went,
		to: "R1i", place: halted("paused_by_budget")},

	"S8": {cause: explain.WhyAwaitingKids,
		says: text("suspended to wait for children", `the first child to end (0 of 1 have`,
			`1 child is open: "kid" is waiting`, "in the call that ends the last child"),
		to: "R1i", place: func(w *env, _ *placed) placed {
			f := w.family()
			f.until(firstOf, nil, "kid")
			return placed{id: f.parent}
		}, move: func(w *env, x placed) {
			w.complete(w.worker("w2").one(x.id.Child("wait", "kid")).Fence, "x")
		}},

	"T1": {cause: explain.WhyCompleted, says: both(purgeSaid, text(`worker "w1" completed it`, "after 1 attempt",
		"10 times more", "only if forced")), at: purgeTime, move: due},
	"T2": {cause: explain.WhyFailedNoRetries, says: both(purgeSaid, text(`attempt 1 ended with "x": "because"`,
		"its policy has no retries", "10 times more")), at: purgeTime, move: due},
	"T3": {cause: explain.WhyCancelled,
		says: both(purgeSaid, text(`an operator or producer cancelled it because of "told to"`, "after 1 attempt")),
		at:   purgeTime, move: due},
	"T3n": {cause: explain.WhyCancelled, says: both(purgeSaid, text(`because of "told to"`, "before it ever ran")),
		at: purgeTime, move: due},
	"T4": {cause: explain.WhyExpiredDeadline, says: both(purgeSaid, stored("dl"), text("after 1 attempt")),
		at: purgeTime, move: due},
	"T4n": {cause: explain.WhyExpiredDeadline, says: both(purgeSaid, stored("dl"), text("before it ever ran")),
		at: purgeTime, move: due},
	"T5": {cause: explain.WhySkipped, says: both(purgeSaid, text("depends on", "after 1 attempt")), at: purgeTime,
		move: due, place: skipped("T3", "T5")},
	"T5n": {cause: explain.WhySkipped, says: both(purgeSaid, text("depends on", "before it ever ran")), at: purgeTime,
		move: due, place: skipped("T3n", "T5n")},
}

// agrees fails unless the facts of an explanation are those that a plain read tells.
func (w *env) agrees(e explanation) {
	w.Helper()
	want, facts := w.read(e.ID), w.facts(e.ID)
	got := facts.Snapshot
	log := want.AttemptLog
	for i, a := range slices.Backward(got.AttemptLog) {
		if j := len(log) - len(got.AttemptLog) + i; j < 0 || !reflect.DeepEqual(a, log[j]) {
			w.Fatalf("attempts: %+v, want the end of %+v", got.AttemptLog, log)
		}
	}
	want.Steps, want.Tags, want.AttemptLog, got.AttemptLog = 0, nil, nil, nil
	got.State = engine.Gated(got.State, facts.ClosedWhy)
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("facts:\n%+v\nwant\n%+v", got, want)
	}
	w.all("code and state", eq(e.Code, want.Code), eq(e.State, want.State.Public))
}

var whyScenarios = slices.Concat(whyCodeScenarios, whyGateScenarios)

var whyCodeScenarios = []scenario{
	{name: "every state is explained, and the event that the explanation names moves it on", run: func(w *env) {
		for _, text := range codes.All() {
			code := codes.Code(text)
			want, ok := explanations[code]
			if !ok {
				w.Errorf("%s is not explained", code)
				continue
			}
			w.reset()
			w.quiet = false
			x := placed{}
			if want.place != nil {
				x = want.place(w, &x)
				w.code(x.id, code)
			} else {
				x = w.state(code)
			}
			cause := want.cause
			if want.late {
				cause += w.late()
			}
			e := w.why(x.id)
			w.says(e, cause, want.says(w, x)...)
			w.agrees(e)
			at := int64(0)
			if want.at != nil {
				at = want.at(w, x)
			}
			if got := e.At.UnixMilli(); at != 0 && (got < at || got > at+2000) || at == 0 && !e.At.IsZero() {
				w.Errorf("%s: at %s, want %s", code, e.At, time.UnixMilli(at))
			}
			want.move(w, x)
			next := w.why(x.id)
			if want.to == "" {
				w.says(next, explain.WhyPurged, string(e.State))
				same(w, "the code that is left", next.Code, code)
				continue
			}
			same(w, "what came next of "+string(code), next.Code, want.to)
		}
	}},
}
