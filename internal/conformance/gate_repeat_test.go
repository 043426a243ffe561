package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// nthCall is the nth staged call of a function, counted from 0.
func nthCall(name string, n int) func(*env) call {
	return func(w *env) call {
		calls := slices.DeleteFunc(w.stage().calls, func(c call) bool { return c.name != name })
		return calls[n]
	}
}

// gateRepeatables are those about budgets, quotas and who asks them.
var gateRepeatables = []repeatable{
	{what: "a budget", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_put_budget")},
	{what: "changing a budget", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: nthCall("ff_put_budget", 1)},
	{what: "a report", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_report_usage")},
	{what: "a report of the holder", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: nthCall("ff_report_usage", 1)},
	{what: "a report that is refused", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := stagedCall("ff_report_usage")(w)
		c.args[8] = "61"
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now())) // that it was refused is known for a day
		return c
	}},
	{what: "taking a report back", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_undo_usage")},
	{what: "adjusting", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_adjust_budget")},
	{what: "resetting", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		c := stagedCall("ff_reset_budget")(w)
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now()))
		return c
	}},
	{what: "giving usage back", first: "OK", second: "OK", call: stagedCall("ff_release_usage")},
	{what: "asking a budget", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := stagedCall("ff_check_budgets")(w)
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now())) // who waits is filed under when it asked last
		return c
	}},
	{what: "removing a budget", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_remove_budget")},
	{what: "a quota", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_put_quota")},
	{what: "changing a quota", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: nthCall("ff_put_quota", 1)},
	{what: "asking a quota", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := stagedCall("ff_admit")(w)
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now()))
		return c
	}},
	{what: "releasing holds", first: "OK", second: "OK", call: stagedCall("ff_release_holds")},
	{what: "settling holds", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := stagedCall("ff_settle_holds")(w)
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now()))
		return c
	}},
	{what: "removing a quota", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_remove_quota")},
	{what: "claiming what was granted", first: "OK", second: "OK", call: stagedCall("ff_claim_granted")},
	{what: "returning a grant", first: "OK", second: "OK", call: func(w *env) call {
		c := stagedCall("ff_release_grant")(w)
		w.set("HSET", w.seat(c.name), "clock_pin", fmt.Sprint(w.now())) // a route is closed from now
		// no quota has a hold of it; else it is told once for each call
		c.args[5] = "0"
		return c
	}},
	// how often it was opened
	{what: "opening a route", first: "OK", second: "OK", slots: true, without: []string{":closings \"w"},
		call: stagedCall("ff_open_route")},
	{what: "asking about holds", first: "OK", second: "OK", call: func(w *env) call {
		c := stagedCall("ff_check_holds")(w)
		w.advance(5 * time.Second)
		return c
	}},
	{what: "trimming the outbox", first: "OK", second: "OK", call: stagedCall("ff_trim_outbox")},
	{what: "attaching", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_attach")},
	{what: "detaching", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		w.stage()
		return call{"ff_attach", []string{proto, "t\x1fapp.tenant\x1facme", "", "me", "set"}}
	}},
	{what: "pausing", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_pause_execution")},
	{what: "pausing what is granted", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		granted := stagedCall("ff_check_holds")(w).args[2]
		return call{"ff_pause_execution", []string{proto, granted, "me", ""}}
	}},
	{what: "resuming", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_unpause_execution")},
	{what: "a share", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_set_share")},
	{what: "a claim of grants", first: "OK", second: "OK", without: []string{":s:"}, call: func(w *env) call {
		w.create(asking(flowfabric.QuotaGate("q")))
		k := w.worker("w1")
		k.gates = true
		k.nothingYet()
		return call{"ff_claim_next", granting(claimArgs(k.request(2)))}
	}},
}

// fixedNames gives executions ids that are the same in every run, one after the other.
func fixedNames(w *env) func(*engine.NewExecution) {
	n := 0
	return func(x *engine.NewExecution) {
		n++
		x.ID = flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte("gated "+strconv.Itoa(n))))
	}
}

