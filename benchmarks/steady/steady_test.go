package steady

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A run that is killed goes on with its store and its samples. Everything ends as it must and is purged.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	o := Options{Server: "redis-server", For: time.Minute, Every: 300 * time.Millisecond, Rest: 50 * time.Millisecond, Keep: time.Second, Twins: 1, Dir: t.TempDir()}
	ctx, kill := context.WithTimeout(t.Context(), 3*time.Second)
	defer kill()
	if err := Run(ctx, o, &out); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Fatalf("%v\n%s", err, &out)
	}
	past, err := earlier(&o)
	if err != nil || len(past) == 0 {
		t.Fatalf("%d samples, %v\n%s", len(past), err, &out)
	}
	out.Reset()
	o.For = past[len(past)-1].After + 3*time.Second
	if err := Run(t.Context(), o, &out); err != nil && !strings.Contains(err.Error(), " grew from ") { // three seconds do not tell what grows
		t.Fatalf("%v\n%s", err, &out)
	}
	if text := out.String(); !strings.Contains(text, "goes on with ") || !strings.Contains(text, "everything is purged") || !strings.Contains(text, "goroutines ") {
		t.Errorf("it says\n%s", text)
	}
	if all, err := earlier(&o); err != nil || len(all) <= len(past) || all[len(past)].Done <= past[len(past)-1].Done {
		t.Errorf("%d samples after %d, %v", len(all), len(past), err)
	}
}

// What grows is named.
func TestJudge(t *testing.T) {
	var samples []sample
	for i := range 16 {
		x := sample{}
		x.Values[keys], x.Values[files] = float64(1000+100*i), 12
		samples = append(samples, x)
	}
	var out bytes.Buffer
	if err := judge(samples, &out); err == nil || !strings.Contains(err.Error(), "keys grew") || strings.Contains(err.Error(), "files") {
		t.Errorf("it says %v", err)
	}
}
