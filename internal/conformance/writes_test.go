package conformance

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// write is a call of a function that writes.
type write struct {
	what string // "ff_put_gate/2" is the second staged call of that function
	make func(*env, staged) call
}

// furtherWrites are calls of a partition to which more was done than to the staged one, or with other arguments. A
// function needs one if its staged calls find nothing to do.
var furtherWrites = []write{
	{"create", func(w *env, _ staged) call {
		return call{"ff_create_execution",
			createArgs(w.item(priority(3), retries(1), tags(map[string]string{"a.b": "c"})))}
	}},
	{"fail, for good", func(_ *env, s staged) call { return s.with("ff_fail_execution", 8, "1") }},
	{"delay by nothing", func(_ *env, s staged) call { return s.with("ff_delay_execution", 6, "+0") }},
	{"cancel by an operator", func(w *env, _ staged) call {
		id := w.create(delay(time.Hour))
		return call{"ff_cancel_execution", []string{proto, ids.UUID(id).String(), "", "", "", "", "operator_override"}}
	}},
	{"forward a ring", func(w *env, s staged) call {
		c := s.call("ff_forward_ring")
		w.create()
		w.set("ZADD", w.k.Waiters(c.args[1]), strconv.FormatInt(w.now()+1000, 10), "unreachable")
		w.set("SADD", w.k.Digests(), c.args[1])
		return c
	}},
	{"index executions", func(w *env, s staged) call {
		w.set("ZREM", w.k.Made(w.core(s.fence.Execution)["r"]), ids.UUID(s.fence.Execution).String())
		return s.call("ff_index_executions")
	}},
	{"run now", func(_ *env, s staged) call { return s.with("ff_set_delay", 2, "0") }},
	{"open a waitpoint without a name", func(_ *env, s staged) call {
		return s.with("ff_create_pending_waitpoint", 6, "")
	}},
	{"suspend on what came before", func(w *env, s staged) call {
		m := w.pend(s.fence, "early")
		w.signal(s.fence.Execution, m, "go", waitwords.EffectBuffered)
		return call{"ff_suspend_execution",
			slices.Concat([]string{proto}, fenceArgs(s.fence), wireSuspend(suspension(onPending(m))))}
	}},
	{"deliver what nobody wants", func(_ *env, s staged) call { return s.with("ff_deliver_signal", 5, "other") }},
	{"deliver early", func(w *env, s staged) call {
		return call{"ff_deliver_signal", wireDeliver(s.fence.Execution, w.pend(s.fence, "early"), "go")}
	}},
	{"receive nothing", func(_ *env, s staged) call {
		return s.with("ff_receive_messages", 6, "other·1", 7, "other")
	}},
	{"seed a token key", func(w *env, _ staged) call {
		w.set("DEL", w.k.Kids())
		return call{"ff_set_token_keys", wireKey("seed", kid, "0", "0")}
	}},
	{"stop the feed", func(w *env, s staged) call {
		w.must("ff_set_feed", s.call("ff_set_feed").args...)
		return s.with("ff_set_feed", 1, "")
	}},
	{"thaw", func(w *env, s staged) call {
		w.set("HSET", string(w.k), "frozen", "reason")
		return s.with("ff_freeze_partition", 1, "0")
	}},
	{"audit executions", func(w *env, s staged) call {
		w.set("ZREM", w.k.Alarms(), ids.UUID(s.fence.Execution).String())
		return s.call("ff_audit_executions")
	}},
	{"audit an index", func(w *env, s staged) call {
		w.set("ZADD", w.k.Alarms(), "1", "nobody")
		return s.call("ff_audit_index")
	}},
	{"audit keys", func(w *env, s staged) call {
		w.editRecord(ids.UUID(s.fence.Execution), func(f fields) { delete(f, "tg") })
		return s.call("ff_audit_keys")
	}},
	{"audit flows", func(w *env, s staged) call {
		id := uuid.NewString()
		w.must("ff_flow_create", proto, id, "n", "k", "", "", "", "0")
		w.set("HINCRBY", w.k.Flow(uuid.MustParse(id)), "mw", "3")
		return s.with("ff_audit_flows", 3, id)
	}},
	{"audit routes", func(w *env, _ staged) call {
		w.set("HINCRBY", w.k.RouteUse(), "1", "3")
		use := w.hash(w.k.RouteUse())["1"]
		n, _ := strconv.Atoi(use)
		low := strconv.Itoa(n - 3)
		return call{"ff_audit_routes", []string{proto, "1", "0", "0", "", "1", "1", use, low, low}}
	}},
	{"idle claim", func(w *env, _ staged) call {
		w.reset()
		w.create(delay(time.Hour))
		k := w.worker("w1")
		k.nothingYet()
		return call{"ff_claim_next", claimArgs(k.request(2))}
	}},
	{"claim grants", func(w *env, _ staged) call {
		w.create(asking(flowfabric.Gate("q")))
		k := w.worker("w1")
		k.gates = true
		k.nothingYet()
		return call{"ff_claim_next", granting(claimArgs(k.request(2)))}
	}},
	{"renew with notices", func(w *env, s staged) call {
		w.cancel(s.fence.Execution)
		w.advance(time.Second)
		return s.call("ff_session_renew")
	}},
	{"close", func(w *env, _ staged) call {
		k := w.worker("w2")
		w.complete(k.one(w.create(priority(99))).Fence, "")
		return call{"ff_session_close", []string{proto, k.session}}
	}},
	{"tick", func(w *env, s staged) call {
		w.createN(3, delay(time.Second))
		w.create(deadline(time.Second))
		w.advance(2 * ttl)
		return s.call("ff_tick")
	}},
	{"give the tick up", func(_ *env, s staged) call { return s.with("ff_tick", 2, "1") }},
	{"the first part of a flow", func(w *env, _ staged) call {
		g := w.flow().node("a", nil).node("b", []string{"a"})
		return call{"ff_flow_create", wireMake(g.id, "", g.nodes...)}
	}},
	{"release the flow of a schedule", func(w *env, _ staged) call {
		s := w.recurring(w.named("flow"), time.Second)
		w.advance(5 * time.Second)
		g := w.scheduled(s).stage()
		c := call{"ff_fire_schedule", append(wireFire(w, s, "0")[:11], "0", ids.UUID(g.id).String(),
			strconv.Itoa(len(g.nodes)), strconv.Itoa(g.edges), "seal")}
		clear(c.args[6:9]) // none is missed
		return c
	}},
	{"drain", func(w *env, s staged) call {
		g := w.flow()
		for _, node := range nodesOf("n", 80) {
			g.node(node, nil)
		}
		g.submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		return s.call("ff_flow_drain")
	}},
	{"wait no longer", func(w *env, s staged) call {
		c := s.call("ff_note_waiters")
		w.must(c.name, c.args...)
		return s.with("ff_note_waiters", 2, "-")
	}},
	{"tell a waiter", func(w *env, s staged) call {
		w.must("ff_wait_for_others", s.call("ff_wait_for_others").args...)
		list := w.hash(w.k.Children(ids.UUID(s.fence.Execution)))
		full := ""
		for name := range list {
			if len(name) > 36 {
				full = name
			}
		}
		return call{"ff_tell_waiters",
			[]string{proto, "1", ids.UUID(s.fence.Execution).String(), full, list["others"], "s", "1"}}
	}},
	{"a report that is refused", func(_ *env, s staged) call { return s.with("ff_spend", 9, "61") }},
	{"return a grant without a hold", func(_ *env, s staged) call { return s.with("ff_release_grant", 5, "0") }},
	{"ask about holds", func(w *env, s staged) call {
		w.advance(5 * time.Second)
		return s.call("ff_check_holds")
	}},
	{"detach", func(_ *env, s staged) call {
		return s.with("ff_attach", 1, "t\x1fapp.tenant\x1facme", 2, "")
	}},
	{"pause what is granted", func(_ *env, s staged) call {
		return s.with("ff_hold_execution", 1, s.call("ff_check_holds").args[2])
	}},
}

