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
	return spenderText(h.Execution) + ":" + strconv.FormatUint(h.Epoch, 10)
}

// ParseHold reads what a quota wrote.
func ParseHold(text string) (Hold, error) {
	who, number, _ := strings.Cut(text, ":")
	id, err := parseSpender(who)
	epoch, wrong := strconv.ParseUint(number, 10, 64)
	if err = errors.Join(err, wrong); err != nil {
		return Hold{}, fmt.Errorf("%w: hold %q: %w", flowfabric.ErrInvalidInput, clip(text), err)
	}
	return Hold{Execution: id, Epoch: epoch}, nil
}

// spenderText is how budgets and quotas write an execution: "<partition>.<uuid>".
func spenderText(id flowfabric.ExecutionID) string {
	return strconv.Itoa(int(id.Partition())) + "." + id.UUID().String()
}

func parseSpender(text string) (flowfabric.ExecutionID, error) {
	where, name, _ := strings.Cut(text, ".")
	partition, bad := strconv.ParseUint(where, 10, 16)
	id, err := ids.ParseUUID(name)
	return flowfabric.MakeExecutionID(uint16(partition), id), errors.Join(bad, err)
}

// PutQuota makes a quota, or with expected (a revision) changes it (lua/admission/ff_put_quota.lua).
// denied.QuotaSpec, denied.QuotaConflict, denied.NoQuota.
func (e *Engine) PutQuota(ctx context.Context, q admission.Quota, expected uint64,
	by string) (revision uint64, already bool, wake []Waiter, err error) {
	if q.Window%time.Millisecond != 0 || q.Jitter%time.Millisecond != 0 {
		return 0, false, nil, fmt.Errorf("%s: %w: window and jitter are whole milliseconds", fnPutQuota.name,
			denied.QuotaSpec)
	}
	r, err := e.make(ctx, fnPutQuota, e.quotas, q.Name, "quota_policy_not_found",
		[]string{protocol, q.Name, revisionText(expected), q.Scope, strconv.Itoa(q.Rate),
			strconv.FormatInt(q.Window.Milliseconds(), 10), strconv.Itoa(q.Cap),
			strconv.FormatInt(q.Jitter.Milliseconds(), 10), by})
	if err != nil {
		return 0, false, nil, err
	}
	revision = r.unsigned()
	wake = waiters(r)
	return revision, r.Already, wake, r.fail()
}

func (e *Engine) onQuota(ctx context.Context, f function, name string, args ...string) (*reader, error) {
	r, err := e.run(ctx, e.client, f, []string{rootOf(e.quotas, name)}, append([]string{protocol}, args...))
	if !errors.Is(err, denied.PartitionMissing) {
		return r, err
	}
	if _, _, limit := flowfabric.QuotaGate(name).Limit(); !limit || f.name != fnAdmit.name {
		return nil, denied.New(f.name, "quota_policy_not_found", name)
	}
	root := rootOf(e.quotas, name) // nobody makes a limit: the first who asks it finds its partition unused
	if _, err := e.callKeys(ctx, fnBoot, []string{root}, protocol); err != nil {
		return nil, err
	}
	return e.run(ctx, e.client, f, []string{root}, append([]string{protocol}, args...))
}

// RemoveQuota forgets a quota (lua/admission/ff_remove_quota.lua). Executions that have it as a gate wait until it is
// made again.
func (e *Engine) RemoveQuota(ctx context.Context, name string) (already bool, err error) {
	r, err := e.onQuota(ctx, fnRemoveQuota, name, name)
	if errors.Is(err, denied.NoQuota) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return r.Already, nil
}

// Admitted answers Admit.
type Admitted struct {
	Count    int           // the first so many holds were admitted, now or before
	Why      string        // why not more: rate or cap; "" = all
	Retry    time.Duration // when to ask again
	Suspects []string      // holds that nobody has heard of for a while, as ParseHold reads them; see CheckHolds
}

// Admit asks a quota to let up to 100 executions of a route start (lua/admission/ff_admit.lua), in order. ttl is how
// long a hold is good before it is suspect, 1 s … 1 h. With no hold it asks whether there is room for one; Why is ""
// if there is. denied.NoQuota.
func (e *Engine) Admit(ctx context.Context, name string, partition uint16, route uint64, ttl time.Duration,
	holds []Hold) (Admitted, error) {
	args := []string{name, strconv.Itoa(int(partition)), strconv.FormatUint(route, 10),
		strconv.FormatInt(ttl.Milliseconds(), 10), strconv.Itoa(len(holds))}
	for _, h := range holds {
		args = append(args, h.String())
	}
	r, err := e.onQuota(ctx, fnAdmit, name, args...)
	if err != nil {
		return Admitted{}, err
	}
	out := Admitted{Count: r.Int(), Why: r.Text(), Retry: r.Millis()}
	for range r.Count(1) {
		out.Suspects = append(out.Suspects, r.Text())
	}
	return out, r.fail()
}

