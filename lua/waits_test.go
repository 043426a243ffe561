package lua

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/record"
)

// What the functions store of waits, the twin in Go reads, and the other way round, whatever the texts.
func TestWaitsTwins(t *testing.T) {
	l := vm.NewState()
	t.Cleanup(l.Close)
	if err := l.DoString(strings.ReplaceAll(read("lib/waits.lua"), "\nlocal ", "\n")); err != nil {
		t.Fatal(err)
	}
	call := func(name string, arg vm.LValue) vm.LValue {
		t.Helper()
		if err := l.CallByParam(vm.P{Fn: l.GetField(l.GetGlobal("waits"), name), NRet: 1, Protect: true}, arg); err != nil {
			t.Fatal(err)
		}
		defer l.Pop(1)
		return l.Get(-1)
	}
	table := func(m map[string]string) *vm.LTable {
		out := l.NewTable()
		for k, v := range m {
			out.RawSetString(k, vm.LString(v))
		}
		return out
	}
	strange := append([]string{"", "\x1b", "\x1e", "\x1f", "\x1be", "\x1b\x1b", "a\x1eb\x1fc", "\x1bu\x1br"}, texts...)
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := record.Waits{Suspension: map[string]string{}, Waitpoints: map[string]string{}}
		for range r.IntN(12) {
			w.Suspension[strings.Fields("id nm rc rq ho cr to bh c wp n1 n2 gn gm by why")[r.IntN(16)]] = strange[r.IntN(len(strange))]
		}
		for range r.IntN(4) {
			w.Waitpoints[fmt.Sprint("id-", r.IntN(99))] = strings.Repeat("p\x1f", r.IntN(3)) + []string{"", "-", "k"}[r.IntN(3)]
		}
		stored := l.NewTable()
		stored.RawSetString("u", table(w.Suspension))
		stored.RawSetString("points", table(w.Waitpoints))
		same := func(what string, got record.Waits) {
			if !maps.Equal(got.Suspension, w.Suspension) || !maps.Equal(got.Waitpoints, w.Waitpoints) {
				t.Fatalf("seed %d: %s %q, want %q", seed, what, got, w)
			}
		}
		same("Go reads of Lua", record.DecodeWaits(call("encode", stored).String()))
		same("Go reads of Go", record.DecodeWaits(w.Encode()))
		decoded := call("decode", vm.LString(w.Encode())).(*vm.LTable)
		fields := func(name string) map[string]string {
			out := map[string]string{}
			decoded.RawGetString(name).(*vm.LTable).ForEach(func(k, v vm.LValue) { out[k.String()] = v.String() })
			return out
		}
		same("Lua reads of Go", record.Waits{Suspension: fields("u"), Waitpoints: fields("points")})
	}
}
