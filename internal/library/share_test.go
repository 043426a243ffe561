package library

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// sharing runs lib/share.lua and lib/ready.lua on their own: routes whose queues hold numbered items, oldest first,
// and the few commands that these make, on keys in memory.
type sharing struct {
	*testing.T
	l      *vm.LState
	hashes map[string]map[string]string
	zsets  map[string]map[string]float64
	sets   map[string]map[string]bool
	texts  map[string]string
	queues map[string][]int  // route → scores
	ids    map[string]string // name → route
	names  map[string]string // route → name
	reads  int               // of the shares
	calls  int
	moved  int // elements that commands read or wrote
	turn   int
}

func newSharing(t *testing.T) *sharing {
	s := &sharing{T: t, l: vm.NewState(), hashes: map[string]map[string]string{"r": {"space": "nobody"}},
		zsets: map[string]map[string]float64{}, sets: map[string]map[string]bool{}, texts: map[string]string{
			"r:ins:all": ""}, queues: map[string][]int{}, ids: map[string]string{}, names: map[string]string{}}
	t.Cleanup(s.l.Close)
	redis := s.l.NewTable()
	redis.RawSetString("call", s.l.NewFunction(s.call))
	s.l.SetGlobal("redis", redis)
	var b strings.Builder
	for _, lib := range []string{"reply", "args", "pack", "keys", "route", "lane", "gate", "ready", "turns", "share"} {
		b.WriteString(libSource(lib, Variant{}))
	}
	b.WriteString(`
function context() return { r = 'r', t = '0', now = 0, spaces = '1', moves = {}, cache = {} } end
function offer(id) ready.offer(context(), id) end
function drop(id) ready.drop(context(), id) end
function serve(members, most, queue, subscription)
  local ctx = context()
  local q = { subscription = subscription, rotation = rotation, max = most }
  local turn, found, out = share.begin(ctx, q, members, false), {}, {}
  for i = 1, #turn.routes do
    local scores = queue(turn.routes[i], turn.each[i])
    turn.seen[i] = #scores
    for n = 1, #scores do found[#found + 1] = { id = '', score = scores[n], route = turn.routes[i] } end
  end
  table.sort(found, function(a, b) return a.score < b.score end)
  local order = turn.lanes and share.add(q, turn, found)
  for i = 1, #found do
    if #out == most then break end
    local h = order and turns.next(ctx, order, share.head) or found[i]
    if not dead[h.score] then
      share.take(turn, h)
      if order then turns.took(order) end
      out[#out + 1] = h
    end
  end
  share.charge(ctx, turn)
  return out
end
dead = {}
`)
	must.No(t, s.l.DoString(b.String()))
	return s
}

func (s *sharing) hash(key string) map[string]string {
	if key == "r:shares" {
		s.reads++
	}
	if s.hashes[key] == nil {
		s.hashes[key] = map[string]string{}
	}
	return s.hashes[key]
}

func (s *sharing) shares() map[string]string {
	if s.hashes["r:shares"] == nil {
		s.hashes["r:shares"] = map[string]string{}
	}
	return s.hashes["r:shares"]
}

// ordered lists the members of a sorted set.
func (s *sharing) ordered(key string) []string {
	z := s.zsets[key]
	return slices.SortedFunc(maps.Keys(z), func(a, b string) int {
		return cmp.Or(cmp.Compare(z[a], z[b]), strings.Compare(a, b))
	})
}

