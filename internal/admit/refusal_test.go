package admit

import (
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
)

// What a worker writes when a gate refuses is what readers understand: the gate, and that the work waits for it.
func TestRefusalIsRead(t *testing.T) {
	limit := (flowfabric.Start{Limits: []flowfabric.KeyLimit{{Key: "user:7 (a) %", Concurrency: 2, Rate: 10,
		Per: flowfabric.Millis(time.Second)}}}).Gates()[0]
	waiting := codes.Shown(codes.WaitingFirst)
	for _, tc := range []struct {
		refusal Refusal
		state   flowfabric.PublicState
		text    string
	}{
		{Refusal{Kind: RefusedCap, Gate: limit}, flowfabric.WaitingQuota,
			"limit user:7 (a) % (2 at once, 10 in 1s) cap"},
		{Refusal{Kind: RefusedRate, Gate: limit}, flowfabric.WaitingQuota,
			"limit user:7 (a) % (2 at once, 10 in 1s) rate"},
		{Refusal{Kind: RefusedCap, Gate: flowfabric.QuotaGate("api")}, flowfabric.WaitingQuota, "quota api cap"},
		{Refusal{Kind: RefusedRate, Gate: flowfabric.QuotaGate("api")}, flowfabric.WaitingQuota, "quota api rate"},
		{Refusal{Kind: RefusedNotFound, Gate: flowfabric.QuotaGate("api")}, flowfabric.WaitingQuota,
			"quota_policy_not_found api"},
		{Refusal{Kind: RefusedNotFound, Gate: flowfabric.BudgetGate("acme")}, flowfabric.WaitingBudget,
			"budget_not_found acme"},
		{Refusal{Kind: RefusedBudget, Gate: flowfabric.BudgetGate("acme"), Dimension: "tokens", Used: 30, Limit: 100,
			Refused: 71}, flowfabric.WaitingBudget, "budget acme tokens 30 100 71"},
		{Refusal{Kind: RefusedError, Gate: flowfabric.BudgetGate("acme")}, flowfabric.WaitingBudget,
			"unavailable budget acme"},
		{Refusal{Kind: RefusedError, Gate: flowfabric.QuotaGate("api")}, flowfabric.WaitingQuota,
			"unavailable quota api"},
		{Refusal{Kind: RefusedError, Gate: limit}, flowfabric.WaitingQuota,
			"limit user:7 (a) % (2 at once, 10 in 1s) unavailable"},
		{Refusal{Kind: RefusedUnknown}, flowfabric.WaitingQuota, "budgets and quotas unavailable"},
	} {
		text := tc.refusal.Text()
		by := gatetext.ParseClosing(text)
		if by.Gate != tc.refusal.Gate || by.Dimension != tc.refusal.Dimension || by.Refused != tc.refusal.Refused {
			t.Errorf("%q is read as %+v", text, by)
		}
		if got := engine.Gated(waiting, text).Public; got != tc.state {
			t.Errorf("%q: %s, want %s", text, got, tc.state)
		}
		if got := gatetext.ClosingText(text); got != tc.text {
			t.Errorf("%q for people: %q, want %q", text, got, tc.text)
		}
	}
}
