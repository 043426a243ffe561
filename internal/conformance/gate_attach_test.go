package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

func init() { gateScenarios = append(gateScenarios, attachScenarios...) }

// gateNames are so many gates, in their order, joined by commas; limitNames so many limits of keys.
func gateNames(n int) string { return numbered("a", n) }

func limitNames(n int) string { return numbered("@1.0.0@k", n) }

func numbered(prefix string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%02d", prefix, i)
	}
	return strings.Join(list, ",")
}

var attachScenarios = []scenario{
	{name: "gates can be added to and removed from a scope one by one", run: func(w *env) {
		const scope = "n\x1felsewhere"
		do := func(gates, how, code, left string) {
			w.Helper()
			a := w.fcall("ff_attach", proto, scope, gates, how)
			same(w, fmt.Sprintf("%v %v", how, gates), a.code, code)
			got, err := w.do("HGET", string(w.k)+":attached", scope).ToString()
			if left == "" {
				same(w, "nothing is left", err != nil, true)
				return
			}
			w.no(err)
			same(w, "attached", got[:min(len(left), len(got))], left)
		}
		do("gpu", "add", "OK", "gpu ")
		do("acme,gpu", "add", "OK", "acme,gpu ")
		do("gpu", "add", "ALREADY_SATISFIED", "acme,gpu ")
		do("other", "remove", "ALREADY_SATISFIED", "acme,gpu ")
		do(gateNames(15), "add", "invalid_input", "acme,gpu ") // seventeen by name
		do(limitNames(9), "add", "invalid_input", "acme,gpu ") // nine limits of keys
		do("x", "replace", "invalid_input", "acme,gpu ")
		do("x", "", "invalid_input", "acme,gpu ")
		do("acme", "remove", "OK", "gpu ")
		do("x,y", "set", "OK", "x,y ")
		do("y,x", "remove", "OK", "")
		do("x", "remove", "ALREADY_SATISFIED", "")
		all := limitNames(8) + "," + gateNames(16)
		do(all, "set", "OK", all+" ")
		do(all, "remove", "OK", "")
	}},
	{name: "a scope is everything, a namespace, a lane or a tag, and nothing else", run: func(w *env) {
		long := func(n int) string { return strings.Repeat("x", n) }
		for code, scopes := range map[string][]string{
			"OK": {"g", "n blue", "l blue slow", "l blue " + long(64), "l " + long(64) + " slow",
				"t app.tenant Acme,{1}", "t a.b " + long(256)},
			"invalid_input": {"", "g x", "n", "n a b", "l blue", "l a b c", "x a", "l blue " + long(65),
				"l " + long(65) + " slow", "t App x", "t a.b", "t a.b c d", "t a.b " + long(257)},
		} {
			for _, scope := range scopes {
				a := w.fcall("ff_attach", proto, strings.ReplaceAll(scope, " ", "\x1f"), "a", "set")
				same(w, scope, a.code, code)
			}
		}
	}},
	{name: "each execution of a call has the gates of its own labels", run: func(w *env) {
		w.must("ff_attach", proto, "t\x1fapp.tenant\x1facme", "a", "set")
		acme, other := tags(map[string]string{"app.tenant": "acme"}), tags(map[string]string{"app.tenant": "other"})
		items := []engine.NewExecution{w.item(), w.item(acme), w.item(acme), w.item(other), w.item(acme), w.item(),
			w.item(acme), w.item(other)}
		_, err := w.e.CreateExecutions(w.ctx, w.p, items)
		w.no(err)
		for i, gates := range []string{"", "a", "a", "", "a", "", "a", ""} {
			row := w.hash(w.k.Routes())[w.core(items[i].ID)["r"]]
			same(w, "gates of "+strconv.Itoa(i), row[strings.LastIndex(row, "\x1f")+1:], gates)
		}
	}},
	{name: "too many gates of its labels refuse one execution of a call, and no other", run: func(w *env) {
		w.must("ff_attach", proto, "t\x1fapp.a\x1f1", gateNames(16), "set")
		w.must("ff_attach", proto, "t\x1fapp.b\x1f1", "b", "set")
		few, many := tags(map[string]string{"app.a": "1"}), tags(map[string]string{"app.a": "1", "app.b": "1"})
		items := []engine.NewExecution{w.item(), w.item(many), w.item(), w.item(few), w.item(many)}
		out, err := w.e.CreateExecutions(w.ctx, w.p, items)
		w.no(err)
		for i, refused := range []bool{false, true, false, false, true} {
			same(w, "refused "+strconv.Itoa(i), errors.Is(out[i].Err, flowfabric.ErrInvalidInput), refused)
		}
	}},
	{name: "the partition's gate flag is cleared when no scope and no work has gates", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		level := func() string {
			v, err := w.do("HGET", string(w.k), "gates").ToString()
			if err != nil {
				return "none"
			}
			return v
		}
		attach := func(gates string) { w.must("ff_attach", proto, "n\x1felsewhere", gates, "set") }
		w.create()
		same(w, "nothing", level(), "none")
		attach(q)
		same(w, "attached", level(), "2")
		attach("")
		same(w, "detached", level(), "none")
		w.create(asking(flowfabric.Gate(q)))
		attach(q)
		attach("")
		same(w, "work has gates", level(), "1")
	}},
	{name: "an unknown verdict about a suspected slot is refused and changes nothing", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		w.create(asking(flowfabric.Gate(q)))
		list := g.asker("w1").grants(1)
		g.admit(q, 1, list...)
		for _, verdict := range []string{"3", "", "completed", "Held"} {
			_, _, err := g.e.SettleGates(w.ctx, []engine.News{news(q, holdOf(list[0]), engine.NewsGone),
				news(q, holdOf(list[0]), verdict)})
			w.is(err, flowfabric.ErrInvalidInput)
		}
		same(w, "held", g.record(q).Held, 1)
	}},
	{name: "lanes are listed with their ageing and weight", run: func(w *env) {
		w.create()
		w.must("ff_set_share", proto, "default", "default", "7")
		w.must("ff_set_share", proto, "default", "later", "3")
		w.must("ff_set_share", proto, "default", "later", "0")
		w.must("ff_set_share", proto, "red", "unused", "5")
		w.must("ff_set_lane", protoOf("me", ""), "blue", "slow", "", "", "90000")
		for _, p := range w.e.Lanes(w.ctx) {
			w.no(p.Err)
			if p.Partition != w.p {
				continue
			}
			got := map[string]engine.Lane{}
			for _, l := range p.Reply {
				got[l.Namespace+"/"+l.Lane] = l
			}
			same(w, "lanes", len(got), 3)
			same(w, "weight of an unused one", got["red/unused"].Weight, 5)
			same(w, "weight", got["default/default"].Weight, 7)
			same(w, "ageing", got["blue/slow"].Ageing, 90*time.Second)
			same(w, "no weight", got["blue/slow"].Weight, 0)
		}
	}},
}
