package conformance

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
)

// A transition is one call, so three actors with four calls each can meet in 12!/(4!)³ = 34,650 ways, and no other.
// All of them are run: nodes are states of the partition together with what the actors know, edges are calls. Two
// orders that lead to the same node go on as one, and the number of orders is counted through.
const interleavings = 34650

var interleaveScenarios = func() (all []scenario) {
	for _, m := range slices.Concat(meetings, suspensionMeetings, gateMeetings) {
		all = append(all, scenario{name: "every interleaving: " + m.name, needs: []string{"Native"}, run: m.enumerate})
	}
	return all
}()

// meeting is three actors that share a partition.
type meeting struct {
	name    string
	options []option
	count   int // executions at the start
	scripts [3][4]move
}

// move is one step of an actor: the call it makes, and what it learns.
type move struct {
	name  string
	call  func(*actor) call
	clock time.Duration // instead of a call: time passes
}

// actor is what one participant knows. It is part of a node, so it must be comparable as text.
type actor struct {
	name   string
	number int // claim numbers used up
	fence  []string
	grant  []string // execution and epoch
	ids    []string
}

func (a *actor) session() string { return a.name + "~s" }

// held is the actor's fence, or one that was never given to anybody.
func (a *actor) held() []string {
	if a.fence != nil {
		return a.fence
	}
	return []string{a.ids[0], a.session(), "1", "1", "1"}
}

func claiming(again bool) move {
	return move{name: map[bool]string{false: "claim", true: "claim again"}[again], call: func(a *actor) call {
		n := a.number + 1
		if again {
			n = max(1, a.number)
		}
		return call{"ff_claim_next", []string{proto, a.session(), strconv.Itoa(n), "30000", "1", allRoutes, "0", "1",
			"0", "0"}}
	}}
}

func holding(name string, more ...string) move {
	return move{name: strings.TrimPrefix(name, "ff_"), call: func(a *actor) call {
		if name == "ff_complete_execution" {
			return call{name, slices.Concat([]string{proto, "1"}, a.held(), []string{"result", "0"})}
		}
		return call{name, slices.Concat([]string{proto}, a.held(), more)}
	}}
}

func operating(name string, more ...string) move {
	return move{name: strings.TrimPrefix(name, "ff_"), call: func(a *actor) call {
		return call{name, slices.Concat([]string{protoOf("op", "reason"), a.ids[0]}, more)}
	}}
}

// allRoutes is the digest of a subscription in every route that the scenarios make.
const allRoutes = "abc0"

var (
	claims, claimAgain = claiming(false), claiming(true)
	completes          = holding("ff_complete_execution")
	fails              = holding("ff_fail_execution", "io", "reason", "0", "", "", "0")
	delays             = holding("ff_delay_execution", "+1000", "")
	continues          = holding("ff_continue_execution", "next")
	releases           = holding("ff_release_execution")
	appends            = holding("ff_append_frames", "1", "1", "d", "token", "", "", "", "1", "x")
	steps              = holding("ff_record_step", "step", "value", "0", "")
	progresses         = holding("ff_update_progress", "50", "half")
	cancelsOwn         = holding("ff_cancel_execution", "owner")
	cancels            = operating("ff_cancel_execution", "", "", "", "", "operator_override")
	revokes            = operating("ff_revoke_lease", "", "33333333-3333-3333-3333-333333333333")
	revokesAnew        = operating("ff_revoke_lease", "", "44444444-4444-4444-4444-444444444444")
	raises             = operating("ff_change_priority", "7")
	purges             = operating("ff_purge_execution", "86400000")
	replays            = replaying("11111111-1111-1111-1111-111111111111")
	replaysAnew        = replaying("22222222-2222-2222-2222-222222222222")
	rewinds            = rewinding("55555555-5555-5555-5555-555555555555")
	rewindsAnew        = rewinding("66666666-6666-6666-6666-666666666666")
	overs              = holding("ff_record_step", "model", "value", "0", "over")
	stoppeds           = holding("ff_record_step", "model", "value", "0", "stopped")
	stops              = operating("ff_stop_turn", "77777777-7777-7777-7777-777777777777")
	stopsAnew          = operating("ff_stop_turn", "88888888-8888-8888-8888-888888888888")
	forks              = operating("ff_fork_execution", "99999999-9999-4999-9999-999999999999", "step", "0", "")
	ticks              = move{name: "tick", call: func(*actor) call {
		return call{"ff_tick", []string{proto, ticker, "0"}}
	}}
	renews = move{name: "renew", call: func(a *actor) call {
		return call{"ff_session_renew", []string{proto, a.session(), "30000", "0"}}
	}}
	closes = move{name: "close", call: func(a *actor) call {
		return call{"ff_session_close", []string{proto, a.session()}}
	}}
)

