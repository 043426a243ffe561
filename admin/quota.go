package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Bounds of quotas.
const (
	maxStarts = 1_000_000 // in a window, and at once
	maxWindow = 30 * 24 * time.Hour
	maxJitter = time.Minute
	holdsRead = 1000
)

// PutQuota makes a quota, or changes the one of its name to what q says: what it admitted keeps its slots, also those
// above a lower cap. Work that waits for it is looked at anew. flowfabric.IfNew, IfRevision and repeated calls: see
// [Admin.PutBudget].
//
// Errors: flowfabric.ErrInvalidInput for a rate, window, cap or jitter that cannot be, with the field, and for the
// name, before any call; ErrConflict, ErrNotFound and client.ErrClosed as PutBudget.
func (a *Admin) PutQuota(ctx context.Context, q admission.Quota, opts ...flowfabric.ChangeOption) error {
	acts, expected := link.ChangeOf(opts)
	act, err := a.gating(acts, valid.GateName("quota", q.Name), validateQuota(q))
	if err != nil {
		return about("put", "quota", q.Name, err)
	}
	return synced(expected, func() (uint64, error) {
		r, err := a.GetQuota(ctx, q.Name)
		return r.Revision, err
	}, func(revision uint64) error {
		_, _, wake, err := a.store.PutQuota(act.Noted(ctx, putting(revision), "quota", q.Name), q, revision)
		a.wake(ctx, "change of "+q.Name, wake)
		return about(putting(revision), "quota", q.Name, conflict(revision, err))
	})
}

// validateQuota checks everything but the name.
func validateQuota(q admission.Quota) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{denied.QuotaSpec}, a...)...)
	}
	switch {
	case len(q.Scope) > maxScope:
		return bad("scope has %d bytes, want at most %d", len(q.Scope), maxScope)
	case q.Rate < 0 || q.Rate > maxStarts:
		return bad("rate %d, want 0..%d starts in a window", q.Rate, maxStarts)
	case q.Window < 0 || time.Duration(q.Window) > maxWindow || time.Duration(q.Window)%time.Millisecond != 0:
		return bad("window %s, want whole milliseconds, at most 30 days", q.Window)
	case q.Rate > 0 && q.Window == 0:
		return bad("rate %d without a window", q.Rate)
	case q.Cap < 0 || q.Cap > maxStarts:
		return bad("cap %d, want 0..%d at once", q.Cap, maxStarts)
	case q.Jitter < 0 || time.Duration(q.Jitter) > maxJitter || time.Duration(q.Jitter)%time.Millisecond != 0:
		return bad("jitter %s, want whole milliseconds, at most 60s", q.Jitter)
	}
	return nil
}

// RemoveQuota forgets a quota and what it admitted. Executions that have it as a gate wait, and go on within 30 s
// after one of that name is made again. What it is attached to stays: see [Admin.DetachGates]. removed is false when
// there was none.
func (a *Admin) RemoveQuota(ctx context.Context, name string, opts ...flowfabric.ActOption) (removed bool, err error) {
	already := true
	act, err := a.gating(opts, valid.GateName("quota", name))
	if err == nil {
		a.conn.Gates.Forget(flowfabric.QuotaGate(name))
		already, err = a.store.RemoveQuota(act.Noted(ctx, "remove", "quota", name), name)
	}
	return !already && err == nil, about("remove", "quota", name, err)
}

// GetQuota reads a quota: its settings, what started in its window, who holds its slots (up to 1,000), and its newest
// 256 audit entries. Errors: flowfabric.ErrNotFound; ErrInvalidInput for a name that none can have.
func (a *Admin) GetQuota(ctx context.Context, name string) (admission.QuotaRecord, error) {
	_, err := a.gating(nil, valid.GateName("quota", name))
	var record admission.QuotaRecord
	if err == nil {
		record, err = a.store.ReadQuota(ctx, name, holdsRead, auditEntries)
	}
	return record, about("get", "quota", name, err)
}

// GetLimit reads what a limit of a key counts now: what started in its window, who holds its slots (up to 1,000), and
// how many queues wait. A key that nobody uses has none of it. Errors: flowfabric.ErrInvalidInput as
// [flowfabric.LimitKey] says.
func (a *Admin) GetLimit(ctx context.Context, key string, limit flowfabric.Limit) (admission.QuotaRecord, error) {
	var said flowfabric.Start
	err := option.Apply(&said, 0, flowfabric.LimitKey(key, limit))
	gates, wrong := valid.Gates(said.Gates())
	err = errors.Join(err, wrong)
	_, err = a.gating(nil, err)
	var record admission.QuotaRecord
	if err == nil {
		record, err = a.store.ReadQuota(ctx, gates[0].Name(), holdsRead, 0)
	}
	return record, about("get", "limit", key, err)
}

// Quotas lists all quotas by name, as they are, without audit entries and holds. Those that could not be read are
// left out, and the error joins why. Errors: flowfabric.ErrTransport; client.ErrClosed.
func (a *Admin) Quotas(ctx context.Context) ([]admission.QuotaRecord, error) {
	if a.closed() {
		return nil, fmt.Errorf("list quotas: %w", client.ErrClosed)
	}
	names, err := a.store.QuotaNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("list quotas: %w", err)
	}
	return readAll(names, func(name string) (admission.QuotaRecord, error) {
		record, err := a.store.ReadQuota(ctx, name, 0, 0)
		return record, about("list", "quota", name, err)
	}, denied.NoQuota)
}
