package engine

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
)

// A forecast goes on with the use of the period so far, to the first limit, and says nothing beyond the period.
func TestForecast(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000).UTC()
	for what, x := range map[string]struct {
		used, left map[string]int64
		reset      time.Duration
		warn       bool
		want       time.Duration // after the beginning; 0: none
	}{
		"a quarter in an hour":   {used: amountsOf("a=25"), left: amountsOf("a=75"), want: 4 * time.Hour},
		"the first of two":       {used: amountsOf("a=25,b=50"), left: amountsOf("a=75,b=50"), want: 2 * time.Hour},
		"used up":                {used: amountsOf("a=100"), left: amountsOf("a=0"), want: time.Hour},
		"nothing used":           {used: amountsOf("a=0"), left: amountsOf("a=75")},
		"no limit":               {used: amountsOf("a=25")},
		"it only warns":          {used: amountsOf("a=25"), left: amountsOf("a=75"), warn: true},
		"the period ends before": {used: amountsOf("a=25"), left: amountsOf("a=75"), reset: 4 * time.Hour},
		"not quite": {used: amountsOf("a=25"), left: amountsOf("a=75"), reset: 5 * time.Hour,
			want: 4 * time.Hour},
		"in a thousand years": {used: amountsOf("a=1"), left: amountsOf("a=9007199254740991")},
	} {
		g := admission.GateRecord{Gate: admission.Gate{Warn: x.warn}, PeriodBegan: began, Used: x.used,
			Headroom: x.left}
		if x.reset > 0 {
			g.NextReset = began.Add(x.reset)
		}
		want := time.Time{}
		if x.want > 0 {
			want = began.Add(x.want)
		}
		if got := emptyAt(g, began.Add(time.Hour)); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}