func (s *sharing) call(l *vm.LState) int {
	list := l.NewTable()
	arg := func(i int) string { return l.CheckString(i) }
	text := func(v string, ok bool) vm.LValue {
		if !ok {
			return vm.LFalse
		}
		return vm.LString(v)
	}
	score := func(z map[string]float64, member string) vm.LValue {
		v, ok := z[member]
		return text(strconv.FormatFloat(v, 'f', -1, 64), ok)
	}
	one := func(v vm.LValue) int {
		l.Push(v)
		return 1
	}
	s.calls++
	s.moved += l.GetTop() - 2
	key := arg(2)
	switch command := arg(1); command {
	case "GET":
		v, ok := s.texts[key]
		return one(text(v, ok))
	case "EXISTS":
		if len(s.zsets[key]) > 0 || len(s.queues[strings.TrimPrefix(key, "r:q:")]) > 0 {
			return one(vm.LNumber(1))
		}
		return one(vm.LNumber(0))
	case "SADD", "SREM":
		if s.sets[key] == nil {
			s.sets[key] = map[string]bool{}
		}
		if s.sets[key][arg(3)] = command == "SADD"; command == "SREM" {
			delete(s.sets[key], arg(3))
		}
		return one(vm.LNumber(1))
	case "ZCARD":
		return one(vm.LNumber(len(s.queues[strings.TrimPrefix(key, "r:q:")]) + len(s.zsets[key])))
	case "ZSCORE":
		return one(score(s.zsets[key], arg(3)))
	case "ZMSCORE":
		for i := 3; i <= l.GetTop(); i++ {
			list.Append(score(s.zsets[key], arg(i)))
		}
	case "ZADD":
		first, known := 3, arg(3) == "XX"
		if known {
			first++
		}
		if s.zsets[key] == nil {
			s.zsets[key] = map[string]float64{}
		}
		for i := first; i < l.GetTop(); i += 2 {
			if _, ok := s.zsets[key][arg(i+1)]; ok || !known {
				s.zsets[key][arg(i+1)], _ = strconv.ParseFloat(arg(i), 64)
			}
		}
		return one(vm.LNumber(1))
	case "ZREM":
		_, ok := s.zsets[key][arg(3)]
		delete(s.zsets[key], arg(3))
		return one(vm.LNumber(map[bool]int{true: 1}[ok]))
	case "ZRANGE":
		first, _ := strconv.Atoi(arg(3))
		last, _ := strconv.Atoi(arg(4))
		all := s.ordered(key)
		if last < 0 || last >= len(all) {
			last = len(all) - 1
		}
		for _, member := range all[first : last+1] {
			list.Append(vm.LString(member))
			if l.GetTop() == 5 {
				list.Append(score(s.zsets[key], member))
			}
		}
	case "HLEN":
		return one(vm.LNumber(len(s.hash(key))))
	case "HGET":
		v, ok := s.hash(key)[arg(3)]
		return one(text(v, ok))
	case "HMGET":
		h := s.hash(key)
		for i := 3; i <= l.GetTop(); i++ {
			v, ok := h[arg(i)]
			list.Append(text(v, ok))
		}
	case "HSET":
		h := s.hash(key)
		for i := 3; i < l.GetTop(); i += 2 {
			h[arg(i)] = arg(i + 1)
		}
	case "HDEL":
		for i := 3; i <= l.GetTop(); i++ {
			delete(s.hash(key), arg(i))
		}
	case "HRANDFIELD", "HGETALL":
		h, most := s.hash(key), 1<<30
		if command == "HRANDFIELD" {
			most, _ = strconv.Atoi(arg(3))
		}
		for field, v := range h { // in no order
			if list.Len() == 2*most {
				break
			}
			list.Append(vm.LString(field))
			list.Append(vm.LString(v))
		}
	default:
		s.Fatalf("share calls %s", command)
	}
	s.moved += list.Len()
	return one(list)
}

// route adds a route, of a class for each lane and kind, under a name.
func (s *sharing) route(name, namespace, lane, kind string) {
	classes, ids := s.hash("r:routes"), s.hash("r:routeids")
	own := strings.Join([]string{"nobody", lane, kind, "", ""}, "\x1f")
	class := ids[own]
	if class == "" {
		class = strconv.Itoa(len(s.zsets["r:routelog"]) + 1)
		classes[class], ids[own] = own, class
		if s.zsets["r:routelog"] == nil {
			s.zsets["r:routelog"] = map[string]float64{}
		}
		s.zsets["r:routelog"][class] = 1
	}
	id := fmt.Sprintf("%s%09d", class, len(s.ids)+1)
	row := strings.Join([]string{namespace, lane, kind, "", ""}, "\x1f")
	classes[id], ids[row] = row, id
	s.ids[name], s.names[id] = id, name
}

