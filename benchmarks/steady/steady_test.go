package steady

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// A run that is killed goes on with its store and its samples. Everything ends as it must and is purged.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	o := Options{Server: "redis-server", For: time.Minute, Every: 300 * time.Millisecond, Rest: 50 * time.Millisecond,
		Keep: time.Second, Twins: 1, Dir: t.TempDir()}
	dir := o // earlier changes its argument
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o, &out) }()
	var past []sample
	for len(past) < 2 {
		select {
		case err := <-ended:
			t.Fatalf("%v\n%s", err, &out)
		case <-time.After(50 * time.Millisecond):
		}
		var err error
		if past, err = earlier(&dir); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	if err := <-ended; err == nil { // the context's, or of a call that the server did not answer any more
		t.Fatalf("it was killed and says\n%s", &out)
	}
	past, err := earlier(&dir)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	o.For = past[len(past)-1].After + 3*time.Second
	if err := Run(t.Context(), o, &out); err != nil && !strings.Contains(err.Error(), " grew from ") {
		// three seconds do not tell what grows
		t.Fatalf("%v\n%s", err, &out)
	}
	if text := out.String(); !strings.Contains(text, "goes on with ") ||
		!strings.Contains(text, "everything is purged") || !strings.Contains(text, "goroutines ") {
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
	if err := judge(samples, &out); err == nil || !strings.Contains(err.Error(), "keys grew") ||
		strings.Contains(err.Error(), "files") {
		t.Errorf("it says %v", err)
	}
}
