package spread_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/spread"
)

const longest = 30 * 24 * time.Hour

// Percentiles of any mixture of durations are at most five percent off, also of a sum.
func TestPercentilesAreFivePercentOffAtMost(t *testing.T) {
	r := rand.New(rand.NewPCG(54, 1))
	for range 200 {
		var one, two spread.Spread
		var all []time.Duration
		for range 1 + r.IntN(500) {
			d := time.Duration(math.Exp(r.Float64()*math.Log(float64(longest/time.Millisecond))) * 1e6)
			all = append(all, d)
			if r.IntN(2) == 0 {
				one.Add(d)
			} else {
				two.Add(d)
			}
		}
		one.Merge(&two)
		if one.Count() != uint64(len(all)) {
			t.Fatalf("%d are counted, want %d", one.Count(), len(all))
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
			want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
			got := one.Quantile(q)
			if off := math.Abs(float64(got-want)) / float64(want); off > 0.05 {
				t.Fatalf("quantile %v is %v, want %v within 5 %%", q, got, want)
			}
		}
	}
}

func TestTheEndsOfTheScale(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{-time.Second: time.Millisecond, 0: time.Millisecond,
		time.Millisecond: time.Millisecond, longest: longest, 10 * longest: longest} {
		var s spread.Spread
		s.Add(d)
		if got := s.Quantile(0.5); math.Abs(float64(got-want)) > 0.05*float64(want) {
			t.Errorf("%v counts as %v, want %v", d, got, want)
		}
	}
	var none spread.Spread
	if none.Quantile(0.5) != 0 || none.Count() != 0 {
		t.Errorf("of nothing: %v", none.Quantile(0.5))
	}
}

func TestTallyText(t *testing.T) {
	var x spread.Tally
	x.Completed, x.Retried = 2, 1
	x.Waited.Add(0)
	x.Ran.Add(100 * time.Millisecond)
	x.Ran.Add(101 * time.Millisecond)
	x.Ran.Add(time.Hour)
	const want = "2,0,1,0;0:1;49:2,159:1"
	if got := x.Text(); got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	back, err := spread.ParseTally(want)
	must.No(t, err)
	x.Merge(back)
	if got := x.Text(); got != "4,0,2,0;0:2;49:4,159:2" {
		t.Fatalf("the sum is %q", got)
	}
}

// The error of a text says which part is wrong and what is possible.
func TestTallyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "1 parts",
		"1,2,3;;":          "3 counts",
		"1,2,3,-1;;":       "count 4",
		"01,2,3,1;;":       "count 1",
		"1,2,3,4;229:1;":   "waited: bucket \"229\"",
		"1,2,3,4;;5:0":     "ran: count \"0\"",
		"1,2,3,4;;5:1,4:1": "each larger",
		"1,2,3,4;;5:1,":    "comma",
		"1,2,3,4;;5":       "ran: count \"\"",
	} {
		if _, err := spread.ParseTally(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The longest text fits what the store takes.
func TestTheLongestText(t *testing.T) {
	var x spread.Tally
	x.Completed, x.Failed, x.Retried, x.Other = spread.MaxCount, spread.MaxCount, spread.MaxCount, spread.MaxCount
	for d := time.Millisecond; d < 2*longest; d += 1 + d/100 {
		x.Waited.Add(d)
		x.Ran.Add(d)
	}
	for range 60 {
		x.Merge(&x)
	}
	text := x.Text()
	if len(text) > spread.MaxText || strings.Count(text, ":") != 2*spread.Buckets {
		t.Fatalf("it has %d bytes and %d buckets", len(text), strings.Count(text, ":"))
	}
	_, err := spread.ParseTally(text)
	must.No(t, err)
}

// What is accepted is written back as it was, so there is one text of each tally.
func FuzzTally(f *testing.F) {
	f.Add("2,0,1,0;0:1;49:2,159:1")
	f.Add("0,0,0,0;;")
	f.Add("1,2,3,4;228:99999999999999;1:1")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := spread.ParseTally(text)
		if err != nil {
			return
		}
		if got := x.Text(); got != text {
			t.Fatalf("%q is written as %q", text, got)
		}
		x.Merge(x)
		if q := x.Ran.Quantile(0.99); q < 0 || q > longest*21/20 {
			t.Fatalf("of %q: %v", text, q)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var s spread.Spread
	for i := 0; b.Loop(); i++ {
		s.Add(time.Duration(i%1000) * time.Millisecond)
	}
}
