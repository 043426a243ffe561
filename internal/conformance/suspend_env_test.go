package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// kid is the token key that scenarios sign with unless they say otherwise.
const kid = "k1"

// digestOf is what a token is known by on the server.
func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// printOf is the fingerprint of the secret that a test's token key would have.
func printOf(secret string) string { return digestOf(secret)[:16] }

// mintedBy is the identity of a new waitpoint with a token under a key.
func mintedBy(kid, key string) engine.Minted {
	m := engine.Minted{ID: mint.UUID(), Key: key, Kid: kid, Nonce: strings.ReplaceAll(uuid.NewString(), "-", "")}
	m.Digest = digestOf(tokenOf(m))
	return m
}

// minted is mintedBy under the usual key.
func minted(key string) engine.Minted { return mintedBy(kid, key) }

// tokenOf is the token of a minted waitpoint. How real ones follow from a secret is no concern of the server: it sees
// their SHA-256 only.
func tokenOf(m engine.Minted) string { return m.Kid + ":" + digestOf(m.ID.String()+m.Nonce) }

// setKey makes a token key known to this partition; mode is seed or rotate. The secret is one that belongs to the kid.
func (w *env) setKey(mode, kid string, grace time.Duration, force bool) answer {
	w.Helper()
	flag := "0"
	if force {
		flag = "1"
	}
	a := w.fcall("ff_set_token_keys", proto, mode, kid, printOf("secret of "+kid),
		strconv.FormatInt(grace.Milliseconds(), 10), flag)
	w.check()
	return a
}

// seed makes the usual key current.
func (w *env) seed() {
	w.Helper()
	same(w, "seeded", w.setKey("seed", kid, 0, false).code, "OK")
}

// rotate makes another key current; that must not be refused.
func (w *env) rotate(kid string, grace time.Duration) {
	w.Helper()
	same(w, "rotated", w.setKey("rotate", kid, grace, false).code, "OK")
}

// keyState is what this partition knows of its token keys, by kid; current is "" when there is none.
func (w *env) keyState() (current string, keys map[string]suspend.TokenKey) {
	w.Helper()
	p := w.e.TokenKeys(w.ctx)[w.p]
	w.no(p.Err)
	keys = map[string]suspend.TokenKey{}
	for _, k := range p.Keys {
		keys[k.Kid] = k
	}
	return p.Current, keys
}

// holder creates an execution and claims it with a worker of its own.
func (w *env) holder(opts ...option) (*worker, engine.Claim) {
	w.Helper()
	id := w.create(opts...)
	k := w.worker("w" + strconv.FormatUint(uint64(uuid.New().ID()), 36))
	return k, k.one(id)
}

// The nodes of a condition as they travel; waitpoints and nodes are numbered from 1.

func spelled(parts ...string) string { return strings.Join(parts, "\x1f") }

// names is need of the listed signal names on one waitpoint; "" takes any name.
func names(waitpoint, need int, list ...string) string {
	return spelled(append([]string{"L", strconv.Itoa(waitpoint), strconv.Itoa(need)}, list...)...)
}

// count is n distinct (w waitpoints, s signals, c sources) by name ("" takes any) over waitpoints.
func count(n int, kind, name string, waitpoints ...int) string {
	parts := []string{"C", strconv.Itoa(n), kind, name}
	for _, w := range waitpoints {
		parts = append(parts, strconv.Itoa(w))
	}
	return spelled(parts...)
}

// group is need of the numbered nodes before it.
func group(need int, members ...int) string {
	parts := []string{"G", strconv.Itoa(need)}
	for _, m := range members {
		parts = append(parts, strconv.Itoa(m))
	}
	return spelled(parts...)
}

// conditionOf joins nodes, the root last.
func conditionOf(nodes ...string) string { return strings.Join(nodes, "\x1e") }

// Conditions that no signal meets.
const (
	operatorOnly = "O"
	timeoutOnly  = "T"
)

// suspending is one deviation from the usual suspension.
type suspending func(*engine.Suspension)

// waitFor replaces the condition; the fresh waitpoints are numbered from 1.
func waitFor(condition string, fresh ...engine.Minted) suspending {
	return func(q *engine.Suspension) {
		q.Condition, q.Bindings = condition, nil
		for _, m := range fresh {
			q.Bindings = append(q.Bindings, engine.Binding{Minted: m})
		}
	}
}

// onPending waits on pending waitpoints instead, for the condition that is set.
func onPending(pending ...engine.Minted) suspending {
	return func(q *engine.Suspension) {
		q.Bindings = nil
		for _, m := range pending {
			q.Bindings = append(q.Bindings, engine.Binding{Minted: m, Pending: true})
		}
	}
}

func within(d time.Duration, behaviour string) suspending {
	return func(q *engine.Suspension) { q.Timeout, q.Behaviour = d, behaviour }
}

func because(reason string) suspending { return func(q *engine.Suspension) { q.Reason = reason } }
func awaiting(name string) suspending  { return func(q *engine.Suspension) { q.Name = name } }
func asked(request string) suspending  { return func(q *engine.Suspension) { q.Request = request } }
func resumedAfter(d time.Duration) suspending {
	return func(q *engine.Suspension) { q.ResumeDelay = d }
}

