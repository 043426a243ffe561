package conformance

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// gated is a partition with gates in every state that an audit looks at.
type gated struct {
	waiting, closed, granted, active, ended, paused flowfabric.ExecutionID
	worker                                          *worker
	route, shut                                     string // of what waits, and of what is closed
}

// gateShapes fills the partition with work that has gates, and with what an operator says of them.
func (w *env) gateShapes() (x gated) {
	w.Helper()
	g := &gates{env: w}
	attach := func(scope, gates string) { w.must("ff_attach", proto, scope, gates, "set") }
	attach("n\x1fother", "other")
	attach("t\x1fapp.tenant\x1facme", "slots")
	own := asking(flowfabric.Gate("openai"), flowfabric.Gate("acme"))
	x.worker = g.asker("asker")
	x.worker.can = func(r engine.Route) bool { return slices.Contains([]string{"run", "shut", "wait"}, r.Kind) }
	grant := func(opts ...option) (flowfabric.ExecutionID, []engine.Grant) {
		id := w.create(append(opts, own)...)
		list := x.worker.grants(1)
		same(w, "granted", len(list), 1)
		same(w, "granted", list[0].Execution, id)
		return id, list
	}
	var list []engine.Grant
	for _, end := range []func(f flowfabric.Fence){func(f flowfabric.Fence) { w.complete(f, "r") },
		func(f flowfabric.Fence) { w.fail(f, "x") }} {
		x.ended, list = grant(kind("run"), retries(0))
		end(x.worker.granted(list...)[0].Fence)
	}
	x.active, list = grant(kind("run"))
	x.worker.granted(list...)
	x.closed, list = grant(kind("shut"))
	g.refuse(x.worker, true, 20*time.Hour, "gate acme amount tokens 5 5", list...)
	x.granted, _ = grant(kind("run"))
	x.waiting = w.create(kind("wait"), own)
	x.paused = w.create(kind("wait"), own)
	w.create(kind("wait"), namespace("other"))
	for _, id := range []flowfabric.ExecutionID{x.paused, w.create(kind("wait"))} {
		_, err := w.e.HoldExecution(w.ctx, id)
		w.no(err)
	}
	w.must("ff_set_share", proto, "other", "default", "3")
	w.check()
	x.route, x.shut = w.core(x.waiting)["r"], w.core(x.closed)["r"]
	return x
}

// gates damages something that belongs to gates.
func (v *vandal) gates() {
	root := string(v.k)
	rows := map[bool][]string{}
	for id, row := range v.d.Hashes[":routes"] {
		has := !strings.HasSuffix(row, "\x1f")
		rows[has] = append(rows[has], id)
	}
	for _, list := range rows {
		slices.Sort(list)
	}
	open := slices.DeleteFunc(slices.Clone(rows[true]),
		func(id string) bool { _, closed := v.d.ZSets[":closed"][id]; return closed })
	if len(open) == 0 || len(rows[false]) == 0 {
		return // rows are lost
	}
	class := pick(v.r, open)
	class = class[:max(1, len(class)-9)]
	switch v.r.IntN(13) {
	case 0:
		v.set("SREM", root+":gready", pick(v.r, append(v.d.Sets[":gready"], "1")))
	case 10:
		v.set([][]string{{"DEL", root + ":gring:" + class}, {"ZREM", root + ":gring:" + class, "default"},
			{"ZADD", root + ":gring:" + class, "7", "ghost"}}[v.r.IntN(3)]...)
	case 11:
		v.set([][]string{{"DEL", root + ":ring:" + class}, {"ZADD", root + ":ring:" + class, "7", "ghost"},
			{"ZADD", root + ":ring:" + class, "9", "other"}}[v.r.IntN(3)]...)
	case 12:
		v.set([][]string{{"DEL", root + ":turns:" + class + ":default"},
			{"ZADD", root + ":turns:" + class + ":default", "7", pick(v.r, append(open, "99"))}}[v.r.IntN(2)]...)
	case 1:
		v.set("SADD", root+":gready", pick(v.r, append(rows[false], "77")))
	case 2:
		v.set("SADD", root+":ready", pick(v.r, rows[true]))
	case 3:
		v.set("ZADD", root+":closed", strconv.FormatInt(v.now()+int64(v.r.IntN(1e6)), 10),
			pick(v.r, append(rows[false], "77")))
	case 4:
		v.set("HSET", root+":closings", pick(v.r, append(open, "78")), "gate acme cap")
	case 5:
		v.set([][]string{{"HDEL", root, "gates"}, {"HSET", root, "gates", "1"}, {"HSET", root, "gates", "x"},
			{"HDEL", root, "spaces"}, {"HDEL", root, "mixed"}}[v.r.IntN(5)]...)
	case 6:
		v.set(append([]string{"XADD", root + ":outbox", "*"}, [][]string{{"g", "acme"}, {"z", "acme 1 1 1"},
			{"g", "acme " + ids.UUID(v.item().ID).String() + " lost 7"}}[v.r.IntN(3)]...)...)
	case 7:
		for key, core := range v.d.Hashes {
			if id, ok := strings.CutPrefix(key, ":x:"); ok && core["s"][:1] != "G" {
				v.editRecord(uuid.MustParse(id), func(f fields) { f["gx"], f["gs"], f["gn"] = "5", "ghost~1", "3" })
				return
			}
		}
	default:
		list := make([]string, 0, len(v.d.ZSets[":paused"]))
		for id := range v.d.ZSets[":paused"] {
			list = append(list, id)
		}
		slices.Sort(list)
		if len(list) > 0 {
			v.set([][]string{{"ZREM", root + ":paused", pick(v.r, list)},
				{"ZINCRBY", root + ":paused", "-77", pick(v.r, list)}}[v.r.IntN(2)]...)
		}
	}
}

