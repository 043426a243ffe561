package gatetext

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/admission"
)

// Whatever text the store has is read or left, and what is read is written alike.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "g", "n\x1fshop", "t\x1fapp\x1fmail", "gate acme amount tokens 12 10",
		"gate api rate", "3 1700000000000 2 tokens=5", " strict fail allow 0 0  0 0 4 0 ",
		"3.00000000-0000-4000-9000-000000000001 tokens=5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ParseSpender(text)
		for _, what := range []string{"created", "adjusted", "period", "release", "soft_limit"} {
			auditWords(&admission.AuditEntry{What: what, Detail: text}, "n")
		}
		if s, ok := ParseScope(text); ok && Scope(s) != "g" {
			if again, ok := ParseScope(Scope(s)); !ok || again != s {
				t.Errorf("%q: %+v, then %+v", text, s, again)
			}
		}
		if by := ParseClosing(text); by.Kind != ClosedOtherwise && ClosingText(text) == "" {
			t.Errorf("%q has no text", text)
		}
	})
}
