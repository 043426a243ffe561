package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

// shapes are flows in all the states that an audit meets.
type shapes struct {
	staged, race, ended, failed, cancelled *graph
	running                                map[string]engine.Claim // of race
	parent                                 flowfabric.ExecutionID
}

func ofNodes(m *engine.FlowMember) { m.Kind = "node" }

// flowOfNodes begins a flow whose members nobody else claims.
func (w *env) flowOfNodes() *graph {
	g := w.flow()
	g.w.can = func(r engine.Route) bool { return r.Kind == "node" }
	return g
}

// shapes puts flows into a partition, and leaves work of the last one in the backlog.
func (w *env) shapes() shapes {
	w.Helper()
	var s shapes
	s.staged = w.flowOfNodes().node("a", nil, ofNodes).node("b", []string{"a"}, ofNodes).node("c", nil, ofNodes).stage()
	s.race = w.flowOfNodes()
	for _, n := range []string{"r1", "r2", "r3", "r4"} {
		s.race.node(n, nil, ofNodes)
	}
	s.race.node("two", []string{"r1", "r2", "r3"}, quorum(2), ofNodes).node("all", []string{"r3", "r4"}, ofNodes).
		node("last", []string{"two", "all"}, ofNodes).submit(engine.SealClosed)
	c := s.race.claim()
	s.race.complete(c["r1"], "1")
	s.race.complete(c["r4"], "4")
	s.running = c
	s.ended = w.flowOfNodes().node("a", nil, ofNodes).node("b", []string{"a"}, ofNodes).submit(engine.SealClosed)
	s.ended.complete(s.ended.claim()["a"], "a")
	s.ended.complete(s.ended.claim()["b"], "b")
	s.failed = w.flowOfNodes().node("a", nil, ofNodes).node("b", []string{"a"}, ofNodes).submit(engine.SealClosed)
	s.failed.fail(s.failed.claim()["a"])

	s.parent = w.create(kind("node"))
	k := s.ended.w
	parent := k.one(s.parent)
	wait := engine.ChildWait{Name: "wait", Mode: engine.WaitAll}
	for _, name := range []string{"x", "y", "z"} {
		x := w.item(kind("node"))
		x.ID = s.parent.Child("wait", name)
		wait.Children = append(wait.Children, engine.FlowMember{NewExecution: x, Node: name})
	}
	_, err := childtest.Wait(w.ctx, w.e, parent.Fence, wait)
	w.no(err)
	family := &graph{env: w, id: flowfabric.FlowID(s.parent), w: k}
	family.complete(family.claim()["x"], "x")

	s.cancelled = w.flowOfNodes()
	for i := range 130 {
		s.cancelled.node(fmt.Sprint("n", i), nil, ofNodes)
	}
	s.cancelled.submit(engine.SealClosed)
	out, err := w.e.CancelFlow(w.ctx, s.cancelled.id, flowfabric.CancelAll)
	w.no(err)
	same(w, "left for the backlog", out.More, true)
	w.check()
	return s
}

// without are the facts of flows that an audit may say otherwise than they were said before: how often headers
// changed, the numbers of members that were lost, the order of lists, when work was filed, and how early a session
// that was renewed is looked at.
func (s shapes) without() []string {
	out := []string{":fx:", ":fo:", ":fu:", ":backlog", `:sessions "flow~`, "root tally"}
	for _, id := range []string{ids.UUID(s.staged.id).String(), ids.UUID(s.race.id).String(),
		ids.UUID(s.ended.id).String(),
		ids.UUID(s.failed.id).String(), ids.UUID(s.cancelled.id).String(), ids.UUID(s.parent).String()} {
		out = append(out, ":fw:"+id+` "vn"`)
	}
	return out
}

// zeroless leaves out counters of nothing: absent is the same.
func zeroless(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
		return strings.HasPrefix(l, ":fw:") && strings.HasSuffix(l, `= "0"`)
	})
	return strings.Join(lines, "\n")
}

