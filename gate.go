package flowfabric

import "strings"

// Gate names a budget or a quota that an execution asks before it runs. Make one with [BudgetGate] or [QuotaGate].
type Gate string

// BudgetGate is the gate of the budget of this name: work waits while the budget is exhausted, unless it only warns.
func BudgetGate(name string) Gate { return Gate("b:" + name) }

// QuotaGate is the gate of the quota of this name: work waits for a free slot, or for room in the window.
func QuotaGate(name string) Gate { return Gate("q:" + name) }

// IsBudget reports whether the gate is a budget; else it is a quota.
func (g Gate) IsBudget() bool { return strings.HasPrefix(string(g), "b:") }

// Name is the name of the budget or quota.
func (g Gate) Name() string {
	_, name, _ := strings.Cut(string(g), ":")
	return name
}

// String is "budget <name>" or "quota <name>".
func (g Gate) String() string {
	if g.IsBudget() {
		return "budget " + g.Name()
	}
	return "quota " + g.Name()
}
