package library

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

// member is an id, and which of them is told by n.
func member(n int) string { return fmt.Sprintf("%08x-0000-7000-8000-%012x", n*2654435761%(1<<32), n) }

// What the functions store of the links of a member, the twin in Go reads, and the other way round, whatever inputs
// are called.
func TestLinksTwins(t *testing.T) {
	l := vm.NewState()
	t.Cleanup(l.Close)
	must.No(t, l.DoString(strings.ReplaceAll(read("lib/reply.lua")+read("lib/group.lua")+read("lib/links.lua"),
		"\nlocal ", "\n")))
	call := func(table, name string, args ...vm.LValue) vm.LValue {
		t.Helper()
		must.No(t, l.CallByParam(vm.P{Fn: l.GetField(l.GetGlobal(table), name), NRet: 1, Protect: true},
			args...))
		defer l.Pop(1)
		return l.Get(-1)
	}
	encoded := func(v vm.LValue) string {
		if text, ok := v.(vm.LString); ok {
			return string(text)
		}
		return call("links", "encode", v).String() // it has been looked at
	}
	if near := l.GetField(l.GetGlobal("links"), "near"); near.String() != fmt.Sprint(record.Near) {
		t.Fatalf("%s near links, in Go %d", near, record.Near)
	}
	inputs := append([]string{"", "-", ",", "s,0,", member(3), "\x7f", ":"}, "a b", "ü")
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		ups, downs := r.IntN(2*record.Near), r.IntN(2*record.Near)
		w := record.Links{Edges: map[string]string{}, Leads: downs}
		if ups > 0 {
			w.Group = fmt.Sprintf("%s %d cancel %d %d %d %d %s", []string{"quorum", "ended", "failed"}[r.IntN(3)],
				r.IntN(9), ups, r.IntN(9), r.IntN(9), r.IntN(1000), []string{"p", "s", "i", "i 0", "s 12"}[r.IntN(5)])
		}
		for i := range ups {
			if ups <= record.Near {
				w.Edges[member(i)] = string(".~sfceknl"[r.IntN(9)]) +
					fmt.Sprintf(",%s,%s", []string{"", "0", "12"}[r.IntN(3)], inputs[r.IntN(len(inputs))])
			}
		}
		for i := range downs {
			if downs <= record.Near {
				w.To = append(w.To, string("dow"[r.IntN(3)])+member(100+i))
				w.Aside += strings.Count(w.To[i][:1], "o")
			}
		}
		back, err := record.DecodeLinks(w.Encode())
		if err != nil || back.Group != w.Group || !maps.Equal(back.Edges, w.Edges) || back.Leads != w.Leads ||
			back.Aside != w.Aside || !slices.Equal(back.To, w.To) {
			t.Fatalf("seed %d: Go reads %+v (%v) of %+v", seed, back, err, w)
		}
		decoded := call("links", "decode", vm.LString(w.Encode()))
		if damaged := l.GetField(decoded, "damaged"); damaged != vm.LNil {
			t.Fatalf("seed %d: Lua finds %q damaged", seed, w.Encode())
		}
		if got := call("links", "encode", decoded).String(); got != w.Encode() {
			t.Fatalf("seed %d: Lua writes %q of %q", seed, got, w.Encode())
		}
		ctx := l.NewTable()
		known := l.NewTable()
		cache := l.NewTable()
		cache.RawSetString("links", known)
		ctx.RawSetString("cache", cache)
		if more := r.IntN(3) + 1; downs+more <= record.Near {
			// dependants are added to the text, and to links that were looked at, alike
			led, added := w, ""
			led.To = slices.Clone(w.To)
			for i := range more {
				led.To = append(led.To, string("do"[r.IntN(2)])+member(200+i))
				added += led.To[downs+i]
				led.Aside += strings.Count(led.To[downs+i][:1], "o")
			}
			led.Leads = len(led.To)
			known.RawSetString("text", vm.LString(w.Encode()))
			known.RawSetString("table", call("links", "decode", vm.LString(w.Encode())))
			for _, id := range []string{"text", "table"} {
				if first := call("links", "lead", ctx, vm.LString(id), vm.LString(added),
					vm.LNumber(led.Aside-w.Aside)); vm.LVAsBool(first) != (downs == w.Aside && led.Leads > led.Aside) {
					t.Fatalf("seed %d: the first of %d dependants, %d aside: %v", seed, downs, w.Aside, first)
				}
			}
			table := call("links", "encode", known.RawGetString("table")).String()
			if text := encoded(known.RawGetString("text")); text != led.Encode() || table != text {
				t.Fatalf("seed %d: with %q more, %q is %q and %q, want %q", seed, added, w.Encode(), text, table,
					led.Encode())
			}
		}
		known.RawSetString("me", decoded)
		for up, text := range w.Edges { // what it was told of one, and of nobody else
			if mark := call("links", "edge", ctx, vm.LString("me"), vm.LString(up)); mark.String() != text[:1] {
				t.Fatalf("seed %d: was told %s of %s in %q", seed, mark, up, w.Encode())
			}
			w.Edges[up] = "s,7" + text[strings.Index(text[2:], ",")+2:]
			call("links", "tell", ctx, vm.LString("me"), vm.LString(up), vm.LString(w.Edges[up]))
			again, err := record.DecodeLinks(call("links", "encode", decoded).String())
			if err != nil || !maps.Equal(again.Edges, w.Edges) {
				t.Fatalf("seed %d: told %q of %s: %q (%v), want %q", seed, w.Edges[up], up, again.Edges, err, w.Edges)
			}
		}
		if ups > record.Near {
			continue // it would ask the store
		}
		if mark := call("links", "edge", ctx, vm.LString("me"), vm.LString(member(99))); mark != vm.LNil {
			t.Fatalf("seed %d: was told %s of a stranger", seed, mark)
		}
	}
	for _, text := range []string{"", "x", "-\x1f0", "-\x1f\x1e", "all 0\x1f0\x1e", "-\x1f1\x1e",
		"-\x1f0\x1ed" + member(1), "-\x1f17\x1ed" + member(1), "-\x1f1o2\x1eo" + member(1)} {
		if _, err := record.DecodeLinks(text); err == nil && !strings.HasPrefix(text, "all") {
			t.Errorf("Go reads %q", text)
		}
		if l.GetField(call("links", "decode", vm.LString(text)), "damaged") == vm.LNil {
			t.Errorf("Lua reads %q", text)
		}
	}
}