// flow damages something that belongs to a flow.
func (v *vandal) flow() {
	root := string(v.k)
	of := func(hashes bool, prefix string) (list []string) {
		add := func(key string) {
			if strings.HasPrefix(key, prefix) {
				list = append(list, key)
			}
		}
		for key := range v.d.Hashes {
			if hashes {
				add(key)
			}
		}
		for key := range v.d.Lists {
			if !hashes {
				add(key)
			}
		}
		slices.Sort(list)
		return list
	}
	nobody := ids.UUID(v.item().ID).String()
	member := func(field string) (string, string) {
		var list []string
		for key, h := range v.d.Hashes {
			if strings.HasPrefix(key, ":x:") && h[field] != "" {
				list = append(list, key)
			}
		}
		slices.Sort(list)
		key := pick(v.r, list)
		return root + key, v.d.Hashes[key][field]
	}
	by := strconv.Itoa(1 + v.r.IntN(3) - 4*v.r.IntN(2))
	switch v.r.IntN(11) {
	case 0, 1, 2:
		field := pick(v.r, []string{"mb", "mw", "md", "ma", "mu", "ms", "mf", "mc", "me", "mk", "nn", "lv", "bl"})
		v.set("HINCRBY", root+pick(v.r, of(true, ":fw:")), field, by)
	case 3:
		v.set("HDEL", root+pick(v.r, of(true, ":fw:")), pick(v.r, []string{"mb", "mw", "ma", "ms", "mc", "lv"}))
	case 4:
		v.set("HINCRBY", root+pick(v.r, of(true, ":fw:")), "lv", by)
	case 5:
		var pending []string
		for key, text := range v.d.Texts {
			if strings.HasPrefix(key, ":m:") && strings.HasSuffix(text, " p") {
				pending = append(pending, key)
			}
		}
		if slices.Sort(pending); len(pending) > 0 {
			key := pick(v.r, pending)
			f := strings.Fields(v.d.Texts[key])
			f[4+v.r.IntN(3)] = strconv.Itoa(v.r.IntN(4))
			v.editLinks(uuid.MustParse(key[len(":m:"):]), func(l *record.Links) { l.Group = strings.Join(f, " ") })
		}
	case 6:
		if key, text := member("wt"); strings.Contains(text, " p ") {
			f := strings.Fields(text)
			f[1+v.r.IntN(3)] = strconv.Itoa(v.r.IntN(9))
			_, id, _ := strings.Cut(key, ":x:")
			v.editRecord(uuid.MustParse(id), func(r fields) { r["wt"] = strings.Join(f, " ") })
		}
	case 7:
		key, flow := member("fl")
		_, id, _ := strings.Cut(strings.TrimPrefix(key, root), ":x:")
		v.set("ZREM", root+":fx:"+flow, id)
	case 8:
		_, flow := member("fl")
		key, _ := member("r")
		_, id, _ := strings.Cut(strings.TrimPrefix(key, root), ":x:")
		if v.d.Hashes[":x:"+id]["fl"] != flow {
			v.set("ZADD", root+":fx:"+flow, strconv.Itoa(v.r.IntN(9)), id)
		}
	case 9:
		if v.r.IntN(4) == 0 {
			for name := range v.d.ZSets[":backlog"] {
				v.set("ZREM", root+":backlog", name)
			}
			v.set("ZADD", root+":backlog", "5", "u:"+nobody)
			v.set("HSET", root+":work", "u:"+nobody, nobody+",0,s,0")
			return
		}
		lists := append(of(false, ":fo:"), of(false, ":fu:")...)
		if len(lists) == 0 {
			return // all of them are gone already
		}
		key := pick(v.r, lists)
		member := pick(v.r, v.d.Lists[key])
		near := false
		if id, ok := strings.CutPrefix(key, ":fo:"); ok && v.text(root+":m:"+id) != "" {
			v.editLinks(uuid.MustParse(id), func(l *record.Links) {
				if near = l.Leads <= record.Near; near {
					l.To = without(l.To, member)
				}
			})
		}
		if !near {
			v.set("LREM", root+key, "1", member)
		}
	default:
		switch area := pick(v.r, []string{":fi:", ":fc:", ":ft:", ":fo:", ":fu:", ":fx:"}); area {
		case ":fi:", ":fc:", ":ft:":
			v.set("HSET", root+area+nobody, "a", "b")
		case ":fx:":
			v.set("ZADD", root+area+nobody, "1", nobody)
		default:
			v.set("RPUSH", root+area+nobody, "d"+nobody)
		}
	}
}

