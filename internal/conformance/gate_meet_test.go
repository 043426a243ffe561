package conformance

import (
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// What actors do about grants.
var (
	asks = move{name: "ask", call: func(a *actor) call {
		return call{"ff_claim_next", []string{proto, a.session(), strconv.Itoa(a.number + 1), "30000", "1", allRoutes,
			"0", "1", "0", "32"}}
	}}
	claimsGranted = move{name: "claim granted", call: func(a *actor) call {
		return call{"ff_claim_granted", slices.Concat([]string{proto, a.session(), "1"}, a.granted(),
			[]string{"1", "1", "q=h"})}
	}}
	returns = move{name: "return", call: func(a *actor) call {
		return call{"ff_release_grant",
			slices.Concat([]string{proto, a.session(), "1"}, a.granted(), []string{"0", "0"})}
	}}
	refuses = move{name: "refuse", call: func(a *actor) call {
		return call{"ff_release_grant", slices.Concat([]string{proto, a.session(), "1"}, a.granted(),
			[]string{"1", "1", "1", "4000", "gate q cap", "0"})}
	}}
	opens   = move{name: "open", call: func(*actor) call { return call{"ff_open_route", []string{proto, "1", "1"}} }}
	pauses  = operating("ff_hold_execution", "1")
	unpause = operating("ff_hold_execution", "0")
)

var gateMeetings = []meeting{
	{"grants are requested, returned and expire", []option{retries(1), asking(flowfabric.Gate("q"))}, 1,
		[3][4]move{
			{asks, claimsGranted, completes, asks}, {asks, returns, asks, claimsGranted},
			{passes(5 * time.Second), ticks, passes(ttl), ticks}}},
	{"grants are refused and their execution is held", []option{retries(1), asking(flowfabric.Gate("q"))}, 1,
		[3][4]move{
			{asks, claimsGranted, releases, asks}, {asks, refuses, opens, claimsGranted},
			{pauses, unpause, pauses, cancels}}},
}

// granted is the actor's grant, or one that was never given to anybody.
func (a *actor) granted() []string {
	if a.grant != nil {
		return a.grant
	}
	return []string{a.ids[0], "1"}
}

// asked takes the grant from a claim's reply, at the slot behind the claims when there are none.
func (a *actor) asked(reply answer, at int) {
	if at >= len(reply.slots) || reply.slots[at] == "0" {
		return
	}
	if reply.slots[0] == "0" {
		a.number++
	}
	a.grant = strings.Fields(reply.slots[at+1])[:2]
}

// took takes the fence from the claim of what was granted.
func (a *actor) took(reply answer) {
	if reply.code != "OK" || reply.slots[2] == "0" {
		return
	}
	h := strings.Fields(reply.slots[3])
	a.fence = []string{h[0], a.session(), strconv.Itoa(a.number), h[2], h[1]}
}

// finishGated ends what waits behind gates, or is paused.
func (w *env) finishGated(z *actor) {
	w.Helper()
	for id, core := range cores(w.dump()) {
		if strings.HasPrefix(core["s"], "R4") {
			w.must("ff_hold_execution", proto, id, "0")
		}
	}
	for {
		had := z.number
		c := asks.call(z)
		if z.learn(c, w.must(c.name, c.args...)); z.number == had {
			return
		}
		c = claimsGranted.call(z)
		z.learn(c, w.must(c.name, c.args...))
		c = completes.call(z)
		same(w, "completed", outcome(c.name, w.fcall(c.name, c.args...)), "OK")
	}
}