// gateWriting is a write of those about budgets, quotas and who asks them.
func gateWriting(function, name string, call func(*env, *engine.Engine, stagedGates) (string, error)) writing {
	return writing{function, name, nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return call(w, e, s.gates)
	}}
}

// gateWritings are those about budgets, quotas and who asks them.
var gateWritings = []writing{
	gateWriting("ff_put_budget", "put a budget", func(w *env, e *engine.Engine, _ stagedGates) (string, error) {
		revision, _, wake, err := e.PutBudget(w.ctx, admission.Budget{Name: w.gateName("another"),
			Reset:  flowfabric.Millis(time.Hour),
			Limits: map[string]admission.Limit{"tokens": {Hard: 10, Soft: 5}}}, 0, "me")
		return fmt.Sprint(revision, wake), err
	}),
	gateWriting("ff_put_budget", "change a budget", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		revision, _, _, err := e.PutBudget(w.ctx,
			admission.Budget{Name: s.budget, Limits: map[string]admission.Limit{"tokens": {Hard: 200}}}, 1, "me")
		return fmt.Sprint(revision), err
	}),
	gateWriting("ff_remove_budget", "remove a budget", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, err := e.RemoveBudget(w.ctx, s.budget)
		return "", err
	}),
	gateWriting("ff_report_usage", "report", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		r, err := e.ReportUsage(w.ctx, admission.Usage{Budget: s.budget, Execution: s.spender, Key: "second",
			Amounts: map[string]int64{"tokens": 45}})
		return fmt.Sprint(r.Verdict, r.Applied, r.Breaches), err
	}),
	gateWriting("ff_report_usage", "report as the holder",
		func(w *env, e *engine.Engine, s stagedGates) (string, error) {
			r, err := e.ReportUsage(w.ctx,
				admission.Usage{Budget: s.budget, Execution: s.spender, Epoch: s.active.Epoch,
					Sequence: 1,
					Amounts:  map[string]int64{"tokens": 5}})
			return fmt.Sprint(r.Verdict, r.Applied, r.Late), err
		}),
	gateWriting("ff_report_usage", "report too much", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		r, err := e.ReportUsage(w.ctx,
			admission.Usage{Budget: s.budget, Key: "much", Amounts: map[string]int64{"tokens": 500}})
		return fmt.Sprint(r.Verdict, r.Applied, r.Breaches), err
	}),
	gateWriting("ff_undo_usage", "take a report back", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, wake, err := e.UndoUsage(w.ctx,
			admission.Usage{Budget: s.spent, Execution: s.spender, Epoch: 3, Sequence: 1})
		return fmt.Sprint(wake), err
	}),
	gateWriting("ff_release_usage", "refund", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, wake, err := e.ReleaseUsage(w.ctx, "me",
			[]engine.Refund{{Budget: s.budget, Execution: s.spender, Outcome: "failed"}})
		return fmt.Sprint(wake), err
	}),
	gateWriting("ff_check_budgets", "ask budgets", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		r, err := e.CheckBudgets(w.ctx, w.p, s.closed, []string{s.budget, s.spent})
		return fmt.Sprint(r), err
	}),
	gateWriting("ff_put_quota", "put a quota", func(w *env, e *engine.Engine, _ stagedGates) (string, error) {
		revision, _, wake, err := e.PutQuota(w.ctx, admission.Quota{Name: w.gateName("further"), Cap: 1}, 0, "me")
		return fmt.Sprint(revision, wake), err
	}),
	gateWriting("ff_remove_quota", "remove a quota", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, err := e.RemoveQuota(w.ctx, s.quota)
		return "", err
	}),
	gateWriting("ff_admit", "ask a quota", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		holds := []engine.Hold{{Execution: s.granted.Execution, Epoch: s.granted.Epoch},
			{Execution: s.waiting, Epoch: 1}}
		a, err := e.Admit(w.ctx, s.quota, w.p, s.closed, 10*time.Second, holds)
		return fmt.Sprint(a), err
	}),
	gateWriting("ff_release_holds", "release holds", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, _, err := e.ReleaseHolds(w.ctx, []engine.Released{
			{Quota: s.quota, Hold: engine.Hold{Execution: s.active.Execution, Epoch: s.active.Epoch}}})
		return "", err
	}),
	gateWriting("ff_settle_holds", "settle holds", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, _, err := e.SettleHolds(w.ctx, s.quota, 10*time.Minute, []string{holdText(s.active)},
			[]engine.HoldState{engine.HoldHeld})
		return "", err
	}),
	gateWriting("ff_claim_granted", "claim what was granted",
		func(w *env, e *engine.Engine, s stagedGates) (string, error) {
			a, claims, err := e.ClaimGranted(w.ctx, w.p, s.worker.session, s.worker.number, []engine.Grant{s.granted})
			return fmt.Sprint(len(a), claimed(claims)), err
		}),
	gateWriting("ff_release_grant", "return a grant", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		return "", e.ReleaseGrants(w.ctx, w.p, s.worker.session, []engine.GrantReturn{{Grant: s.granted}},
			[]engine.RouteClosing{{Route: s.granted.Route, For: time.Minute, Why: "quota q cap"}})
	}),
	gateWriting("ff_open_route", "open a route", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		waiting, err := e.OpenRoutes(w.ctx, w.p, []uint64{s.closed})
		return fmt.Sprint(waiting), err
	}),
	{"ff_check_holds", "ask about holds", func(w *env, _ fixed) { w.pass(5 * time.Second) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			g := s.gates.granted
			_, err := e.CheckHolds(w.ctx, w.p, []engine.Hold{{Execution: g.Execution, Epoch: g.Epoch}})
			return "", err
		}},
	gateWriting("ff_trim_outbox", "trim the outbox", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		left, err := e.TrimOutbox(w.ctx, w.p, s.outbox)
		return fmt.Sprint(left), err
	}),
	gateWriting("ff_attach", "", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		return "", e.ChangeAttached(w.ctx, admission.Scope{Namespace: "elsewhere"}, engine.AttachSet,
			[]flowfabric.Gate{flowfabric.QuotaGate(s.quota)}, "me")[w.p].Err
	}),
	gateWriting("ff_pause_execution", "pause", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, err := e.HoldExecution(w.ctx, s.waiting, "me", "r")
		return "", err
	}),
	gateWriting("ff_pause_execution", "pause what is granted",
		func(w *env, e *engine.Engine, s stagedGates) (string, error) {
			_, err := e.HoldExecution(w.ctx, s.granted.Execution, "me", "r")
			return "", err
		}),
	gateWriting("ff_unpause_execution", "resume", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		_, err := e.UnholdExecution(w.ctx, s.paused, "me")
		return "", err
	}),
	gateWriting("ff_set_share", "", func(w *env, e *engine.Engine, _ stagedGates) (string, error) {
		return "", e.SetShare(w.ctx, "default", "default", 5)[w.p].Err
	}),
	{"ff_claim_next", "claim grants", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		k := s.gates.worker
		r, err := e.ClaimNext(w.ctx, k.request(3))
		return fmt.Sprint(len(r.Claims), len(r.Grants)), err
	}},
}

// adjusting are writes whose request the engine makes up: it is the same in its own repeats, and another when the
// caller calls again.
var adjusting = []writing{
	gateWriting("ff_adjust_budget", "adjust", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		used, _, err := e.AdjustBudget(w.ctx, s.budget, map[string]int64{"tokens": -5}, "me", "r")
		return fmt.Sprint(used), err
	}),
	gateWriting("ff_reset_budget", "reset", func(w *env, e *engine.Engine, s stagedGates) (string, error) {
		period, _, _, err := e.ResetBudget(w.ctx, s.budget, "me", false)
		return fmt.Sprint(period), err
	}),
}
