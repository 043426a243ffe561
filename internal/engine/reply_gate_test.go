package engine

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

func init() {
	callers = append(callers, gateCallers...)
	maps.Copy(good, goodGates)
}

var (
	sampleGrant   = Grant{Execution: sampleID, Epoch: 7, Route: 4}
	sampleHold    = ids.UUID(sampleID).String() + ":7"
	sampleSpender = "3." + sampleUUID
)

// gateCallers call what concerns budgets, quotas and those who ask them.
var gateCallers = []caller{
	{"ff_put_budget", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.PutBudget(ctx,
			admission.Budget{Name: "b", Limits: map[string]admission.Limit{"tokens": {Hard: 1}}}, 0)
		return err
	}},
	{"ff_report_usage", func(ctx context.Context, e *Engine) error {
		_, err := e.ReportUsage(ctx, admission.Usage{Budget: "b", Key: "k", Amounts: map[string]int64{"tokens": 1}})
		return err
	}},
	{"ff_adjust_budget", func(ctx context.Context, e *Engine) error {
		_, _, err := e.AdjustBudget(ctx, "b", map[string]int64{"tokens": -1})
		return err
	}},
	{"ff_reset_budget", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.ResetBudget(ctx, "b", false)
		return err
	}},
	{"ff_release_usage", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ReleaseUsage(ctx, []Refund{{Budget: "b", Execution: sampleID, Outcome: RefundAsked}})
		return err
	}},
	{"ff_check_budgets", func(ctx context.Context, e *Engine) error {
		_, err := e.CheckBudgets(ctx, 3, 4, []string{"b"})
		return err
	}},
	{"ff_read_budget", func(ctx context.Context, e *Engine) error {
		_,
			err := e.ReadBudget(ctx, "b", 1, 1)
		return err
	}},
	{"ff_put_quota", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.PutQuota(ctx, admission.Quota{Name: "q", Cap: 1}, 0)
		return err
	}},
	{"ff_admit", func(ctx context.Context, e *Engine) error {
		_, err := e.Admit(ctx, "q", 3, 4, 10*time.Second, []Hold{{Execution: sampleID, Epoch: 7}})
		return err
	}},
	{"ff_settle_holds", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ReleaseHolds(ctx, []Released{{Quota: "q", Hold: Hold{Execution: sampleID, Epoch: 7}, Ran: true}})
		return err
	}},
	{"ff_settle_holds", func(ctx context.Context, e *Engine) error {
		_, _, err := e.SettleHolds(ctx, "q", []string{sampleHold}, []HoldState{HoldHeld})
		return err
	}},
	{"ff_read_quota", func(ctx context.Context, e *Engine) error { _, err := e.ReadQuota(ctx, "q", 1, 1); return err }},
	{"ff_claim_granted", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ClaimGranted(ctx, 3, "w~1", 1, []Grant{sampleGrant})
		return err
	}},
	{"ff_open_route", func(ctx context.Context, e *Engine) error {
		_,
			err := e.OpenRoutes(ctx, 3, []uint64{4})
		return err
	}},
	{"ff_check_holds", func(ctx context.Context, e *Engine) error {
		_, err := e.CheckHolds(ctx, 3, []Hold{{Execution: sampleID, Epoch: 7}})
		return err
	}},
	{"ff_read_outbox", func(ctx context.Context, e *Engine) error {
		_, _,
			err := e.ReadOutbox(ctx, 3, "")
		return err
	}},
	{"ff_trim_outbox", func(ctx context.Context, e *Engine) error {
		_, err := e.TrimOutbox(ctx, 3, []string{"1-1"})
		return err
	}},
	{"ff_read_gates", func(ctx context.Context, e *Engine) error { _, err := e.ReadGates(ctx, 3); return err }},
}

