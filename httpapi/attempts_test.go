package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// Attempts count from 1 in every answer that names one, and an answer without an attempt names none.
func TestAttemptsCountFromOne(t *testing.T) {
	a := newAPI(t)
	a.sayings()
	path := a.submit(`{"kind":"tells","input":{"word":"x"}}`)
	a.until(path, "completed")
	for name, want := range map[string][]float64{"": {1, 2}, "/history": {1, 2}, "/steps": {2}, "/summary": {2},
		"/stream?as=events": {1, 2}} {
		var doc any
		must.No(t, json.Unmarshal(a.as("viewer", "GET", path+name, "", 200).body, &doc))
		found := map[float64]bool{}
		numbersOf(doc, found)
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%s names the attempts %v, want %v", name, got, want)
		}
	}
	for attempt, n := range map[string]int{"": 0, "?attempt=1": 0, "?attempt=2": 3} {
		if got := len(into[framePage](t, a.as("viewer", "GET", path+"/frames"+attempt, "", 200)).Items); got != n {
			t.Errorf("frames%s has %d frames, want %d", attempt, got, n)
		}
	}
	for _, query := range []string{"/frames?attempt=0", "/events?attempt=0"} {
		a.as("viewer", "GET", path+query, "", 400)
	}
	of, _ := a.follow(path+"/events?attempt=2", nil, func(e sse) bool { return e.name == "attempt_end" })
	for _, e := range of {
		if e.data.Attempt != 2 {
			t.Errorf("%s is of attempt %d, want 2", e.name, e.data.Attempt)
		}
	}
	r := a.remote("worker", "counted")
	a.submit(`{"kind":"counted"}`)
	if x := r.one(); x.Attempt != 1 {
		t.Errorf("a worker is given attempt %d, want 1", x.Attempt)
	}
}

// numbersOf collects what members that name an attempt say, anywhere in a document.
func numbersOf(doc any, found map[float64]bool) {
	switch x := doc.(type) {
	case []any:
		for _, v := range x {
			numbersOf(v, found)
		}
	case map[string]any:
		for name, v := range x {
			if n, ok := v.(float64); ok && (name == "attempt" || name == "index") {
				found[n] = true
			}
			numbersOf(v, found)
		}
	}
}
