package gatetext

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestParseClosing(t *testing.T) {
	for why, want := range map[string]ClosedBy{
		"budget acme tokens 100 90": {Kind: ClosedByBudget, Gate: flowfabric.BudgetGate("acme"), Dimension: "tokens",
			Used: 100, Limit: 90},
		"budget acme tokens 30 90 70": {Kind: ClosedByBudget, Gate: flowfabric.BudgetGate("acme"), Dimension: "tokens",
			Used: 30, Limit: 90, Refused: 70},
		"budget acme tokens 30 90 x":  {},
		"quota api rate":              {Kind: ClosedByRate, Gate: flowfabric.QuotaGate("api")},
		"quota api cap":               {Kind: ClosedByCap, Gate: flowfabric.QuotaGate("api")},
		"budget_not_found acme":       {Kind: ClosedNoBudget, Gate: flowfabric.BudgetGate("acme")},
		"quota_policy_not_found api":  {Kind: ClosedNoQuota, Gate: flowfabric.QuotaGate("api")},
		"unavailable budget acme":     {Kind: ClosedUnavailable, Gate: flowfabric.BudgetGate("acme")},
		"unavailable quota api":       {Kind: ClosedUnavailable, Gate: flowfabric.QuotaGate("api")},
		"unavailable quota @2.0.0@a":  {Kind: ClosedUnavailable, Gate: flowfabric.QuotaGate("@2.0.0@a")},
		"unavailable route":           {Kind: ClosedUnavailable},
		"unavailable quota api cap":   {},
		"unavailable api":             {},
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
