package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/maintain"
)

var auditScenarios = []scenario{
	{name: "design §8 1,000 random index entries deleted, added or misplaced are healed", run: func(w *world) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		v := &vandal{world: w, r: rand.New(rand.NewPCG(seed, 2)), lost: map[string]bool{}}
		w.Logf("seed %d", seed)
		without := w.populate(200 / max(1, w.srv.Share))
		same(w, "a sound store", found(w.audit(false)), "")
		before := w.digest(without...)
		for range 1000 / max(1, w.srv.Share) {
			v.strike()
		}
		damaged := w.fingerprint()
		look := w.audit(false)
		same(w, "an audit that does not heal wrote something", w.fingerprint(), damaged)
		if look.Healable == 0 || look.Healed+look.Lost > 0 || look.Sound() {
			w.Fatalf("seed %d: %d healable, %d healed, %d lost of a damaged partition: %.3000s", seed, look.Healable, look.Healed, look.Lost, found(look))
		}
		healed := w.audit(true)
		if after := w.digest(without...); after != before {
			w.Fatalf("seed %d: not healed:\n%s\nfindings: %s", seed, difference(before, after), found(healed))
		}
		if healed.Lost > 0 || healed.Healed == 0 || !healed.Sound() {
			w.Errorf("seed %d: healed %d, lost %d: %v", seed, healed.Healed, healed.Lost, healed.Kinds)
		}
		w.Logf("looked: %v, healed: %v", look.Kinds, healed.Kinds)
		same(w, "a second audit", found(w.audit(true)), "")
		w.check()
	}},
}

// audit audits this partition to its end.
func (w *world) audit(heal bool) maintain.AuditReport {
	w.Helper()
	r, err := maintain.Audit(w.ctx, maintain.AuditConfig{Engine: w.e, Heal: heal, Partitions: []uint16{w.p}})
	w.no(err)
	w.no(r.Partitions[0].Err)
	return r
}

