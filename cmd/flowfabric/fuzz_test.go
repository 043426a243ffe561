package main

import (
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
)

// Whatever stands behind a flag, or in an audit log, is read or refused.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"2,100/1m", "1/", "failed=72h", "72h", "x=1h", "lane:blue/slow", "lane:slow",
		"lane:/", "tag:a=b", "tokens=5", "h:tokens,5,s:tokens,3", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := &app{namespace: "default"}
		if _, err := parseLimit(text); err != nil && !strings.Contains(err.Error(), "limit") {
			t.Error(err)
		}
		if spans, err := parseRetention([]string{text}); err == nil {
			for outcome := range spans {
				if new(flowfabric.Retentions).Of(outcome) == nil {
					t.Errorf("%q is read as %v", text, spans)
				}
			}
		}
		if s, err := a.parseScope(text); err == nil && !strings.HasPrefix(text, scopeKind(gatetext.ScopeName(s))) {
			t.Errorf("%q is %s", text, gatetext.ScopeName(s))
		}
	})
}

// scopeKind is what a scope is written with before its names.
func scopeKind(scope string) string { kind, _, _ := strings.Cut(scope, ":"); return kind }
