package library

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"
)

// sharing runs lib/share.lua on its own: routes whose queues hold numbered items, oldest first, and the few commands it makes.
type sharing struct {
	*testing.T
	l      *vm.LState
	rows   map[string]string // route → row
	queues map[string][]int  // route → scores
	shares map[string]string
	root   map[string]string
	reads  int // of the shares
	turn   int
}

func newSharing(t *testing.T) *sharing {
	s := &sharing{T: t, l: vm.NewState(), rows: map[string]string{}, queues: map[string][]int{}, shares: map[string]string{}, root: map[string]string{}}
	t.Cleanup(s.l.Close)
	redis := s.l.NewTable()
	redis.RawSetString("call", s.l.NewFunction(s.call))
	s.l.SetGlobal("redis", redis)
	var b strings.Builder
	for _, lib := range []string{"reply", "args", "keys", "share"} {
		b.WriteString(read("lib/" + lib + ".lua"))
	}
	b.WriteString(`
function serve(ready, most, queue)
  local ctx = { r = 'r' }
  local turn, found, out = share.begin(ctx, ready, rotation, most), {}, {}
  if not turn or not turn.lanes then return nil end
  for i = 1, #turn.routes do
    local scores = queue(turn.routes[i], turn.each[i])
    turn.seen[i] = #scores
    for n = 1, #scores do found[#found + 1] = { id = '', score = scores[n], route = turn.routes[i] } end
  end
  table.sort(found, function(a, b) return a.score < b.score end)
  share.add(turn, found)
  for _ = 1, #found do
    if #out == most then break end
    local h = share.following(turn)
    if not dead[h.score] then
      share.take(h)
      out[#out + 1] = h
    end
  end
  share.charge(ctx, turn)
  return out
end
dead = {}
`)
	if err := s.l.DoString(b.String()); err != nil {
		t.Fatal(err)
	}
	return s
}

// hash is the one that a key names.
func (s *sharing) hash(key string) map[string]string {
	switch key {
	case "r":
		return s.root
	case "r:routes":
		return s.rows
	case "r:shares":
		s.reads++
		return s.shares
	}
	s.Fatalf("share uses %s", key)
	return nil
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
	switch command := arg(1); command {
	case "ZCARD":
		l.Push(vm.LNumber(len(s.queues[strings.TrimPrefix(arg(2), "r:q:")])))
		return 1
	case "HLEN":
		l.Push(vm.LNumber(len(s.hash(arg(2)))))
		return 1
	case "HGET":
		v, ok := s.hash(arg(2))[arg(3)]
		l.Push(text(v, ok))
		return 1
	case "HMGET":
		h := s.hash(arg(2))
		for i := 3; i <= l.GetTop(); i++ {
			v, ok := h[arg(i)]
			list.Append(text(v, ok))
		}
	case "HSET":
		h := s.hash(arg(2))
		for i := 3; i < l.GetTop(); i += 2 {
			h[arg(i)] = arg(i + 1)
		}
	case "HDEL":
		for i := 3; i <= l.GetTop(); i++ {
			delete(s.hash(arg(2)), arg(i))
		}
	case "HVALS", "HGETALL":
		h := s.hash(arg(2))
		for _, k := range slices.Sorted(maps.Keys(h)) {
			if command == "HGETALL" {
				list.Append(vm.LString(k))
			}
			list.Append(vm.LString(h[k]))
		}
	default:
		s.Fatalf("share calls %s", command)
	}
	l.Push(list)
	return 1
}

// route adds a route; its id is its name.
func (s *sharing) route(id, namespace, lane string) {
	s.rows[id] = strings.Join([]string{namespace, lane, id, "", ""}, "\x1f")
}

