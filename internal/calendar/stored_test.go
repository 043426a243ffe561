package calendar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/schedule"
)

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
		text, err := calendar.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := calendar.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := calendar.Encode(back)
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
	text, err := calendar.Encode(d)
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) || strings.Contains(string(text), "gates") {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Gates = []flowfabric.Gate{flowfabric.QuotaGate("gpu"), flowfabric.BudgetGate("acme")}
	text, err = calendar.Encode(d)
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) || !strings.Contains(string(text), `"gates":["b:acme","q:gpu"]`) {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Gates = []flowfabric.Gate{"x"}
	if _, err := calendar.Encode(d); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

func TestUnreadableDefinitions(t *testing.T) {
	if _, err := calendar.Decode([]byte(`{"v":2,"lunar":"full moon"}`)); !errors.Is(err, calendar.ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
	for _, text := range []string{"", "x", "{}", `{"v":1}`, `{"v":1,"cron":"0 9 * * *","zone":"Europe/Atlantis","catch_up":"last","overlap":"allow","item":{"namespace":"n","lane":"l","kind":"k"}}`} {
		if _, err := calendar.Decode([]byte(text)); !errors.Is(err, flowfabric.ErrInvalidInput) {
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
		if _, err := calendar.Encode(d); err == nil || !strings.Contains(err.Error(), want) {
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
	tags := calendar.Labels(d, "nightly", time.Date(2026, 5, 1, 9, 0, 0, 0, time.FixedZone("x", 7200)))
	if len(tags) != 3 || tags["a.b"] != "c" || tags["schedule.name"] != "nightly" || tags["schedule.due"] != "2026-05-01T07:00:00Z" || len(d.Item.Tags) != 1 {
		t.Errorf("labels %v", tags)
	}
}
