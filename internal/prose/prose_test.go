package prose

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Numbers, spans and lists read as in a sentence.
func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "node"): "1 node", Count(0, "node"): "0 nodes", Join(", ", "a", "", "b"): "a, b",
		Ranges([]uint16{7, 0, 2, 1}): "0-2,7", Ranges(nil): "", Span(0): "", Span(-time.Millisecond): "-1ms",
		Span(1500 * time.Millisecond): "1.5s", Span(61 * time.Second): "1m01s", Span(3 * time.Hour): "3h00m",
		Span(50 * time.Hour): "2d02h", Message(nil): "", Message(errors.New("no route")): "no route",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The text of an error has no secret of a connection or a token.
func TestMessageHasNoSecrets(t *testing.T) {
	for _, text := range []string{"dial redis://app:sesame@10.0.0.1:6379: refused", "redis://:sesame@h/0",
		"parse app:sesame@h:1", "redis://h?password=sesame", "token k1:" + strings.Repeat("5e5a3e", 12)} {
		if got := Message(errors.New(text)); strings.Contains(got, "sesame") || strings.Contains(got, "5e5a3e") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
