package calendar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

func item() schedule.Item {
	return schedule.Item{Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}}
}

func TestStoredForm(t *testing.T) {
	anchor := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	full := item()
	full.Capabilities, full.Priority, full.Deadline, full.Creator, full.Digest = []string{"b", "a", "b"}, 7,
		flowfabric.Millis(time.Hour),
		"me", "d"
	full.Tags = map[string]string{"a.b": "c", "d.e": "f"}
	full.Policy = flowfabric.Policy{Retry: valid.DefaultRetry(), AttemptTimeout: flowfabric.Millis(time.Minute)}
	gated := item()
	gated.Names = []string{"gpu", "acme", "gpu"}
	for _, d := range []schedule.Definition{
		{Spec: schedule.Cron("@daily", ""), Item: gated},
		{Spec: schedule.Cron("0 9 * * MON-FRI", "Europe/Berlin"), Item: item()},
		{Spec: schedule.Cron("@daily", ""), CatchUp: schedule.CatchUpAll, Overlap: schedule.OverlapSkip, Item: full},
		{Spec: schedule.Every(90*time.Second, anchor), CatchUp: schedule.CatchUpSkip, Item: full},
		{Spec: schedule.Every(time.Hour, time.Time{}), Item: item()},
		{Spec: schedule.Every(time.Hour, time.Time{}), Until: anchor.Add(time.Hour), Runs: 3,
			Jitter: flowfabric.Millis(time.Minute),
			Owner:  "billing", Item: item()},
		{Spec: schedule.Cron("@daily", ""),
			Item: schedule.Item{Nodes: 3, Start: flowfabric.Start{Namespace: "default", Kind: "report"}, Digest: "d"}},
	} {
		text, err := calendar.Encode(d)
		must.No(t, err)
		back, err := calendar.Decode(text)
		must.No(t, err)
		again, err := calendar.Encode(back)
		if err != nil || string(again) != string(text) {
			t.Errorf("stored as %s, then as %s (%v)", text, again, err)
		}
		at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
		if !back.Spec.Next(at).Equal(d.Spec.Next(at)) || back.Spec.String() != d.Spec.String() {
			t.Errorf("%s came back as %s", d.Spec, back.Spec)
		}
		if !back.Until.Equal(d.Until) || back.Runs != d.Runs || back.Jitter != d.Jitter || back.Owner != d.Owner ||
			back.Item.Nodes != d.Item.Nodes {
			t.Errorf("%+v came back as %+v", d, back)
		}
		if back.Item.Policy.AttemptTimeout != d.Item.Policy.AttemptTimeout || back.Item.Deadline != d.Item.Deadline ||
			back.Item.Digest != d.Item.Digest {
			t.Errorf("the item came back as %+v", back.Item)
		}
	}
}

// A definition has the lowest version that can express it, so that older processes go on with what they understand:
// an owner says nothing about when it fires.
func TestStoredVersion(t *testing.T) {
	for want, change := range map[string]func(*schedule.Definition){
		`{"v":1,"c`:  func(*schedule.Definition) {},
		`{"v":1,"cr`: func(d *schedule.Definition) { d.Owner = "billing" },
		`{"v":2,"cron":"@daily","catch_up":"last","overlap":"allow","until`: func(d *schedule.Definition) {
			d.Until = time.Unix(1, 0)
		},
		`{"v":2,"cron":"@daily","catch_up":"last","overlap":"allow","runs`: func(d *schedule.Definition) {
			d.Runs = 1
		},
		`{"v":2,"cron":"@daily","catch_up":"last","overlap":"allow","jitter`: func(d *schedule.Definition) {
			d.Jitter = flowfabric.Millis(time.Second)
		},
		`{"v":2,"cron":"@daily","catch_up":"last","overlap":"allow","item":{"nodes":2`: func(d *schedule.Definition) {
			d.Item.Nodes, d.Item.Lane = 2, ""
		},
	} {
		d := schedule.Definition{Spec: schedule.Cron("@daily", ""), Item: item()}
		change(&d)
		if text, err := calendar.Encode(d); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
	}
}

