package model

import "strings"

// incomplete is the answer to an execution id that is none, or to a fence that is not whole.
func incomplete(id string, f Fence) string {
	switch {
	case !uuid(id):
		return "invalid_input"
	case f == Fence{}:
		return "fence_required"
	case f.Session == "" || f.Claim == 0 || f.Epoch == 0:
		return "partial_fence"
	}
	return ""
}

// refuse is the one rule of who may change a held execution: the session that lives and whose
// claim, epoch and attempt are the current ones. ok is true for the holder. The order of the checks: exists, active,
// not revoked, session alive, everything equal.
func (p *Partition) refuse(id string, f Fence) (x *Execution, answered Reply, ok bool) {
	x = p.Executions[id]
	switch {
	case x == nil:
		return nil, answer("execution_not_found"), false
	case x.Code == "A3" && f.Session == x.Held.Session:
		return x, answer("lease_revoked"), false
	case x.Code != "A1":
		return x, notActive(x), false
	case f.Session == x.Held.Session && !p.alive(f.Session):
		return x, answer("lease_expired"), false
	case f != x.Held:
		return x, answer("stale_lease"), false
	}
	return x, Reply{}, true
}

// notActive tells what a caller needs to find out what became of it.
func notActive(x *Execution) Reply {
	attempt := ""
	if n := len(x.Attempts); n > 0 {
		attempt = number(n)
	}
	return answer("execution_not_active", string(x.Code), number(x.Held.Epoch), attempt, x.Released.String())
}

// made reports whether f is the fence under which something was made. Once the execution was claimed again, epoch and
// attempt alone tell, because no two claims have the same epoch.
func (x *Execution) made(by, f Fence) bool {
	return f.Epoch == by.Epoch && f.Attempt == by.Attempt && (f == by || x.Held.Epoch != by.Epoch)
}

// released reports whether a refused call repeats the release that this holder made, and the slot of its answer.
func (x *Execution) released(op string, f Fence) (slot string, ok bool) {
	if x == nil || x.Released == nil || x.Released.Op != op {
		return "", false
	}
	return x.Released.Slot, x.made(x.Released.By, f)
}

// instance is the worker instance of a session "<instance>~<suffix>", or "<who listens>~<instance>~<suffix>".
func instance(session string) string {
	parts := strings.Split(session, "~")
	return parts[max(0, len(parts)-2)]
}
