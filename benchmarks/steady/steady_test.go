package steady

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Everything ends as it must and is purged.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	o := Options{Server: "redis-server", For: 3 * time.Second, Every: 300 * time.Millisecond, Rest: 50 * time.Millisecond, Keep: time.Second, Twins: 1}
	if err := Run(t.Context(), o, &out); err != nil && !strings.Contains(err.Error(), " grew from ") { // three seconds do not tell what grows
		t.Fatalf("%v\n%s", err, &out)
	}
	if text := out.String(); !strings.Contains(text, "everything is purged") || !strings.Contains(text, "goroutines ") {
		t.Errorf("it says\n%s", text)
	}
}

// What grows is named.
func TestJudge(t *testing.T) {
	var samples []sample
	for i := range 16 {
		x := sample{}
		x.values[keys], x.values[files] = float64(1000+100*i), 12
		samples = append(samples, x)
	}
	var out bytes.Buffer
	if err := judge(samples, &out); err == nil || !strings.Contains(err.Error(), "keys grew") || strings.Contains(err.Error(), "files") {
		t.Errorf("it says %v", err)
	}
}
