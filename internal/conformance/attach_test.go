package conformance

import (
	"time"

	"github.com/flowfabric/flowfabric-go/engine"
)

func init() { gateScenarios = append(gateScenarios, attachScenarios...) }

var attachScenarios = []scenario{
	{name: "spec 70 §1.4 gates are added to a scope and taken from it one by one", run: func(w *world) {
		const scope = "n\x1felsewhere"
		do := func(gates, how, code, left string) {
			w.Helper()
			a := w.fcall("ff_attach", "1", scope, gates, "me", how)
			same(w, words(how, gates), a.code, code)
			got, err := w.do("HGET", string(w.k)+":attached", scope).ToString()
			if left == "" {
				same(w, "nothing is left", err != nil, true)
				return
			}
			w.no(err)
			same(w, "attached", got[:min(len(left), len(got))], left)
		}
		do("q:gpu", "add", "OK", "q:gpu ")
		do("b:acme,q:gpu", "add", "OK", "b:acme,q:gpu ")
		do("q:gpu", "add", "ALREADY_SATISFIED", "b:acme,q:gpu ")
		do("q:other", "remove", "ALREADY_SATISFIED", "b:acme,q:gpu ")
		do("q:a,q:b,q:c,q:d,q:e,q:f,q:g,q:h", "add", "invalid_input", "b:acme,q:gpu ") // nine quotas
		do("q:x", "replace", "invalid_input", "b:acme,q:gpu ")
		do("b:acme", "remove", "OK", "q:gpu ")
		do("b:x,b:y", "", "OK", "b:x,b:y ")
		do("b:y,b:x", "remove", "OK", "")
		do("b:x", "remove", "ALREADY_SATISFIED", "")
	}},
	{name: "design §6 lanes are listed with their ageing and their weight", run: func(w *world) {
		w.create()
		w.must("ff_set_share", "1", "default", "default", "7")
		w.must("ff_set_share", "1", "default", "later", "3")
		w.must("ff_set_share", "1", "default", "later", "0")
		w.must("ff_set_lane", "1", "blue", "slow", "", "", "me", "90000")
		for _, p := range w.e.Lanes(w.ctx) {
			w.no(p.Err)
			if p.Partition != w.p {
				continue
			}
			got := map[string]engine.Lane{}
			for _, l := range p.Lanes {
				got[l.Namespace+"/"+l.Name] = l
			}
			same(w, "lanes", len(got), 2)
			same(w, "weight", got["default/default"].Weight, 7)
			same(w, "ageing", got["blue/slow"].Ageing, 90*time.Second)
			same(w, "no weight", got["blue/slow"].Weight, 0)
		}
	}},
}