// Released is a hold that is no more. Ran: its execution was claimed; else the start did not happen either.
type Released struct {
	Quota string
	Hold  Hold
	Ran   bool
}

// ReleaseHolds tells quotas, all in one partition of quotas, of 1..100 holds that are no more
// (lua/admission/ff_release_holds.lua). The waiters are to be woken with OpenRoutes. A quota that is gone holds
// nothing.
func (e *Engine) ReleaseHolds(ctx context.Context, items []Released) (released int, wake []Waiter, err error) {
	if len(items) == 0 {
		return 0, nil, nil
	}
	args := []string{protocol, strconv.Itoa(len(items))}
	for _, x := range items {
		args = append(args, x.Quota, x.Hold.String(), bit(x.Ran))
	}
	r, err := e.run(ctx, e.client, fnReleaseHolds, []string{rootOf(e.quotas, items[0].Quota)}, args)
	if errors.Is(err, denied.PartitionMissing) {
		return 0, nil, nil // no quota was ever made there, so none admitted anything
	}
	if err != nil {
		return 0, nil, err
	}
	released = r.Int()
	wake = waiters(r)
	return released, wake, r.fail()
}

// HoldState is what an execution's partition says of a hold.
type HoldState string

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
		q.Holds = append(q.Holds, wire.CheckHoldsHold{ID: h.Execution.UUID().String(),
			Epoch: strconv.FormatUint(h.Epoch, 10)})
	}
	r, _, err := ask[wire.CheckHoldsReply](ctx, e, partition, q)
	var out []HoldState
	for _, state := range r.Answers {
		out = append(out, HoldState(state))
	}
	return out, err
}

// SettleHolds tells a quota what became of suspects (lua/admission/ff_settle_holds.lua); those that are held are good
// for ttl.
func (e *Engine) SettleHolds(ctx context.Context, name string, ttl time.Duration, holds []string,
	states []HoldState) (freed int, wake []Waiter, err error) {
	args := []string{name, strconv.FormatInt(ttl.Milliseconds(), 10), strconv.Itoa(len(holds))}
	for i, h := range holds {
		args = append(args, h, string(states[i]))
	}
	r, err := e.onQuota(ctx, fnSettleHolds, name, args...)
	if err != nil {
		return 0, nil, err
	}
	freed = r.Int()
	wake = waiters(r)
	return freed, wake, r.fail()
}

// ReadQuota reads a quota with at most so many holds (≤ 1,000) and newest audit entries (≤ 256)
// (lua/admission/ff_read_quota.lua).
func (e *Engine) ReadQuota(ctx context.Context, name string, holds, entries int) (admission.QuotaRecord, error) {
	r, err := e.onQuota(ctx, fnReadQuota, name, name, strconv.Itoa(holds), strconv.Itoa(entries))
	if _, l, ok := flowfabric.QuotaGate(name).Limit(); ok && errors.Is(err, denied.NoQuota) {
		// no key was ever used there
		return admission.QuotaRecord{Quota: admission.Quota{Name: name, Rate: l.Rate, Window: l.Per,
			Cap: l.Concurrency}}, nil
	}
	if err != nil {
		return admission.QuotaRecord{}, err
	}
	r.Instant()
	q := admission.QuotaRecord{Started: r.Int(), Held: r.Int(), Suspect: r.Int(),
		ForSlots: r.Int(), ForRate: r.Int()}
	v := r.Pairs()
	number := func(field string) int64 { n, _ := strconv.ParseInt(v[field], 10, 64); return n }
	q.Name, q.Scope, q.Rate, q.Cap = name, v["sc"], int(number("rt")), int(number("cp"))
	q.Window, q.Jitter = time.Duration(number("wn"))*time.Millisecond, time.Duration(number("jt"))*time.Millisecond
	q.Revision, q.ChangedBy = uint64(number("up")), v["by"]
	if at := number("ct"); at > 0 { // a limit of a key is made by nobody
		q.CreatedAt = time.UnixMilli(at)
	}
	q.Audit = auditLog(r)
	for range r.Count(1) {
		hold, _, _ := strings.Cut(r.Text(), " ")
		q.Holds = append(q.Holds, hold)
	}
	return q, r.fail()
}

// QuotaNames lists all quotas by name (lua/admission/ff_list_quotas.lua).
func (e *Engine) QuotaNames(ctx context.Context) ([]string, error) {
	return e.names(ctx, fnListQuotas, e.quotas)
}