func replaying(request string) move {
	return operating("ff_replay_execution", request, "keep", "1")
}

// rewinding rewinds the first attempt to before the step.
func rewinding(request string) move {
	return operating("ff_rewind_execution", request, "step", "1", "utf8", "x")
}

func passes(d time.Duration) move { return move{name: d.String() + " pass", clock: d} }

func kills(victim string) move {
	return move{name: "kill " + victim, call: func(*actor) call {
		return call{"ff_mark_dead", []string{protoOf("op", "reason"), "session", victim + "~s"}}
	}}
}

// soaking is how many executions meet in a soak; otherwise it is one, where more take long.
func soaking(n int) int {
	if os.Getenv("FLOWFABRIC_SOAK") == "" {
		return 1
	}
	return n
}

var meetings = []meeting{
	{"a lease expires", []option{retries(1)}, 1, [3][4]move{
		{claims, appends, renews, completes}, {claims, steps, fails, claims},
		{passes(ttl), ticks, passes(ttl), ticks}}},
	{"an operator cancels and replays", []option{retries(1)}, 1, [3][4]move{
		{claims, progresses, appends, completes}, {claims, renews, cancelsOwn, closes},
		{cancels, replays, raises, cancels}}},
	{"leases are revoked", []option{reclaims(1)}, 1, [3][4]move{
		{claims, appends, completes, renews}, {claims, completes, claims, closes},
		{revokes, ticks, revokesAnew, ticks}}},
	{"retries and delays", []option{retries(1)}, soaking(2), [3][4]move{
		{claims, fails, claims, completes}, {claims, delays, claims, releases},
		{passes(time.Second), ticks, passes(time.Second), ticks}}},
	{"rewinds", []option{retries(1)}, 1, [3][4]move{
		{claims, steps, completes, claims}, {claims, steps, appends, fails},
		{rewinds, ticks, rewindsAnew, revokes}}},
	{"turns are stopped, forked and rewound", []option{retries(1)}, 1, [3][4]move{
		{claims, steps, overs, completes}, {claims, stoppeds, delays, fails},
		{stops, forks, stopsAnew, rewinds}}},
	{"continues", nil, soaking(2), [3][4]move{
		{claims, continues, claims, completes}, {claims, continues, continues, claims},
		{cancels, passes(ttl), ticks, replays}}},
	{"replies are lost", []option{retries(1)}, 2, [3][4]move{
		{claims, claimAgain, completes, completes}, {claims, claimAgain, fails, fails},
		{passes(ttl), ticks, releases, ticks}}},
	{"timeouts and deadlines", []option{retries(1), timeout(10 * time.Second), deadline(25 * time.Second)}, 1,
		[3][4]move{
			{claims, renews, completes, claims}, {claims, delays, renews, completes},
			{passes(10 * time.Second), ticks, passes(15 * time.Second), ticks}}},
	{"sessions are closed and declared dead", nil, 2, [3][4]move{
		{claims, closes, claims, completes}, {claims, releases, closes, claims},
		{kills("a"), ticks, kills("b"), ticks}}},
	{"replays and purges", []option{retries(1), func(x *engine.NewExecution) { x.Digest = "d" }}, 1, [3][4]move{
		{claims, completes, claims, completes}, {claims, fails, steps, claims},
		{replays, purges, replaysAnew, purges}}},
}

// node is one state that some orders of calls lead to.
type node struct {
	at     [3]int
	actors [3]actor
	image  []saved
	dump   *invariant.Dump
	text   string // of the dump, but for the ids that the server gives to frames
	orders int
	path   string // one of the orders
}

// saved is one key as it was.
type saved struct {
	key, content string
	ttl          int64
}

func (m meeting) enumerate(w *env) {
	w.quiet = true
	w.set("HSET", string(w.k), "clock_pin", "1800000000000")
	ids := m.begin(w)
	start := &node{orders: 1, image: w.save(), dump: w.dump()}
	start.text = start.dump.Text(frameIDs(ids)...)
	for i, name := range []string{"a", "b", "c"} {
		start.actors[i] = actor{name: name, ids: ids}
	}
	level, nodes := map[string]*node{"": start}, 0
	for range 12 {
		next := map[string]*node{}
		for _, n := range level {
			nodes++
			for i := range 3 {
				if n.at[i] < 4 {
					w.step(m, n, i, next)
				}
			}
		}
		level = next
	}
	orders := 0
	for _, leaf := range level {
		orders += leaf.orders
		w.restore(leaf.image)
		w.finishAll(leaf)
	}
	same(w, "orders run", orders, interleavings)
	w.Logf("%d orders, %d nodes, %d ends", orders, nodes, len(level))
}