// damages are those that an audit of flows repairs.
func (s shapes) damages(w *env) map[string][]string {
	r, id := string(w.k), func(g *graph, node string) string { return ids.UUID(g.id.Member(node)).String() }
	race, failed, ended := ids.UUID(s.race.id).String(), ids.UUID(s.failed.id).String(), ids.UUID(s.ended.id).String()
	two, all, parent := id(s.race, "two"), id(s.race, "all"), ids.UUID(s.parent).String()
	x := ids.UUID(s.parent.Child("wait", "x")).String()
	work := "c:" + ids.UUID(s.cancelled.id).String()
	return map[string][]string{
		"a blocked one that is not filed":     {"ZREM " + r + ":blocked " + two},
		"a blocked one filed at another time": {"ZINCRBY " + r + ":blocked 7 " + two},
		"a blocked one of nobody":             {"ZADD " + r + ":blocked 7 nobody"},
		"a counter":                           {"HINCRBY " + r + ":fw:" + race + " mb 1"},
		"a counter below zero":                {"HSET " + r + ":fw:" + race + " ms -4"},
		"all members forgotten":               {"DEL " + r + ":fx:" + race},
		"a flow that is not listed":           {"ZREM " + r + ":flows " + race},
		"a flow of nobody":                    {"ZADD " + r + ":flows 5 " + two},
		"a staged flow that nobody gives up":  {"DEL " + r + ":flowdue"},
		"a flow due for nothing":              {"ZADD " + r + ":flowdue 5 " + two},
		"an edge that its upstream forgot": {"dependants " + id(s.race, "r2"),
			"record " + id(s.race, "r2") + " -no"},
		"an edge that was not told": {"edges " + two + " " + id(s.race, "r1") + "=.,,from-r1",
			"group " + two + " quorum\x1e2\x1erun\x1e3\x1e0\x1e0\x1e0\x1ep"},
		"a group that was not counted": {"group " + all + " all\x1e0\x1erun\x1e2\x1e0\x1e0\x1e0\x1ep"},
		"a child that was not told": {"HSET " + r + ":fc:" + parent + " " + x + " .,,x",
			"record " + parent + " wt=all\x1e3\x1e0\x1e0\x1erun\x1ep\x1ecancel"},
		"a wait that was not counted":      {"record " + parent + " wt=all\x1e3\x1e0\x1e0\x1erun\x1ep\x1ecancel"},
		"a root that nobody would release": {"DEL " + r + ":fu:" + ids.UUID(s.staged.id).String()},
		"work that is not filed":           {"ZREM " + r + ":backlog " + work},
		"an entry of no work":              {"ZADD " + r + ":backlog 5 u:" + two},
		"lost work":                        {"ZREM " + r + ":backlog " + work, "HDEL " + r + ":work " + work},
		"work of no flow": {"ZADD " + r + ":backlog 5 u:" + two,
			"HSET " + r + ":work u:" + two + " " + two + ",0,s,0"},
		"an end that was missed": {"HDEL " + r + ":fw:" + ended + " en",
			"HSET " + r + ":fw:" + ended + " st F1"},
		"an end too early":              {"HSET " + r + ":fw:" + race + " st F2 en 5"},
		"a failure taken for a success": {"HSET " + r + ":fw:" + failed + " st F2 lv 0"},
		"a member too many":             {"HINCRBY " + r + ":fw:" + race + " nn 1"},
		"a purge that never was":        {"HSET " + r + ":fw:" + race + " pu 2"},
		"edges of nobody":               {"HSET " + r + ":fi:00000000-0000-0000-0000-000000000000 a b"},
		"members of no flow":            {"ZADD " + r + ":fx:00000000-0000-0000-0000-000000000000 1 " + two},
		"tags of no flow":               {"HSET " + r + ":ft:00000000-0000-0000-0000-000000000000 a b"},
		"a wake forgotten":              {"HDEL " + r + " wake"},
	}
}

