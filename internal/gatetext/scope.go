package gatetext

import (
	"strings"

	"github.com/flowfabric/flowfabric-go/admission"
)

// Scope is how a scope of attached gates is stored.
func Scope(s admission.Scope) string {
	switch {
	case s.TagKey != "":
		return "t\x1f" + s.TagKey + "\x1f" + s.Tag
	case s.Lane != "":
		return "l\x1f" + s.Namespace + "\x1f" + s.Lane
	case s.Namespace != "":
		return "n\x1f" + s.Namespace
	}
	return "g"
}

// ParseScope reads what Scope writes.
func ParseScope(text string) (s admission.Scope, ok bool) {
	parts := strings.Split(text, "\x1f")
	switch {
	case text == "g":
	case parts[0] == "n" && len(parts) == 2:
		s.Namespace = parts[1]
	case parts[0] == "l" && len(parts) == 3:
		s.Namespace, s.Lane = parts[1], parts[2]
	case parts[0] == "t" && len(parts) == 3:
		s.TagKey, s.Tag = parts[1], parts[2]
	default:
		return s, false
	}
	return s, true
}

// ScopeName writes a scope as the command attach takes it, with the namespace that --namespace would say.
func ScopeName(s admission.Scope) string {
	switch {
	case s.TagKey != "":
		return "tag:" + s.TagKey + "=" + s.Tag
	case s.Lane != "":
		return "lane:" + s.Namespace + "/" + s.Lane
	case s.Namespace != "":
		return "namespace:" + s.Namespace
	}
	return "everything"
}