// call is the first staged call of a function.
func (s staged) call(name string) call { return s.nth(name, 0) }

// nth is a staged call of a function, counted from 0.
func (s staged) nth(name string, n int) call {
	for _, c := range s.calls {
		if c.name == name {
			if n == 0 {
				return call{name, slices.Clone(c.args)}
			}
			n--
		}
	}
	panic("no such staged call of " + name)
}

// with is the first staged call of a function with other arguments: an index and a value by turns.
func (s staged) with(name string, changes ...any) call {
	c := s.call(name)
	for i := 0; i < len(changes); i += 2 {
		c.args[changes[i].(int)] = changes[i+1].(string)
	}
	return c
}

// writes are the staged calls of functions that write, and the further ones.
func (s staged) writes() (all []write) {
	known, nth := functionsByName(), map[string]int{}
	for _, c := range s.calls {
		if slices.Contains(known[c.name].Flags, "no-writes") {
			continue
		}
		name, n := c.name, nth[c.name]
		nth[name]++
		all = append(all, write{name + "/" + strconv.Itoa(n+1), func(_ *env, s staged) call { return s.nth(name, n) }})
	}
	return append(all, furtherWrites...)
}

// eachWrite stages every call that writes. rewind brings everything back to before it.
func (w *env) eachWrite(try func(what string, c call, rewind func())) {
	w.Helper()
	s := w.stage()
	dumps := w.srv.Features.Native && !w.srv.Features.Cluster
	restore := func([]saved) { s = w.stage() }
	var image []saved
	if dumps {
		image = w.save()
		roots := w.roots
		restore = func(image []saved) {
			w.roots, w.checker = roots, invariant.NewChecker()
			w.restore(image)
		}
	}
	for i, x := range s.writes() {
		if !w.mine(i) {
			continue
		}
		restore(image)
		w.quiet = true
		c := x.make(w, s)
		w.quiet = false
		if !dumps {
			try(x.what, c, nil)
			continue
		}
		here := w.save()
		try(x.what, c, func() { restore(here) })
	}
	w.reset()
}