// found lists the findings of a report, in order.
func found(r maintain.AuditReport) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s %s: %s", f.Kind, f.Index, f.Member, f.Detail))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// populate fills the partition with executions in every state that is stored, and about n more of the usual ones. It returns what
// an audit cannot know to the millisecond, as prefixes of facts.
func (w *world) populate(n int) (without []string) {
	w.Helper()
	w.quiet = true
	defer func() { w.quiet = false }()
	w.hands = true
	defer func() { w.hands = false }()
	codes := []flowfabric.Code{"T4n", "T4", "R1r"} // those that move the clock come first
	for _, code := range reachable {
		if code != "A2" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	for i, code := range codes {
		opts := []option{priority(100 + i), kind("k" + strconv.Itoa(i%4)), tags(map[string]string{"a.b": "c"})}
		if code[0] != 'T' && code != "R1r" {
			opts = append(opts, deadline(24*time.Hour), timeout(12*time.Hour))
		}
		x := w.state(code, opts...)
		if code == "A3" {
			without = append(without, `:alarms "`+x.id.UUID().String()+`"`)
		}
	}
	var ids []flowfabric.ExecutionID
	for i := range n / 10 {
		ids = append(ids, w.createN(5, kind("k"+strconv.Itoa(i%4)), priority(i%3), timeout(time.Hour))...)
		w.createN(2, delay(time.Hour), lane("slow"))
		w.createN(3, deadline(time.Hour), kind("k"+strconv.Itoa(i%4)))
	}
	for i := range 3 {
		k := w.worker("many" + strconv.Itoa(i))
		for j, c := range k.claim(min(90, len(ids)/4)) {
			switch j % 6 {
			case 0, 1:
				w.no(w.complete(c.Fence, "r").Err)
			case 2:
				w.suspend(c.Fence, within(time.Hour, "fail"))
			case 3:
				w.pend(c.Fence, "draft")
			}
		}
	}
	idle := w.worker("idle")
	idle.can = func(engine.Route) bool { return false }
	idle.nothing()
	w.tick()
	w.advance(time.Millisecond) // what was created in this millisecond may or may not be in the counts
	return append(without, "root wake", "root recounts", "root owner")
}

// vandal damages indexes at random.
type vandal struct {
	*world
	r    *rand.Rand
	d    *invariant.Dump
	left int             // strikes until the next look
	lost map[string]bool // rows of routes that are gone from one of the two hashes
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// zsets are the sorted sets whose entries follow from records.
func (v *vandal) zsets() (names []string) {
	for key := range v.d.ZSets {
		for _, family := range []string{":q:", ":h:", ":open:", ":delayed", ":alarms", ":parked", ":done", ":pending", ":sessions"} {
			if strings.HasPrefix(key, family) {
				names = append(names, key)
			}
		}
	}
	slices.Sort(names)
	return names
}

// strike makes one change.
func (v *vandal) strike() {
	if v.left--; v.left < 0 {
		v.d, v.left = v.dump(), 25
	}
	root, sets := string(v.k), v.zsets()
	ids := []string{v.item().ID.UUID().String()} // of nobody
	for key := range v.d.Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	key := pick(v.r, sets)
	members := make([]string, 0, len(v.d.ZSets[key]))
	for m := range v.d.ZSets[key] {
		members = append(members, m)
	}
	slices.Sort(members)
	member := pick(v.r, members)
	score := strconv.FormatInt(v.now()+int64(v.r.IntN(1e9))-5e8, 10)
	switch n := v.r.IntN(100); {
	case n < 40:
		v.set("ZREM", root+key, member)
	case n < 55:
		by := 1 + v.r.IntN(1e7)
		if key != ":sessions" && v.r.IntN(2) == 0 { // a session may be looked at early
			by = -by
		}
		v.set("ZINCRBY", root+key, strconv.Itoa(by), member)
	case n < 80:
		v.intrude(key, pick(v.r, ids), score)
	case n < 84:
		v.set("SREM", root+":ready", pick(v.r, append(v.d.Sets[":ready"], "1")))
	case n < 87:
		v.set("SADD", root+":ready", strconv.Itoa(1+v.r.IntN(99)))
	case n < 90:
		v.set("HINCRBY", root+":routeuse", strconv.Itoa(1+v.r.IntN(8)), strconv.Itoa(v.r.IntN(9)-4))
	case n < 92:
		v.table()
	case n < 94:
		v.set([][]string{{"HDEL", root, "wake"}, {"HINCRBY", root, "wake", "5000000"}, {"HSET", root, "ring", "soon"}, {"HDEL", root, "routes"}}[v.r.IntN(4)]...)
	case n < 96:
		area := pick(v.r, []string{":i:", ":o:", ":g:"})
		of := map[string]string{":i:": "", ":o:": ":0", ":g:": ":" + uuid.NewString()}[area]
		if area == ":g:" {
			v.set("RPUSH", root+area+pick(v.r, ids)+of, "x")
		} else {
			v.set("SET", root+area+ids[slices.IndexFunc(ids, func(id string) bool { return v.d.Hashes[":x:"+id] == nil })]+of, "x")
		}
	case n < 98:
		if id := pick(v.r, ids); v.d.Hashes[":x:"+id]["uw"] != "" {
			v.set("HINCRBY", root+":x:"+id, "wp", "2")
		} else if v.d.Hashes[":t:"+id] != nil {
			v.set("HDEL", root+":x:"+id, "tg")
		}
	default:
		for w := range v.d.ZSets {
			if digest, ok := strings.CutPrefix(w, ":w:"); ok {
				v.set("SREM", root+":digests", digest)
			}
		}
	}
}

// intrude puts an execution, a waitpoint or a session where it does not belong.
func (v *vandal) intrude(key, id, score string) {
	switch {
	case key == ":sessions":
		v.set("ZADD", string(v.k)+key, score, "ghost~"+strconv.Itoa(v.r.IntN(50)))
		return
	case key == ":pending" || strings.HasPrefix(key, ":open:"):
		id += ":" + uuid.NewString()
	}
	if v.r.IntN(4) == 0 {
		key = pick(v.r, []string{":q:99", ":h:nobody~1", ":q:1", ":q:2"})
		id, _, _ = strings.Cut(id, ":")
	}
	v.set("ZADD", string(v.k)+key, score, id)
}

// table loses one side of a row, or adds one of nothing.
func (v *vandal) table() {
	root := string(v.k)
	rows := make([]string, 0, 8)
	for id := range v.d.Hashes[":routes"] {
		rows = append(rows, id)
	}
	slices.Sort(rows)
	switch id := pick(v.r, append(rows, "")); {
	case id == "":
		v.set("HSET", root+":routeids", "a\x1fb\x1fc\x1f\x1f"+strconv.Itoa(v.r.IntN(9)), strconv.Itoa(90+v.r.IntN(9)))
		v.set("ZADD", root+":routelog", "5", strconv.Itoa(90+v.r.IntN(9)))
	case v.lost[id]:
	case v.r.IntN(2) == 0:
		v.lost[id] = true
		v.set("HDEL", root+":routes", id)
	default:
		v.lost[id] = true
		v.set("HDEL", root+":routeids", v.d.Hashes[":routes"][id])
	}
}
