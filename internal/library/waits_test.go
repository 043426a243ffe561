package library

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

// What the functions store of waits, the twin in Go reads, and the other way round, whatever the texts. Waitpoints
// are written short.
func TestWaitsTwins(t *testing.T) {
	l := vm.NewState()
	t.Cleanup(l.Close)
	for _, lib := range []string{"reply", "pack", "wait_record", "waitpoint"} {
		if err := l.DoString(strings.ReplaceAll(read("lib/"+lib+".lua"), "\nlocal "+lib+" ", "\n"+lib+" ")); err !=
			nil {
			t.Fatal(err)
		}
	}
	// What functions do with every waitpoint between reading and writing.
	if err := l.DoString(`
		function wait_record.store(w)
			for id, text in pairs(w.points) do w.points[id] = waitpoint.encode(waitpoint.decode(text, w.u), w.u) end
			return wait_record.encode(w)
		end
		function wait_record.load(text)
			local w = wait_record.decode(text)
			w.steps, w.told = {}, {}
			for id, text in pairs(w.points) do
				local p = waitpoint.decode(text, w.u)
				local whole = string.gsub(waitpoint.whole(text, w.u), '\31[^\31]*$', '') -- without the subject
				if p.event then whole = string.gsub(whole, '\31' .. p.key, '%0\30' .. p.event, 1) end
				w.points[id], w.steps[id] = whole, p.step
				local name, value, log = waitpoint.step(id, p)
				w.told[id] = name and name .. '|' .. value .. '|' .. log
			end
			return w
		end`); err != nil {
		t.Fatal(err)
	}
	call := func(name string, arg vm.LValue) vm.LValue {
		t.Helper()
		must.No(t, l.CallByParam(vm.P{Fn: l.GetField(l.GetGlobal("wait_record"), name), NRet: 1, Protect: true},
			arg))
		defer l.Pop(1)
		return l.Get(-1)
	}
	table := func(m map[string]string, names map[string]string) *vm.LTable {
		out := l.NewTable()
		for k, v := range m {
			out.RawSetString(cmp.Or(names[k], k), vm.LString(v))
		}
		return out
	}
	// fields of suspensions by the names of the twin, and the reverse
	long, short := map[string]string{}, map[string]string{}
	for k, v := range map[string]string{"nm": "name", "rc": "reason", "ho": "holder", "cr": "created_at",
		"to": "timeout_at", "bh": "behaviour", "c": "condition", "wp": "waitpoints"} {
		long[k], short[v] = v, k
	}
	_, source, _ := strings.Cut(read("lib/wait_record.lua"), "\nlocal stored = {\n")
	source, _, _ = strings.Cut(source, "\n}\n")
	for _, m := range regexp.MustCompile(`(?m)^  (\w+) = '(\w+)',`).FindAllStringSubmatch(source, -1) {
		long[m[2]], short[m[1]] = m[1], m[2]
	}
	strange := append([]string{"\x1b", "\x1c", "\x1d", "\x1be", "\x1b\x1b", "a\x1db\x1cc", "\x1bf\x1bg", "a=b", "="},
		texts...)
	ordinary, conditions := []string{"1", "x y", "170", "-"}, []string{"L\x1f1\x1f1\x1f", "C\x1f1\x1e\x1f", "O"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := record.Waits{Suspension: map[string]string{}, Waitpoints: map[string]string{},
			Steps: map[string]string{}}
		for range r.IntN(12) {
			w.Suspension[strings.Fields("rc ho cr to bh n1 n2 gn gm")[r.IntN(9)]] = ordinary[r.IntN(len(ordinary))]
		}
		if r.IntN(2) == 0 {
			w.Suspension["rc"] = strings.Fields("waiting_for_signal waiting_for_approval waiting_for_callback " +
				"waiting_for_tool_result waiting_for_operator_review manual_pause step_boundary paused_by_policy " +
				"paused_by_budget waiting_for_children")[r.IntN(10)]
			w.Suspension["bh"] = strings.Fields("fail cancel expire auto_resume auto_resume_with_timeout_signal " +
				"auto_resume_open escalate")[r.IntN(7)]
			w.Suspension["cr"] = "2700" // some waitpoints were created before
		}
		if r.IntN(3) > 0 {
			w.Suspension["id"], w.Suspension["c"] = "suspension", conditions[r.IntN(3)]
		}
		for range r.IntN(4) { // free texts; one that is empty is absent
			if text := strange[r.IntN(len(strange))]; text != "" {
				w.Suspension[strings.Fields("nm rq by why qu")[r.IntN(5)]] = text
			}
		}
		var ids []string
		for range r.IntN(4) {
			id := fmt.Sprintf("%036d", r.IntN(99))
			ids = append(ids, id)
			w.Waitpoints[id] = point(r, w.Suspension)
			if r.IntN(2) == 0 {
				w.Steps[id] = []string{"1 2", "3 40 a name", "1 1  x"}[r.IntN(3)]
			}
		}
		if r.IntN(2) == 0 {
			w.Suspension["wp"] = strings.Join(append(ids, strings.Fields("id-gone")[:r.IntN(2)]...), ",")
		}
		if w.Suspension["wp"] == "" {
			delete(w.Suspension, "wp")
		}
		signals := l.NewTable()
		for range r.IntN(3) {
			g := record.Signal{Expiry: fmt.Sprint(r.IntN(1000)), Text: strange[r.IntN(len(strange))] + "\x1c\x1c1 2 3"}
			w.Signals = append(w.Signals, g)
			signals.Append(table(map[string]string{"expiry": g.Expiry, "text": g.Text}, nil))
		}
		stored := l.NewTable()
		stored.RawSetString("signals", signals)
		stored.RawSetString("u", table(w.Suspension, long))
		points := map[string]string{}
		for id, text := range w.Waitpoints {
			p := strings.Split(text, "\x1f")
			if w.Steps[id] != "" {
				p[5] += " " + w.Steps[id]
			}
			points[id] = strings.Join(p, "\x1f")
		}
		stored.RawSetString("points", table(points, nil))
		same := func(what string, got record.Waits) {
			if !maps.Equal(got.Suspension, w.Suspension) || !maps.Equal(got.Waitpoints, w.Waitpoints) ||
				!maps.Equal(got.Steps, w.Steps) || !slices.Equal(got.Signals, w.Signals) {
				t.Fatalf("seed %d: %s %q, want %q", seed, what, got, w)
			}
		}
		same("Go reads of Lua", record.DecodeWaits(call("store", stored).String()))
		same("Go reads of Go", record.DecodeWaits(w.Encode()))
		loaded := func(text string) record.Waits {
			decoded := call("load", vm.LString(text)).(*vm.LTable)
			fields := func(name string, names map[string]string) map[string]string {
				out := map[string]string{}
				decoded.RawGetString(name).(*vm.LTable).ForEach(func(k,
					v vm.LValue) {
					out[cmp.Or(names[k.String()], k.String())] = v.String()
				})
				return out
			}
			out := record.Waits{Suspension: fields("u", short), Waitpoints: fields("points", nil),
				Steps: fields("steps", nil)}
			told := map[string]string{}
			for id := range w.Waitpoints {
				if name, value, log, ok := w.Step(id); ok {
					told[id] = name + "|" + value + "|" + log
				}
			}
			if got := fields("told", nil); !maps.Equal(got, told) {
				t.Fatalf("seed %d: Lua tells of steps %q, Go %q", seed, got, told)
			}
			if list, ok := decoded.RawGetString("signals").(*vm.LTable); ok {
				list.ForEach(func(_, v vm.LValue) {
					g := v.(*vm.LTable)
					out.Signals = append(out.Signals,
						record.Signal{Expiry: g.RawGetString("expiry").String(), Text: g.RawGetString("text").String()})
				})
			}
			return out
		}
		same("Lua reads of Go", loaded(w.Encode()))
		same("Lua reads of Lua", loaded(call("store", stored).String()))
	}
}

// point is a waitpoint in any state, which has some times in common with its suspension, if it has one.
func point(r *rand.Rand, u map[string]string) string {
	any := func(values ...string) string { return values[r.IntN(len(values))] }
	created, _, _ := strings.Cut(u["cr"], " ") // an instant has no blank
	p := []string{any("p", "a", "c", "x"), any("k", "a key", "k\x1e"+strings.Repeat("e", 36)+" a.b"), "kid", "digest",
		"nonce", any("7", created),
		any("", "7", u["cr"]), any("", "8", u["to"]), any("", "other", u["id"])}
	p = append(p, any("0", "3"), any("0", "1"), any("", "5"), any("", "6"), any("", "resumed", "proactive_close"),
		any("0", "12"))
	if p[9] == "0" && p[12] == "" {
		copy(p[9:], []string{"0", "0", "", "", "", "0"})
	}
	return strings.Join(p, "\x1f")
}
