package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/schedule"
)

const stamp = "2006-01-02 15:04:05 -0700"

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func spec(t *testing.T, expression, zone string) schedule.Spec {
	t.Helper()
	s := schedule.Cron(expression, zone)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// What the package comment promises about clocks that are changed, hour by hour.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct{ what, expression, zone, from, want string }{
		{"a time that does not exist happens when the clock has jumped", "30 2 * * *", "Europe/Berlin",
			"2026-03-28 12:00:00 +0100", "2026-03-29 03:00:00 +0200, 2026-03-30 02:30:00 +0200"},
		{"several times that do not exist happen together", "*/20 2 * * *", "Europe/Berlin",
			"2026-03-29 00:00:00 +0100", "2026-03-29 03:00:00 +0200, 2026-03-30 02:00:00 +0200"},
		{"and with the one that is there then", "0,30 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00:00 +0100",
			"2026-03-29 03:00:00 +0200, 2026-03-29 03:30:00 +0200, 2026-03-30 02:00:00 +0200"},
		{"a time that comes twice happens the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00 +0200",
			"2026-10-25 02:30:00 +0200, 2026-10-26 02:30:00 +0100"},
		{"also when asked in between", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:30:00 +0200",
			"2026-10-26 02:30:00 +0100"},
		{"also when asked in the second hour", "30 2,4 * * *", "Europe/Berlin", "2026-10-25 02:10:00 +0100",
			"2026-10-25 04:30:00 +0100, 2026-10-26 02:30:00 +0100"},
		{"every hour follows elapsed time over the jump", "0 * * * *", "Europe/Berlin", "2026-03-29 00:30:00 +0100",
			"2026-03-29 01:00:00 +0100, 2026-03-29 03:00:00 +0200, 2026-03-29 04:00:00 +0200"},
		{"and through the hour that comes twice", "30 * * * *", "Europe/Berlin", "2026-10-25 01:30:00 +0200",
			"2026-10-25 02:30:00 +0200, 2026-10-25 02:30:00 +0100, 2026-10-25 03:30:00 +0100"},
		{"New York, spring", "15 2 * * SUN", "America/New_York", "2026-03-07 00:00:00 -0500",
			"2026-03-08 03:00:00 -0400, 2026-03-15 02:15:00 -0400"},
		{"New York, autumn", "15 1 * * *", "America/New_York", "2026-11-01 00:00:00 -0400",
			"2026-11-01 01:15:00 -0400, 2026-11-02 01:15:00 -0500"},
		{"Lord Howe moves by half an hour, spring", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030",
			"2026-10-04 02:30:00 +1100, 2026-10-05 02:15:00 +1100"},
		{"Lord Howe, autumn", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00 +1100",
			"2026-04-05 01:45:00 +1100, 2026-04-06 01:45:00 +1030"},
		{"Lord Howe, every hour", "45 * * * *", "Australia/Lord_Howe", "2026-04-05 00:45:00 +1100",
			"2026-04-05 01:45:00 +1100, 2026-04-05 01:45:00 +1030, 2026-04-05 02:45:00 +1030"},
		{"a midnight that does not exist", "0 0 * * *", "America/Asuncion", "2022-10-01 12:00:00 -0400",
			"2022-10-02 01:00:00 -0300, 2022-10-03 00:00:00 -0300"},
		{"a day that does not exist", "0 9 * * *", "Pacific/Apia", "2011-12-29 12:00:00 -1000",
			"2011-12-31 00:00:00 +1400, 2011-12-31 09:00:00 +1400"},
		{"leap days are years apart", "0 0 29 2 *", "UTC", "2096-03-01 00:00:00 +0000", "2104-02-29 00:00:00 +0000"},
		{"either day, when both are given", "0 0 13 * FRI", "", "2026-02-10 00:00:00 +0000",
			"2026-02-13 00:00:00 +0000, 2026-02-20 00:00:00 +0000, 2026-02-27 00:00:00 +0000, 2026-03-06 00:00:00 +0000, 2026-03-13 00:00:00 +0000"},
		{"seconds", "*/20 59 23 31 12 *", "", "2026-12-31 23:59:10 +0000",
			"2026-12-31 23:59:20 +0000, 2026-12-31 23:59:40 +0000, 2027-12-31 23:59:00 +0000"},
		{"sunday is 0 and 7", "0 0 * * 7", "", "2026-02-10 00:00:00 +0000", "2026-02-15 00:00:00 +0000"},
		{"between two instants", "@hourly", "", "2026-02-10 00:59:59 +0000", "2026-02-10 01:00:00 +0000"},
	} {
		from, err := time.Parse(stamp, c.from)
		if err != nil {
			t.Fatal(err)
		}
		s, loc, got := spec(t, c.expression, c.zone), zone(t, c.zone), ""
		for _, at := range s.Upcoming(from, 1+len(c.want)/27) {
			if got != "" {
				got += ", "
			}
			got += at.In(loc).Format(stamp)
		}
		if got != c.want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.what, s, got, c.want)
		}
	}
}

