package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
)

// repeatable is a call that is made twice, as after a lost reply: the second answers what the first did, and
// leaves the partition as the first left it, but for what is named.
type repeatable struct {
	what    string
	call    func(*env) call
	first   string   // code, or the status of the one item
	second  string   // likewise
	slots   bool     // both answer the same slots
	without []string // facts that a repeat may renew
}

var repeatables = []repeatable{
	{what: "create", first: "OK", second: "DUPLICATE", call: func(w *env) call {
		return call{"ff_create_execution",
			createArgs(w.item(priority(3), retries(1), tags(map[string]string{"a.b": "c"})))}
	}},
	{what: "create delayed", first: "OK", second: "DUPLICATE", call: func(w *env) call {
		return call{"ff_create_execution", createArgs(w.item(delay(time.Minute)))}
	}},
	{what: "debounce", first: "REPLACED", second: "REPLACED", slots: true, call: func(w *env) call {
		w.create(bouncing("k", time.Hour, 0), lane("l"), tags(map[string]string{"c.d": "e"}))
		return call{"ff_create_execution",
			createArgs(w.item(bouncing("k", time.Minute, time.Hour), priority(3), tags(map[string]string{"a.b": "c"})))}
	}},
	{what: "complete", first: "OK", second: "ALREADY_SATISFIED", call: fencedCall("ff_complete_execution")},
	{what: "complete and claim", first: "OK", second: "ALREADY_SATISFIED", without: []string{":s:"},
		call: func(w *env) call {
			c := w.stage().calls
			return c[len(c)-1]
		}},
	{what: "fail, retried", first: "OK", second: "ALREADY_SATISFIED", call: fencedCall("ff_fail_execution")},
	{what: "fail, for good", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		c := fencedCall("ff_fail_execution")(w)
		c.args[8] = "1"
		return c
	}},
	{what: "delay", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: fencedCall("ff_delay_execution")},
	{what: "delay by nothing", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		c := fencedCall("ff_delay_execution")(w)
		c.args[6] = "+0"
		return c
	}},
	{what: "continue", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: fencedCall("ff_continue_execution")},
	{what: "release", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: fencedCall("ff_release_execution")},
	{what: "cancel by the owner", first: "OK", second: "ALREADY_SATISFIED", call: fencedCall("ff_cancel_execution")},
	{what: "cancel by an operator", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		id := w.create(delay(time.Hour))
		return call{"ff_cancel_execution", []string{proto, id.UUID().String(), "", "", "", "", "operator_override",
			"reason", "anna"}}
	}},
	{what: "progress", first: "OK", second: "OK", slots: true, without: []string{":a:"},
		call: fencedCall("ff_update_progress")},
	{what: "priority", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_change_priority")},
	{what: "a changed delay", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_set_delay")},
	{what: "tags", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_set_tags")},
	{what: "tags of a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		g := w.flow().node("a", nil).submit(engine.SealClosed)
		return call{"ff_flow_tags", []string{proto, g.id.UUID().String(), "1", "a.b", "c", "1", "d.e"}}
	}},
	{what: "replay", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_replay_execution")},
	{what: "purge", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_purge_execution")},
	{what: "revoke", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_revoke_lease")},
	{what: "mark dead", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_mark_session_dead")},
	{what: "freeze", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_freeze_partition")},
	{what: "forward a ring", first: "OK", second: "OK", call: func(w *env) call {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		k := w.worker("w1")
		k.nothing()
		w.set("ZREM", w.k.Waiters(k.subscription), "w1")
		w.create()
		w.set("ZADD", w.k.Waiters(k.subscription), strconv.FormatInt(w.now()+1000, 10), "w1")
		w.set("SADD", w.k.Digests(), k.subscription)
		return call{"ff_pass_ring", []string{proto, k.subscription}}
	}},
	{what: "step", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: fencedCall("ff_record_step")},
	{what: "open a waitpoint", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: fencedCall("ff_create_pending_waitpoint")},
	{what: "open a waitpoint without a name", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: func(w *env) call {
			c := fencedCall("ff_create_pending_waitpoint")(w)
			c.args[6] = ""
			return c
		}},
	{what: "close a waitpoint", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_close_waitpoint")},
	{what: "suspend", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: fencedCall("ff_suspend_execution")},
	{what: "suspend on what came before", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: func(w *env) call {
			f := w.stage().fence
			m := w.pend(f, "early")
			w.signal(f.Execution, m, "go", waithook.EffectBuffered)
			return call{"ff_suspend_execution",
				slices.Concat([]string{proto}, fenceArgs(f), wireSuspend(suspension(onPending(m))))}
		}},
	{what: "resume", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_resume_execution")},
	{what: "deliver", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_deliver_signal")},
	{what: "deliver what nobody wants", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		c := stagedCall("ff_deliver_signal")(w)
		c.args[5] = "other"
		return c
	}},
	{what: "deliver early", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		f := w.stage().fence
		return call{"ff_deliver_signal", wireDeliver(f.Execution, w.pend(f, "early"), "go")}
	}},
	{what: "send", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_send_message")},
	{what: "receive", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: fencedCall("ff_receive_messages")},
	{what: "approve", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_approve_waitpoint")},
	{what: "reissue a token", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_reissue_token")},
	{what: "rotate token keys", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_set_token_keys")},
	{what: "seed a token key", first: "OK", second: "ALREADY_SATISFIED", call: func(*env) call {
		return call{"ff_set_token_keys", wireKey("seed", kid, "0", "0")}
	}},
	{what: "lane", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_set_lane")},
	{what: "feed", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		c := stagedCall("ff_set_feed")(w)
		// a millisecond later it would be longer
		w.set("HSET", string(w.k), "clock_pin", strconv.FormatInt(w.now(), 10))
		return c
	}},
	{what: "stop the feed", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		w.fcall("ff_set_feed", proto, "c", "60000", "1000")
		return call{"ff_set_feed", []string{proto, "", "60000", "1000"}}
	}},
	{what: "register", first: "OK", second: "OK",
		without: []string{":wk:w9 \"exp\"", ":wk:w9 \"seen\"", ":workers \"w9\""},
		call:    stagedCall("ff_register_worker")},
	{what: "leave", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_leave_worker")},
	{what: "mark a worker dead", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_mark_worker_dead")},
	{what: "audit of executions", first: "OK", second: "OK",
		call: damagedCall("ff_audit_executions", "ZREM ROOT:alarms ID")},
	{what: "audit of an index", first: "OK", second: "OK",
		call: damagedCall("ff_audit_index", "ZADD ROOT:alarms 1 nobody")},
	{what: "audit of keys", first: "OK", second: "OK", call: damagedCall("ff_audit_keys", "record ID -tg")},
	{what: "audit of flows", first: "OK", second: "OK", call: func(w *env) call {
		w.stage()
		id := uuid.NewString()
		w.fcall("ff_flow_create", proto, id, "n", "k", "", "", "", "0")
		w.set("HINCRBY", w.k.Flow(uuid.MustParse(id)), "mw", "3")
		return call{"ff_audit_flows", []string{proto, "1", "1", id, "0", "0", ""}}
	}},
	{what: "audit of routes", first: "OK", second: "OK",
		call: damagedCall("ff_audit_routes", "HINCRBY ROOT:routeuse 1 3")},
	{what: "append", first: "OK", second: "ALREADY_SATISFIED", call: fencedCall("ff_append_frames")},
	{what: "append, all modes", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		calls := fencedCalls(w.stage().fence)
		return calls[len(calls)-1]
	}},
	{what: "claim", first: "OK", second: "OK", without: []string{":s:"}, call: func(w *env) call {
		w.createN(3, timeout(time.Minute))
		k := w.worker("w1")
		k.nothingYet()
		return call{"ff_claim_next", claimArgs(k.request(2))}
	}},
	{what: "idle claim", first: "OK", second: "OK", slots: true, without: []string{":w:"}, call: func(w *env) call {
		w.create(delay(time.Hour))
		k := w.worker("w1")
		k.nothingYet()
		return call{"ff_claim_next", claimArgs(k.request(2))}
	}},
	{what: "interest", first: "OK", second: "OK", slots: true, call: stagedCall("ff_set_interest")},
	{what: "renew", first: "OK", second: "OK", slots: true, without: []string{":s:"},
		call: stagedCall("ff_session_renew")},
	{what: "close", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		k := w.worker("w1")
		w.complete(k.one(w.create()).Fence, "")
		return call{"ff_session_close", []string{proto, k.session}}
	}},
	{what: "a schedule", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_put_schedule")},
	{what: "firing", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_fire_schedule")},
	{what: "pausing a schedule", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_pause_schedule")},
	{what: "removing a schedule", first: "OK", second: "ALREADY_SATISFIED", call: stagedCall("ff_remove_schedule")},
	{what: "boot", first: "OK", second: "OK", slots: true, call: stagedCall("ff_boot")},
	{what: "tick", first: "OK", second: "OK", without: []string{"root wake", "root ticked"}, call: func(w *env) call {
		w.stage()
		w.createN(3, delay(time.Second))
		w.create(deadline(time.Second))
		w.advance(ttl)
		return call{"ff_tick", []string{proto, ticker, "0"}}
	}},
	{what: "a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_flow_create")},
	{what: "the first part of a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: func(w *env) call {
		g := w.flow().node("a", nil).node("b", []string{"a"})
		return call{"ff_flow_create", wireMake(g.id, "", g.nodes...)}
	}},
	{what: "members of a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_flow_stage")},
	{what: "releasing a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_flow_seal")},
	{what: "cancelling a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: stagedCall("ff_flow_cancel")},
	{what: "tags of a flow", first: "OK", second: "ALREADY_SATISFIED", slots: true, call: stagedCall("ff_flow_tags")},
	{what: "replaying members", first: "OK", second: "OK", call: stagedCall("ff_flow_replay")},
	{what: "draining", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		g := w.flow()
		for _, node := range nodesOf("n", 80) {
			g.node(node, nil)
		}
		g.submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "me", "")
		w.no(err)
		return call{"ff_flow_drain", []string{proto}}
	}},
	{what: "waiting for children", first: "OK", second: "ALREADY_SATISFIED", slots: true,
		call: fencedCall("ff_wait_children")},
	{what: "making children", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := fencedCall("ff_wait_children")(w)
		c.args[10] = "0"
		return c
	}},
	{what: "waiting for children that have ended", first: "OK", second: "OK", slots: true, call: func(w *env) call {
		c := fencedCall("ff_wait_children")(w)
		c.args[10] = "0"
		w.must(c.name, c.args...)
		id, err := ids.ParseUUID(c.args[23])
		w.no(err)
		w.cancel(flowfabric.MakeExecutionID(w.p, id))
		c.args[10] = "1"
		return c
	}},
	{what: "waiting for others", first: "OK", second: "OK", slots: true, call: fencedCall("ff_wait_others")},
	{what: "somebody waits", first: "OK", second: "OK", call: stagedCall("ff_await")},
	{what: "somebody waits no longer", first: "OK", second: "OK", call: func(w *env) call {
		c := stagedCall("ff_await")(w)
		w.must(c.name, c.args...)
		c.args[2] = "-"
		return c
	}},
	{what: "telling a waiter", first: "OK", second: "OK", call: func(w *env) call {
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": w.create(lane("a"))})
		full := ""
		for name := range w.hash(w.k.Children(x.id.UUID())) {
			if len(name) > 36 {
				full = name
			}
		}
		return call{"ff_tell_waiters",
			[]string{proto, "1", x.id.UUID().String(), full, w.hash(w.k.Children(x.id.UUID()))["others"], "s", "1"}}
	}},
	{what: "giving the tick up", first: "OK", second: "ALREADY_SATISFIED", call: func(w *env) call {
		w.stage()
		return call{"ff_tick", []string{proto, ticker, "1"}}
	}},
}

var repeatScenarios = []scenario{
	{name: "an identical second call of any function that writes changes nothing", run: func(w *env) {
		covered := map[string]bool{"ff_configure": true} // errors: "the deployment record"
		for i, r := range slices.Concat(repeatables, gateRepeatables) {
			w.reset()
			c := r.call(w)
			covered[c.name] = true
			if !w.mine(i) {
				continue
			}
			before := w.digest()
			first := w.fcall(c.name, c.args...)
			same(w, r.what+" first", outcome(c.name, first), r.first)
			w.check()
			after := w.digest(r.without...)
			if before == w.digest() && r.what != "boot" && r.what != "idle claim" {
				w.Fatalf("%s did nothing", r.what)
			}
			for range 2 {
				again := w.fcall(c.name, c.args...)
				same(w, r.what+" again", outcome(c.name, again), r.second)
				if r.slots {
					sameList(w, r.what+" slots", again.slots, first.slots...)
				}
				if now := w.digest(r.without...); now != after {
					w.Fatalf("%s twice differs from once:\n%s", r.what, difference(after, now))
				}
			}
			w.check()
		}
		for _, h := range contract.Functions() {
			if !covered[h.Name] && !slices.Contains(h.Flags, "no-writes") {
				w.Errorf("%s writes and is not made twice here", h.Name)
			}
		}
	}},
	{name: "repeated claims and failures get identical replies", run: func(w *env) {
		w.createN(3, tags(map[string]string{"a.b": "c"}))
		k := w.worker("w1")
		k.nothingYet()
		args := claimArgs(k.request(3))
		first, again := w.must("ff_claim_next", args...), w.must("ff_claim_next", args...)
		same(w, "duplicate flags", first.slots[0]+again.slots[0], "01")
		sameList(w, "slots", again.slots[1:], first.slots[1:]...)
		header := strings.Fields(first.slots[9])
		id, err := ids.ParseUUID(header[0])
		w.no(err)
		f := flowfabric.Fence{Execution: flowfabric.MakeExecutionID(w.p, id), Session: k.session, Claim: 1,
			Attempt: 1}
		_, err = fmt.Sscan(header[2], &f.Epoch)
		w.no(err)
		for _, c := range fencedCalls(f)[1:2] {
			one, two := w.must(c.name, c.args...), w.fcall(c.name, c.args...)
			sameList(w, "what and when", two.slots[:2], one.slots[:2]...)
		}
	}},
}

// outcome is a reply's code, or the status of its one item.
func outcome(name string, a answer) string {
	if a.status == 0 || name != "ff_create_execution" && name != "ff_complete_execution" {
		return a.code
	}
	switch item := a.slots[1]; item[0] {
	case '+':
		return "OK"
	case '=':
		return map[string]string{"ff_create_execution": "DUPLICATE", "ff_complete_execution": "ALREADY_SATISFIED"}[name]
	case '~':
		return "REPLACED"
	default:
		code, _, _ := strings.Cut(item[1:], " ")
		return code
	}
}

func fencedCall(name string) func(*env) call {
	return func(w *env) call {
		calls := fencedCalls(w.stage().fence)
		return calls[slices.IndexFunc(calls, func(c call) bool { return c.name == name })]
	}
}

// damagedCall is a call of an audit after damage.
func damagedCall(name string, commands ...string) func(*env) call {
	return func(w *env) call {
		s := w.stage()
		for _, command := range commands {
			w.inflict(strings.NewReplacer("ROOT", string(w.k), "ID",
				s.fence.Execution.UUID().String()).Replace(command))
		}
		c := s.calls[slices.IndexFunc(s.calls, func(c call) bool { return c.name == name })]
		if name == "ff_audit_routes" {
			uses := w.hash(w.k.RouteUse())
			n, _ := strconv.Atoi(uses["1"])
			c.args = []string{proto, "1", "0", "0", "", "1", "1", uses["1"], strconv.Itoa(n - 3), strconv.Itoa(n - 3)}
		}
		return c
	}
}

func stagedCall(name string) func(*env) call {
	return func(w *env) call {
		calls := w.stage().calls
		return calls[slices.IndexFunc(calls, func(c call) bool { return c.name == name })]
	}
}
