package conformance

import (
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// granted is a grant that a worker was told of, with the claim that it came with.
type granted struct {
	engine.Grant
	session string
	number  uint64
}

// granted keeps the grants of a claim's reply: they are its last slots.
func (f *fuzzer) granted(k *worker, number uint64, slots []string) {
	for i := len(slots) - 1; i > 0; i-- {
		h := strings.Fields(slots[i])
		if len(h) != 3 {
			return
		}
		id, err := ids.ParseUUID(h[0])
		if err != nil {
			return
		}
		epoch, _ := strconv.ParseUint(h[1], 10, 64)
		route, _ := strconv.ParseUint(h[2], 10, 64)
		f.grants = append(f.grants, granted{engine.Grant{Execution: mint.Join(f.p, id), Epoch: epoch,
			Route: route}, k.session, number})
		f.asking = true
	}
}

// gate is what workers do with grants, and what others do about gates, pauses and shares.
func (f *fuzzer) gate(k *worker) call {
	if len(f.grants) > 0 && f.r.IntN(3) == 0 {
		return f.answered(f.grants[max(0, len(f.grants)-1-f.r.IntN(4))])
	}
	id := mint.ID(f.p)
	if len(f.ids) > 0 {
		id = f.ids[f.r.IntN(len(f.ids))]
	}
	if n := len(f.grants); n > 0 && f.r.IntN(3) == 0 {
		id = f.grants[n-1].Execution
	}
	if n := len(f.fences); n > 0 && f.r.IntN(3) == 0 {
		id = f.fences[max(0, n-1-f.r.IntN(3))].Execution
	}
	switch f.r.IntN(7) {
	case 0, 1:
		return call{"ff_hold_execution", []string{proto, ids.UUID(id).String(), "1"}}
	case 2, 3:
		return call{"ff_hold_execution", []string{proto, ids.UUID(id).String(), "0"}}
	case 4:
		return call{"ff_set_share",
			[]string{proto, []string{"default", "other"}[f.r.IntN(2)], "default", strconv.Itoa(f.r.IntN(4))}}
	case 5:
		scope := []string{"n\x1fother", "l\x1fother\x1fdefault", "t\x1fa.b\x1fc"}[f.r.IntN(3)]
		return call{"ff_attach", []string{proto, scope, []string{"", "", "c"}[f.r.IntN(3)], "set"}}
	}
	return call{"ff_open_route", []string{proto, "2", strconv.Itoa(1 + f.r.IntN(12)), strconv.Itoa(1 + f.r.IntN(12))}}
}

// answered is what becomes of a grant: mostly it is claimed.
func (f *fuzzer) answered(g granted) call {
	switch f.r.IntN(6) {
	case 0:
		return call{"ff_check_holds", slices.Concat([]string{proto, "1"}, grantArgs(g.Grant))}
	case 1, 2:
		return call{"ff_release_grant", slices.Concat([]string{proto, g.session, "1"}, grantArgs(g.Grant),
			[]string{strconv.Itoa(f.r.IntN(2)), strconv.Itoa(1), strconv.FormatUint(g.Route, 10),
				strconv.Itoa(1 + f.r.IntN(5000)), "gate a cap", "0"})}
	}
	f.fences = append(f.fences, flowfabric.Fence{Execution: g.Execution, Session: g.session, Claim: g.number,
		Epoch: g.Epoch})
	routes := []string{"0"}
	if f.r.IntN(2) == 0 {
		routes = []string{"1", strconv.FormatUint(g.Route, 10), "c=" + []string{"a", "h", "ah"}[f.r.IntN(3)]}
	}
	return call{"ff_claim_granted", slices.Concat([]string{proto, g.session, "1"}, grantArgs(g.Grant), routes)}
}
