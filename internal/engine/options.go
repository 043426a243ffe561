package engine

import (
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Use lets the execution have what options say; what they do not say stays. The key is the caller's business. Nothing
// is checked, see [NewExecution.Validate].
func (x *NewExecution) Use(v *option.Values) {
	if v.Said == 0 {
		return
	}
	if v.Has(option.Priority) {
		x.Priority = v.Priority
	}
	if v.Has(option.Lane) {
		x.Lane = v.Lane
	}
	if v.Has(option.Timeout) {
		x.Policy.AttemptTimeout = v.Timeout
	}
	if v.Has(option.Retries) {
		x.Policy.Retry.MaxRetries = v.Retries
	}
	if v.Has(option.Retention) {
		unknown := false
		for outcome, d := range v.Retention {
			kept, ok := valid.WithRetention(x.Policy.Retention, flowfabric.PublicState(outcome), d)
			x.Policy.Retention, unknown = kept, unknown || !ok
		}
		if unknown {
			x.Policy.Retention.Completed = -1 // which the check of the policy refuses
		}
	}
	if v.Has(option.Deadline) {
		x.Deadline, x.DeadlineAt = v.Deadline, v.DeadlineAt
	}
	if v.Has(option.Delay) {
		x.Delay, x.DelayUntil = v.Delay, v.DelayUntil
	}
	if v.Has(option.Capabilities) {
		x.Capabilities = v.Capabilities
	}
	if v.Has(option.Tags) {
		x.Tags = v.Tags
	}
	if v.Has(option.Namespace) {
		x.Namespace = v.Namespace
	}
	if v.Has(option.Creator) {
		x.Creator = v.Creator
	}
	x.Gates = ReplaceGates(x.Gates, v)
}

// ReplaceGates returns gates with the budgets that options say instead of the budgets there are, and with the quotas
// and the limits of keys likewise. The names are not checked.
func ReplaceGates(gates []flowfabric.Gate, v *option.Values) []flowfabric.Gate {
	if !v.Has(option.Budgets | option.Quotas | option.Limits) {
		return gates
	}
	out := slices.DeleteFunc(slices.Clone(gates), func(g flowfabric.Gate) bool {
		if g.IsBudget() {
			return v.Has(option.Budgets)
		}
		if _, _, limit := g.Limit(); limit {
			return v.Has(option.Limits)
		}
		return v.Has(option.Quotas)
	})
	for _, name := range v.Budgets {
		out = append(out, flowfabric.BudgetGate(name))
	}
	for _, name := range slices.Concat(v.Quotas, v.Limits) {
		out = append(out, flowfabric.QuotaGate(name))
	}
	return out
}