var auditGateScenarios = []scenario{
	{name: "an audit repairs every damage to gates, except damaged records",
		damaged: "its last damage may be one of a record", run: func(w *env) {
			damages := map[string]struct {
				damage string
				lost   bool
			}{
				"a gated class not ready":         {damage: "SREM ROOT:gready CLASS"},
				"a ready class without a ring":    {damage: "SADD ROOT:gready c77"},
				"a ready class without others":    {damage: "SADD ROOT:ready c77"},
				"a gated route without a turn":    {damage: "ZREM ROOT:turns:TURNS ROUTE"},
				"a gated namespace in no ring":    {damage: "ZREM ROOT:gring:NUMBER default"},
				"a namespace without work":        {damage: "ZADD ROOT:ring:NUMBER 5 nobody"},
				"a gated one without work":        {damage: "ZADD ROOT:gring:NUMBER 5 nobody"},
				"a turn of nothing":               {damage: "ZADD ROOT:turns:TURNS 5 77"},
				"a class that lost its row":       {damage: "HDEL ROOT:routes NUMBER"},
				"a class without a version":       {damage: "ZREM ROOT:routelog NUMBER"},
				"others miscounted":               {damage: "HINCRBY ROOT:routeuse NUMBER000000000 3"},
				"others not counted":              {damage: "HDEL ROOT:routeuse NUMBER000000000"},
				"a weight of no shape":            {damage: "HSET ROOT:weights a b", lost: true},
				"a maker of no class":             {damage: "HSET ROOT:makers 77 nobody"},
				"a gated route among the others":  {damage: "SADD ROOT:ready ROUTE"},
				"a closed route that is ready":    {damage: "ZADD ROOT:turns:TURNSSHUT 5 SHUT"},
				"a closed route without time":     {damage: "ZREM ROOT:closed SHUT"},
				"a closed route without reason":   {damage: "HDEL ROOT:closings SHUT"},
				"a route closed for years":        {damage: "ZADD ROOT:closed 9999999999999 SHUT"},
				"wakes of a route without gates":  {damage: "HSET ROOT:closings w77 1"},
				"wakes that are no number":        {damage: "HSET ROOT:closings wROUTE x"},
				"meters of a route without gates": {damage: "HSET ROOT:closings m77 acme=a"},
				"meters that are none":            {damage: "HSET ROOT:closings mROUTE acme=x"},
				"a closed route without gates":    {damage: "ZADD ROOT:closed 5 77"},
				"a reason to be closed":           {damage: "HSET ROOT:closings ROUTE x"},
				"a grant nobody holds":            {damage: "ZREM ROOT:h:SESSION GRANTED"},
				"a grant under another number":    {damage: "ZADD ROOT:h:SESSION 1 GRANTED"},
				"a grant that another holds":      {damage: "ZADD ROOT:h:OTHER 1 GRANTED"},
				"a grant without alarm":           {damage: "ZREM ROOT:alarms GRANTED"},
				"a grant too late":                {damage: "ZINCRBY ROOT:alarms 500 GRANTED"},
				"a grant in its queue":            {damage: "ZADD ROOT:q:ROUTE 5 GRANTED"},
				"a grant that is over":            {damage: "record WAITING gs=x~1"},
				"a grant without session":         {damage: "record GRANTED -gs", lost: true},
				"a grant of an old epoch":         {damage: "record GRANTED ge=0", lost: true},
				"a paused one nowhere":            {damage: "ZREM ROOT:paused PAUSED"},
				"a paused one of another time":    {damage: "ZINCRBY ROOT:paused -5 PAUSED"},
				"a paused one that waits":         {damage: "ZADD ROOT:paused 5 WAITING"},
				"no level of gates":               {damage: "HDEL ROOT gates"},
				"a low level of gates":            {damage: "HSET ROOT gates 2"},
				"no sharing":                      {damage: "HDEL ROOT spaces"},
				"a share of no shape":             {damage: "HSET ROOT:shares a b", lost: true},
				"an attachment of no shape":       {damage: "HSET ROOT:attached g b:", lost: true},
				"a notice of no kind":             {damage: "XADD ROOT:outbox * z x"},
				"a notice of no shape":            {damage: "XADD ROOT:outbox * g openai g x"},
				"no wake for a closed route":      {damage: "HDEL ROOT wake"},
			}
			for i, what := range slices.Sorted(maps.Keys(damages)) {
				if !w.mine(i) {
					continue
				}
				x := damages[what]
				w.reset()
				s := w.gateShapes()
				other := w.worker("other")
				other.one(w.create(lane("others")))
				names := strings.NewReplacer("ROOT", string(w.k), "ROUTE", s.route, "CLASS",
					"c"+s.route[:len(s.route)-9], "NUMBER", s.route[:len(s.route)-9], "TURNSSHUT",
					s.shut[:len(s.shut)-9]+":default", "TURNS", s.route[:len(s.route)-9]+":default", "SHUT", s.shut,
					"SESSION", s.worker.session, "OTHER", other.session, "GRANTED", ids.UUID(s.granted).String(),
					"WAITING", ids.UUID(s.waiting).String(), "PAUSED",
					ids.UUID(s.paused).String())
				w.quiet = true
				w.inflict(names.Replace(x.damage))
				if len(w.violations(w.dump())) == 0 {
					w.Errorf("the checker does not see %s", what)
				}
				look := w.audit(false)
				repaired := w.audit(true)
				left := w.violations(w.dump())
				if x.lost && (len(left) == 0 || repaired.Lost == 0) ||
					!x.lost && (len(left) > 0 || look.Repairable == 0 || repaired.Repaired == 0 || repaired.Lost > 0) {
					w.Errorf("%s: found %s, repaired %v, lost %d, left:\n%s", what, found(look), repaired.Kinds,
						repaired.Lost, strings.Join(left, "\n"))
				}
				if again := found(w.audit(true)); !x.lost && again != "" {
					w.Errorf("a second audit after %s finds %s", what, again)
				}
			}
			w.reset() // only the route knows of gates, and no scope
			w.create(asking(flowfabric.Gate("openai")))
			w.quiet = true
			w.set("HDEL", string(w.k), "gates")
			if r := w.audit(true); r.Repaired == 0 || len(w.violations(w.dump())) > 0 {
				w.Errorf("no level of gates: repaired %v, left %q", r.Kinds, w.violations(w.dump()))
			}
		}},
	{name: "gated work that lost its index entries runs after an audit", run: func(w *env) {
		s := w.gateShapes()
		w.quiet = true
		w.set("DEL", w.k.Gready(), w.k.Closed(), w.k.Closings(), w.k.Paused(), w.k.Held(s.worker.session),
			w.k.Queue(s.route))
		w.set("HDEL", string(w.k), "gates", "wake")
		if r := w.audit(true); !r.Sound || r.Repaired == 0 {
			w.Fatalf("not repaired: %v %d", r.Kinds, r.Lost)
		}
		w.quiet = false
		w.check()
		for _, id := range []flowfabric.ExecutionID{s.paused} {
			_, err := w.e.UnholdExecution(w.ctx, id)
			w.no(err)
		}
		got := []flowfabric.ExecutionID{}
		k := (&gates{env: w}).asker("other")
		for range 8 {
			for _, x := range k.poll(9).Grants {
				got = append(got, x.Execution)
			}
		}
		for _, id := range []flowfabric.ExecutionID{s.waiting, s.paused, s.closed} {
			if !slices.Contains(got, id) {
				w.Errorf("%s was not granted: %v", id, got)
			}
		}
		w.code(s.granted, "G1f")
		w.advance(ttl)
		w.settleTime()
		w.code(s.granted, "R1f")
	}},
	{name: "an audit removes malformed outbox notices that block the others", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(1)
		g.admit(q, 1, list...)
		w.complete(k.granted(list...)[0].Fence, "r")
		entries, err := w.do("XRANGE", w.k.Outbox(), "-", "+").ToArray()
		w.no(err)
		same(w, "entries", len(entries), 1)
		x, err := entries[0].AsXRangeEntry()
		w.no(err)
		w.quiet = true
		w.set("XDEL", w.k.Outbox(), x.ID)
		w.set("XADD", w.k.Outbox(), "*", "z", "what", "g", x.FieldValues["g"])
		for range 150 {
			w.set("XADD", w.k.Outbox(), "*", "g", "acme "+ids.UUID(w.item().ID).String()+" failed 7")
		}
		w.set("XADD", w.k.Outbox(), "*", "g", "one more")
		if _, _, err := w.e.ReadOutbox(w.ctx, w.p, ""); err == nil {
			w.Fatal("the damage stops nobody")
		}
		sameDeep(w, "found", w.audit(false).Kinds, map[string]int{"phantom": 2})
		w.all("repaired", eq(w.audit(true).Repaired, 2), eq(found(w.audit(true)), ""))
		w.quiet = false
		same(w, "held", g.held(q), 1)
		for range 3 {
			g.deliver()
		}
		same(w, "held", g.held(q), 0)
	}},
	{name: "an audit knows the notices of limits of keys", run: func(w *env) {
		g := newGates(w)
		// a key may have in it what begins the name of a gate
		gates := []flowfabric.Gate{flowfabric.Gate(g.limited("1.0.0", g.name+"b:7/a+q:7=%20@x")),
			flowfabric.Gate(g.limited("0.5.60000", g.name)), flowfabric.Gate(g.budget(nil))}
		w.create(asking(gates...))
		k := g.asker("w1")
		list := k.grants(1)
		g.admit(gates[0].Name(), 1, list...)
		g.admit(gates[1].Name(), 1, list...)
		_, err := w.e.FailExecution(w.ctx, k.granted(list...)[0].Fence, engine.Failure{Category: "x", Permanent: true})
		w.no(err)
		same(w, "found", found(w.audit(true)), "")
		g.deliver()
		same(w, "held", g.held(gates[0].Name()), 0)
	}},
	{name: "an audit returns the slots of executions that no longer run", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 3})
		ids := w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(3)
		g.admit(q, 3, list...)
		claims := k.granted(list...)
		w.quiet = true
		w.complete(claims[0].Fence, "r")
		w.set("DEL", w.k.Outbox()) // somebody lost what the gate was to be told
		w.quiet = false
		g.sound()
		r := g.auditAll(true)
		w.all("nobody is suspect yet", eq(r.Holds, 0), eq(g.held(q), 3))
		g.advance(11 * time.Second)
		for range 4 { // a lease is renewed meanwhile
			_, err := w.e.RenewSession(w.ctx, w.p, k.session, ttl, 0)
			w.no(err)
		}
		look := g.auditAll(false)
		w.all("looking asks nobody", eq(look.Holds, 0), eq(g.held(q), 3))
		r = g.auditAll(true)
		w.all("asked, given back", eq(r.Holds, 3), eqDeep(r.Kinds, map[string]int{"phantom": 1}),
			eq(r.Repaired, 1), eq(r.Sound, true), eq(g.held(q), 2))
		r = g.auditAll(true)
		w.all("a second audit", eq(r.Holds, 0), eq(len(r.Kinds), 0), eq(g.held(q), 2))
		g.sound()
		_ = ids
	}},
	{name: "an audit repairs or reports damage to gates themselves", damaged: "it loses usage, which no audit sets",
		run: func(w *env) {
			g := newGates(w)
			b, q := g.budget(nil), g.gate(admission.Gate{Concurrency: 1})
			root, other := string(keys.GateRoot(ids.GatePartition(b, limits.DefaultGatePartitions))),
				string(keys.GateRoot(ids.GatePartition(q, limits.DefaultGatePartitions)))
			id, key := w.item().ID, "@"+g.name+"/"+strings.Repeat("k", 80)
			limited := g.limitRoot(g.limited("1.0.0", key[1:]))
			_, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: id, Key: "k", Amounts: map[string]int64{"tokens": 7}})
			w.no(err)
			same(w, "sound", found(g.auditAll(false)), "")
			g.sound()
			for what, x := range map[string]struct {
				damage []string
				lost   bool
				kind   string
			}{
				"a gate that is not listed": {damage: []string{"ZREM", root + ":gates", b},
					kind: engine.FindingMissing},
				"a gate that is none": {damage: []string{"ZADD", root + ":gates", "0", g.name + "-none"},
					kind: engine.FindingPhantom},
				"usage of no gate": {damage: []string{"HSET", root + ":gu:" + g.name + "-none", "tokens", "5"},
					kind: engine.FindingOrphan},
				"waiters of no gate": {damage: []string{"ZADD", root + ":gw:" + g.name + "-none", "5", "0 1"},
					kind: engine.FindingOrphan},
				"slots of no gate": {damage: []string{"ZADD", other + ":gs:" + g.name + "-none", "5", "x"},
					kind: engine.FindingOrphan},
				"a hold of no partition": {damage: []string{"ZADD", other + ":gs:" + q, "9999999999999",
					"60000." + ids.UUID(id).String() + ":7"}, kind: engine.FindingPhantom},
				"a hold of a key of no shape": {damage: []string{"ZADD", limited + ":gs:" + key, "9999999999999", "x"},
					kind: engine.FindingPhantom},
				"a hold of no shape": {damage: []string{"ZADD", other + ":gs:" + q, "9999999999999", "x"},
					kind: engine.FindingPhantom},
			} {
				w.set(x.damage...)
				seen := g.auditAll(false)
				if seen.Kinds[x.kind] != 1 || seen.Repaired > 0 || seen.Sound {
					w.Errorf("%s: seen %v: %s", what, seen.Kinds, found(seen))
				}
				repaired := g.auditAll(true)
				if repaired.Repaired != 1 || !repaired.Sound || found(g.auditAll(true)) != "" {
					w.Errorf("%s: repaired %v: %s", what, repaired.Kinds, found(repaired))
				}
				g.sound()
			}
			w.set("HSET", root+":gu:"+b, "tokens", "5")
			r := g.auditAll(true)
			w.all("less than was reported", eqDeep(r.Kinds, map[string]int{"record": 1}), eq(r.Lost, 1),
				eq(g.spent(b, "tokens"), 5))
			w.set("SET", root+":zz:"+g.name, "x")
			same(w, "a key of no kind", g.auditAll(true).Kinds[engine.FindingUnknown], 1)
		}},
}

// auditAll audits the partitions of executions and gates.
func (g *gates) auditAll(repair bool) flowfabric.CheckReport {
	g.Helper()
	r, err := maintain.Audit(g.ctx, maintain.AuditConfig{Engine: g.e, Repair: repair, Partitions: []uint16{g.p},
		Gates: true})
	g.no(err)
	g.no(r.GatesErr)
	return r
}