// repeatsFile says what every staged call that writes answers when it is made again, one line for each: its first
// outcome, the outcome of a repeat, and the slots in which they differ. A change of a line is a change of the contract.
// FLOWFABRIC_GOLDEN=write writes them anew.
const repeatsFile = "testdata/repeats.txt"

// renewed are facts that a repeat may change.
var renewed = map[string][]string{
	"ff_open_route/1":    {":closings \"w"}, // how often it was opened
	"ff_release_grant/1": {":outbox"},       // its gate is told once for each call
}

var repeatScenarios = []scenario{
	{name: "an identical second call of any function that writes changes nothing", run: func(w *env) {
		text, err := os.ReadFile(repeatsFile)
		w.no(err)
		stored, now := map[string]string{}, strings.Builder{}
		for line := range strings.Lines(string(text)) {
			what, answers, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			stored[what] = answers
		}
		idle := map[string]bool{} // of no call of which it is known that it does something
		for _, h := range contract.Functions() {
			// of the deployment record, which is not staged, errors tells: it is fixed once written
			idle[h.Name] = !slices.Contains(h.Flags, "no-writes") && h.Name != "ff_configure" && h.Name != "ff_boot"
		}
		whole := true
		w.eachWrite(func(what string, c call, _ func()) {
			before := w.digest()
			first := w.fcall(c.name, c.args...)
			w.check()
			after := w.digest(renewed[what]...)
			if before != w.digest() {
				idle[c.name] = false
			}
			again := w.fcall(c.name, c.args...)
			for range 2 {
				if now := w.digest(renewed[what]...); now != after {
					w.Fatalf("%s: made twice it differs from once:\n%s", what, difference(after, now))
				}
				third := w.fcall(c.name, c.args...)
				sameList(w, what+": a further repeat", append(third.slots, third.code),
					append(again.slots, again.code)...)
			}
			w.check()
			answers := repeated(c.name, first, again)
			fmt.Fprintf(&now, "%s: %s\n", what, answers)
			if os.Getenv("FLOWFABRIC_GOLDEN") != "write" {
				same(w, what+": answers", answers, stored[what])
			}
			delete(stored, what)
		})
		for i := range w.stage().writes() {
			whole = whole && w.mine(i)
		}
		for name, still := range idle {
			if still && whole {
				w.Errorf("%s writes, and no call of it that changes anything is made twice here", name)
			}
		}
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			w.no(os.WriteFile(repeatsFile, []byte(now.String()), 0o644))
		} else if whole && len(stored) > 0 {
			w.Errorf("%s has lines of calls that nobody makes: %v", repeatsFile, stored)
		}
	}},
}

// repeated is how the answer to a repeat differs from the first.
func repeated(name string, first, again answer) string {
	var b strings.Builder
	b.WriteString(outcome(name, first) + " " + outcome(name, again))
	tell := func(at string, was, is any) {
		fmt.Fprintf(&b, " %s %s", at, changing.ReplaceAllString(fmt.Sprintf("%q→%q", was, is), "…"))
	}
	if len(first.slots) != len(again.slots) {
		tell("all", first.slots, again.slots)
		return b.String()
	}
	for i, is := range again.slots {
		if was := first.slots[i]; was != is {
			tell(strconv.Itoa(i), was, is)
		}
	}
	return b.String()
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