// Every minute of a year, walked one by one, gives the same instants: the promise is that of the package comment, put
// into a walk that knows no zone rules and no cron.
func TestEveryMinuteOfAYear(t *testing.T) {
	type matcher func(wall time.Time) bool
	each := func(wall time.Time) bool { return true }
	rules := []struct {
		expression string
		hourly     bool
		minute     matcher
	}{
		{"30 2 * * *", false, func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }},
		{"*/20 1-3 * * *", false, func(w time.Time) bool {
			return w.Hour() >= 1 && w.Hour() <= 3 && w.Minute()%20 == 0
		}},
		{"15 0 * * SUN", false, func(w time.Time) bool {
			return w.Hour() == 0 && w.Minute() == 15 && w.Weekday() == time.Sunday
		}},
		{"0 */2 1,15 * *", false, func(w time.Time) bool {
			return w.Hour()%2 == 0 && w.Minute() == 0 && (w.Day() == 1 || w.Day() == 15)
		}},
		{"*/15 * * * *", true, func(w time.Time) bool { return w.Minute()%15 == 0 }},
		{"45 0-23 * * SUN", true, func(w time.Time) bool { return w.Minute() == 45 && w.Weekday() == time.Sunday }},
		{"* * * * *", true, each},
	}
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Asuncion"} {
		loc := zone(t, name)
		for _, rule := range rules {
			t.Run(fmt.Sprintf("%s %s", name, rule.expression), func(t *testing.T) {
				t.Parallel()
				s := spec(t, rule.expression, name)
				from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
				next, furthest := s.Next(from), clockOf(from.In(loc))
				for at := from.Add(time.Minute); at.Year() < 2025; at = at.Add(time.Minute) {
					shown, want := clockOf(at.In(loc)), false
					if rule.hourly {
						want = rule.minute(shown)
					} else {
						for furthest.Before(shown) { // all that the clock shows or has jumped over, once
							furthest = furthest.Add(time.Minute)
							want = want || rule.minute(furthest)
						}
					}
					if want != next.Equal(at) {
						t.Fatalf("%s is an instant: %v; Next is %s", at.In(loc), want, next.In(loc))
					}
					if want {
						if next = s.Next(at); !next.After(at) {
							t.Fatalf("after %s comes %s", at, next)
						}
					}
				}
			})
		}
	}
}

// clockOf is what the clock shows, as a time of UTC.
func clockOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func TestFixedRate(t *testing.T) {
	anchor := time.Date(2026, 5, 1, 9, 0, 0, 250e6, time.UTC)
	s := schedule.Every(90*time.Second, anchor)
	for _, c := range []struct {
		after, want time.Duration
	}{{0, 90 * time.Second}, {-time.Millisecond, 0}, {time.Millisecond, 90 * time.Second},
		{90 * time.Second, 180 * time.Second},
		{-90 * time.Second, 0}, {-91 * time.Second, -90 * time.Second},
		{10000*time.Hour + time.Second, 10000*time.Hour + 90*time.Second}} {
		if got := s.Next(anchor.Add(c.after)); !got.Equal(anchor.Add(c.want)) {
			t.Errorf("after anchor%+v comes anchor%+v, want %+v", c.after, got.Sub(anchor), c.want)
		}
	}
	hour := schedule.Every(time.Hour, time.Time{}).Next(anchor)
	if hour.Format(stamp) != "2026-05-01 10:00:00 +0000" {
		t.Errorf("every hour without an anchor is %s", hour)
	}
}
