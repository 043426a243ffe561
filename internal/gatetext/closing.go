// Package gatetext reads what budgets and quotas write as text into the store: why a route is closed, what their books
// say, and to what gates are attached. It makes no call.
package gatetext

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// ClosedBy is why a gate closed a route, as the store tells it in one line.
type ClosedBy struct {
	Kind ClosingKind
	Gate flowfabric.Gate // "" with ClosedOtherwise, and with ClosedUnavailable if it was not known
	// Of an exhausted budget.
	Dimension   string
	Used, Limit int64
	Refused     int64 // what of it does not fit; 0 = nothing does
}

// ClosingKind is what a gate said.
type ClosingKind string

// The kinds.
const (
	ClosedByBudget ClosingKind = "budget"                 // a dimension is at its hard limit, or above
	ClosedByRate   ClosingKind = "rate"                   // the window of a quota is full
	ClosedByCap    ClosingKind = "cap"                    // all slots of a quota are taken
	ClosedNoBudget ClosingKind = "budget_not_found"       // no budget has this name
	ClosedNoQuota  ClosingKind = "quota_policy_not_found" // no quota has this name
	// the gate could not be asked, or it was not known which ones there are
	ClosedUnavailable ClosingKind = "unavailable"
	ClosedOtherwise   ClosingKind = "" // the line is none of those
)

// ParseClosing reads why a route is closed: "budget <name> <dimension> <used> <limit>[ <refused>]", "quota <name>
// rate", "quota <name> cap", "budget_not_found <name>", "quota_policy_not_found <name>", "unavailable budget <name>",
// "unavailable quota <name>" or "unavailable route".
func ParseClosing(why string) ClosedBy {
	if why == "unavailable route" {
		return ClosedBy{Kind: ClosedUnavailable}
	}
	rest, unavailable := strings.CutPrefix(why, "unavailable ")
	words := strings.Split(rest, " ")
	if len(words) < 2 || !gateName(words[1]) {
		return ClosedBy{}
	}
	name := words[1]
	switch {
	case unavailable && len(words) == 2 && words[0] == "budget":
		return ClosedBy{Kind: ClosedUnavailable, Gate: flowfabric.BudgetGate(name)}
	case unavailable && len(words) == 2 && words[0] == "quota":
		return ClosedBy{Kind: ClosedUnavailable, Gate: flowfabric.QuotaGate(name)}
	case unavailable:
	case words[0] == "budget" && (len(words) == 5 || len(words) == 6):
		var n [3]int64
		for i, word := range words[3:] {
			var err error
			if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
				return ClosedBy{}
			}
		}
		if valid.Dimension("dimension", words[2]) == nil {
			return ClosedBy{Kind: ClosedByBudget, Gate: flowfabric.BudgetGate(name), Dimension: words[2], Used: n[0],
				Limit: n[1], Refused: n[2]}
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

// ClosingText is why a route is closed, for people: of a limit it has the key and the numbers instead of its name.
func ClosingText(why string) string {
	by := ParseClosing(why)
	if by.Kind == ClosedUnavailable && by.Gate == "" {
		return "budgets and quotas unavailable"
	}
	if _, _, limit := by.Gate.Limit(); limit {
		return by.Gate.String() + " " + string(by.Kind)
	}
	return why
}

// WhyClosed is why a route is closed, as doors show it.
func WhyClosed(why string) admission.Closing {
	by := ParseClosing(why)
	c := admission.Closing{Code: cmp.Or(string(by.Kind), "other"), Gate: by.Gate, Dimension: by.Dimension,
		Used: by.Used, Limit: by.Limit, Refused: by.Refused}
	key, limit, isLimit := by.Gate.Limit()
	switch {
	case by.Gate == "":
		c.Text = ClosingText(why)
		return c
	case isLimit:
		c.Key, c.PerKey = key, limit.String()
	case by.Gate.IsBudget():
		c.Budget = by.Gate.Name()
	default:
		c.Quota = by.Gate.Name()
	}
	c.Text = c.String()
	return c
}

// UsedUp are budgets that keep work waiting, because they have no room for it, and how many executions wait.
type UsedUp map[string]int

// Add adds a closed route.
func (u UsedUp) Add(c admission.Closing, waiting int) {
	if c.Code == string(ClosedByBudget) && waiting > 0 {
		u[c.Budget] += waiting
	}
}

// Names are the budgets for which most waits in front.
func (u UsedUp) Names() []string {
	return slices.SortedFunc(maps.Keys(u), func(a, b string) int { return cmp.Or(u[b]-u[a], strings.Compare(a, b)) })
}

func gateName(name string) bool {
	_, _, limit := flowfabric.QuotaGate(name).Limit()
	return limit || valid.GateName("gate", name) == nil
}