var auditFlowScenarios = []scenario{
	{name: "an audit repairs every damage to a flow that the checker sees", run: func(w *env) {
		w.quiet = true
		s := w.shapes()
		w.quiet = false
		w.check()
		same(w, "a sound store", found(w.audit(false)), "")
		damages := s.damages(w)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(damages)), func(what string) bool {
			return what == "lost work"
		})
		for i, what := range append(names, "lost work") { // after which there is none to damage
			if !w.mine(i) && what != "lost work" {
				continue
			}
			for _, damage := range damages[what] {
				w.inflict(damage)
			}
			if len(w.violations(w.dump())) == 0 &&
				!slices.Contains([]string{"work of no flow", "a staged flow that nobody gives up"}, what) {
				w.Fatalf("%s: the checker sees nothing", what)
			}
			before := w.fingerprint()
			look := w.audit(false)
			same(w, what+": a look wrote something", w.fingerprint(), before)
			repaired := w.audit(true)
			if left := w.violations(w.dump()); len(left) > 0 || look.Repairable == 0 || repaired.Repaired == 0 ||
				repaired.Lost > 0 {
				w.Fatalf("%s: found %v, repaired %v, left:\n%s\nfindings:\n%s", what, look.Kinds, repaired.Kinds,
					strings.Join(left, "\n"), found(repaired))
			}
			if again := found(w.audit(true)); again != "" {
				w.Fatalf("a second audit after %s finds %s", what, again)
			}
		}
		s.race.drain() // and all of it goes on as if nothing had been
		s.race.complete(s.running["r2"], "2")
		s.race.complete(s.running["r3"], "3")
		for range 3 {
			for _, c := range s.race.claim() {
				s.race.complete(c, "done")
			}
		}
		s.race.ends(flowfabric.FlowCompleted)
	}},
	{name: "after an audit, members that nothing holds back run and impossible ones are skipped", run: func(w *env) {
		w.quiet = true
		g := w.flowOfNodes().node("a", nil, ofNodes).node("b", []string{"a"}, ofNodes).node("c", []string{"a"},
			ofNodes).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "a")
		b, c := ids.UUID(g.id.Member("b")), ids.UUID(g.id.Member("c"))
		w.editRecord(b, func(f fields) { f["s"] = "R3f" })
		w.editRecord(c, func(f fields) { f["s"] = "R3f" })
		w.editLinks(c, func(l *record.Links) {
			l.Group, l.Edges[ids.UUID(g.id.Member("a")).String()] = "all 0 run 1 0 1 0 i", "f,,from-a"
		})
		id := w.create(kind("node"))
		f := g.w.one(id).Fence
		x := w.item(kind("other"))
		x.ID = id.Child("wait", "x")
		_, err := childtest.Wait(w.ctx, w.e, f, engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{{NewExecution: x, Node: "x"}}})
		w.no(err)
		w.editRecord(ids.UUID(id), func(f fields) { delete(f, "wt") })
		r := w.audit(true)
		same(w, "repaired all", r.Sound, true)
		w.quiet = false
		w.check()
		same(w, "again", found(w.audit(true)), "")
		claims := g.claim()
		w.all("claimed", eq(len(claims), 2), eq(claims["b"].Fence.Execution, g.id.Member("b")),
			eq(claims["root"].Fence.Execution, id))
		g.are(flowfabric.Skipped, "c")
	}},
	{name: "an audit releases a member whose upstream's end was lost, also behind 60 waiting members",
		run: func(w *env) {
			w.quiet = true
			g := w.flowOfNodes().node("slow", nil, ofNodes).node("fast", nil, ofNodes).node("gone", nil, ofNodes)
			for i := range 60 {
				g.node(fmt.Sprint("n", i), []string{"slow"}, ofNodes)
			}
			g.node("new", []string{"fast"}, ofNodes).node("orphan", []string{"gone"}, ofNodes).submit(engine.SealClosed)
			c := g.claim()
			id := func(node string) string { return ids.UUID(g.id.Member(node)).String() }
			for _, node := range []string{"fast", "gone"} { // the work of the end is lost
				w.editLinks(ids.UUID(g.id.Member(node)), func(l *record.Links) { l.To = nil })
			}
			g.complete(c["fast"], "f")
			g.complete(c["gone"], "g")
			g.are(flowfabric.WaitingChildren, "new", "orphan", "n0", "n59")
			// What is left of an upstream that was purged although others wait for it: its tombstone.
			w.set("SET", w.k.Tombstone(ids.UUID(g.id.Member("gone"))), "T1 "+strconv.FormatInt(w.now()+86400000,
				10)+" ",
				"PX", "86400000")
			w.set("DEL", w.k.Core(ids.UUID(g.id.Member("gone"))), w.k.Result(ids.UUID(g.id.Member("gone")), 1))
			w.set("ZREM", w.k.Done(), id("gone"))
			w.set("ZREM", w.k.Members(ids.UUID(g.id)), id("gone"))
			w.set("HINCRBY", w.k.Flow(ids.UUID(g.id)), "pu", "1")
			r := w.audit(true)
			if !r.Sound || r.Kinds[engine.FindingMissing] < 3 {
				w.Fatalf("found %s", found(r))
			}
			w.quiet = false
			w.check()
			c = g.claim()
			w.all("claimed", eq(len(c), 2), eq(string(c["new"].Inputs["from-fast"]), "f"),
				eq(c["orphan"].Node, "orphan"))
			g.are(flowfabric.WaitingChildren, "n0", "n59")
		}},
	{name: "an audit compares a flow of 250 members as a whole or not at all", run: func(w *env) {
		w.quiet = true
		g := w.flowOfNodes()
		for i := range 250 {
			g.node(fmt.Sprint("n", i), nil, ofNodes)
		}
		g.submit(engine.SealClosed)
		w.set("HINCRBY", w.k.Flow(ids.UUID(g.id)), "mw", "-3")
		look := func(repair bool, between func()) (pages int, last engine.AuditedFlow, list []flowfabric.Finding) {
			last = engine.AuditedFlow{ID: ids.UUID(g.id)}
			for !last.Done && !last.Busy {
				seen, findings, err := w.e.AuditFlows(w.ctx, w.p, repair, []engine.AuditedFlow{last})
				w.no(err)
				last, list, pages = seen[0], append(list, findings...), pages+1
				between()
			}
			return pages, last, list
		}
		worked := false
		pages, last, list := look(true, func() {
			if !worked {
				c := g.w.claim(1)
				g.complete(c[0], "x")
			}
			worked = true
		})
		w.all("while it works", eq(pages, 2), eq(last.Busy, true), eq(len(list), 0))
		pages, last, list = look(true, func() {})
		w.all("when it rests", eq(pages, 3), eq(last.Done, true), eq(len(list), 1), eq(list[0].Kind, "count"),
			eq(list[0].Detail, "246 counted, 249 found"))
		w.quiet = false
		w.check()
		w.set("HINCRBY", w.k.Flow(ids.UUID(g.id)), "mw", "2")
		w.all("the audit repairs it", eq(w.audit(true).Kinds[engine.FindingCount], 1), eq(w.audit(true).Repaired, 0))
		w.check()
		members, lost := w.k.Members(ids.UUID(g.id)), ids.UUID(g.id.Member("n249")).String()
		w.set("ZREM", members, lost)
		w.audit(true)
		n, err := w.do("ZSCORE", members, lost).AsFloat64()
		w.no(err)
		same(w, "the first number that no member has", n, 249)
	}},
	{name: "an audit of a flow that begins in the middle is refused", run: func(w *env) {
		g := w.flowOfNodes()
		for i := range 3 {
			g.node(fmt.Sprint("n", i), nil, ofNodes)
		}
		g.submit(engine.SealClosed)
		version, _ := w.do("HGET", w.k.Flow(ids.UUID(g.id)), "vn").ToString()
		for _, x := range [][2]string{{"1", ""}, {"100", ""}, {"1", "0 1 0 0 0 0 0 0 0 0 0 0 1 1"},
			{"0", "0 1 0 0 0 0 0 0 0 0 0 0 1 1"}} {
			a := w.fcall("ff_audit_flows", proto, "1", "1", ids.UUID(g.id).String(), x[0], cmp.Or(version, "0"), x[1])
			same(w, "next "+x[0]+", seen "+x[1], a.code, "invalid_input")
			w.check()
		}
	}},
	{name: "an audit of running flows reports no false finding", run: func(w *env) {
		w.quiet = true
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		var load, audits sync.WaitGroup
		for i := range 2 {
			load.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					g := w.flowOfNodes()
					g.w = w.worker(fmt.Sprint("load", i, "-", n))
					g.w.can = func(r engine.Route) bool { return r.Kind == "node" }
					all := []string{}
					for j := range 70 + 40*i {
						all = append(all, fmt.Sprint("r", j))
						g.node(all[j], nil, ofNodes)
					}
					g.node("any", all[:30], anyOf, cancelRest, ofNodes).node("all", all[20:], ofNodes).node("end",
						[]string{"any", "all"}, ofNodes).
						submit(engine.SealClosed)
					for j, c := range g.w.claim(40) {
						if j%7 == 6 {
							_, _ = w.e.FailExecution(w.ctx, c.Fence, engine.Failure{Category: "x", Permanent: true})
						} else {
							_, _, _ = w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: c.Fence}}, nil)
						}
					}
					if n%2 == 0 {
						_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
						if err != nil && ctx.Err() == nil {
							w.is(err, denied.FlowTerminal)
						}
					}
					w.tickOnce()
				}
			})
		}
		audits.Go(func() {
			for range max(2, 8/max(1, w.srv.Share)) {
				r, err := maintain.Audit(w.ctx,
					maintain.AuditConfig{Engine: w.e, Repair: true, Partitions: []uint16{w.p}})
				if err != nil || !r.Sound || len(r.Findings) > 0 {
					w.Errorf("%v, %+v, findings:\n%.3000s", err, r.Kinds, found(r))
				}
			}
		})
		audits.Wait()
		stop()
		load.Wait()
		w.quiet = false
		w.settleTime()
		w.check()
	}},
	{name: "a partition reports its flows, their backlog and the outcome of sibling cancellations", run: func(w *env) {
		w.quiet = true
		w.shapes()
		w.quiet = false
		p := w.describe()
		w.all("sets", eq(p.Blocked.Count, 6), eq(p.Flows.Count, 6), eq(p.FlowDue.Count, 1), eq(p.Backlog.Count, 1))
		same(w, "tally", p.FlowTotals, flowfabric.Totals{Completed: 1, Failed: 1, Skipped: 1})
		w.all("behind", eq(time.Duration(p.Behind) <= time.Second, true), eq(p.Lag, 0))
		w.advance(time.Minute)
		if b := time.Duration(w.describe().Behind); b < time.Minute || b > time.Minute+time.Second {
			w.Fatalf("behind %s", b)
		}
		w.settleTime()
		g := w.flowOfNodes().node("a", nil, ofNodes).node("b", nil, ofNodes).node("c", nil, ofNodes).
			node("any", []string{"a", "b", "c"}, anyOf, cancelRest, ofNodes).node("all", []string{"c"},
			ofNodes).submit(engine.SealClosed)
		g.w.ttl = time.Hour
		g.complete(g.claim()["a"], "a")
		p = w.describe()
		w.all("afterwards", eq(p.Backlog.Count, 0), eq(p.Behind, 0))
		same(w, "tally", p.FlowTotals, flowfabric.Totals{Completed: 1, Failed: 1, Cancelled: 1, Skipped: 1})
		same(w, "siblings", p.Siblings, engine.SiblingCancels{Cancelled: 1, Spared: 1})
	}},
	{name: "a member with lost or unreadable links is reported and does not run", damaged: "links have no other record",
		run: func(w *env) {
			w.quiet = true
			g, ups := w.flowOfNodes(), nodesOf("r", 20)
			for _, up := range ups {
				g.node(up, nil, ofNodes)
			}
			g.node("end", ups, ofNodes).node("lone", []string{"r0"}, ofNodes).node("sound", []string{"r0"},
				ofNodes).submit(engine.SealClosed)
			w.set("DEL", w.k.Links(ids.UUID(g.id.Member("end"))))
			w.set("SET", w.k.Links(ids.UUID(g.id.Member("lone"))), "no links")
			for _, repair := range []bool{false, true} {
				r := w.audit(repair)
				w.all("lost", eq(r.Lost >= 2, true),
					eq(strings.Contains(found(r), ids.UUID(g.id.Member("end")).String()), true),
					eq(strings.Contains(found(r), ids.UUID(g.id.Member("lone")).String()), true))
			}
			g.complete(g.claim()["r0"], "")
			g.are(flowfabric.WaitingChildren, "end", "lone")
			g.are(flowfabric.Waiting, "sound")
		}},
	{name: "an audit accepts the purge time of a member kept for its flow and repairs a wrong one", run: func(w *env) {
		g := w.flowOfNodes().node("a", nil, ofNodes).node("b", []string{"a"}, ofNodes).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "a")
		w.advance(25 * time.Hour)
		w.settleTime()
		g.are(flowfabric.Completed, "a")
		same(w, "pinned", found(w.audit(true)), "")
		w.set("ZINCRBY", w.k.Done(), "999999999", ids.UUID(g.id.Member("a")).String())
		same(w, "too far", w.audit(true).Kinds[engine.FindingScore], 1)
		w.check()
	}},
}
