package library

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	vm "github.com/yuin/gopher-lua"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Some rules exist on both sides of the wire: Go checks for a quick and clear answer, Lua because it trusts
// nobody. These tests run the Lua text and hold it against the Go function: what Go lets pass must never be
// refused by the server, and where both claim the same rule they must agree on every input.

// helpers is the library's own text, loaded with nothing of a server but sha1hex.
type helpers struct{ *vm.LState }

func loadHelpers(t testing.TB) helpers {
	t.Helper()
	l := vm.NewState()
	t.Cleanup(l.Close)
	redis := l.NewTable()
	redis.RawSetString("sha1hex", l.NewFunction(func(l *vm.LState) int {
		sum := sha1.Sum([]byte(l.CheckString(1)))
		l.Push(vm.LString(hex.EncodeToString(sum[:])))
		return 1
	}))
	l.SetGlobal("redis", redis)
	var b strings.Builder
	for _, lib := range libs {
		b.WriteString(libSource(lib, Variant{})) // in blocks: together they have too many locals
	}
	b.WriteString(
		"exported = { args = args, policy = policy, route = route, core = core, lane = lane, gate = gate }\n")
	must.No(t, l.DoString(b.String()))
	return helpers{l}
}

// call runs library.function and returns its first two results.
func (h helpers) call(t testing.TB, library, function string, args ...vm.LValue) (first, second vm.LValue) {
	t.Helper()
	table := h.GetGlobal("exported").(*vm.LTable).RawGetString(library).(*vm.LTable)
	if err := h.CallByParam(vm.P{Fn: table.RawGetString(function), NRet: 2, Protect: true}, args...); err != nil {
		t.Fatalf("%s.%s(%q): %v", library, function, args, err)
	}
	defer h.Pop(2)
	return h.Get(-2), h.Get(-1)
}

func accepted(v vm.LValue) bool { return v.Type() != vm.LTNil }

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "default", "a{b", "a b", "tab\t", "\x7f", "ü", strings.Repeat("x", 64),
		strings.Repeat("x", 65)} {
		f.Add(s)
	}
	h := loadHelpers(f)
	f.Fuzz(func(t *testing.T, name string) {
		got, _ := h.call(t, "args", "name", vm.LString(name), vm.LNumber(limits.MaxName))
		if err := valid.Name("name", name); accepted(got) != (err == nil) {
			t.Errorf("%q: Lua %v, Go %v", name, got, err)
		}
	})
}

func FuzzGateNames(f *testing.F) {
	for _, s := range []string{"", "a", "A.b_c-9", "-a", ".a", "_a", "a b", "a{b", "a:b", "a,b", "\x00", "ü",
		strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		f.Add(s)
	}
	h := loadHelpers(f)
	f.Fuzz(func(t *testing.T, name string) {
		got, _ := h.call(t, "args", "label", vm.LString(name))
		if err := valid.GateName("budget", name); accepted(got) != (err == nil) {
			t.Errorf("name %q: Lua %v, Go %v", name, got, err)
		}
		got, _ = h.call(t, "args", "dimension", vm.LString(name))
		if err := valid.Dimension("dimension", name); accepted(got) != (err == nil) {
			t.Errorf("dimension %q: Lua %v, Go %v", name, got, err)
		}
	})
}

// FuzzGates: what valid.Gates makes is taken as it stands; what it refuses is refused, but for order and repeats.
func FuzzGates(f *testing.F) {
	many := func(kind string, n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%s:%02d", kind, i)
		}
		return strings.Join(list, ",")
	}
	for _, s := range []string{"", "b:a", "q:a", "b:a,q:a", "q:a,b:a", "b:a,b:a", "x:a", "b:", "b", ",", "b:a,", ",b:a",
		"b:a{", "b:a\x1fq:b", "b:a,,q:a", many("b", 16) + "," + many("q", 8), many("b", 17), many("q", 9),
		"b:" + strings.Repeat("x", 64), "b:" + strings.Repeat("x", 65)} {
		f.Add(s)
	}
	h := loadHelpers(f)
	f.Fuzz(func(t *testing.T, joined string) {
		var gates []flowfabric.Gate
		if joined != "" {
			for name := range strings.SplitSeq(joined, ",") {
				gates = append(gates, flowfabric.Gate(name))
			}
		}
		normal, err := valid.Gates(gates)
		got, _ := h.call(t, "gate", "valid", vm.LString(joined))
		if err != nil && vm.LVAsBool(got) {
			t.Errorf("%q is refused in Go and passes in Lua: %v", joined, err)
		}
		if err != nil {
			return
		}
		names := make([]string, len(normal))
		for i, g := range normal {
			names[i] = string(g)
		}
		if got, _ = h.call(t, "gate", "valid", vm.LString(strings.Join(names, ","))); !vm.LVAsBool(got) {
			t.Errorf("%q passes in Go and is refused by Lua", names)
		}
	})
}

