package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// gateFunctions are called where gates are. All others concern a partition of executions.
var gateFunctions = []string{"ff_put_gate", "ff_remove_gate", "ff_spend", "ff_reserve", "ff_acquire",
	"ff_change_usage", "ff_settle_gates", "ff_admit", "ff_read_gate", "ff_list_gates"}

// beside makes the partition of gates that has the number of the scenario's own, empty. Until the next reset, whatever
// looks at the scenario's keyspace looks at it too.
func (w *env) beside() {
	w.Helper()
	w.roots = []string{keys.GateRoot(w.p)}
	w.clear(w.roots...)
	for _, root := range w.roots {
		same(w, "booted", w.fcallOn([]string{root}, "ff_boot", proto).code, "OK")
		if pin := w.root()["clock_pin"]; pin != "" {
			w.set("HSET", root, "clock_pin", pin)
		}
	}
}

// below lists the keys of a root that match a pattern, at the node that has it.
func (w *env) below(root, pattern string) ([]string, error) {
	return w.do("EVAL", "return redis.call('KEYS', ARGV[1])", "1", root, root+pattern).AsStrSlice()
}

// clear deletes every key of roots.
func (w *env) clear(roots ...string) {
	w.Helper()
	for _, root := range roots {
		all, err := w.below(root, "*")
		w.no(err)
		for _, key := range all {
			w.set("DEL", key)
		}
	}
}

// seat is the root on which a function is called.
func (w *env) seat(name string) string {
	if slices.Contains(gateFunctions, name) {
		return keys.GateRoot(w.p)
	}
	return string(w.k)
}

// telling is a script that answers everything below a root as text.
const telling = `
local all, out = redis.call('KEYS', KEYS[1] .. '*'), {}
table.sort(all)
for i = 1, #all do
  local key = all[i]
  local kind = redis.call('TYPE', key).ok
  local v = {}
  if kind == 'hash' then
    local h = redis.call('HGETALL', key)
    for n = 1, #h, 2 do v[#v + 1] = h[n] .. ' = ' .. h[n + 1] end
    table.sort(v)
  elseif kind == 'zset' then
    local z = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
    for n = 1, #z, 2 do v[#v + 1] = z[n] .. ' at ' .. z[n + 1] end
  elseif kind == 'list' then
    v = redis.call('LRANGE', key, '0', '-1')
  elseif kind == 'string' then
    v = { redis.call('GET', key) }
  end
  if redis.call('PTTL', key) >= 0 then v[#v + 1] = 'with a TTL' end
  for n = 1, #v do out[#out + 1] = string.gsub(key .. ' ' .. v[n], '[%z\1-\31\127-\255]', '?') end
end
return out`

// elsewhere is the text of the partitions of gates that belong to the scenario, without facts of the given beginnings.
func (w *env) elsewhere(without ...string) string {
	w.Helper()
	var b strings.Builder
	for _, root := range w.roots {
		b.WriteString(w.told(root, without...))
	}
	return b.String()
}