func (s *sharing) do(function, route string) {
	s.Helper()
	if err := s.l.CallByParam(vm.P{Fn: s.l.GetGlobal(function), Protect: true}, vm.LString(route)); err != nil {
		s.Fatal(err)
	}
}

// claim serves at most n, and returns whom: the names of the routes.
func (s *sharing) claim(n int) (served []string) {
	s.Helper()
	return s.claimAs("all", n)
}

func (s *sharing) claimAs(subscription string, n int) (served []string) {
	s.Helper()
	members := s.l.NewTable()
	for _, member := range slices.Sorted(maps.Keys(s.sets["r:ready"])) {
		members.Append(vm.LString(member))
	}
	queue := s.l.NewFunction(func(l *vm.LState) int {
		list := l.NewTable()
		own := s.queues[l.CheckString(1)]
		for _, score := range own[:min(l.CheckInt(2), len(own))] {
			list.Append(vm.LNumber(score))
		}
		l.Push(list)
		return 1
	})
	s.l.SetGlobal("rotation", vm.LNumber(s.turn))
	s.turn++
	if err := s.l.CallByParam(vm.P{Fn: s.l.GetGlobal("serve"), NRet: 1, Protect: true}, members, vm.LNumber(n), queue,
		vm.LString(subscription)); err != nil {
		s.Fatal(err)
	}
	defer s.l.Pop(1)
	s.l.Get(-1).(*vm.LTable).ForEach(func(_, v vm.LValue) {
		h := v.(*vm.LTable)
		id, score := vm.LVAsString(h.RawGetString("route")), int(vm.LVAsNumber(h.RawGetString("score")))
		served = append(served, s.names[id])
		at := slices.Index(s.queues[id], score)
		if s.queues[id] = slices.Delete(s.queues[id], at, at+1); len(s.queues[id]) == 0 {
			s.do("drop", id)
		}
	})
	return served
}

// left is what waits under a name.
func (s *sharing) left(name string) int { return len(s.queues[s.ids[name]]) }

// fill puts n items into a queue, in order of arrival.
func (s *sharing) fill(id string, first, n int) {
	route := s.ids[id]
	for i := range n {
		s.queues[route] = append(s.queues[route], first+i)
	}
	s.do("offer", route)
}

func (s *sharing) weight(namespace string, n int) {
	s.hash("r:weights")[namespace+"\x1fl"] = fmt.Sprint(n)
}

// Whatever comes, at whatever times and however many a claim takes: as long as two namespaces wait both, what they
// were given differs by little more than a claim of each, by weight; and what one of them has in store earns it
// nothing.
func TestSharesByWeight(t *testing.T) {
	for seed := range uint64(rounds(15, 300)) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newSharing(t)
		n := 2 + r.IntN(6)
		ids, weights, given, clock := make([]string, n), make([]int, n), make([]int, n), 0
		for i := range ids {
			ids[i], weights[i] = fmt.Sprintf("n%d", i), 1+r.IntN(10)
			s.route(ids[i], ids[i], "l", "k")
			s.weight(ids[i], weights[i])
		}
		both := map[[2]int][2]int{} // since when a pair waits: what each had then
		for range 150 {
			for _, id := range ids {
				if r.IntN(4) == 0 {
					s.fill(id, clock, 1+r.IntN(40))
					clock += 40
				}
			}
			for i := range ids {
				for j := range i {
					if s.left(ids[i]) == 0 || s.left(ids[j]) == 0 {
						delete(both, [2]int{i, j})
					} else if _, ok := both[[2]int{i, j}]; !ok {
						both[[2]int{i, j}] = [2]int{given[i], given[j]}
					}
				}
			}
			for _, id := range s.claim(1 + r.IntN(20)) {
				given[slices.Index(ids, id)]++
			}
			for pair, then := range both {
				i, j := pair[0], pair[1]
				if s.left(ids[i]) == 0 || s.left(ids[j]) == 0 {
					delete(both, pair)
					continue
				}
				got := float64(given[i]-then[0])/float64(weights[i]) - float64(given[j]-then[1])/float64(weights[j])
				if bound := 1/float64(weights[i]) + 1/float64(weights[j]) + 0.3; got > bound || got < -bound {
					t.Fatalf(
						"seed %d: %s of weight %d has %d, %s of weight %d has %d more than when both began to wait",
						seed,
						ids[i], weights[i], given[i]-then[0], ids[j], weights[j], given[j]-then[1])
				}
			}
		}
	}
}