// begin creates the executions, with ids that are the same in every run, and the subscription.
func (m meeting) begin(w *env) (ids []string) {
	for i := range m.count {
		x := w.item(m.options...)
		ids = append(ids, uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(i)}).String())
		args := createArgs(x)
		args[13] = ids[i]
		same(w, "created", outcome("ff_create_execution", w.fcall("ff_create_execution", args...)), "OK")
	}
	w.must("ff_set_subscription", proto, allRoutes, "0", "1", "1", "0")
	w.seed()
	w.must("ff_tick", proto, ticker, "0")
	return ids
}

// step makes the next call of actor i in a node, judges it, and files the node it leads to.
func (w *env) step(m meeting, n *node, i int, next map[string]*node) {
	w.Helper()
	move := m.scripts[i][n.at[i]]
	w.restore(n.image)
	child := &node{at: n.at, actors: n.actors, orders: n.orders,
		path: n.path + " " + n.actors[i].name + ":" + move.name}
	child.at[i]++
	var a answer
	var c call
	if move.clock > 0 {
		w.set("HINCRBY", string(w.k), "clock_pin", strconv.FormatInt(move.clock.Milliseconds(), 10))
	} else {
		c = move.call(&child.actors[i])
		a = w.fcall(c.name, c.args...)
		child.actors[i].learn(c, a)
	}
	child.dump = w.dump()
	child.text = child.dump.Text(frameIDs(n.actors[0].ids)...)
	if move.clock == 0 {
		w.judge(n, child, c, a)
	}
	key := child.key()
	if known := next[key]; known != nil {
		known.orders += child.orders
		return
	}
	child.image = w.save()
	next[key] = child
}

// learn takes from a claim's reply what the actor needs for its fence.
func (a *actor) learn(c call, reply answer) {
	if c.name == "ff_claim_granted" {
		a.took(reply)
		return
	}
	if c.name != "ff_claim_next" || reply.code != "OK" {
		return
	}
	at := 8 + 2*number64(reply.slots[7]) // duplicate registered more overdue gated full version rows {id row} claims
	if number64(reply.slots[at]) == 0 {
		a.asked(reply, at+1)
		return
	}
	if reply.slots[0] == "0" {
		a.number++
	}
	h := strings.Fields(reply.slots[at+1])
	a.fence = []string{h[0], a.session(), strconv.Itoa(a.number), h[2], h[1]}
}

func number64(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// frameIDs are the facts that a stopped clock does not stop.
func frameIDs(ids []string) []string {
	facts := []string{":f:", ":outbox"}
	for _, id := range ids {
		for attempt := 1; attempt <= 6; attempt++ {
			facts = append(facts, fmt.Sprintf(":fm:%s:%d \"i\"", id, attempt))
		}
	}
	return facts
}

// key tells nodes apart: everything the partition holds, and everything the actors know.
func (n *node) key() string {
	var b strings.Builder
	fmt.Fprint(&b, n.at)
	for _, a := range n.actors {
		fmt.Fprint(&b, a.number, a.fence, a.grant)
	}
	return b.String() + n.text
}

// judge holds one call against the rules that need no knowledge of the library: every invariant, a refusal changes
// nothing, and a holder's call works if and only if the caller is the holder.
func (w *env) judge(before, after *node, c call, a answer) {
	w.Helper()
	fail := func(format string, args ...any) {
		w.Helper()
		w.Fatalf("%s answered %s %q: %s\norder:%s\n%s", c.name, a.code, a.slots, fmt.Sprintf(format, args...),
			after.path, difference(before.dump.Text(), after.dump.Text()))
	}
	checker := invariant.NewChecker()
	checker.Violations(before.dump)
	if bad := checker.Violations(after.dump); len(bad) > 0 {
		fail("broken: %s", strings.Join(bad, "\n"))
	}
	was, now := cores(before.dump), cores(after.dump)
	result := outcome(c.name, a)
	if refused(c.name, a) && before.text != after.text {
		fail("a refusal changed something")
	}
	switch c.name {
	case "ff_complete_execution", "ff_fail_execution", "ff_delay_execution", "ff_continue_execution",
		"ff_release_execution", "ff_record_step",
		"ff_update_progress", "ff_append_frames", "ff_append_log",
		"ff_create_pending_waitpoint", "ff_suspend_execution":
		f := c.args[1:6]
		if c.name == "ff_complete_execution" {
			f = c.args[2:7]
		}
		if strings.Contains(result, "waitpoint_") && isHolder(before.dump, f) {
			break // the holder is told that what it would wait on does not wait for it
		}
		if strings.HasPrefix(result, "turn_stopped") && isHolder(before.dump, f) {
			break // or that its answer does not end the turn
		}
		if holder := isHolder(before.dump, f); holder && result != "OK" && result != "ALREADY_SATISFIED" ||
			!holder && result == "OK" {
			fail("the caller is the holder: %v", holder)
		}
	case "ff_claim_granted":
		for id, core := range now {
			if was := was[id]; was["s"] != "A1" && core["s"] == "A1" &&
				(!strings.HasPrefix(was["s"], "G1") || was["gs"] != c.args[1] || was["ge"] != core["e"]) {
				fail("%s went from %v to %v", id, was, core)
			}
		}
	case "ff_claim_next":
		for id, core := range now {
			was := was[id]
			if was["s"] != "A1" && core["s"] == "A1" &&
				(!strings.HasPrefix(was["s"], "R1") || len(core["e"]) < len(was["e"]) ||
					len(core["e"]) == len(was["e"]) && core["e"] <= was["e"]) {
				fail("%s went from %v to %v", id, was, core)
			}
		}
	}
	for id, was := range was {
		if core := now[id]; was["s"][0] == 'T' && core != nil && core["s"] != was["s"] &&
			c.name != "ff_replay_execution" && c.name != "ff_rewind_execution" {
			fail("an end was undone")
		}
	}
}

// isHolder says in its own words who holds an execution.
func isHolder(d *invariant.Dump, f []string) bool {
	core, s := d.Hashes[":x:"+f[0]], d.Hashes[":s:"+f[1]]
	expires, _ := strconv.ParseInt(s["exp"], 10, 64)
	return core["s"] == "A1" && core["ss"] == f[1] && core["cl"] == f[2] && core["e"] == f[3] &&
		core["n"] == f[4] && s["dead"] == "" && expires > d.Now
}

func cores(d *invariant.Dump) map[string]map[string]string {
	all := map[string]map[string]string{}
	for key, h := range d.Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			all[id] = h
		}
	}
	return all
}