// told is the text of one of them.
func (w *env) told(root string, without ...string) string {
	w.Helper()
	lines, err := w.do("EVAL", telling, "1", root).AsStrSlice()
	w.no(err)
	var b strings.Builder
	for _, line := range lines {
		if strings.HasPrefix(line, root+" booted = ") ||
			slices.ContainsFunc(without, func(p string) bool { return strings.HasPrefix(line, root+p) }) {
			continue
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// gateName is a name for a gate that lives in the partition with the number of the scenario's own. It is as
// long in each, as what is recorded of arguments needs.
func (w *env) gateName(prefix string) string {
	for i := 100; ; i++ {
		if name := prefix + strconv.Itoa(i); ids.GatePartition(name, partitions) == w.p {
			return name
		}
	}
}

// stagedGates is what there is of gates, and of executions that ask them, each in another state.
type stagedGates struct {
	room, spent, slots string // counts amounts and has room, or has none; has one slot of two taken
	api                string // of a service, with two calls under way and one that waits
	worker             *worker
	granted, active    engine.Grant           // of the worker
	paused, waiting    flowfabric.ExecutionID // by an operator; in a route without gates
	spender            flowfabric.ExecutionID // who reported to two of them
	closed             uint64                 // a route with something to do
	outbox             []string               // entries
}

// stageGates makes them.
func (w *env) stageGates() stagedGates {
	w.Helper()
	w.beside()
	s := stagedGates{room: w.gateName("room"), spent: w.gateName("spent"), slots: w.gateName("slots")}
	w.must("ff_put_gate", putGate(s.room, "", "0", "failed", "tokens", "100", "80")...)
	w.must("ff_put_gate", putGate(s.spent, "", "0", "", "tokens", "5", "0")...)
	w.must("ff_put_gate", putStarts(s.slots, "", "", "10", "60000", "2", "0")...)
	s.api = w.gateName("api")
	w.must("ff_put_gate", putService(s.api, "")...)
	asks := func(name string) []option {
		return []option{kind(name), asking(flowfabric.Gate(s.room), flowfabric.Gate(s.slots))}
	}
	s.worker = w.worker("g1")
	s.worker.session = "g1~fixed"
	s.worker.gates = true
	s.worker.can = func(r engine.Route) bool { return r.Kind == "gated" }
	done, active := w.create(asks("gated")...), w.create(asks("gated")...)
	list := s.worker.grants(2)
	same(w, "granted", len(list), 2)
	claims := s.worker.granted(list...)
	w.no(w.complete(claims[slices.IndexFunc(claims, func(c engine.Claim) bool {
		return c.Fence.Execution == done
	})].Fence, "").Err)
	s.active = list[slices.IndexFunc(list, func(g engine.Grant) bool { return g.Execution == active })]
	s.spender = active
	w.must("ff_admit", proto, s.slots, strconv.Itoa(int(w.p)), "1", "10000", "0", "1", holdText(s.active))
	w.must("ff_spend", proto, s.room, "report", spenderText(active), "0", "0", "first", "1", "tokens", "40")
	w.must("ff_spend", proto, s.spent, "report", spenderText(active), "0", "0", "first", "1", "tokens", "5")
	w.must("ff_spend", proto, s.spent, "report", spenderText(active), "3", "1", "", "1", "pages", "7")
	for _, number := range []string{"1", "3", "4"} {
		w.must("ff_reserve", reserving(s.room, "reserve", active, "9", number, "tokens", "5")...)
	}
	w.must("ff_acquire", acquiring(s.api, "acquire", active, "9", "1", "10")...)
	w.must("ff_acquire", acquiring(s.api, "acquire", active, "9", "2", "10")...)
	w.must("ff_acquire", acquiring(s.api, "acquire", done, "9", "1", "900")...)
	w.create(asks("gated")...)
	s.granted = s.worker.grants(1)[0]
	w.create(asks("gated")...)
	w.create(asks("closed")...)
	other := w.worker("g2")
	other.session = "g2~fixed"
	other.gates = true
	other.can = func(r engine.Route) bool { return r.Kind == "closed" }
	back := other.grants(1)
	s.closed = back[0].Route
	w.no(w.e.ReleaseGrants(w.ctx, w.p, other.session, []engine.GrantReturn{{Grant: back[0], Reserved: true}},
		[]engine.RouteClosing{{Route: s.closed, For: time.Minute, Why: "gate " + s.slots + " cap"}}))
	s.paused = w.create(kind("paused"))
	_, err := w.e.HoldExecution(w.ctx, s.paused)
	w.no(err)
	s.waiting = w.create(kind("paused"))
	for _, x := range w.dump().Outbox {
		s.outbox = append(s.outbox, x.ID)
	}
	w.must("ff_attach", protoOf("me", ""), "t\x1fapp.tenant\x1facme", s.room, "set")
	w.check()
	return s
}

// putGate is the wire form of a gate that counts one dimension.
func putGate(name, expected, interval, refund, dimension, hard, soft string) []string {
	return []string{proto, name, expected, "for tests", "strict", "reject", "allow", interval, "0", refund, "0",
		"0", "0", "0", "", "1", dimension, hard, soft, "0", "0", "0", "0"}
}

// putStarts is the wire form of a gate that counts starts and slots.
func putStarts(name, expected, scope, rate, window, concurrency, jitter string) []string {
	return []string{proto, name, expected, scope, "strict", "reject", "allow", "0", "0", "", rate, window, concurrency,
		jitter, "", "0", "0", "0", "0", "0"}
}

// putService is the wire form of the gate of a service.
func putService(name, expected string) []string {
	minute := "1000"
	if expected != "" {
		minute = "2000"
	}
	return []string{proto, name, expected, "", "strict", "reject", "allow", "0", "0", "", "0", "0", "0", "0", "", "0",
		"5", "2000", "1", "tokens", minute, "0", "1", "acme", "3"}
}

// acquiring is the wire form of a call that asks for its turn at a service, or ends.
func acquiring(gate, how string, id flowfabric.ExecutionID, epoch, number, estimate string) []string {
	return []string{proto, gate, how, spenderText(id), epoch, number, "acme", "0", "1", "0", "0", "1", "tokens",
		estimate, "0"}
}

// reserving is the wire form of a call about a reservation.
func reserving(gate, how string, id flowfabric.ExecutionID, epoch, number string, amounts ...string) []string {
	return append([]string{proto, gate, how, spenderText(id), epoch, number, "", "", "0", "0", "0", "0", "",
		strconv.Itoa(len(amounts) / 2)}, amounts...)
}

// spenderText is the wire form of an execution that reports.
func spenderText(id flowfabric.ExecutionID) string {
	return strconv.Itoa(int(id.Partition())) + "." + ids.UUID(id).String()
}

// holdText is the wire form of a hold.
func holdText(g engine.Grant) string { return holdOf(g).String() }

// grantArgs is the wire form of a grant.
func grantArgs(g engine.Grant) []string {
	return []string{ids.UUID(g.Execution).String(), strconv.FormatUint(g.Epoch, 10)}
}

// gateCalls is a good call of every function about gates and those who ask them.
func (w *env) gateCalls(s stagedGates) []call {
	w.Helper()
	p, closed := strconv.Itoa(int(w.p)), strconv.FormatUint(s.closed, 10)
	epoch := strconv.FormatUint(s.active.Epoch, 10)
	back := slices.Concat([]string{proto, s.worker.session, "1"}, grantArgs(s.granted),
		[]string{"1", "1", strconv.FormatUint(s.granted.Route, 10), "1000",
			"gate " + s.slots + " cap", "0"})
	return []call{
		{"ff_put_gate", putGate(w.gateName("another"), "", "60000", "failed,expired", "tokens", "100", "80")},
		{"ff_put_gate", putGate(s.room, "1", "60000", "", "tokens", "200", "80")},
		{"ff_spend", []string{proto, s.room, "report", spenderText(s.spender), "0", "0", "second", "1", "tokens",
			"45"}},
		{"ff_spend", []string{proto, s.room, "report", spenderText(s.spender), "7", "1", "", "1", "tokens", "5"}},
		{"ff_spend", []string{proto, s.spent, "undo", spenderText(s.spender), "3", "1", "", "0"}},
		{"ff_reserve", reserving(s.room, "reserve", s.spender, "9", "2", "tokens", "5")},
		{"ff_reserve", reserving(s.room, "settle", s.spender, "9", "1", "tokens", "2")},
		{"ff_reserve", reserving(s.room, "release", s.spender, "9", "3")},
		{"ff_reserve", reserving(s.room, "resolve", s.spender, "9", "4")},
		{"ff_change_usage", []string{proto, s.room, uuid.NewString(), "adjust", "", "1", "tokens", "-5"}},
		{"ff_change_usage", []string{proto, s.room, uuid.NewString(), "reset", "", "0"}},
		{"ff_change_usage", []string{proto, s.room, uuid.NewString(), "raise", spenderText(s.spender), "1", "tokens",
			"5"}},
		{"ff_settle_gates", []string{proto, "1", s.room, spenderText(s.spender), "0", "0", "asked"}},
		{"ff_settle_gates", []string{proto, "2", s.slots, spenderText(s.spender), epoch, "0", "held", s.slots,
			spenderText(s.spender), epoch, "0", "gone"}},
		{"ff_admit", []string{proto, s.spent, p, closed, "10000", "1", "1", holdText(s.granted)}},
		{"ff_read_gate", []string{proto, s.room, "10", "10", "10", ""}},
		{"ff_read_gate", []string{proto, s.api, "10", "10", "10", spenderText(s.spender)}},
		{"ff_put_gate", putService(w.gateName("api2"), "")},
		{"ff_put_gate", putService(s.api, "1")},
		{"ff_acquire", acquiring(s.api, "acquire", s.spender, "9", "3", "60")},
		{"ff_acquire", acquiring(s.api, "acquire", s.spender, "9", "4", "900")},
		{"ff_acquire", acquiring(s.api, "settle", s.spender, "9", "1", "5")},
		{"ff_acquire", acquiring(s.api, "refused", s.spender, "9", "2", "5")},
		{"ff_list_gates", []string{proto, "", "10"}},
		{"ff_remove_gate", []string{proto, s.room}},
		{"ff_put_gate", putStarts(w.gateName("further"), "", "for tests", "10", "60000", "2", "1000")},
		{"ff_put_gate", putStarts(s.slots, "1", "", "20", "60000", "2", "0")},
		{"ff_admit", []string{proto, s.slots, p, closed, "10000", "0", "1", holdText(s.granted)}},
		{"ff_settle_gates", []string{proto, "1", s.slots, spenderText(s.spender), epoch, "0", "never"}},
		{"ff_settle_gates", []string{proto, "1", s.slots, spenderText(s.spender), epoch, "0", "held"}},
		{"ff_remove_gate", []string{proto, s.slots}},
		{"ff_claim_granted", slices.Concat([]string{proto, s.worker.session, "1"}, grantArgs(s.granted),
			[]string{"1", strconv.FormatUint(s.granted.Route, 10), s.room + "=ah," + s.slots + "=h"})},
		{"ff_release_grant", back},
		{"ff_open_route", []string{proto, "1", closed}},
		{"ff_check_holds", slices.Concat([]string{proto, "1"}, grantArgs(s.granted))},
		{"ff_read_outbox", []string{proto, ""}},
		{"ff_trim_outbox", []string{proto, "1", s.outbox[0]}},
		{"ff_attach", []string{proto, "n\x1felsewhere", s.room + "," + s.slots, "set"}},
		{"ff_read_gates", []string{proto}},
		{"ff_hold_execution", []string{proto, ids.UUID(s.waiting).String(), "1"}},
		{"ff_hold_execution", []string{proto, ids.UUID(s.paused).String(), "0"}},
		{"ff_set_share", []string{proto, "default", "default", "5"}},
	}
}
