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
	use(v, option.Priority, &x.Priority, v.Priority)
	use(v, option.Lane, &x.Lane, v.Lane)
	use(v, option.Timeout, &x.Policy.AttemptTimeout, v.Timeout)
	use(v, option.Retries, &x.Policy.Retry.MaxRetries, v.Retries)
	use(v, option.Deadline, &x.Deadline, v.Deadline)
	use(v, option.Deadline, &x.DeadlineAt, v.DeadlineAt)
	use(v, option.Delay, &x.Delay, v.Delay)
	use(v, option.Delay, &x.DelayUntil, v.DelayUntil)
	use(v, option.Capabilities, &x.Capabilities, v.Capabilities)
	use(v, option.Tags, &x.Tags, v.Tags)
	use(v, option.Namespace, &x.Namespace, v.Namespace)
	use(v, option.Creator, &x.Creator, v.Creator)
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
	x.Gates = ReplaceGates(x.Gates, v)
}

// use sets what was said.
func use[T any](v *option.Values, said option.Field, to *T, from T) {
	if v.Has(said) {
		*to = from
	}
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