// More than a claim reads waits for one namespace, and much more than it is due for the others: it is not passed by.
func TestSharesOfLargeClaims(t *testing.T) {
	s := newSharing(t)
	for i := range 60 {
		id := fmt.Sprintf("big%02d", i)
		s.route(id, "big", "l", id)
		s.fill(id, i*1000, 1000)
	}
	s.route("small", "small", "l", "k")
	s.fill("small", 1_000_000, 1000)
	given := map[string]int{}
	for range 10 {
		for _, id := range s.claim(100) {
			given[id[:3]]++
		}
	}
	if given["sma"] != 500 || given["big"] != 500 {
		t.Errorf("given %v, want half each", given)
	}
}

// A tenant's classes do not hide another's for longer than it takes to look at all of them, 64 a claim, and every
// class has its turn.
func TestSharesOfManyRoutes(t *testing.T) {
	s := newSharing(t)
	for i := range 900 {
		id := fmt.Sprintf("big%03d", i)
		s.route(id, "big", "l", id)
		s.fill(id, i*100, 10)
	}
	s.route("a", "small", "l", "k")
	s.fill("a", 1_000_000, 500)
	s.route("z", "other", "l", "k")
	s.fill("z", 2_000_000, 500)
	seen := map[string]int{}
	for i := range 30 {
		for _, id := range s.claim(64) {
			seen[id]++
		}
		if i == 15 && (seen["a"] < 16 || seen["z"] < 16) { // 64 classes a claim
			t.Fatalf("in 16 claims the small ones have %d and %d", seen["a"], seen["z"])
		}
	}
	routes := 0
	for id := range seen {
		if id[0] == 'b' {
			routes++
		}
	}
	if routes < 200 { // of the third of 30 claims of 64 that is theirs
		t.Errorf("%d routes of the flood had a turn", routes)
	}
}

// With more namespaces than a claim looks at, each has its turn.
func TestSharesOfManyNamespaces(t *testing.T) {
	s := newSharing(t)
	for i := range 200 {
		id := fmt.Sprintf("n%03d", i)
		s.route(id, id, "l", "k")
		s.fill(id, i*1000, 100)
	}
	given := map[string]int{}
	for range 40 {
		for _, id := range s.claim(64) {
			given[id]++
		}
	}
	least, most := 1<<30, 0
	for i := range 200 {
		n := given[fmt.Sprintf("n%03d", i)]
		least, most = min(least, n), max(most, n)
	}
	if least < 9 || most > 17 { // 12.8 each
		t.Errorf("between %d and %d each", least, most)
	}
}

// Heads that cannot be handed out cost their namespace nothing, and nobody else's turn.
func TestSharesOfDeadHeads(t *testing.T) {
	s := newSharing(t)
	s.route("a", "a", "l", "k")
	s.route("b", "b", "l", "k")
	s.fill("a", 0, 40)
	s.fill("b", 100, 40)
	dead := s.l.GetGlobal("dead").(*vm.LTable)
	for i := range 4 {
		dead.RawSetInt(i, vm.LTrue)
	}
	if got := strings.Join(s.claim(8), ""); got != "abababab" {
		t.Errorf("served %s", got)
	}
	if s.shares()["a\x1fl"] != "4000000" || s.shares()["b\x1fl"] != "4000000" || s.shares()["l"] != "4000000" {
		t.Errorf("counts %v", s.shares())
	}
}

