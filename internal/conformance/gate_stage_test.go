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

// Functions that are called where budgets are, and where quotas are. All others concern a partition of executions.
var (
	budgetFunctions = []string{"ff_put_budget", "ff_remove_budget", "ff_report_usage", "ff_undo_usage",
		"ff_adjust_budget", "ff_reset_budget", "ff_release_usage", "ff_check_budgets", "ff_read_budget",
		"ff_list_gates"}
	quotaFunctions = []string{"ff_put_quota", "ff_remove_quota", "ff_admit", "ff_settle_holds", "ff_read_quota"}
)

// beside makes the partitions of budgets and of quotas that have the number of the scenario's own, empty. Until the
// next reset, whatever looks at the scenario's keyspace looks at them too.
func (w *env) beside() {
	w.Helper()
	w.roots = []string{keys.BudgetRoot(w.p), keys.QuotaRoot(w.p)}
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
	switch {
	case slices.Contains(budgetFunctions, name):
		return keys.BudgetRoot(w.p)
	case slices.Contains(quotaFunctions, name):
		return keys.QuotaRoot(w.p)
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

// elsewhere is the text of the partitions of budgets and quotas that belong to the scenario, without facts of the
// given beginnings.
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

// gateName is a name for a budget or a quota that lives in the partition with the number of the scenario's own.
func (w *env) gateName(prefix string) string {
	for i := 0; ; i++ {
		if name := prefix + strconv.Itoa(i); ids.GatePartition(name, partitions) == w.p {
			return name
		}
	}
}

// stagedGates is what there is of budgets and quotas, and of executions that ask them, each in another state.
type stagedGates struct {
	budget, spent, quota string // a budget with room and one without; a quota with one slot of two taken
	worker               *worker
	granted, active      engine.Grant           // of the worker
	paused, waiting      flowfabric.ExecutionID // by an operator; in a route without gates
	spender              flowfabric.ExecutionID // who reported to both budgets
	closed               uint64                 // a route with something to do
	outbox               []string               // entries
}

// stageGates makes them.
func (w *env) stageGates() stagedGates {
	w.Helper()
	w.beside()
	s := stagedGates{budget: w.gateName("room"), spent: w.gateName("spent"), quota: w.gateName("quota")}
	w.must("ff_put_budget", putBudget(s.budget, "", "0", "failed", "tokens", "100", "80")...)
	w.must("ff_put_budget", putBudget(s.spent, "", "0", "", "tokens", "5", "0")...)
	w.must("ff_put_quota", proto, s.quota, "", "", "10", "60000", "2", "0")
	asks := func(name string) []option {
		return []option{kind(name), asking(flowfabric.BudgetGate(s.budget), flowfabric.QuotaGate(s.quota))}
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
	w.must("ff_admit", proto, s.quota, strconv.Itoa(int(w.p)), "1", "10000", "1", holdText(s.active))
	w.must("ff_report_usage", proto, s.budget, spenderText(active), "0", "0", "first", "1", "tokens", "40")
	w.must("ff_report_usage", proto, s.spent, spenderText(active), "0", "0", "first", "1", "tokens", "5")
	w.must("ff_report_usage", proto, s.spent, spenderText(active), "3", "1", "", "1", "pages", "7")
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
		[]engine.RouteClosing{{Route: s.closed, For: time.Minute, Why: "quota " + s.quota + " cap"}}))
	s.paused = w.create(kind("paused"))
	_, err := w.e.HoldExecution(w.ctx, s.paused)
	w.no(err)
	s.waiting = w.create(kind("paused"))
	for _, x := range w.dump().Outbox {
		s.outbox = append(s.outbox, x.ID)
	}
	w.must("ff_attach", protoOf("me", ""), "t\x1fapp.tenant\x1facme", "b:"+s.budget, "set")
	w.check()
	return s
}

// putBudget is the wire form of a budget with one dimension.
func putBudget(name, expected, interval, refund, dimension, hard, soft string) []string {
	return []string{proto, name, expected, "for tests", "strict", "reject", "allow", interval, "0", refund, "1",
		dimension, hard, soft}
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

// gateCalls is a good call of every function about budgets, quotas and those who ask them.
func (w *env) gateCalls(s stagedGates) []call {
	w.Helper()
	p, closed := strconv.Itoa(int(w.p)), strconv.FormatUint(s.closed, 10)
	back := slices.Concat([]string{proto, s.worker.session, "1"}, grantArgs(s.granted),
		[]string{"1", "1", strconv.FormatUint(s.granted.Route, 10), "1000",
			"quota " + s.quota + " cap", "0"})
	return []call{
		{"ff_put_budget", putBudget(w.gateName("another"), "", "60000", "failed,expired", "tokens", "100", "80")},
		{"ff_put_budget", putBudget(s.budget, "1", "60000", "", "tokens", "200", "80")},
		{"ff_report_usage", []string{proto, s.budget, spenderText(s.spender), "0", "0", "second", "1", "tokens", "45"}},
		{"ff_report_usage", []string{proto, s.budget, spenderText(s.spender), "7", "1", "", "1", "tokens", "5"}},
		{"ff_undo_usage", []string{proto, s.spent, spenderText(s.spender), "3", "1", ""}},
		{"ff_adjust_budget", []string{proto, s.budget, uuid.NewString(), "1", "tokens", "-5"}},
		{"ff_reset_budget", []string{proto, s.budget, "1", uuid.NewString()}},
		{"ff_release_usage", []string{proto, "1", s.budget, spenderText(s.spender), "asked", "0"}},
		{"ff_check_budgets", []string{proto, p, closed, "2", s.budget, s.spent, "1", ids.UUID(s.spender).String()}},
		{"ff_read_budget", []string{proto, s.budget, "10", "10"}},
		{"ff_list_gates", []string{proto, "budgets", "", "10"}},
		{"ff_remove_budget", []string{proto, s.budget}},
		{"ff_put_quota", []string{proto, w.gateName("further"), "", "for tests", "10", "60000", "2", "1000"}},
		{"ff_put_quota", []string{proto, s.quota, "1", "", "20", "60000", "2", "0"}},
		{"ff_admit", []string{proto, s.quota, p, closed, "10000", "1", holdText(s.granted)}},
		{"ff_settle_holds", []string{proto, "1", s.quota, holdText(s.active), "2"}},
		{"ff_settle_holds", []string{proto, "1", s.quota, holdText(s.active), "1"}},
		{"ff_read_quota", []string{proto, s.quota, "10", "10"}},
		{"ff_remove_quota", []string{proto, s.quota}},
		{"ff_claim_granted", slices.Concat([]string{proto, s.worker.session, "1"}, grantArgs(s.granted))},
		{"ff_release_grant", back},
		{"ff_open_route", []string{proto, "1", closed}},
		{"ff_check_holds", slices.Concat([]string{proto, "1"}, grantArgs(s.granted))},
		{"ff_read_outbox", []string{proto, ""}},
		{"ff_trim_outbox", []string{proto, "1", s.outbox[0]}},
		{"ff_attach", []string{proto, "n\x1felsewhere", "b:" + s.budget + ",q:" + s.quota, "set"}},
		{"ff_read_gates", []string{proto}},
		{"ff_hold_execution", []string{proto, ids.UUID(s.waiting).String(), "1"}},
		{"ff_hold_execution", []string{proto, ids.UUID(s.paused).String(), "0"}},
		{"ff_set_share", []string{proto, "default", "default", "5"}},
	}
}
