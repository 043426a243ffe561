package engine

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestParseClosing(t *testing.T) {
	for why, want := range map[string]ClosedBy{
		"budget acme tokens 100 90":   {Kind: ClosedByBudget, Gate: flowfabric.BudgetGate("acme"), Dimension: "tokens", Used: 100, Limit: 90},
		"quota api rate":              {Kind: ClosedByRate, Gate: flowfabric.QuotaGate("api")},
		"quota api cap":               {Kind: ClosedByCap, Gate: flowfabric.QuotaGate("api")},
		"budget_not_found acme":       {Kind: ClosedNoBudget, Gate: flowfabric.BudgetGate("acme")},
		"quota_policy_not_found api":  {Kind: ClosedNoQuota, Gate: flowfabric.QuotaGate("api")},
		"":                            {},
		"quota api":                   {},
		"quota api luck":              {},
		"budget acme tokens many 90":  {},
		"budget acme Tokens 100 90":   {},
		"budget ../acme tokens 1 1":   {},
		"budget_not_found acme extra": {},
	} {
		if got := ParseClosing(why); got != want {
			t.Errorf("%q: %+v, want %+v", why, got, want)
		}
	}
}