// Gates are stored as they are given, and only where there are some.
func TestStoredGates(t *testing.T) {
	d := schedule.Definition{Spec: schedule.Cron("@daily", ""), Item: item()}
	text, err := calendar.Encode(d)
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) || strings.Contains(string(text), "gates") {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Names = []string{"gpu", "acme"}
	text, err = calendar.Encode(d)
	if err != nil || !strings.HasPrefix(string(text), `{"v":1,`) ||
		!strings.Contains(string(text), `"gates":["gpu","acme"]`) {
		t.Errorf("%s, %v", text, err)
	}
	d.Item.Names = []string{"x y"}
	if _, err := calendar.Encode(d); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

func TestUnreadableDefinitions(t *testing.T) {
	if _, err := calendar.Decode([]byte(`{"v":3,"lunar":"full moon"}`)); !errors.Is(err, calendar.ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
	for _, text := range []string{"", "x", "{}", `{"v":1}`,
		`{"v":1,"cron":"0 9 * * *","zone":"Europe/Atlantis","catch_up":"last","overlap":"allow","item":{"namespace":"n","lane":"l","kind":"k"}}`} {
		if _, err := calendar.Decode([]byte(text)); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDefinitionsAreValidated(t *testing.T) {
	for want, change := range map[string]func(*schedule.Definition){
		"catch up":        func(d *schedule.Definition) { d.CatchUp = "some" },
		"overlap":         func(d *schedule.Definition) { d.Overlap = "some" },
		"Priority":        func(d *schedule.Definition) { d.Item.Priority = 9001 },
		"Deadline":        func(d *schedule.Definition) { d.Item.Deadline = flowfabric.Millis(time.Microsecond) },
		"Creator":         func(d *schedule.Definition) { d.Item.Creator = strings.Repeat("c", 65) },
		"digest":          func(d *schedule.Definition) { d.Item.Digest = strings.Repeat("c", 65) },
		"kind":            func(d *schedule.Definition) { d.Item.Kind = "" },
		"lane":            func(d *schedule.Definition) { d.Item.Lane = "{}" },
		"namespace":       func(d *schedule.Definition) { d.Item.Namespace = "" },
		"schedule.due":    func(d *schedule.Definition) { d.Item.Tags = map[string]string{"schedule.due": "now"} },
		"spec is empty":   func(d *schedule.Definition) { d.Spec = schedule.Spec{} },
		"MaxRetries":      func(d *schedule.Definition) { d.Item.Policy.Retry.MaxRetries = -1 },
		"until":           func(d *schedule.Definition) { d.Until = time.Unix(-1, 0) },
		"until 2026":      func(d *schedule.Definition) { d.Until = time.Date(2026, 5, 1, 9, 0, 0, 1, time.UTC) },
		"runs":            func(d *schedule.Definition) { d.Runs = 1 << 53 },
		"jitter -1ms":     func(d *schedule.Definition) { d.Jitter = flowfabric.Millis(-time.Millisecond) },
		"jitter 24h":      func(d *schedule.Definition) { d.Jitter = flowfabric.Millis(24*time.Hour + 1e6) },
		"jitter 1":        func(d *schedule.Definition) { d.Jitter = flowfabric.Millis(time.Nanosecond) },
		"owner":           func(d *schedule.Definition) { d.Owner = "{}" },
		"nodes":           func(d *schedule.Definition) { d.Item.Nodes = 10001 },
		"deadline_at: no": func(d *schedule.Definition) { d.Item.DeadlineAt = time.Now() },
		"belongs to the":  func(d *schedule.Definition) { d.Item.Nodes = 1 },
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
	own := map[string]string{"a.b": "c"}
	tags := calendar.Labels(own, "nightly", time.Date(2026, 5, 1, 9, 0, 0, 0, time.FixedZone("x", 7200)))
	if len(tags) != 3 || tags["a.b"] != "c" || tags["schedule.name"] != "nightly" ||
		tags["schedule.due"] != "2026-05-01T07:00:00Z" || len(own) != 1 {
		t.Errorf("labels %v", tags)
	}
}

// Whatever is stored is read or refused. What was read says the same once it is stored again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"cron":"@daily","item":{"namespace":"a","lane":"b","kind":"c"}}`,
		`{"every":1000,"anchor":5,"until":9,"runs":2,"item":{"namespace":"a","lane":"b","kind":"c"}}`,
		"{}", "", "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := calendar.Decode(text)
		if err != nil {
			return
		}
		stored, err := calendar.Encode(d)
		if err != nil {
			t.Skip(err) // it is too large now
		}
		back, err := calendar.Decode(stored)
		if again, wrong := calendar.Encode(back); err != nil || wrong != nil || string(again) != string(stored) {
			t.Errorf("%q is stored as %s, and that as %s (%v, %v)", text, stored, again, err, wrong)
		}
	})
}