// suspension is a fresh wait for the signal go, on one waitpoint, for ever.
func suspension(opts ...suspending) engine.Suspension {
	q := engine.Suspension{ID: mint.UUID(), Reason: "waiting_for_signal", Behaviour: "fail",
		Condition: conditionOf(names(1, 1, "go")), Bindings: []engine.Binding{{Minted: minted("wp")}}}
	for _, o := range opts {
		o(&q)
	}
	return q
}

// suspend suspends and fails unless the lease was given up. It returns what was asked and what was answered.
func (w *env) suspend(f flowfabric.Fence, opts ...suspending) (engine.Suspension, engine.Suspended) {
	w.Helper()
	q := suspension(opts...)
	s, err := w.e.SuspendExecution(w.ctx, f, q)
	w.no(err)
	w.check()
	w.all("satisfied, already, suspension", eq(s.Satisfied, false), eq(s.Already, false), eq(s.Suspension, q.ID))
	return q, s
}

// stopped is suspend for those who need the first waitpoint only.
func (w *env) stopped(f flowfabric.Fence, opts ...suspending) engine.Minted {
	w.Helper()
	q, _ := w.suspend(f, opts...)
	return q.Bindings[0].Minted
}

// waiting creates an execution that waits for go, and returns it with its waitpoint.
func (w *env) waiting(opts ...suspending) (*worker, engine.Claim, engine.Minted) {
	w.Helper()
	k, c := w.holder()
	return k, c, w.stopped(c.Fence, opts...)
}

// pend opens a pending waitpoint for an hour.
func (w *env) pend(f flowfabric.Fence, key string) engine.Minted {
	w.Helper()
	m := minted(key)
	o, err := w.e.CreatePendingWaitpoint(w.ctx, f, "", m, time.Hour)
	w.no(err)
	w.check()
	w.all("opened", eq(o.ID, m.ID), eq(o.Key, m.Key), eq(o.Kid, m.Kid), eq(o.Nonce, m.Nonce))
	return m
}

// deliver brings a signal with the right token.
func (w *env) deliver(id flowfabric.ExecutionID, m engine.Minted, s suspend.SentSignal) (suspend.Delivered, error) {
	w.Helper()
	d, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, s)
	w.check()
	return d, err
}

// signal delivers a new signal by name and fails unless it has the wanted effect.
func (w *env) signal(id flowfabric.ExecutionID, m engine.Minted, name string, effect suspend.Effect) suspend.Delivered {
	w.Helper()
	return w.send(id, m, suspend.SentSignal{Name: name}, effect)
}

// send delivers a new signal and fails unless it has the wanted effect.
func (w *env) send(id flowfabric.ExecutionID, m engine.Minted, s suspend.SentSignal,
	effect suspend.Effect) suspend.Delivered {
	w.Helper()
	d, err := w.deliver(id, m, s)
	w.no(err)
	w.all("effect of "+s.Name, eq(d.Effect, effect), eq(d.Duplicate, false))
	return d
}

// resume resumes on the word of an operator.
func (w *env) resume(id flowfabric.ExecutionID) {
	w.Helper()
	already, err := w.e.ResumeExecution(trail.As(w.ctx, "op", "told to"), id, engine.ResumeRequest{})
	w.no(err)
	same(w, "resume already", already, false)
	w.check()
}

// record reads the current or last suspension.
func (w *env) record(id flowfabric.ExecutionID) suspend.Record {
	w.Helper()
	r, err := w.e.ReadSuspension(w.ctx, id)
	w.no(err)
	return r
}

// waitpoint reads one waitpoint.
func (w *env) waitpoint(id flowfabric.ExecutionID, m engine.Minted) suspend.Waitpoint {
	w.Helper()
	all := w.record(id).Waitpoints
	i := slices.IndexFunc(all, func(p suspend.Waitpoint) bool { return p.ID == m.ID })
	if i < 0 {
		w.Fatalf("waitpoint %s (%s) is not among %d", m.ID, m.Key, len(all))
	}
	return all[i]
}

// logged lists "name effect" of what was delivered to a waitpoint, oldest first, joined by commas.
func (w *env) logged(id flowfabric.ExecutionID, m engine.Minted) string {
	w.Helper()
	var out []string
	for total := 1; len(out) < total; {
		page, n, err := w.e.ReadSignals(w.ctx, id, m.ID, len(out))
		w.no(err)
		for _, s := range page {
			out = append(out, s.Name+" "+string(s.Effect))
		}
		if total = n; len(page) == 0 {
			break
		}
	}
	return strings.Join(out, ", ")
}

// told is what a resumption says: its cause, and the names of its signals.
func told(r *suspend.Result) string {
	if r == nil {
		return "nothing"
	}
	out := string(r.Cause) + ":"
	for _, s := range r.Signals {
		out += " " + s.Name
	}
	return out
}