// finishAll proves that no order leaves anything stuck: with time and a worker, every execution ends.
func (w *env) finishAll(leaf *node) {
	w.Helper()
	const worker = "z~s"
	for round := 0; ; round++ {
		open := 0
		for _, core := range cores(w.dump()) {
			if core["s"][0] != 'T' {
				open++
			}
		}
		if open == 0 {
			return
		}
		if round > 20 {
			w.Fatalf("%d executions never end after%s", open, leaf.path)
		}
		w.set("HINCRBY", string(w.k), "clock_pin", strconv.FormatInt(2*ttl.Milliseconds(), 10))
		for w.must("ff_tick", proto, ticker, "0").slots[1] == "1" {
		}
		z := actor{name: "z" + strconv.Itoa(round), ids: leaf.actors[0].ids}
		for {
			c := claims.call(&z)
			a := w.must(c.name, c.args...)
			had := z.number
			if z.learn(c, a); z.number == had {
				w.finishGated(&z)
				break
			}
			c = completes.call(&z)
			same(w, "completed by "+worker, outcome(c.name, w.fcall(c.name, c.args...)), "OK")
		}
	}
}

// save reads every key of the partition, and of those of gates that belong to the scenario, as the
// server stores it.
func (w *env) save() []saved {
	w.Helper()
	all := w.keys()
	for _, root := range w.roots {
		more, err := w.do("KEYS", root+"*").AsStrSlice()
		w.no(err)
		all = append(all, more...)
	}
	commands := make(rueidis.Commands, 0, 2*len(all))
	for _, key := range all {
		commands = append(commands, w.raw.B().Dump().Key(key).Build(), w.raw.B().Pttl().Key(key).Build())
	}
	replies := w.raw.DoMulti(w.ctx, commands...)
	image := make([]saved, len(all))
	for i, key := range all {
		content, err := replies[2*i].ToString()
		w.no(err)
		ttl, err := replies[2*i+1].AsInt64()
		w.no(err)
		image[i] = saved{key, content, max(0, ttl)}
	}
	return image
}

// restore brings everything back to an image that was saved since the last reset.
func (w *env) restore(image []saved) {
	w.Helper()
	roots := append([]string{string(w.k)}, w.roots...)
	commands := rueidis.Commands{w.raw.B().Arbitrary("EVAL", `for i = 1, #KEYS do
  local all = redis.call('KEYS', KEYS[i] .. '*')
  if #all > 0 then redis.call('DEL', unpack(all)) end
end
return #KEYS`, strconv.Itoa(len(roots))).Keys(roots...).Build()}
	for _, s := range image {
		commands = append(commands, w.raw.B().Restore().Key(s.key).Ttl(s.ttl).SerializedValue(s.content).Build())
	}
	for _, r := range w.raw.DoMulti(w.ctx, commands...) {
		w.no(r.Error())
	}
}
