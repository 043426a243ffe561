package valid

import (
	"fmt"
	"regexp"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

var (
	gateNames  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	dimensions = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
)

// GateName checks the name of a budget or quota: 1..64 letters, digits, "_", "." and "-", a letter or digit first.
// flowfabric.ErrInvalidInput with the field.
func GateName(field, name string) error {
	if !gateNames.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..%d letters, digits, _ . -, a letter or digit first", flowfabric.ErrInvalidInput, field, name, limits.MaxName)
	}
	return nil
}

// Dimension checks the name of what a budget counts: a lower-case letter, then letters, digits, "_" and ".", at most 64.
// flowfabric.ErrInvalidInput with the field.
func Dimension(field, name string) error {
	if !dimensions.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..64 of a-z 0-9 _ . with a letter first", flowfabric.ErrInvalidInput, field, name)
	}
	return nil
}

// Gates sorts gates, drops repeats and checks them: at most 16 budgets and 8 quotas. flowfabric.ErrInvalidInput.
func Gates(gates []flowfabric.Gate) ([]flowfabric.Gate, error) {
	out := slices.Clone(gates)
	slices.Sort(out)
	out = slices.Compact(out)
	budgets := 0
	for _, g := range out {
		if len(g) < 2 || (g[:2] != "b:" && g[:2] != "q:") {
			return nil, fmt.Errorf("%w: gate %q is made with neither BudgetGate nor QuotaGate", flowfabric.ErrInvalidInput, string(g))
		}
		field := "quota"
		if g.IsBudget() {
			field = "budget"
			budgets++
		}
		if err := GateName(field, g.Name()); err != nil {
			return nil, err
		}
	}
	if budgets > limits.MaxBudgets || len(out)-budgets > limits.MaxQuotas {
		return nil, fmt.Errorf("%w: %d budgets and %d quotas, want at most %d and %d", flowfabric.ErrInvalidInput, budgets, len(out)-budgets, limits.MaxBudgets, limits.MaxQuotas)
	}
	return out, nil
}
