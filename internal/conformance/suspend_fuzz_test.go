package conformance

import (
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// wait is what a holder does about waitpoints: it opens one, takes one back, or suspends on some.
func (f *fuzzer) wait(fence flowfabric.Fence) (call, func(answer)) {
	with := func(name string, more ...string) call {
		return call{name, slices.Concat([]string{proto}, fenceArgs(fence), more)}
	}
	learn := func(made ...engine.Minted) func(answer) {
		return func(a answer) {
			for _, m := range made {
				if a.code == "OK" {
					f.points = append(f.points, pointed{fence.Execution, m})
				}
			}
		}
	}
	switch f.r.IntN(8) {
	case 0, 1, 2:
		m := minted("key" + strconv.Itoa(f.r.IntN(4)))
		c := with("ff_create_pending_waitpoint", wirePend([]string{"", m.Key, "other"}[f.r.IntN(3)], m)...)
		c.args[12] = strconv.Itoa(1000 + f.r.IntN(60000))
		return c, learn(m)
	case 3:
		if mine := f.of(fence.Execution); len(mine) > 0 {
			return with("ff_close_waitpoint", mine[f.r.IntN(len(mine))].ID.String()), nil
		}
	}
	q, made := f.suspension(fence.Execution)
	return with("ff_suspend_execution", wireSuspend(q)...), learn(made...)
}

// of lists the waitpoints that an execution had.
func (f *fuzzer) of(id flowfabric.ExecutionID) (mine []engine.Minted) {
	for _, p := range f.points {
		if p.id == id {
			mine = append(mine, p.Minted)
		}
	}
	return mine
}

// suspension is any that may be, over fresh waitpoints and pending ones.
func (f *fuzzer) suspension(id flowfabric.ExecutionID) (q engine.Suspension, made []engine.Minted) {
	pick := func(list ...string) string { return list[f.r.IntN(len(list))] }
	q = suspension(because(pick("waiting_for_signal", "step_boundary", "waiting_for_approval", "waiting_for_approval",
		"waiting_for_callback",
		"waiting_for_tool_result", "waiting_for_operator_review", "manual_pause", "paused_by_policy",
		"paused_by_budget", "waiting_for_children")),
		awaiting(pick("", "a", "b", "c")), asked(pick("", "r1")))
	if f.r.IntN(3) > 0 {
		within(time.Duration(1+f.r.IntN(20000))*time.Millisecond,
			pick("fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal", "escalate"))(&q)
	}
	if f.r.IntN(2) > 0 {
		resumedAfter(time.Duration(f.r.IntN(3000)) * time.Millisecond)(&q)
	}
	q.Bindings = nil
	mine := f.of(id)
	for i := range 1 + f.r.IntN(3) {
		if n := len(mine); n > 0 && f.r.IntN(2) > 0 {
			if m := mine[n-1-f.r.IntN(min(n, 3))]; !slices.ContainsFunc(q.Bindings, func(b engine.Binding) bool {
				return b.ID == m.ID || b.Key == m.Key
			}) {
				q.Bindings = append(q.Bindings, engine.Binding{Minted: m, Pending: true})
				continue
			}
		}
		m := minted("fresh" + strconv.Itoa(i))
		q.Bindings, made = append(q.Bindings, engine.Binding{Minted: m}), append(made, m)
	}
	q.Condition = f.condition(len(q.Bindings))
	if f.r.IntN(10) == 0 {
		q.Condition, q.Bindings, made = pick(operatorOnly, timeoutOnly), nil, nil
	}
	return q, made
}

// condition is one over n waitpoints.
func (f *fuzzer) condition(n int) string {
	all := []int{1, 2, 3}[:n]
	pick := func(list ...string) string { return list[f.r.IntN(len(list))] }
	switch f.r.IntN(4) {
	case 0:
		return conditionOf(count(1+f.r.IntN(n), pick("w", "c"), pick("", "go"), all...))
	case 1:
		return conditionOf(count(1+f.r.IntN(2), "s", pick("", "go"), all...))
	}
	var nodes []string
	var members []int
	for _, w := range all {
		nodes = append(nodes, names(w, 1+f.r.IntN(2), "go", pick("go", "", "stop")))
		members = append(members, len(nodes))
	}
	if n == 1 && f.r.IntN(2) > 0 {
		return conditionOf(nodes...)
	}
	return conditionOf(append(nodes, group(1+f.r.IntN(n), members...))...)
}

// tell is what others do about a waitpoint, its token and its suspension.
func (f *fuzzer) tell(p pointed) (call, func(answer)) {
	pick := func(list ...string) string { return list[f.r.IntN(len(list))] }
	var told []string
	for range 3 {
		f.requests = append(f.requests, uuid.NewString())
	}
	id, _ := uuid.Parse(f.requests[max(0, len(f.requests)-1-f.r.IntN(12))])
	told = wireSignal(flowfabric.UUID(id), pick("go", "go", "go", "stop", "other"), pick("", "", "k1", "k2"))
	told[4] = pick("me", "you")
	told[10] = pick("", "1", "\x00\x1f\x1e")
	switch f.r.IntN(20) {
	case 0, 1:
		return call{"ff_approve_waitpoint",
			slices.Concat([]string{proto, ids.UUID(p.id).String(), pick(p.ID.String(), p.Key)}, told)}, nil
	case 2, 8:
		c := call{"ff_resume_execution", wireResume(p.id, id.String())}
		c.args[5] = pick("0", "0", "2000")
		return c, nil
	case 3, 4:
		m := mintedBy(pick(p.Kid, "k2"), p.Key)
		c := call{"ff_reissue_token", []string{protoOf("me", ""), ids.UUID(p.id).String(), p.ID.String(), m.Kid,
			m.Digest, m.Nonce}}
		m.ID = p.ID
		return c, func(a answer) {
			if i := slices.IndexFunc(f.points, func(o pointed) bool { return o.ID == p.ID }); a.code == "OK" && i >= 0 {
				f.points[i].Minted = m
			}
		}
	case 5:
		return call{"ff_set_token_keys",
			wireKey(pick("seed", "rotate"), pick(kid, "k2", "k3"), pick("0", "1000", "9000000"), pick("0", "1"))}, nil
	case 6:
		return call{"ff_read_suspension", []string{proto, ids.UUID(p.id).String()}}, nil
	case 7:
		return call{"ff_read_signals", []string{proto, ids.UUID(p.id).String(), p.ID.String(), "0"}}, nil
	}
	return call{"ff_deliver_signal", slices.Concat([]string{proto, ids.UUID(p.id).String(), p.ID.String(), p.Digest},
		told)}, nil
}