// Counts stay whole numbers for ever: they are lowered together, and the order does not change.
func TestSharesAreLowered(t *testing.T) {
	s := newSharing(t)
	for _, id := range []string{"a", "b", "c"} {
		s.route(id, id, "l", "k")
		s.fill(id, 0, 100)
	}
	const far = 4503599627370496
	maps.Copy(s.shares(), map[string]string{"l": fmt.Sprint(far), "a\x1fl": fmt.Sprint(far + 500000),
		"b\x1fl": fmt.Sprint(far + 250000), "c\x1fl": fmt.Sprint(far),
		"a\x1fother": "7", "other": "5"})
	s.zsets["r:ring:1"] = map[string]float64{"a": far + 500000, "b": far + 250000, "c": far}
	s.weight("b", 2)
	first := strings.Join(s.claim(4), "")
	if first != "cbab" {
		t.Errorf("first %s", first)
	}
	if got := s.shares(); got["l"] != "2048000000" || got["a\x1fl"] != "2048500000" || got["b\x1fl"] != "2048250000" ||
		got["c\x1fl"] != "2048000000" {
		t.Errorf("lowered to %v", got)
	}
	if got := s.zsets["r:ring:1"]; got["a"] != 2048500000 || got["b"] != 2048250000 || got["c"] != 2048000000 {
		t.Errorf("places lowered to %v", got)
	}
	if got := s.shares(); got["a\x1fother"] != "7" || got["other"] != "5" {
		t.Errorf("another lane too: %v", got)
	}
	if next := strings.Join(s.claim(4), ""); next != "cbab" {
		t.Errorf("then %s", next)
	}
}

// What was damaged, or left from a lane that was forgotten, delays nobody for ever.
func TestSharesThatAreDamaged(t *testing.T) {
	for _, shares := range []map[string]string{
		{"a\x1fl": "9000000000000000", "b\x1fl": "0"},
		{"l": "what", "a\x1fl": "x", "b\x1fl": "5 0"},
		{"l": "0", "a\x1fl": "99999999999999999999", "b\x1fl": "1"},
		{"l": "99999999999999999", "a\x1fl": "", "b\x1fl": "-1"},
	} {
		s := newSharing(t)
		for _, id := range []string{"a", "b"} {
			s.route(id, id, "l", "k")
			s.fill(id, 0, 200)
		}
		maps.Copy(s.shares(), shares)
		for range 4 {
			s.claim(50)
		}
		if left := s.left("a") + s.left("b"); left != 200 {
			t.Errorf("%v: %d left", shares, left)
		}
		for name, text := range s.shares() {
			if strings.ContainsAny(text, "e.-x") || len(text) > 22 {
				t.Errorf("%v: %q is now %q", shares, name, text)
			}
		}
	}
}

// What is kept is bounded: counts that their lane has passed are forgotten, those of namespaces that are ahead are not.
func TestSharesAreSwept(t *testing.T) {
	s := newSharing(t)
	for i := range 9000 {
		s.shares()[fmt.Sprintf("old%d\x1fl", i)] = "1000000"
	}
	s.shares()["l"], s.shares()["ahead\x1fl"] = "2000000", "900000000"
	s.route("rival", "rival", "l", "k")
	s.fill("rival", 100_000, 10_000)
	for i := range 4000 {
		id := fmt.Sprintf("n%d", i)
		s.route(id, id, "l", "k")
		s.fill(id, 2*i, 1)
		s.claim(1)
		s.fill(id, 2*i+1, 1)
		s.claim(1)
	}
	if got := len(s.shares()); got > 1500 || s.shares()["ahead\x1fl"] != "900000000" {
		t.Errorf("%d counts, ahead %q", got, s.shares()["ahead\x1fl"])
	}
}