// claim serves at most n, and returns whom: the names of the routes. In a lane without competition it is nobody.
func (s *sharing) claim(n int) (served []string) {
	s.Helper()
	ready := s.l.NewTable()
	for _, id := range slices.Sorted(maps.Keys(s.queues)) {
		if len(s.queues[id]) > 0 {
			ready.Append(vm.LString(id))
		}
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
	if err := s.l.CallByParam(vm.P{Fn: s.l.GetGlobal("serve"), NRet: 1, Protect: true}, ready, vm.LNumber(n), queue); err != nil {
		s.Fatal(err)
	}
	defer s.l.Pop(1)
	if list, ok := s.l.Get(-1).(*vm.LTable); ok {
		list.ForEach(func(_, v vm.LValue) {
			h := v.(*vm.LTable)
			id, score := vm.LVAsString(h.RawGetString("route")), int(vm.LVAsNumber(h.RawGetString("score")))
			served = append(served, id)
			at := slices.Index(s.queues[id], score)
			s.queues[id] = slices.Delete(s.queues[id], at, at+1)
		})
	}
	return served
}

// fill puts n items into a queue, in order of arrival.
func (s *sharing) fill(id string, first, n int) {
	for i := range n {
		s.queues[id] = append(s.queues[id], first+i)
	}
}

func (s *sharing) weight(namespace string, n int) { s.shares[namespace+"\x1fl"] = fmt.Sprint("0 ", n) }

// Whatever comes, at whatever times and however many a claim takes: as long as two namespaces wait both, what they were given differs by no
// more than a claim of each, by weight; and what one of them has in store earns it nothing.
func TestSharesByWeight(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newSharing(t)
		n := 2 + r.IntN(6)
		ids, weights, given, clock := make([]string, n), make([]int, n), make([]int, n), 0
		for i := range ids {
			ids[i], weights[i] = fmt.Sprintf("n%d", i), 1+r.IntN(10)
			s.route(ids[i], ids[i], "l")
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
					if len(s.queues[ids[i]]) == 0 || len(s.queues[ids[j]]) == 0 {
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
				if len(s.queues[ids[i]]) == 0 || len(s.queues[ids[j]]) == 0 {
					delete(both, pair)
					continue
				}
				got := float64(given[i]-then[0])/float64(weights[i]) - float64(given[j]-then[1])/float64(weights[j])
				if bound := 1/float64(weights[i]) + 1/float64(weights[j]) + 1e-3; got > bound || got < -bound {
					t.Fatalf("seed %d: %s of weight %d has %d, %s of weight %d has %d more than when both began to wait", seed,
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
		s.route(id, "big", "l")
		s.fill(id, i*1000, 1000)
	}
	s.route("small", "small", "l")
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

// A tenant's routes do not hide another's, however many are ready, and every route has its turn.
func TestSharesOfManyRoutes(t *testing.T) {
	s := newSharing(t)
	for i := range 900 {
		id := fmt.Sprintf("big%03d", i)
		s.route(id, "big", "l")
		s.fill(id, i*100, 10)
	}
	s.route("a", "small", "l")
	s.fill("a", 1_000_000, 500)
	s.route("z", "other", "l")
	s.fill("z", 2_000_000, 500)
	seen := map[string]int{}
	for i := range 30 {
		for _, id := range s.claim(64) {
			seen[id]++
		}
		if i == 0 && (seen["a"] < 21 || seen["z"] < 21) {
			t.Fatalf("in the first claim the small ones have %d and %d of 64", seen["a"], seen["z"])
		}
	}
	routes := 0
	for id := range seen {
		if id[0] == 'b' {
			routes++
		}
	}
	if routes < 400 { // of the third of 30 claims of 64 that is theirs
		t.Errorf("%d routes of the flood had a turn", routes)
	}
	if seen["a"] < 630*95/100/2 {
		t.Errorf("a has %d", seen["a"])
	}
}

// With more namespaces than a claim looks at, each has its turn.
func TestSharesOfManyNamespaces(t *testing.T) {
	s := newSharing(t)
	for i := range 200 {
		id := fmt.Sprintf("n%03d", i)
		s.route(id, id, "l")
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
	s.route("a", "a", "l")
	s.route("b", "b", "l")
	s.fill("a", 0, 40)
	s.fill("b", 100, 40)
	dead := s.l.GetGlobal("dead").(*vm.LTable)
	for i := range 4 {
		dead.RawSetInt(i, vm.LTrue)
	}
	if got := strings.Join(s.claim(8), ""); got != "abababab" {
		t.Errorf("served %s", got)
	}
	if s.shares["a\x1fl"] != "4000000" || s.shares["b\x1fl"] != "4000000" || s.shares["l"] != "3000000" {
		t.Errorf("counts %v", s.shares)
	}
}

// Counts stay whole numbers for ever: they are lowered together, and the order does not change.
func TestSharesAreLowered(t *testing.T) {
	s := newSharing(t)
	for _, id := range []string{"a", "b", "c"} {
		s.route(id, id, "l")
		s.fill(id, 0, 100)
	}
	const far = 4503599627370496
	s.shares["l"], s.shares["a\x1fl"], s.shares["b\x1fl"], s.shares["c\x1fl"] = fmt.Sprint(far), fmt.Sprint(far+500000), fmt.Sprint(far+250000, " 2"), fmt.Sprint(far)
	s.shares["a\x1fother"], s.shares["other"] = "7", "5"
	first := strings.Join(s.claim(4), "")
	if first != "cbab" {
		t.Errorf("first %s", first)
	}
	if s.shares["l"] != "0" || s.shares["a\x1fl"] != "750000" || s.shares["b\x1fl"] != "500000 2" || s.shares["c\x1fl"] != "250000" {
		t.Errorf("lowered to %v", s.shares)
	}
	if s.shares["a\x1fother"] != "7" || s.shares["other"] != "5" {
		t.Errorf("another lane too: %v", s.shares)
	}
	if next := strings.Join(s.claim(4), ""); next != "cbab" {
		t.Errorf("then %s", next)
	}
}

// What was damaged, or left from a lane that was forgotten, delays nobody for ever.
func TestSharesThatAreDamaged(t *testing.T) {
	for _, shares := range []map[string]string{
		{"a\x1fl": "9000000000000000 3", "b\x1fl": "0"},
		{"l": "what", "a\x1fl": "x", "b\x1fl": "5 0"},
		{"l": "0", "a\x1fl": "99999999999999999999", "b\x1fl": "1 99999"},
		{"l": "99999999999999999", "a\x1fl": "", "b\x1fl": "-1"},
	} {
		s := newSharing(t)
		for _, id := range []string{"a", "b"} {
			s.route(id, id, "l")
			s.fill(id, 0, 200)
		}
		s.shares = maps.Clone(shares)
		for range 4 {
			s.claim(50)
		}
		if left := len(s.queues["a"]) + len(s.queues["b"]); left != 200 {
			t.Errorf("%v: %d left", shares, left)
		}
		for name, text := range s.shares {
			if strings.ContainsAny(text, "e.-x") || len(text) > 22 {
				t.Errorf("%v: %q is now %q", shares, name, text)
			}
		}
	}
}

// What is kept is bounded: lanes and namespaces that are gone are forgotten, weights are not.
func TestSharesAreSwept(t *testing.T) {
	s := newSharing(t)
	for i := range 9000 {
		s.shares[fmt.Sprintf("old%d", i)] = "1"
	}
	s.shares["gone\x1fl"], s.shares["weighed\x1fgone"] = "5", "5 7"
	for _, id := range []string{"a", "b"} {
		s.route(id, id, "l")
		s.fill(id, 0, 10)
	}
	s.claim(4)
	if got := fmt.Sprint(s.shares); got != "map[a\x1fl:2000000 b\x1fl:2000000 l:1000000 weighed\x1fgone:5 7]" {
		t.Errorf("%q", got)
	}
}

// Without competition nothing is read.
func TestSharesOfOne(t *testing.T) {
	s := newSharing(t)
	s.route("a", "a", "l")
	s.route("b", "a", "m")
	s.route("c", "c", "n")
	s.fill("a", 0, 5)
	s.fill("b", 0, 5)
	s.claim(3)
	s.fill("c", 0, 5)
	s.claim(3)
	if s.reads > 0 {
		t.Errorf("the shares were looked at %d times", s.reads)
	}
}
