package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Hold is one admission: an execution under an epoch.
type Hold struct {
	Execution flowfabric.ExecutionID
	Epoch     uint64
}

// String is how quotas write it: "<partition>.<execution>:<epoch>".
func (h Hold) String() string {
	return full(h.Execution) + ":" + strconv.FormatUint(h.Epoch, 10)
}

// ParseHold reads what a quota wrote.
func ParseHold(text string) (Hold, error) {
	who, number, _ := strings.Cut(text, ":")
	id, err := gatetext.ParseSpender(who)
	epoch, wrong := strconv.ParseUint(number, 10, 64)
	if err = errors.Join(err, wrong); err != nil {
		return Hold{}, fmt.Errorf("%w: hold %q: %w", flowfabric.ErrInvalidInput, clip(text), err)
	}
	return Hold{Execution: id, Epoch: epoch}, nil
}

// PutQuota makes a quota, or with expected (a revision) changes it (lua/admission/ff_put_quota.lua).
// denied.QuotaSpec, denied.QuotaConflict, denied.NoQuota.
func (e *Engine) PutQuota(ctx context.Context, q admission.Quota,
	expected uint64) (revision uint64, already bool, wake []Waiter, err error) {
	if time.Duration(q.Window)%time.Millisecond != 0 || time.Duration(q.Jitter)%time.Millisecond != 0 {
		return 0, false, nil, fmt.Errorf("ff_put_quota: %w: window and jitter are whole milliseconds", denied.QuotaSpec)
	}
	r, already, err := read[wire.PutQuotaReply](e.onGate(ctx, flowfabric.QuotaGate(q.Name), expected == 0,
		wire.PutQuota{Name: q.Name, Expected: int(expected), Scope: q.Scope, Rate: q.Rate,
			Window: time.Duration(q.Window), Cap: q.Cap, Jitter: time.Duration(q.Jitter)}))
	wake, err = waiters("ff_put_quota", r.Waiters, err)
	return uint64(r.Revision), already, wake, err
}

// RemoveQuota forgets a quota (lua/admission/ff_remove_quota.lua). Executions that have it as a gate wait until it is
// made again.
func (e *Engine) RemoveQuota(ctx context.Context, name string) (already bool, err error) {
	return removed(e.onGate(ctx, flowfabric.QuotaGate(name), false, wire.RemoveQuota{Name: name}))
}

// Admitted answers Admit. The first Count holds were admitted, now or before; Why, rate or cap, tells why not more, and
// Retry when to ask again. Suspects are holds that nobody has heard of for a while, as ParseHold reads them; see
// CheckHolds.
type Admitted = wire.AdmitReply

// Admit asks a quota to let up to 100 executions of a route start (lua/admission/ff_admit.lua), in order. ttl is how
// long a hold is good before it is suspect, 1 s … 1 h. With no hold it asks whether there is room for one; Why is ""
// if there is. denied.NoQuota.
func (e *Engine) Admit(ctx context.Context, name string, partition uint16, route uint64, ttl time.Duration,
	holds []Hold) (Admitted, error) {
	q := wire.Admit{Name: name, Partition: int(partition), Route: int(route), TTL: ttl,
		Holds: make([]string, len(holds))}
	for i, h := range holds {
		q.Holds[i] = h.String()
	}
	gate := flowfabric.QuotaGate(name)
	_, _, limit := gate.Limit() // which nobody makes: the first who asks it finds its partition unused
	r, _, err := read[wire.AdmitReply](e.onGate(ctx, gate, limit, q))
	return r, err
}

// Released is a hold that is no more. Ran: its execution was claimed; else the start did not happen either.
type Released struct {
	Quota string
	Hold  Hold
	Ran   bool
}

// ReleaseHolds tells quotas, all in one partition of quotas, of 1..100 holds that are no more
// (lua/admission/ff_settle_holds.lua). The waiters are to be woken with OpenRoutes. A quota that is gone holds nothing.
func (e *Engine) ReleaseHolds(ctx context.Context, items []Released) (released int, wake []Waiter, err error) {
	q := wire.SettleHolds{}
	for _, x := range items {
		verdict := HoldKilled
		if x.Ran {
			verdict = HoldGone
		}
		q.Holds = append(q.Holds, wire.SettleHoldsHold{Name: x.Quota, Hold: x.Hold.String(), Verdict: verdict})
	}
	return e.settleHolds(ctx, q)
}