// FuzzUUIDs: the server guards creation with a coarser test than Go's (36 characters that cannot leave the slot or
// break a reply); it must never be the stricter one.
func FuzzUUIDs(f *testing.F) {
	id := "01970000-0000-7000-8000-00000000abcd"
	for _, s := range []string{"", id, strings.ToUpper(id), strings.ReplaceAll(id, "-", "0"), id[:35] + "g",
		"{" + id[2:] + "}"} {
		f.Add(s)
	}
	h := loadHelpers(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := h.call(t, "args", "uuid", vm.LString(text))
		if _, err := ids.ParseUUID(text); err == nil && !accepted(got) {
			t.Errorf("%q passes in Go and is refused by Lua", text)
		}
		if accepted(got) && (len(text) != 36 || strings.Trim(text, "0123456789abcdef-") != "") {
			t.Errorf("%q is accepted by Lua", text)
		}
		if anything, _ := h.call(t, "args", "id", vm.LString(text)); accepted(anything) != (len(text) == 36) {
			t.Errorf("%q: args.id %v", text, anything)
		}
	})
}

func TestNumbers(t *testing.T) {
	h := loadHelpers(t)
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "9007199254740991": 9007199254740991, "": -1, "-1": -1, "+1": -1, "01": -1, "1.0": -1,
		"1e3": -1, "0x10": -1, " 1": -1, "1 ": -1, "9007199254740992": -1, "99999999999999999": -1, "1\x00": -1,
		"nan": -1, "inf": -1,
	} {
		got, _ := h.call(t, "args", "int", vm.LString(text), vm.LNumber(0), vm.LNumber(9007199254740991))
		if n, ok := got.(vm.LNumber); ok != (want >= 0) || ok && int64(n) != want {
			t.Errorf("%q reads as %v, want %d", text, got, want)
		}
	}
	const now = 1_700_000_000_000
	for text, want := range map[string]int64{
		"": 0, "+0": now, "+1": now + 1, "5": 5, "+315360000000": now + 315360000000, "+315360000001": -1,
		"1700000000000": now, "2015360000001": -1, "-1": -1, "+": -1, "++1": -1, "+-1": -1, "x": -1, "+01": -1,
	} {
		at, ok := h.call(t, "args", "instant", vm.LString(text), vm.LNumber(now))
		n, isNumber := at.(vm.LNumber)
		if vm.LVAsBool(ok) != (want >= 0) || isNumber != (want > 0) || isNumber && int64(n) != want {
			t.Errorf("%q reads as %v, %v; want %d", text, at, ok, want)
		}
	}
}

// Everything that valid.Capabilities lets pass, the route table takes; what the route table takes keeps the
// five parts of a row apart.
func FuzzCapabilities(f *testing.F) {
	f.Add("gpu,zone=b")
	f.Add("größe")
	f.Add(",,")
	f.Add("a b")
	f.Add("a\x1fb")
	h := loadHelpers(f)
	name := vm.LString("n")
	f.Fuzz(func(t *testing.T, joined string) {
		refused, _ := h.call(t, "route", "validate", name, name, name, vm.LString(joined))
		var tokens []string
		if joined != "" {
			tokens = strings.Split(joined, ",")
		}
		if _, err := valid.Capabilities(tokens); err == nil && refused != vm.LNil {
			t.Errorf("%q passes in Go and is refused by Lua: %v", joined, refused)
		}
		row, _ := h.call(t, "route", "row", name, name, name, vm.LString(joined), vm.LString(""))
		if refused == vm.LNil && strings.Count(vm.LVAsString(row), "\x1f") != 4 {
			t.Errorf("%q breaks the row %q", joined, vm.LVAsString(row))
		}
	})
}

// FuzzPolicies: both sides agree on which packed text is a policy, apart from forms that Pack never writes.
func FuzzPolicies(f *testing.F) {
	f.Add("3,0,1000,60000,2000,1,100,10,0")
	f.Add("3,0,1000,60000,2000,1,100,10,0;io,timeout")
	f.Add("3,0,01000,60000,2000,1,100,10,0")
	h := loadHelpers(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := valid.UnpackPolicy(text)
		if err != nil || valid.PackPolicy(p) == "" {
			return
		}
		if got, _ := h.call(t, "policy", "split", vm.LString(valid.PackPolicy(p))); !accepted(got) {
			t.Errorf("Go packs %q, Lua refuses it", valid.PackPolicy(p))
		}
	})
}

