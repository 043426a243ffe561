package conformance

import (
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// check holds the whole partition against the invariants and fails with everything it finds.
func (w *env) check() {
	w.Helper()
	if w.quiet {
		return
	}
	if bad := w.violations(w.dump()); len(bad) > 0 {
		w.Fatalf("the partition breaks invariants:\n%s", strings.Join(bad, "\n"))
	}
}

// violations tells what is wrong with a dump, also against what was seen since the last reset.
func (w *env) violations(d *invariant.Dump) []string { return w.checker.Violations(d) }

// keys lists the partition's keys in order.
func (w *env) keys() []string {
	w.Helper()
	all, err := w.do("KEYS", string(w.k)+"*").AsStrSlice()
	w.no(err)
	slices.Sort(all)
	return all
}

// dump reads the partition in two round trips.
func (w *env) dump() *invariant.Dump {
	w.Helper()
	d, err := invariant.Read(w.ctx, w.raw, w.p)
	w.no(err)
	d.Stepped = w.stepped
	return d
}

// digest is the text of the partition now, and of those beside it.
func (w *env) digest(without ...string) string {
	w.Helper()
	return w.dump().Text(without...) + w.elsewhere(without...)
}

// difference shows the lines that two digests do not share.
func difference(a, b string) string { return invariant.Difference(a, b) }

// fingerprint is the hash of the partition now.
func (w *env) fingerprint() string {
	w.Helper()
	if !w.srv.Features.Native {
		return w.dump().Text() // Lua is the slow part there
	}
	h, err := invariant.Fingerprint(w.ctx, w.raw, w.p)
	w.no(err)
	return h
}

// changes is how many changes the server has made to its data, all partitions taken together: where that stays the
// same, a fingerprint does, and it costs a fiftieth. It is "" where the server does not count.
func (w *env) changes() string {
	w.Helper()
	if !w.srv.Features.Native || w.srv.Features.Cluster {
		return ""
	}
	info, err := w.do("INFO", "persistence").ToString()
	w.no(err)
	_, rest, counted := strings.Cut(info, "rdb_changes_since_last_save:")
	if !counted {
		w.Fatalf("the server does not count changes:\n%s", info)
	}
	n, _, _ := strings.Cut(rest, "\r")
	return n
}

// fingerprintFor tells whether what a function may touch has changed: the partition, or the one beside it.
func (w *env) fingerprintFor(name string) string {
	w.Helper()
	if root := w.seat(name); root != string(w.k) {
		return w.told(root)
	}
	return w.fingerprint()
}

// audited ends a scenario: an audit of what it leaves behind must find nothing, not in the partitions of gates
// either.
func (w *env) audited() {
	w.Helper()
	if w.Failed() || w.Skipped() {
		return
	}
	w.forgetExpected()
	cfg := maintain.AuditConfig{Engine: w.e, Partitions: []uint16{w.p}, Gates: w.gated || len(w.roots) > 0}
	r, err := maintain.Audit(w.ctx, cfg)
	w.no(err)
	for _, p := range r.Partitions {
		w.no(p.Err)
	}
	w.no(r.GatesErr)
	// no damage
	r.Findings = slices.DeleteFunc(r.Findings,
		func(f flowfabric.Finding) bool { return f.Kind == engine.FindingRetention })
	if text := found(r); text != "" {
		w.Errorf("an audit of what the scenario leaves finds:\n%s", text)
	}
}
