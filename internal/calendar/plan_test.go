package calendar_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/schedule"
)

var start = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

// steps tells every step until nothing is due, in minutes after start.
func steps(d schedule.Definition, next, resumed, now time.Time) (out string) {
	minutes := func(t time.Time) string { return fmt.Sprintf("%g", t.Sub(start).Minutes()) }
	for {
		step, due := calendar.Plan(d, next, resumed, now)
		if !due {
			return out
		}
		if step.Missed.Count > 0 {
			out += fmt.Sprintf("%s %d %s..%s; ", step.Missed.Reason, step.Missed.Count, minutes(step.Missed.From),
				minutes(step.Missed.To))
		}
		if !step.Fire.IsZero() {
			out += "fire " + minutes(step.Fire) + "; "
		}
		next = step.Then
	}
}

func TestCatchUp(t *testing.T) {
	at := func(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }
	for _, c := range []struct {
		what         string
		policy       schedule.CatchUp
		resumed, now float64 // minutes; resumed 0 = never
		want         string
	}{
		{"nothing is due", "", 0, -1, ""},
		{"in time", "", 0, 0.1, "fire 0; "},
		{"an hour late, the last", schedule.CatchUpLast, 0, 35, "late 3 0..20; fire 30; "},
		{"one is due and very late, the last", schedule.CatchUpLast, 0, 9.9, "fire 0; "},
		{"the default is the last", "", 0, 35, "late 3 0..20; fire 30; "},
		{"none of them", schedule.CatchUpSkip, 0, 35, "late 4 0..30; "},
		{"but the one that is fresh", schedule.CatchUpSkip, 0, 30.5, "late 3 0..20; fire 30; "},
		{"in time, skip", schedule.CatchUpSkip, 0, 0.1, "fire 0; "},
		{"all", schedule.CatchUpAll, 0, 35, "fire 0; fire 10; fire 20; fire 30; "},
		{"what fell into a pause is not fired, whatever the policy", schedule.CatchUpAll, 25, 35,
			"paused 3 0..20; fire 30; "},
		{"nor by the last", schedule.CatchUpLast, 25, 29, "paused 3 0..20; "},
		{"resumed in the same moment", schedule.CatchUpAll, 20, 25, "paused 2 0..10; fire 20; "},
	} {
		d := schedule.Definition{Spec: schedule.Every(10*time.Minute, start), CatchUp: c.policy}
		resumed := time.Time{}
		if c.resumed > 0 {
			resumed = at(c.resumed)
		}
		if got := steps(d, start, resumed, at(c.now)); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// Years of missed seconds are counted in pieces of bounded length, and none is lost.
func TestLongOutage(t *testing.T) {
	d := schedule.Definition{Spec: schedule.Every(time.Second, start)}
	next, now, missed, calls := start, start.Add(24*time.Hour), uint64(0), 0
	for {
		step, due := calendar.Plan(d, next, time.Time{}, now)
		if !due {
			break
		}
		calls++
		missed += step.Missed.Count
		if step.Missed.Count > 10000 {
			t.Fatalf("one step counts %d", step.Missed.Count)
		}
		if !step.Fire.IsZero() && !step.Fire.Equal(now) {
			t.Fatalf("fired %s", step.Fire)
		}
		next = step.Then
	}
	if missed != 86400 || calls != 9 {
		t.Errorf("%d missed in %d steps", missed, calls)
	}
	m := calendar.Unfired(d, start, now, calendar.Updated)
	if m.Count != 86401 || !m.From.Equal(start) || !m.To.Equal(now) || m.Reason != calendar.Updated {
		t.Errorf("given up: %+v", m)
	}
}

// The union of what is fired and what is missed is every instant of the spec up to now, each once and in order,
// whatever happens in between: ticks come at random, pauses come and go.
func TestFiredAndMissedAreAllInstants(t *testing.T) {
	specs := []schedule.Spec{schedule.Every(7*time.Second, start), schedule.Cron("*/10 * * * *", "Europe/Berlin"),
		schedule.Cron("30 2 * * *", "America/New_York"), schedule.Cron("0 */6 * * *", "Australia/Lord_Howe"),
		schedule.Cron("*/5 * 9-17 * * MON-FRI", "")}
	rapid.Check(t, func(t *rapid.T) {
		d := schedule.Definition{Spec: rapid.SampledFrom(specs).Draw(t, "spec"),
			CatchUp: rapid.SampledFrom([]schedule.CatchUp{schedule.CatchUpLast, schedule.CatchUpSkip,
				schedule.CatchUpAll}).Draw(t, "policy")}
		now := start.Add(-200 * 24 * time.Hour)
		next, want, resumed := d.Spec.Next(now), d.Spec.Next(now), time.Time{}
		account := func(at time.Time) {
			if !at.Equal(want) {
				t.Fatalf("%s is told, %s is next", at, want)
			}
			want = d.Spec.Next(want)
		}
		for range rapid.IntRange(1, 30).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40000).Draw(t, "pass")) * 1777 * time.Millisecond)
			if rapid.IntRange(0, 5).Draw(t, "pause") == 0 {
				resumed = now
			}
			for range rapid.IntRange(0, 40).Draw(t, "steps") {
				step, due := calendar.Plan(d, next, resumed, now)
				if !due {
					break
				}
				for i, at := uint64(0), step.Missed.From; i < step.Missed.Count; i++ {
					account(at)
					if i == step.Missed.Count-1 && !at.Equal(step.Missed.To) {
						t.Fatalf("the last of %+v is %s", step.Missed, at)
					}
					at = d.Spec.Next(at)
				}
				if !step.Fire.IsZero() {
					account(step.Fire)
					if step.Fire.After(now) || step.Fire.Before(resumed) {
						t.Fatalf("at %s, resumed %s, fires %s", now, resumed, step.Fire)
					}
				}
				if !step.Then.Equal(want) {
					t.Fatalf("goes on at %s, want %s", step.Then, want)
				}
				next = step.Then
			}
		}
	})
}