func randomPolicy(r *rand.Rand) flowfabric.Policy {
	p := flowfabric.Policy{
		Retry: flowfabric.RetryPolicy{MaxRetries: 1 + r.IntN(1000),
			Initial:    time.Duration(r.IntN(100_000)) * time.Millisecond,
			Max:        time.Duration(r.IntN(600_000_000)) * time.Millisecond,
			Multiplier: 1 + float64(r.IntN(99_000))/1000, Jitter: r.IntN(2) == 0},
		MaxReclaims: r.IntN(10_001), MaxReplays: r.IntN(1001), StreamFrames: r.IntN(1_000_001),
	}
	if r.IntN(3) == 0 {
		p.Retry.Fixed = true
	}
	return p
}

// What a policy means is decided by Lua; this is its documented formula (flowfabric.RetryPolicy)
// computed in Go.
func TestPause(t *testing.T) {
	h := loadHelpers(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := randomPolicy(r)
		stored, err := valid.UnpackPolicy(valid.PackPolicy(p))
		must.No(t, err)
		table, _ := h.call(t, "policy", "read", vm.LString(valid.PackPolicy(p)))
		for field, want := range map[string]int{"retries": stored.Retry.MaxRetries, "reclaims": stored.MaxReclaims,
			"replays": max(stored.MaxReplays, 0), "frames": stored.StreamFrames} {
			if got := table.(*vm.LTable).RawGetString(field); got != vm.LNumber(want) {
				t.Fatalf("%s: %s is %v, want %d", valid.PackPolicy(p), field, got, want)
			}
		}
		id, k := vm.LString(uuid.NewString()), r.IntN(40)
		got, _ := h.call(t, "policy", "pause", table, id, vm.LNumber(k))
		again, _ := h.call(t, "policy", "pause", table, id, vm.LNumber(k))
		if got != again {
			t.Fatalf("%s: pause %d is %v, then %v", valid.PackPolicy(p), k, got, again)
		}
		ms, err := strconv.ParseInt(fmt.Sprintf("%.0f", float64(got.(vm.LNumber))), 10, 64)
		if err != nil || float64(ms) != float64(got.(vm.LNumber)) {
			t.Fatalf("%s: pause %v is not whole", valid.PackPolicy(p), got)
		}
		initial, ceiling, multiplier := stored.Retry.Initial.Milliseconds(), stored.Retry.Max.Milliseconds(),
			int64(stored.Retry.Multiplier*1000+0.5)
		want := initial
		if !stored.Retry.Fixed {
			for i := 0; i < k && want < ceiling; i++ {
				want = want * multiplier / 1000
			}
			want = min(want, ceiling)
		}
		least, most := want, want
		if stored.Retry.Jitter {
			least, most = want*800/1000, want*1200/1000
			if !stored.Retry.Fixed {
				most = min(most, ceiling)
			}
		}
		if ms < least || ms > most {
			t.Fatalf("%s: pause %d is %d, want %d..%d", valid.PackPolicy(p), k, ms, least, most)
		}
	}
	for _, broken := range []vm.LValue{vm.LNil, vm.LString("nonsense"), vm.LString("1,2,3")} {
		table, _ := h.call(t, "policy", "read", broken)
		if table.(*vm.LTable).RawGetString("retries") != vm.LNumber(0) {
			t.Errorf("a broken policy %v retries", broken)
		}
	}
}

// Queue scores keep priority before age exactly, up to the last millisecond of the year 2286.
func TestScores(t *testing.T) {
	h := loadHelpers(t)
	score := func(priority, created int64) int64 {
		c := h.NewTable()
		c.RawSetString("created_at", vm.LString(strconv.FormatInt(created, 10)))
		if priority > 0 { // absent means 0
			c.RawSetString("priority", vm.LString(strconv.FormatInt(priority, 10)))
		}
		ctx := h.NewTable()
		ctx.RawSetString("moves", h.NewTable())
		got, _ := h.call(t, "lane", "score", ctx, c)
		n, err := strconv.ParseInt(vm.LVAsString(got), 10, 64)
		must.No(t, err)
		if n > 1<<53 || n < -1<<53 {
			t.Errorf("priority %d, created %d: score %d is not exact", priority, created, n)
		}
		return n
	}
	const late = 9_999_999_999_999
	for _, ordered := range [][2]int64{
		{score(9000, 1), score(9000, 2)}, {score(9000, late-1), score(9000, late)},
		{score(1, 1_700_000_000_000), score(0, 1_700_000_000_000)},
		{score(0, 1), score(0, late)}, {score(9000, 1_700_000_000_000), score(8999, 1_700_000_000_000-86_400_000)},
	} {
		if ordered[0] >= ordered[1] {
			t.Errorf("%d is not before %d", ordered[0], ordered[1])
		}
	}
}
