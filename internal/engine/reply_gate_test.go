package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
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

// gateCallers call what concerns gates and those who ask them.
var gateCallers = []caller{
	{"ff_put_gate", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.PutGate(ctx,
			admission.Gate{Name: "b", Limits: map[string]admission.Limit{"tokens": {Hard: 1}}}, 0)
		return err
	}},
	{"ff_spend", func(ctx context.Context, e *Engine) error {
		_, err := e.ReportUsage(ctx, admission.Usage{Gate: "b", Key: "k", Amounts: map[string]int64{"tokens": 1}})
		return err
	}},
	{"ff_change_usage", func(ctx context.Context, e *Engine) error {
		_, _, err := e.AdjustUsage(ctx, "b", map[string]int64{"tokens": -1})
		return err
	}},
	{"ff_change_usage", func(ctx context.Context, e *Engine) error {
		_, _, _, err := e.ResetUsage(ctx, "b", false)
		return err
	}},
	{"ff_reserve", func(ctx context.Context, e *Engine) error {
		_, _, err := e.Reserve(ctx, Reservation{Gate: "acme", Execution: sampleID, Epoch: 5, Number: 1,
			Amounts: map[string]int64{"tokens": 5}})
		return err
	}},
	{"ff_acquire", func(ctx context.Context, e *Engine) error {
		_, err := e.Acquire(ctx, ServiceCall{Service: "openai/gpt-5", Number: 1, Namespace: "acme",
			Fence: flowfabric.Fence{Execution: sampleID, Epoch: 5}})
		return err
	}},
	{"ff_settle_gates", func(ctx context.Context, e *Engine) error {
		_, _, err := e.SettleGates(ctx, []News{{Gate: "b", Execution: sampleID, What: NewsAsked}})
		return err
	}},
	{"ff_admit", func(ctx context.Context, e *Engine) error {
		_, err := e.Admit(ctx, "q", Waiter{Partition: 3, Route: 4}, 10*time.Second, false,
			[]Hold{{Execution: sampleID, Epoch: 7}})
		return err
	}},
	{"ff_read_gate", func(ctx context.Context, e *Engine) error {
		_, err := e.ReadGate(ctx, "b", 1, 1, 1)
		return err
	}},
	{"ff_claim_granted", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ClaimGranted(ctx, 3, "w~1", 1, []Grant{sampleGrant},
			[]wire.ClaimGrantedRoute{{Route: 4, Meters: "q=h"}})
		return err
	}},
	{"ff_open_route", func(ctx context.Context, e *Engine) error {
		_, err := e.OpenRoutes(ctx, 3, []uint64{4})
		return err
	}},
	{"ff_check_holds", func(ctx context.Context, e *Engine) error {
		_, err := e.CheckHolds(ctx, 3, []Hold{{Execution: sampleID, Epoch: 7}})
		return err
	}},
	{"ff_read_outbox", func(ctx context.Context, e *Engine) error {
		_, _, err := e.ReadOutbox(ctx, 3, "")
		return err
	}},
	{"ff_trim_outbox", func(ctx context.Context, e *Engine) error {
		_, err := e.TrimOutbox(ctx, 3, []string{"1-1"})
		return err
	}},
	{"ff_read_gates", func(ctx context.Context, e *Engine) error { _, err := e.ReadGates(ctx, 3); return err }},
}

var goodGates = map[string][]string{
	"ff_put_gate": {"OK", "2", "1", "3 4"},
	"ff_spend": {"OK", "SOFT_BREACH", "1", "0", "reject", "60000", "2", "org", "1",
		"tokens soft 90 80 1", "1", "3 4"},
	"ff_reserve": {"OK", "HARD_BREACH", "0", "0", "block", "60000", "2", "org", "1", "tokens hard 90 80 0", "1", "3 4",
		"stokens=5", "tokens=7"},
	"ff_acquire":      {"OK", "0", "1", "250", "12", "40", "0"},
	"ff_change_usage": {"OK", "3", "60000", "1", "tokens", "5", "1", "3 4"},
	"ff_settle_gates": {"OK", "1", "+", "1", "3 4", "1", "acme", sampleSpender + ":5.1", "org"},
	"ff_admit":        {"OK", "0", "amount", "250", "ah", "org", "tokens", "100", "100", "70", "1", sampleHold},
	"ff_read_gate": {"OK", "1700000000000", "1", "2", "1", "0", "3", "4", "5", "h:tokens", "100", "s:tokens", "80",
		"ct", "1700000000000", "cp", "5", "up", "1", "1", "tokens", "5", "1",
		"1700000000000\x1fcreated\x1fme\x1fdetail",
		"1", sampleSpender + " 1700000000000 0 1 tokens=5 tokens=2", "1", sampleHold + " 1700000000000",
		"1", sampleSpender + " 2 1700000000000 tokens=7", "1", "24 tokens 5", "0", "0", "0", ""},
	"ff_claim_granted": {"OK", "1", "+", "1",
		ids.UUID(sampleID).String() + " 0 1700000000000 initial 4 7 1700000000000 1700000000001 0 0 1000 0 3 1 1 1 1",
		"in", "1", "a.b", "c", "1", "s", "v", sampleResume},
	"ff_open_route":  {"OK", "1", "1"},
	"ff_check_holds": {"OK", "1", "held"},
	"ff_read_outbox": {"OK", "1", "1", "1-1", "2", "g", "gpu " + sampleUUID + " gone 7", "g",
		"acme " + sampleUUID + " failed 7"},
	"ff_trim_outbox": {"OK", "1", "0"},
	"ff_read_gates": {"OK", "1700000000000", "2", "1", "n\x1fdefault", "a,b 1700000000000 me", "1", "4",
		"default\x1fdefault\x1fk\x1fgpu\x1fb", "1700000000000", "gate b cap", "3"},
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
			_, _, _, err := e.PutGate(ctx, admission.Gate{Name: "b", Reset: flowfabric.Millis(time.Microsecond)}, 0)
			return err
		}(), denied.GateSpec, "reset"},
		"a window of half a ms": {func() error {
			_, _, _, err := e.PutGate(ctx, admission.Gate{Name: "q", Window: flowfabric.Millis(time.Microsecond)}, 0)
			return err
		}(), denied.GateSpec, "window"},
		"no news": {func() error { _, _, err := e.SettleGates(ctx, nil); return err }(), nil, ""},
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

// A partition of gates that was never used is one without the gate.
func TestGateMissing(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { return envelope(0, "partition_missing", "ff:{g:1}") })
	ctx := t.Context()
	if _, err := e.ReadGate(ctx, "b", 0, 0, 0); !errors.Is(err, denied.NoGate) {
		t.Error(err)
	}
	if already, err := e.RemoveGate(ctx, "b"); err != nil || !already {
		t.Error(already, err)
	}
	if _, err := e.Admit(ctx, "b", Waiter{Partition: 0, Route: 1}, time.Second, true, nil); !errors.Is(err,
		denied.NoGate) {
		t.Error(err)
	}
	done, wake, err := e.SettleGates(ctx, []News{{Gate: "b", Execution: sampleID, What: NewsAsked}})
	if err != nil || !slices.Equal(done, []bool{false}) || len(wake) > 0 {
		t.Error(done, wake, err)
	}
}
