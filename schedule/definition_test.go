package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/schedule"
)

func TestRefusalsNameTheField(t *testing.T) {
	for _, c := range []struct {
		spec schedule.Spec
		want string
	}{
		{schedule.Cron("", ""), "1..128"},
		{schedule.Cron("* * * *", ""), "4 fields, want 5"},
		{schedule.Cron("* * * * * * *", ""), "7 fields"},
		{schedule.Cron("60 * * * *", ""), `field minute is "60"`},
		{schedule.Cron("0 25 * * *", ""), `field hour is "25"`},
		{schedule.Cron("0 0 0 * *", ""), `field day of month is "0"`},
		{schedule.Cron("0 0 * 13 *", ""), `field month is "13"`},
		{schedule.Cron("0 0 * * MOON", ""), `field day of week is "MOON"`},
		{schedule.Cron("61 0 0 * * *", ""), `field second is "61"`},
		{schedule.Cron("*/0 * * * *", ""), `field minute is "*/0"`},
		{schedule.Cron("0 0 L * *", ""), "field day of month"},
		{schedule.Cron("H * * * *", ""), "field minute"},
		{schedule.Cron("0 0 30 2 *", ""), "it never comes"},
		{schedule.Cron("TZ=UTC 0 0 * * *", ""), "the zone is given apart"},
		{schedule.Cron("CRON_TZ=", ""), "the zone is given apart"},
		{schedule.Cron("TZ=0", ""), "the zone is given apart"},
		{schedule.Cron("@every 1h", ""), "2 fields"},
		{schedule.Cron("@reboot", ""), "1 fields"},
		{schedule.Cron("0 0 * * *\x00", ""), "byte 9"},
		{schedule.Cron(strings.Repeat("1,", 70)+"1 * * * *", ""), "want 1..128"},
		{schedule.Cron("0 9 * * *", "Europe/Atlantis"), "Europe/Atlantis"},
		{schedule.Cron("0 9 * * *", "Local"), "Local"},
		{schedule.Cron("0 9 * * *", "localtime"), "localtime"},
		{schedule.Cron("0 9 * * *", "posixrules"), "posixrules"},
		{schedule.Cron("0 9 * * *", "Factory"), "Factory"},
		{schedule.Cron("0 9 * * *", "europe/berlin"), "europe/berlin"},
		{schedule.Cron("0 9 * * *", "Asia/Tokyo\nUTC"), "Asia/Tokyo"},
		{schedule.Cron("0 9 * * *", "right/Europe/Berlin"), "right/Europe/Berlin"},
		{schedule.Cron("0 9 * * *", "posix/UTC"), "posix/UTC"},
		{schedule.Cron("0 9 * * *", "../../etc/passwd"), "time zone database"},
		{schedule.Cron("0 9 * * *", strings.Repeat("E", 100)), "time zone database"},
		{schedule.Every(time.Millisecond, time.Time{}), "interval 1ms"},
		{schedule.Every(-time.Hour, time.Time{}), "interval"},
		{schedule.Every(time.Second+time.Nanosecond, time.Time{}), "whole milliseconds"},
		{schedule.Every(11*365*24*time.Hour, time.Time{}), "10 years"},
		{schedule.Every(time.Hour, time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)), "anchor"},
		{schedule.Spec{}, "empty"},
	} {
		err := c.spec.Err()
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.spec, err, c.want)
		}
		if !c.spec.Next(time.Now()).IsZero() {
			t.Errorf("%s has a next instant", c.spec)
		}
	}
}

// FuzzCron: whatever somebody types, an expression is refused with our error or has instants that grow.
func FuzzCron(f *testing.F) {
	for _, seed := range [][2]string{{"0 9 * * MON-FRI", "Europe/Berlin"}, {"@daily", ""}, {"TZ=0", "TZ="},
		{"*/5 22-2 ? * 5-1", "America/New_York"},
		{"CRON_TZ= * * * * *", "Local"}, {"- - - - -", "/"}, {"0 0 29 2 *", "Pacific/Apia"},
		{"59 59 23 31 12 7", "Asia/Kathmandu"}, {"1,,2 * * * *", "\x00"}} {
		f.Add(seed[0], seed[1], int64(1774749600))
	}
	f.Fuzz(func(t *testing.T, expression, zone string, at int64) {
		s := schedule.Cron(expression, zone)
		if err := s.Err(); err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Fatalf("%q in %q: %v", expression, zone, err)
			}
			return
		}
		after := time.Unix(at%(1<<33), 0)
		for range 5 {
			next := s.Next(after)
			if !next.After(after) {
				t.Fatalf("%s: after %s comes %s", s, after, next)
			}
			after = next
		}
	})
}
