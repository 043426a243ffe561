package batches

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Every size drains all jobs, and a batch makes fewer calls.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	o := Options{Server: "redis-server", Jobs: 500, Rounds: 1, Concurrency: 64, Connections: 4,
		Call: 100 * time.Microsecond, Sizes: []int{0, 32}, Wait: 5 * time.Millisecond}
	if err := Run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "one job a call") || !strings.Contains(text, "batches of 32") ||
		!strings.Contains(text, " 1.0") {
		t.Errorf("it says\n%s", text)
	}
}
