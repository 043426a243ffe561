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

func item() schedule.Item { return schedule.Item{Namespace: "default", Lane: "default", Kind: "k"} }

func TestStoredForm(t *testing.T) {
	anchor := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	full := item()
	full.Capabilities, full.Priority, full.Deadline, full.Creator, full.Digest = []string{"b", "a", "b"}, 7, time.Hour, "me", "d"
	full.Tags = map[string]string{"a.b": "c", "d.e": "f"}
	full.Policy = flowfabric.Policy{Retry: flowfabric.DefaultRetry(), AttemptTimeout: time.Minute}
	gated := item()
	gated.Gates = []flowfabric.Gate{flowfabric.QuotaGate("gpu"), flowfabric.BudgetGate("acme"), flowfabric.QuotaGate("gpu")}
	for _, d := range []schedule.Definition{
		{Spec: schedule.Cron("@daily", ""), Item: gated},
		{Spec: schedule.Cron("0 9 * * MON-FRI", "Europe/Berlin"), Item: item()},
		{Spec: schedule.Cron("@daily", ""), CatchUp: schedule.CatchUpAll, Overlap: schedule.OverlapSkip, Item: full},
		{Spec: schedule.Every(90*time.Second, anchor), CatchUp: schedule.CatchUpSkip, Item: full},
		{Spec: schedule.Every(time.Hour, time.Time{}), Item: item()},
	} {
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := schedule.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Encode()
		if err != nil || string(again) != string(text) {
			t.Errorf("stored as %s, then as %s (%v)", text, again, err)
		}
		at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
		if !back.Spec.Next(at).Equal(d.Spec.Next(at)) || back.Spec.String() != d.Spec.String() {
			t.Errorf("%s came back as %s", d.Spec, back.Spec)
		}
		if back.Item.Policy.AttemptTimeout != d.Item.Policy.AttemptTimeout || back.Item.Deadline != d.Item.Deadline || back.Item.Digest != d.Item.Digest {
			t.Errorf("the item came back as %+v", back.Item)
		}
	}
}

// Gates are stored sorted, and only where there are some.
func TestStoredGates(t *testing.T) {
	d := schedule.Definition{Spec: schedule.Cron("@daily", ""), Item: item()}
	text, err := d.Encode()
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) || strings.Contains(string(text), "gates") {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Gates = []flowfabric.Gate{flowfabric.QuotaGate("gpu"), flowfabric.BudgetGate("acme")}
	text, err = d.Encode()
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) || !strings.Contains(string(text), `"gates":["b:acme","q:gpu"]`) {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Gates = []flowfabric.Gate{"x"}
	if _, err := d.Encode(); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

func TestUnreadableDefinitions(t *testing.T) {
	if _, err := schedule.Decode([]byte(`{"v":2,"lunar":"full moon"}`)); !errors.Is(err, schedule.ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
	for _, text := range []string{"", "x", "{}", `{"v":1}`, `{"v":1,"cron":"0 9 * * *","zone":"Europe/Atlantis","catch_up":"last","overlap":"allow","item":{"namespace":"n","lane":"l","kind":"k"}}`} {
		if _, err := schedule.Decode([]byte(text)); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDefinitionsAreValidated(t *testing.T) {
	for want, change := range map[string]func(*schedule.Definition){
		"catch up":        func(d *schedule.Definition) { d.CatchUp = "some" },
		"overlap":         func(d *schedule.Definition) { d.Overlap = "some" },
		"priority":        func(d *schedule.Definition) { d.Item.Priority = 9001 },
		"deadline":        func(d *schedule.Definition) { d.Item.Deadline = time.Microsecond },
		"creator":         func(d *schedule.Definition) { d.Item.Creator = strings.Repeat("c", 65) },
		"digest":          func(d *schedule.Definition) { d.Item.Digest = strings.Repeat("c", 65) },
		"kind":            func(d *schedule.Definition) { d.Item.Kind = "" },
		"lane":            func(d *schedule.Definition) { d.Item.Lane = "{}" },
		"namespace":       func(d *schedule.Definition) { d.Item.Namespace = "" },
		"schedule.due":    func(d *schedule.Definition) { d.Item.Tags = map[string]string{"schedule.due": "now"} },
		"spec is empty":   func(d *schedule.Definition) { d.Spec = schedule.Spec{} },
		"MaxRetries":      func(d *schedule.Definition) { d.Item.Policy.Retry.MaxRetries = -1 },
		"want at most 62": func(d *schedule.Definition) { d.Item.Tags = manyTags(63) },
	} {
		d := schedule.Definition{Spec: schedule.Cron("@daily", ""), Item: item()}
		change(&d)
		if _, err := d.Encode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func manyTags(n int) map[string]string {
	tags := map[string]string{}
	for i := range n {
		tags["t.x"+strings.Repeat("y", i)] = ""
	}
	return tags
}

func TestLabels(t *testing.T) {
	d := schedule.Definition{Item: schedule.Item{Tags: map[string]string{"a.b": "c"}}}
	tags := d.Labels("nightly", time.Date(2026, 5, 1, 9, 0, 0, 0, time.FixedZone("x", 7200)))
	if len(tags) != 3 || tags["a.b"] != "c" || tags["schedule.name"] != "nightly" || tags["schedule.due"] != "2026-05-01T07:00:00Z" || len(d.Item.Tags) != 1 {
		t.Errorf("labels %v", tags)
	}
}

// FuzzCron: whatever somebody types, an expression is refused with our error or has instants that grow.
func FuzzCron(f *testing.F) {
	for _, seed := range [][2]string{{"0 9 * * MON-FRI", "Europe/Berlin"}, {"@daily", ""}, {"TZ=0", "TZ="}, {"*/5 22-2 ? * 5-1", "America/New_York"},
		{"CRON_TZ= * * * * *", "Local"}, {"- - - - -", "/"}, {"0 0 29 2 *", "Pacific/Apia"}, {"59 59 23 31 12 7", "Asia/Kathmandu"}, {"1,,2 * * * *", "\x00"}} {
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
