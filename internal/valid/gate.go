package valid

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

var (
	gateNames  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	services   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$`)
	dimensions = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
)

// GateName checks the name of a gate: 1..64 letters, digits, "_", "." and "-", a letter or digit first.
// flowfabric.ErrInvalidInput with the field.
func GateName(field, name string) error {
	if !gateNames.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..%d letters, digits, _ . -, a letter or digit first",
			flowfabric.ErrInvalidInput, field, name, limits.MaxName)
	}
	return nil
}

// Service checks the name of a gate that may be of a service: like that of another one, with slashes.
// flowfabric.ErrInvalidInput with the field.
func Service(field, name string) error {
	if !services.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..%d letters, digits, _ . / -, a letter or digit first",
			flowfabric.ErrInvalidInput, field, name, limits.MaxName)
	}
	return nil
}

// Dimension checks the name of what a gate counts amounts of: a lower-case letter, then letters, digits, "_" and ".",
// at most 64. flowfabric.ErrInvalidInput with the field.
func Dimension(field, name string) error {
	if !dimensions.MatchString(name) {
		return fmt.Errorf("%w: %s %q, want 1..64 of a-z 0-9 _ . with a letter first", flowfabric.ErrInvalidInput, field,
			name)
	}
	return nil
}

// limit checks a limit of a key. flowfabric.ErrInvalidInput with the field.
func limit(g flowfabric.Gate, key string, l flowfabric.Limit) error {
	wrong := func(format string, a ...any) error {
		return fmt.Errorf("%w: limit key %q: "+format, append([]any{flowfabric.ErrInvalidInput, clip(key)}, a...)...)
	}
	_, text, _ := strings.Cut(strings.TrimPrefix(g.Name(), "@"), "@")
	switch {
	case key == "":
		return fmt.Errorf("%w: a limit key is empty, want 1..%d bytes", flowfabric.ErrInvalidInput, limits.MaxLimitKey)
	case len(text) > limits.MaxLimitKey:
		return wrong(
			"%d bytes as it is stored, want at most %d (a byte other than letters, digits and _.:/@+=- counts three)",
			len(text), limits.MaxLimitKey)
	case l.Concurrency == 0 && l.Rate == 0:
		return wrong("it limits nothing, want a Concurrency or a Rate")
	case l.Concurrency < 0 || l.Concurrency > limits.MaxLimit:
		return wrong("Concurrency %d, want 0..%d", l.Concurrency, limits.MaxLimit)
	case l.Rate < 0 || l.Rate > limits.MaxLimit:
		return wrong("Rate %d, want 0..%d", l.Rate, limits.MaxLimit)
	case l.Rate > 0 && (l.Per <= 0 || l.Per > limits.MaxLimitPer):
		return wrong("Per %v with a Rate, want 1ms..%v", l.Per, limits.MaxLimitPer)
	case l.Per < 0:
		return wrong("Per %v", l.Per)
	}
	return nil
}

// clip keeps a text short inside an error.
func clip(s string) string {
	if len(s) <= 64 {
		return s
	}
	return s[:64] + "…"
}

// Gates sorts gates, drops repeats and checks them: at most 16 by name, and 8 limits of keys.
func Gates(gates []flowfabric.Gate) ([]flowfabric.Gate, error) {
	out := slices.Clone(gates)
	slices.Sort(out)
	out = slices.Compact(out)
	keys := map[string]bool{}
	for _, g := range out {
		key, l, ok := g.Limit()
		if !ok {
			if err := GateName("gate", g.Name()); err != nil {
				return nil, err
			}
			continue
		}
		if err := limit(g, key, l); err != nil {
			return nil, err
		}
		if keys[key] {
			return nil, fmt.Errorf("%w: limit key %q is given twice, with different limits", flowfabric.ErrInvalidInput,
				key)
		}
		keys[key] = true
	}
	if named := len(out) - len(keys); named > limits.MaxGates || len(keys) > limits.MaxLimits {
		return nil, fmt.Errorf("%w: %d gates and %d limits of keys, want at most %d and %d", flowfabric.ErrInvalidInput,
			named, len(keys), limits.MaxGates, limits.MaxLimits)
	}
	return out, nil
}

// GateNames are the names of gates, those of limits of keys in words.
func GateNames(gates []flowfabric.Gate) (names []string) {
	for _, g := range gates {
		if key, l, ok := g.Limit(); ok {
			names = append(names, "key "+key+": "+l.String())
		} else {
			names = append(names, g.Name())
		}
	}
	return names
}
