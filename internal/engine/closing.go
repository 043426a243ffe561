package engine

import (
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// ClosedBy is why a gate closed a route, as [Closing] and [Facts] tell it in one line.
type ClosedBy struct {
	Kind ClosingKind
	Gate flowfabric.Gate // "" with ClosedOtherwise
	// Of an exhausted budget.
	Dimension   string
	Used, Limit int64
}

// ClosingKind is what a gate said.
type ClosingKind string

// The kinds.
const (
	ClosedByBudget  ClosingKind = "budget"                 // a dimension is at its hard limit, or above
	ClosedByRate    ClosingKind = "rate"                   // the window of a quota is full
	ClosedByCap     ClosingKind = "cap"                    // all slots of a quota are taken
	ClosedNoBudget  ClosingKind = "budget_not_found"       // no budget has this name
	ClosedNoQuota   ClosingKind = "quota_policy_not_found" // no quota has this name
	ClosedOtherwise ClosingKind = ""                       // the line is none of those
)

// ParseClosing reads why a route is closed: "budget <name> <dimension> <used> <limit>", "quota <name> rate", "quota <name> cap",
// "budget_not_found <name>" or "quota_policy_not_found <name>".
func ParseClosing(why string) ClosedBy {
	words := strings.Split(why, " ")
	if len(words) < 2 || !gateName(words[1]) {
		return ClosedBy{}
	}
	name := words[1]
	switch {
	case words[0] == "budget" && len(words) == 5:
		used, err := strconv.ParseInt(words[3], 10, 64)
		limit, wrong := strconv.ParseInt(words[4], 10, 64)
		if err == nil && wrong == nil && valid.Dimension("dimension", words[2]) == nil {
			return ClosedBy{Kind: ClosedByBudget, Gate: flowfabric.BudgetGate(name), Dimension: words[2], Used: used, Limit: limit}
		}
	case words[0] == "quota" && len(words) == 3 && (words[2] == "rate" || words[2] == "cap"):
		return ClosedBy{Kind: ClosingKind(words[2]), Gate: flowfabric.QuotaGate(name)}
	case words[0] == string(ClosedNoBudget) && len(words) == 2:
		return ClosedBy{Kind: ClosedNoBudget, Gate: flowfabric.BudgetGate(name)}
	case words[0] == string(ClosedNoQuota) && len(words) == 2:
		return ClosedBy{Kind: ClosedNoQuota, Gate: flowfabric.QuotaGate(name)}
	}
	return ClosedBy{}
}

func gateName(name string) bool {
	_, _, limit := flowfabric.QuotaGate(name).Limit()
	return limit || valid.GateName("gate", name) == nil
}