// However many namespaces have work, a claim makes as many commands over as many elements, and all have their turn.
func TestSharesOfVeryManyNamespaces(t *testing.T) {
	cost := func(n int) (calls, moved int) {
		s := newSharing(t)
		for i := range n {
			id := fmt.Sprintf("n%06d", i)
			s.route(id, id, "l", "k")
			s.fill(id, i, 1)
		}
		s.calls, s.moved = 0, 0
		seen := map[string]bool{}
		for range 10 {
			for _, id := range s.claim(50) {
				seen[id] = true
			}
		}
		if len(seen) != 500 {
			t.Errorf("%d namespaces: %d had a turn in ten claims of 50", n, len(seen))
		}
		return s.calls, s.moved
	}
	calls, moved := cost(1000)
	if c, m := cost(20_000); c != calls || m > moved*11/10 {
		t.Errorf("%d commands over %d elements, with 1,000 namespaces %d over %d", c, m, calls, moved)
	}
}

// New namespaces that keep coming do not starve those that wait.
func TestSharesOfNewcomers(t *testing.T) {
	s := newSharing(t)
	s.route("old", "old", "l", "k")
	s.fill("old", 0, 10_000)
	got, n := 0, 0
	for range 40 {
		for range 100 {
			id := fmt.Sprintf("new%05d", n)
			s.route(id, id, "l", "k")
			s.fill(id, 20_000+n, 1)
			n++
		}
		for _, id := range s.claim(50) {
			if id == "old" {
				got++
			}
		}
	}
	if got < 2 { // among thousands it is due one of many, but never none
		t.Errorf("what waits had %d of 2,000", got)
	}
}

// A namespace that was given a lot in one class has a place in another that is too good, until a claim meets it.
func TestSharesOfSeveralClasses(t *testing.T) {
	s := newSharing(t)
	for _, id := range []string{"a", "b"} {
		for _, kind := range []string{"j", "k"} {
			s.route(id+kind, id, "l", kind)
		}
	}
	s.fill("ak", 1000, 100)
	s.fill("bk", 1000, 100)
	s.fill("aj", 0, 50)
	s.fill("bj", 500, 1)
	given := map[byte]int{}
	for range 10 {
		for _, id := range s.claim(4) {
			given[id[0]]++
		}
	}
	if given['a'] != 20 || given['b'] != 20 {
		t.Errorf("given %v", given)
	}
	if a, b := s.zsets["r:ring:2"]["a"], s.zsets["r:ring:2"]["b"]; a != 20_000_000 || b != 20_000_000 {
		t.Errorf("places %v %v", a, b)
	}
}

// Who serves some namespaces is given work of theirs, and finds it however many others have work.
func TestSharesOfSomeNamespaces(t *testing.T) {
	s := newSharing(t)
	s.texts["r:ins:some"] = "n00700\x1fn00900"
	for i := range 1000 {
		id := fmt.Sprintf("n%05d", i)
		s.route(id, id, "l", "k")
		s.fill(id, i, 3)
	}
	if got := strings.Join(s.claimAs("some", 10), " "); got != "n00700 n00900 n00700 n00900 n00700 n00900" {
		t.Errorf("served %s", got)
	}
	if got := s.claimAs("some", 10); len(got) != 0 {
		t.Errorf("served %v then", got)
	}
}

// Without competition nothing is read.
func TestSharesOfOne(t *testing.T) {
	s := newSharing(t)
	s.route("a", "a", "l", "k")
	s.route("b", "a", "m", "k")
	s.route("c", "c", "n", "k")
	s.fill("a", 0, 5)
	s.fill("b", 0, 5)
	s.fill("c", 0, 5)
	s.reads = 0
	s.claim(3)
	s.claim(3)
	if s.reads > 0 {
		t.Errorf("the shares were looked at %d times", s.reads)
	}
}
