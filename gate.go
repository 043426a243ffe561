package flowfabric

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

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

var (
	gateName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	dimension = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
)

// ValidateGateName checks the name of a budget or quota: 1..64 letters, digits, "_", "." and "-", a letter or digit first.
// ErrInvalidInput with the field.
func ValidateGateName(field, name string) error {
	if !gateName.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..%d letters, digits, _ . -, a letter or digit first", ErrInvalidInput, field, name, limits.MaxName)
	}
	return nil
}

// ValidateDimension checks the name of what a budget counts: a lower-case letter, then letters, digits, "_" and ".", at most 64.
// ErrInvalidInput with the field.
func ValidateDimension(field, name string) error {
	if !dimension.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..64 of a-z 0-9 _ . with a letter first", ErrInvalidInput, field, name)
	}
	return nil
}

// NormalizeGates sorts gates, drops repeats and checks them: at most 16 budgets and 8 quotas. ErrInvalidInput.
func NormalizeGates(gates []Gate) ([]Gate, error) {
	out := slices.Clone(gates)
	slices.Sort(out)
	out = slices.Compact(out)
	budgets := 0
	for _, g := range out {
		if len(g) < 2 || (g[:2] != "b:" && g[:2] != "q:") {
			return nil, fmt.Errorf("%w: gate %q is made with neither BudgetGate nor QuotaGate", ErrInvalidInput, string(g))
		}
		field := "quota"
		if g.IsBudget() {
			field = "budget"
			budgets++
		}
		if err := ValidateGateName(field, g.Name()); err != nil {
			return nil, err
		}
	}
	if budgets > limits.MaxBudgets || len(out)-budgets > limits.MaxQuotas {
		return nil, fmt.Errorf("%w: %d budgets and %d quotas, want at most %d and %d", ErrInvalidInput, budgets, len(out)-budgets, limits.MaxBudgets, limits.MaxQuotas)
	}
	return out, nil
}

// GatePartition is the partition of a budget or quota among n.
func GatePartition(name string, n uint16) uint16 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return uint16(h.Sum32() % uint32(max(n, 1)))
}
