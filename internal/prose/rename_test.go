package prose

import "testing"

func TestRenamer(t *testing.T) {
	rename := Renamer(map[string]string{"Delay": "delay_ms", "DelayUntil": "delay_until", "Rate": "rate",
		"Retry.MaxRetries": "retries", "Debounce": "key", "Debounce is": "delay of key is"})
	for text, want := range map[string]string{
		"submit: invalid_policy: Retry.MaxRetries is -1": "submit: invalid_policy: retries is -1",
		"Delay -1s": "delay_ms -1s",
		"x: Debounce with Delay or DelayUntil: no": "x: key with delay_ms or delay_until: no",
		"x: Debounce is 0s":                        "x: delay of key is 0s",
		"x: Per 0s with a Rate, want 1ms":          "x: Per 0s with a rate, want 1ms",
		"kind Delay: Delays of \"Delay\"":          "kind Delay: Delays of \"Delay\"",
	} {
		if got := rename(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