var goodGates = map[string][]string{
	"ff_put_budget":    {"OK", "2", "1", "3 4"},
	"ff_report_usage":  {"OK", "SOFT_BREACH", "1", "0", "reject", "60000", "2", "1", "tokens soft 90 80 1"},
	"ff_adjust_budget": {"OK", "1", "tokens", "5", "1", "3 4"},
	"ff_reset_budget":  {"OK", "3", "60000", "1", "3 4"},
	"ff_release_usage": {"OK", "1", "+", "1", "3 4"},
	"ff_check_budgets": {"OK", "1", "!tokens 100 100 60000 70 30000 0"},
	"ff_read_budget": {"OK", "1700000000000", "2", "4", "h:tokens", "100", "s:tokens", "80", "ct", "1700000000000",
		"up", "1", "1", "tokens", "5", "1", "1700000000000\x1fcreated\x1fme\x1fdetail", "1",
		sampleSpender + " 1700000000000 0 1 tokens=5"},
	"ff_put_quota":    {"OK", "2", "1", "3 4"},
	"ff_admit":        {"OK", "0", "cap", "250", "1", sampleHold},
	"ff_settle_holds": {"OK", "1", "1", "3 4"},
	"ff_read_quota": {"OK", "1700000000000", "1", "2", "0", "3", "4", "2", "cp", "5", "up", "1", "1",
		"1700000000000\x1fcreated\x1fme\x1fdetail", "1", sampleHold + " 1700000000000"},
	"ff_claim_granted": {"OK", "1", "+", "1",
		ids.UUID(sampleID).String() + " 0 1700000000000 initial 4 7 1700000000000 1700000000001 0 0 1000 0 3 1 1 1 1",
		"in", "1", "a.b", "c", "1", "s", "v", sampleResume},
	"ff_open_route":  {"OK", "1", "1"},
	"ff_check_holds": {"OK", "1", "1"},
	"ff_read_outbox": {"OK", "1", "1", "1-1", "2", "q", "quota " + sampleUUID + " 7 1", "b",
		"budget " + sampleUUID + " failed 7"},
	"ff_trim_outbox": {"OK", "1", "0"},
	"ff_read_gates": {"OK", "1700000000000", "2", "1", "n\x1fdefault", "b:a,q:b 1700000000000 me", "1", "4",
		"default\x1fdefault\x1fk\x1fgpu\x1fq:b", "1700000000000", "quota b cap", "3"},
}

// What is wrong before anything is sent is named, and no call is made.
func TestGateInput(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { t.Error("a call was made"); return envelope(1, "OK") })
	ctx := t.Context()
	for what, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"a reset of half a ms": {func() error {
			_, _, _, err := e.PutBudget(ctx, admission.Budget{Name: "b", Reset: flowfabric.Millis(time.Microsecond)}, 0)
			return err
		}(), denied.BudgetSpec, "reset"},
		"a window of half a ms": {func() error {
			_, _, _, err := e.PutQuota(ctx, admission.Quota{Name: "q", Window: flowfabric.Millis(time.Microsecond)}, 0)
			return err
		}(), denied.QuotaSpec, "window"},
		"no refunds": {func() error { _, _, err := e.ReleaseUsage(ctx, nil); return err }(), nil, ""},
		"no holds":   {func() error { _, _, err := e.ReleaseHolds(ctx, nil); return err }(), nil, ""},
		"no budgets": {func() error { _, err := e.CheckBudgets(ctx, 0, 1, nil); return err }(), nil, ""},
		"a partition too far": {func() error { _, err := e.OpenRoutes(ctx, 60000, []uint64{1}); return err }(),
			flowfabric.ErrInvalidInput, "partition"},
		"an outbox too far away": {func() error { _, _, err := e.ReadOutbox(ctx, 60000, ""); return err }(),
			flowfabric.ErrInvalidInput, "partition"},
	} {
		if !errors.Is(c.err, c.want) || c.want == nil && c.err != nil ||
			c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}

// A partition of budgets or quotas that was never used is one without the budget or quota.
func TestGateMissing(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { return envelope(0, "partition_missing", "ff:{b:1}") })
	ctx := t.Context()
	if _, err := e.ReadBudget(ctx, "b", 0, 0); !errors.Is(err, denied.NoBudget) {
		t.Error(err)
	}
	if _, err := e.ReadQuota(ctx, "q", 0, 0); !errors.Is(err, denied.NoQuota) {
		t.Error(err)
	}
	if already, err := e.RemoveBudget(ctx, "b"); err != nil || !already {
		t.Error(already, err)
	}
	if already, err := e.RemoveQuota(ctx, "q"); err != nil || !already {
		t.Error(already, err)
	}
	if rooms, err := e.CheckBudgets(ctx, 0, 1, []string{"b"}); err != nil || !errors.Is(rooms[0].Err, denied.NoBudget) {
		t.Error(rooms, err)
	}
}
