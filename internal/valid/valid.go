// Package valid says which names, tags, capabilities, gates and policies are legal, and how a policy is stored.
package valid

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Name checks a namespace, lane, kind or worker name: 1..64 bytes, printable ASCII (0x20..0x7E)
// without braces, and neither . nor .., which no path can name. field names the offender in the error, which wraps
// [flowfabric.ErrInvalidInput].
func Name(field, name string) error {
	if name == "" || len(name) > limits.MaxName {
		return fmt.Errorf("%w: %s %.48q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, field, name, len(name),
			limits.MaxName)
	}
	if name == "." || name == ".." {
		return fmt.Errorf("%w: %s is %q, want a name that can stand in a path", flowfabric.ErrInvalidInput, field, name)
	}
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c > 0x7e || c == '{' || c == '}' {
			return fmt.Errorf("%w: %s %.48q has byte %#02x at %d, want printable ASCII without braces",
				flowfabric.ErrInvalidInput, field, name, c, i)
		}
	}
	return nil
}

// Printable checks the name of a step, a wait or a mailbox: 1 to most bytes of printable ASCII. what names the offender
// in the error, which wraps [flowfabric.ErrInvalidInput].
func Printable(what, name string, most int) error {
	if name == "" || len(name) > most {
		return fmt.Errorf("%w: %s %.80q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, what, name, len(name),
			most)
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return fmt.Errorf("%w: %s %.80q has byte %#02x at %d, want printable ASCII", flowfabric.ErrInvalidInput,
				what, name, name[i], i)
		}
	}
	return nil
}

// ReportKey checks a key under which a budget counts once: at most so many bytes of printable ASCII without spaces. The
// error wraps [flowfabric.ErrInvalidInput].
func ReportKey(key string, most int) error {
	if len(key) > most || strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("%w: key %.80q, want at most %d bytes of printable ASCII without spaces",
			flowfabric.ErrInvalidInput, key, most)
	}
	return nil
}

// WaitpointLife checks how long a waitpoint of a key stays open until a wait begins on it: 1 s..7 days. The error
// wraps [flowfabric.ErrInvalidInput].
func WaitpointLife(key string, life time.Duration) error {
	if life < limits.MinWaitpointLife || life > limits.MaxWaitpointLife {
		return fmt.Errorf("%w: waitpoint %s: life until the wait begins is %v, want %v..%v (the wait may be longer)",
			flowfabric.ErrInvalidInput, key, life, limits.MinWaitpointLife, limits.MaxWaitpointLife)
	}
	return nil
}

// Category checks a failure category: 1..64 bytes of [A-Za-z0-9_.:-].
func Category(category flowfabric.Category) error {
	if category == "" || len(category) > limits.MaxCategory {
		return fmt.Errorf("%w: category %.48q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, category,
			len(category), limits.MaxCategory)
	}
	for i := range len(category) {
		c := category[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
			!strings.ContainsRune("_.:-", rune(c)) {
			return fmt.Errorf("%w: category %.48q has byte %#02x at %d, want letters, digits or _.:-",
				flowfabric.ErrInvalidInput, category, c, i)
		}
	}
	return nil
}

// Capabilities sorts and de-duplicates tokens and checks them with the same predicate on the worker
// and the execution side: at most 256 tokens and 4,096 bytes joined; no empty token, comma,
// white space, control character or invalid UTF-8. The error wraps [denied.Capabilities] and names the rule.
func Capabilities(tokens []string) ([]string, error) {
	bad := func(why, token string) error {
		return fmt.Errorf("%w: %s: %.48q", denied.Capabilities, why, token)
	}
	for _, t := range tokens {
		switch {
		case t == "":
			return nil, bad("empty_token", t)
		case strings.Contains(t, ","):
			return nil, bad("comma_in_token", t)
		case !utf8.ValidString(t):
			return nil, bad("invalid_utf8", t)
		case strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return nil, bad("control_or_whitespace", t)
		}
	}
	out := slices.Compact(slices.Sorted(slices.Values(tokens)))
	if len(out) > limits.MaxCapabilities {
		return nil, fmt.Errorf("%w: too_many_tokens: %d, want at most %d", denied.Capabilities, len(out),
			limits.MaxCapabilities)
	}
	if n := len(strings.Join(out, ",")); n > limits.MaxCapabilityBytes {
		return nil, fmt.Errorf("%w: too_many_bytes: %d, want at most %d", denied.Capabilities, n,
			limits.MaxCapabilityBytes)
	}
	return out, nil
}

// VersionCapability is the capability that a worker of a version of an application has: work that requires it runs on
// workers of that version only.
const VersionCapability = "version:"

// Offered is what a worker offers: its capabilities, in order, and that of its version. A version that is no
// capability, because it has a space or a comma, gives none.
func Offered(capabilities []string, version string) []string {
	own := []string{VersionCapability + version}
	if _, err := Capabilities(own); err != nil || version == "" {
		own = nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(capabilities, own))))
}

// Tags checks tags at create: at most 64; keys like "team.region" (lower-case words joined by dots, at
// least two, ≤ 64 bytes); values ≤ 256 bytes. The error wraps [flowfabric.ErrInvalidInput] and names the key.
func Tags(tags map[string]string) error {
	if len(tags) > limits.MaxTags {
		return fmt.Errorf("%w: tags: %d, want at most %d", flowfabric.ErrInvalidInput, len(tags), limits.MaxTags)
	}
	for k, v := range tags {
		if len(k) > limits.MaxTagKey || !tagKey(k) {
			return fmt.Errorf("tags: key %.48q: %w", k, denied.TagKey)
		}
		if len(v) > limits.MaxTagValue {
			return fmt.Errorf("%w: tags: value of %q has %d bytes, want at most %d", flowfabric.ErrInvalidInput, k,
				len(v), limits.MaxTagValue)
		}
	}
	return nil
}

// tagKey matches ^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$.
func tagKey(k string) bool {
	words := strings.Split(k, ".")
	if len(words) < 2 || k[0] < 'a' || k[0] > 'z' {
		return false
	}
	for _, w := range words {
		if w == "" {
			return false
		}
		for i := range len(w) {
			if c := w[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
				return false
			}
		}
	}
	return true
}

// Instance accepts what can name a worker process: a name of 1..48 bytes without "~".
func Instance(field, name string) error {
	switch {
	case len(name) > limits.MaxInstance:
		return fmt.Errorf("%w: %s is %d bytes long, want 1..%d bytes", flowfabric.ErrInvalidInput, field, len(name),
			limits.MaxInstance)
	case strings.Contains(name, "~"):
		return fmt.Errorf("%w: %s is %.70q, want no \"~\"", flowfabric.ErrInvalidInput, field, name)
	}
	return Name(field, name)
}
