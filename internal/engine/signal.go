package engine

import (
	"cmp"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const unit = "\x1f"

// decodeSignal reads what lua/lib/signals.lua stores.
func decodeSignal(text string) (s suspend.StoredSignal, err error) {
	r := parts("signal", strings.SplitN(text, unit, 16), 16)
	s.ID, s.Waitpoint = r.UUID(), r.UUIDOr0() // a timeout has no waitpoint
	s.WaitpointKey, s.Name, s.Category, s.SourceType, s.Source = r.Text(), r.Text(), r.Text(), r.Text(), r.Text()
	s.Correlation, s.Trace = cutTrace(r.Text())
	s.IdempotencyKey, s.CreatedAt, s.AcceptedAt = r.Text(), r.InstantOr0(), r.InstantOr0()
	s.Encoding, s.Effect, s.LateBy, s.Order = r.Text(), suspend.Effect(r.Text()), flowfabric.Millis(r.Millis()),
		r.number()
	s.Payload = []byte(r.Text())
	return s, r.fail()
}

// DecodeResume reads what lua/lib/suspension.lua tells of a resumption, from a claim or from the step that keeps it.
func DecodeResume(blob []byte) (suspend.Result, error) {
	p := strings.SplitN(string(blob), unit, 10)
	r := parts("resumption", p, max(9, len(p)))
	out := suspend.Result{Name: r.Text(), Cause: suspend.Cause(r.Text()), Suspension: r.UUID(),
		ResumedAt: r.InstantOr0(), TimeoutAt: r.InstantOr0(), Closer: r.Text(), By: r.Text(), Reason: r.Text()}
	count := r.Int()
	if r.More() && p[9] != "" {
		var err error
		if out.Signals, err = packed(p[9], decodeSignal); err != nil {
			return suspend.Result{}, err
		}
	}
	if len(out.Signals) != count {
		r.Stop("%d signals, %d announced", len(out.Signals), count)
	}
	slices.SortFunc(out.Signals, func(a, b suspend.StoredSignal) int { return cmp.Compare(a.Order, b.Order) })
	return out, r.fail()
}
