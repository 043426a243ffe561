package engine

import (
	"testing"
	"time"
)

// A mark of which nothing is known is not asked for at every read. Another one is.
func TestVersionsAreAskedFor(t *testing.T) {
	var v versions
	now := time.Now()
	of := func(mark string, after time.Duration, version string, ask bool) {
		t.Helper()
		if got, asks := v.of(versionMark{1, mark}, now.Add(after)); got != version || asks != ask {
			t.Errorf("%s is of %q, asked for: %t; want %q, %t", mark, got, asks, version, ask)
		}
	}
	of("a", 0, "", true)
	found := map[versionMark]string{{1, "b"}: "2.0"}
	if got := v.keep(versionMark{1, "a"}, found, now); got != "" {
		t.Errorf("of nothing known it makes %q", got)
	}
	of("a", versionUnseen-1, "", false)
	of("a", versionUnseen, "", true)
	of("b", 0, "2.0", false)
	of("c", 0, "", true)
	found[versionMark{1, "a"}] = "1.0"
	if got := v.keep(versionMark{1, "a"}, found, now); got != "1.0" {
		t.Errorf("it is of %q, want 1.0", got)
	}
	of("a", 0, "1.0", false)
}