// settleHolds is the call of both.
func (e *Engine) settleHolds(ctx context.Context, q wire.SettleHolds) (freed int, wake []Waiter, err error) {
	if len(q.Holds) == 0 {
		return 0, nil, nil
	}
	r, _, err := read[wire.SettleHoldsReply](e.sendTo(ctx, rootOf(e.quotas, q.Holds[0].Name), q))
	if errors.Is(err, denied.PartitionMissing) {
		return 0, nil, nil // no quota was ever made there, so none admitted anything
	}
	wake, err = waiters("ff_settle_holds", r.Waiters, err)
	return r.Freed, wake, err
}

// HoldState is what an execution's partition says of a hold.
type HoldState = string

// The states of a hold.
const (
	HoldGone   HoldState = "0"
	HoldHeld   HoldState = "1"
	HoldKilled HoldState = "2" // it never ran: its grant was returned, or was over and is taken back now
)

// CheckHolds asks the partition of 1..100 executions whether they are still held (lua/admission/ff_check_holds.lua).
func (e *Engine) CheckHolds(ctx context.Context, partition uint16, holds []Hold) ([]HoldState, error) {
	q := wire.CheckHolds{}
	for _, h := range holds {
		q.Holds = append(q.Holds, wire.CheckHoldsHold{ID: ids.UUID(h.Execution).String(),
			Epoch: strconv.FormatUint(h.Epoch, 10)})
	}
	r, _, err := ask[wire.CheckHoldsReply](ctx, e, partition, q)
	return r.Answers, err
}

// SettleHolds tells a quota what became of suspects (lua/admission/ff_settle_holds.lua): those that are held are good
// for ten minutes. The waiters are to be woken with OpenRoutes.
func (e *Engine) SettleHolds(ctx context.Context, name string, holds []string,
	states []HoldState) (freed int, wake []Waiter, err error) {
	q := wire.SettleHolds{}
	for i, h := range holds {
		q.Holds = append(q.Holds, wire.SettleHoldsHold{Name: name, Hold: h, Verdict: states[i]})
	}
	return e.settleHolds(ctx, q)
}

// ReadQuota reads a quota with at most so many holds (≤ 1,000) and newest audit entries (≤ 256)
// (lua/admission/ff_read_quota.lua).
func (e *Engine) ReadQuota(ctx context.Context, name string, holds, entries int) (admission.QuotaRecord, error) {
	gate := flowfabric.QuotaGate(name)
	r, _, err := read[wire.ReadQuotaReply](e.onGate(ctx, gate, false,
		wire.ReadQuota{Name: name, Holds: holds, Entries: entries}))
	if _, l, ok := gate.Limit(); ok && errors.Is(err, denied.NoQuota) {
		// no key was ever used there
		q := admission.QuotaRecord{Quota: admission.Quota{Name: name, Rate: l.Rate, Window: flowfabric.Millis(l.Per),
			Cap: l.Concurrency}}
		derived(&q)
		return q, nil
	}
	if err != nil {
		return admission.QuotaRecord{}, err
	}
	f := wire.Fields{M: r.Fields, R: &reader{}} // what is no number counts as 0
	q := admission.QuotaRecord{Started: r.Started, Held: r.Held, Suspect: r.Suspect, ForSlots: r.ForSlots,
		ForRate: r.ForRate, Revision: uint64(f.Number("up")), ChangedBy: f.M["by"], CreatedAt: f.Instant("ct")}
	q.Name, q.Scope, q.Rate, q.Cap = name, f.M["sc"], int(f.Number("rt")), int(f.Number("cp"))
	q.Window, q.Jitter = millis(f.Number("wn")), millis(f.Number("jt"))
	q.Audit, err = gatetext.Audit(name, r.Entries)
	for _, text := range r.Holds {
		hold, _, _ := strings.Cut(text, " ")
		q.Holds = append(q.Holds, hold)
	}
	derived(&q)
	return q, unread("ff_read_quota", err)
}

// derived sets what follows from the rest of a record. A hold that is none is shown as it is.
func derived(q *admission.QuotaRecord) {
	q.Waiting = q.ForSlots + q.ForRate
	if q.Cap > 0 {
		free := max(0, q.Cap-q.Held)
		q.Free = &free
	}
	for _, text := range q.Holds {
		slot := admission.Hold{Execution: text}
		if h, err := ParseHold(text); err == nil {
			slot = admission.Hold{Execution: h.Execution.String(), Epoch: h.Epoch}
		}
		q.Slots = append(q.Slots, slot)
	}
}

// millis is a number of milliseconds.
func millis(n int64) flowfabric.Millis { return flowfabric.Millis(time.Duration(n) * time.Millisecond) }

// QuotaNames lists all quotas by name.
func (e *Engine) QuotaNames(ctx context.Context) ([]string, error) {
	return e.names(ctx, e.quotas, "quotas")
}
