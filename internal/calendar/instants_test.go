package calendar_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// An end date cuts the instants off and moves none, where the clock is changed as elsewhere. The end itself may be one.
func TestInstantsUntilAnEnd(t *testing.T) {
	utc := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct {
		what, cron, zone, from, until string
		want                          []string
	}{
		{"an instant that the clock skips is the end of the jump", "30 2 * * *", "Europe/Berlin",
			"2026-03-28T00:00:00Z", "2026-03-29T01:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"}},
		{"and comes after an end before it", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			"2026-03-29T00:59:59Z", []string{"2026-03-28T01:30:00Z"}},
		{"an end at the first of two", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z",
			[]string{"2026-10-25T00:30:00Z"}},
		{"an end at the second of two brings no more", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			"2026-10-25T01:30:00Z", []string{"2026-10-25T00:30:00Z"}},
		{"by elapsed time both happen", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z",
			[]string{"2026-10-03T15:30:00Z"}},
		{"an end in another zone is the same instant", "0 9 * * *", "America/New_York", "2026-07-01T00:00:00Z",
			"2026-07-02T15:00:00+02:00", []string{"2026-07-01T13:00:00Z", "2026-07-02T13:00:00Z"}},
		{"an end in the past", "0 9 * * *", "", "2026-07-01T00:00:00Z", "2026-06-01T00:00:00Z", nil},
	} {
		d := schedule.Definition{Spec: schedule.Cron(c.cron, c.zone), Until: utc(c.until)}
		var want []time.Time
		for _, at := range c.want {
			want = append(want, utc(at))
		}
		if got := calendar.Upcoming(d, utc(c.from), 10); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", c.what, got, want)
		}
		next := utc(c.from)
		for _, at := range append(want, time.Time{}) {
			if next = calendar.Next(d, next); !next.Equal(at) {
				t.Errorf("%s: next %s, want %s", c.what, next, at)
			}
		}
	}
}

// The start of an instant is within the jitter and before half the way to the next one, wherever the clock is
// changed; it is the same for everybody, and another one for another name or instant.
func TestStartOfInstants(t *testing.T) {
	specs := []schedule.Spec{schedule.Cron("30 2 * * *", "Europe/Berlin"),
		schedule.Cron("*/20 * * * *", "Europe/Berlin"), schedule.Cron("15,45 1-3 * * *", "Australia/Lord_Howe"),
		schedule.Every(7*time.Second, time.Time{}), schedule.Every(time.Second, time.Time{})}
	rapid.Check(t, func(t *rapid.T) {
		d := schedule.Definition{Spec: rapid.SampledFrom(specs).Draw(t, "spec"),
			Jitter: flowfabric.Millis(time.Duration(rapid.IntRange(0, 86400000).Draw(t, "jitter")) * time.Millisecond)}
		name := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name")
		at := time.UnixMilli(rapid.Int64Range(1774000000000, 1795000000000).Draw(t, "at"))
		var last time.Time
		for _, instant := range calendar.Upcoming(d, at, 20) {
			start, half := calendar.Start(d, name, instant), d.Spec.Next(instant).Sub(instant)/2
			if wait := start.Sub(instant); wait < 0 || wait > time.Duration(d.Jitter) || wait > half ||
				wait%time.Millisecond != 0 {
				t.Fatalf("%s starts %s later, jitter %s, half of the way %s", instant, wait, d.Jitter, half)
			}
			if !start.Equal(calendar.Start(d, name, instant.Local())) || start.Before(last) {
				t.Fatalf("%s starts at %s and at %s; before %s", instant, start,
					calendar.Start(d, name, instant.Local()), last)
			}
			last = start
		}
	})
	d, starts, instant := schedule.Definition{Spec: schedule.Every(time.Hour, time.Time{}),
		Jitter: flowfabric.Millis(10 * time.Minute)},
		map[time.Duration]bool{}, time.UnixMilli(0)
	var sum time.Duration
	for i := range 1000 {
		wait := calendar.Start(d, fmt.Sprint(i%10),
			instant.Add(time.Duration(i/10)*time.Hour)).Sub(instant.Add(time.Duration(i/10) * time.Hour))
		starts[wait], sum = true, sum+wait
	}
	if mean := sum / 1000; len(starts) < 990 || mean < 280*time.Second || mean > 320*time.Second {
		t.Errorf("%d different starts of 1000, %s on average", len(starts), mean)
	}
}

// The start is part of what processes of different versions must agree on.
func TestStartStaysAsItIs(t *testing.T) {
	const pinned = 5083 * time.Millisecond
	d := schedule.Definition{Spec: schedule.Every(time.Hour, time.Time{}), Jitter: flowfabric.Millis(10 * time.Minute)}
	instant := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	if wait := calendar.Start(d, "nightly", instant).Sub(instant); wait != pinned {
		t.Errorf("it starts %s later", wait)
	}
	d.Until = instant // the last one has as long as the others
	if wait := calendar.Start(d, "nightly", instant).Sub(instant); wait != pinned {
		t.Errorf("the last one starts %s later", wait)
	}
}
