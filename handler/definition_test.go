package handler_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func TestDefineDefaults(t *testing.T) {
	d := handler.Define[string, string]("greet")
	want := flowfabric.Start{Kind: "greet", Lane: "default", Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}
	if d.Err() != nil || !reflect.DeepEqual(d.Info(), want) {
		t.Fatalf("got %+v, %v; want %+v", d.Info(), d.Err(), want)
	}
	if d.Info().Policy.Retry.MaxRetries != 3 || d.Codec() != handler.JSON {
		t.Fatalf("default policy %+v, codec %T", d.Info().Policy, d.Codec())
	}
}

func TestDefineOptions(t *testing.T) {
	tags := map[string]string{"app.tenant": "acme"}
	d := handler.Define[string, string]("greet",
		handler.Retry(5, time.Second, 2*time.Minute), flowfabric.Timeout(time.Minute), flowfabric.Deadline(time.Hour),
		flowfabric.Lane("gpu"), flowfabric.Priority(9), flowfabric.Capabilities("cuda", "arm", "cuda"),
		handler.StreamFrames(50), handler.MaxReclaims(7), handler.MaxReplays(3), flowfabric.Retention(time.Hour),
		flowfabric.Gates("other"), flowfabric.Gates("team", "gpu", "acme", "team"),
		flowfabric.Tags(tags))
	tags["app.tenant"] = "changed"
	want := flowfabric.Start{Kind: "greet", Lane: "gpu", Priority: 9, Capabilities: []string{"arm", "cuda"},
		Deadline: flowfabric.Millis(time.Hour), Tags: map[string]string{"app.tenant": "acme"},
		Names: []string{"team", "gpu", "acme", "team"},
		Policy: flowfabric.Policy{AttemptTimeout: flowfabric.Millis(time.Minute), StreamFrames: 50, MaxReclaims: 7,
			MaxReplays: 3,
			Retention:  valid.RetainAll(time.Hour), Retry: flowfabric.RetryPolicy{
				MaxRetries: 5, Initial: time.Second, Max: 2 * time.Minute, Multiplier: 2, Jitter: true}}}
	if d.Err() != nil || !reflect.DeepEqual(d.Info(), want) {
		t.Fatalf("got %+v, %v; want %+v", d.Info(), d.Err(), want)
	}
	d.Info().Capabilities[0] = "changed"
	d.Info().Names[0] = "changed"
	if d.Info().Capabilities[0] != "arm" || d.Info().Names[0] != "team" {
		t.Fatal("a caller changed the definition through its copy")
	}
	d.Info().Tags["app.tenant"] = "changed"
	if !reflect.DeepEqual(d.Info(), want) {
		t.Fatal("a caller changed the tags of the definition")
	}
	for want, opts := range map[int][]handler.DefineOption{7: {handler.Retry(5, time.Second, 0), flowfabric.Retries(7)},
		5: {flowfabric.Retries(7), handler.Retry(5, time.Second, 0)}} {
		if got := handler.Define[string, string]("greet", opts...).Info().Policy.Retry.MaxRetries; got != want {
			t.Fatalf("%d retries, want those of the later option, %d", got, want)
		}
	}
	if p := handler.Define[string, string]("greet", flowfabric.Retries(0)).Info().Policy; valid.PackPolicy(p) != "" {
		t.Fatalf("no retry is stored as %q, want no retries", valid.PackPolicy(p))
	}
	custom := flowfabric.RetryPolicy{MaxRetries: 2, Fixed: true, Initial: time.Second,
		Categories: []flowfabric.Category{"rate_limited"}}
	if p := handler.Define[string, string]("greet", handler.RetryPolicy(custom)).Info().Policy; !reflect.DeepEqual(
		p.Retry, custom) {
		t.Fatalf("got %+v, want %+v", p.Retry, custom)
	}
}

// foreign has the marker of an option and is none.
type foreign struct{}

func (foreign) DefineOption() {}

// Every option refuses what is outside its bounds, naming field and limit, and the definition is refused
// wherever it is used.
func TestDefineRefuses(t *testing.T) {
	tokens := strings.Split(strings.Repeat("x", 257), "")
	for i := range tokens {
		tokens[i] = strings.Repeat("x", i/16+1) + string(rune('a'+i%16))
	}
	for _, tc := range []struct {
		name string
		kind string
		opt  handler.DefineOption
		want error
		says string
	}{
		{"empty kind", "", flowfabric.Retries(0), flowfabric.ErrInvalidInput, "1..64"},
		{"long kind", strings.Repeat("k", 65), flowfabric.Retries(0), flowfabric.ErrInvalidInput, "1..64"},
		{"brace in kind", "a{b", flowfabric.Retries(0), flowfabric.ErrInvalidInput, "kind"},
		{"nil option", "k", nil, flowfabric.ErrInvalidInput, "option 0 is nil"},
		{"gate", "k", flowfabric.Gates("no name"), flowfabric.ErrInvalidInput, `gate "no name"`},
		{"17 gates", "k", flowfabric.Gates(strings.Split("abcdefghijklmnopq", "")...), flowfabric.ErrInvalidInput,
			"17 gates and 0 limits of keys, want at most 16 and 8"},
		{"negative retries", "k", handler.Retry(-1, 0, 0), denied.Policy, "0..1000"},
		{"1001 retries", "k", handler.Retry(1001, 0, 0), denied.Policy, "0..1000"},
		{"sub-millisecond pause", "k", handler.Retry(1, time.Microsecond, 0), flowfabric.ErrInvalidInput,
			"Retry initial"},
		{"long pause", "k", handler.Retry(1, 0, 169*time.Hour), flowfabric.ErrInvalidInput, "want 0 or 1 ms..168 h"},
		{"swapped pauses", "k", handler.Retry(1, time.Minute, time.Second), flowfabric.ErrInvalidInput,
			"below initial"},
		{"policy", "k", handler.RetryPolicy(flowfabric.RetryPolicy{Multiplier: 101}), denied.Policy, "1..100"},
		{"negative timeout", "k", flowfabric.Timeout(-1), flowfabric.ErrInvalidInput, "Timeout"},
		{"tiny timeout", "k", flowfabric.Timeout(1), flowfabric.ErrInvalidInput, "Timeout"},
		{"long timeout", "k", flowfabric.Timeout(limits.MaxDelay + 1), flowfabric.ErrInvalidInput,
			"want 0 or 1 ms..10 years"},
		{"long deadline", "k", flowfabric.Deadline(limits.MaxDelay + 1), flowfabric.ErrInvalidInput, "Deadline"},
		{"empty lane", "k", flowfabric.Lane(""), flowfabric.ErrInvalidInput, "lane"},
		{"priority", "k", flowfabric.Priority(9001), flowfabric.ErrInvalidInput, "0..9000"},
		{"comma in capability", "k", flowfabric.Capabilities("a,b"), denied.Capabilities, "comma_in_token"},
		{"257 capabilities", "k", flowfabric.Capabilities(tokens...), denied.Capabilities, "256"},
		{"tag", "k", flowfabric.Tags(map[string]string{"plain": ""}), denied.TagKey, `key "plain"`},
		{"1001 retries more", "k", flowfabric.Retries(1001), denied.Policy, "Retry.MaxRetries is 1001, want 0..1000"},
		{"not an option of ours", "k", foreign{}, flowfabric.ErrInvalidInput,
			"option 0 is nil or not an option of flowfabric"},
		{"nil codec", "k", handler.WithCodec(nil), flowfabric.ErrInvalidInput, "WithCodec"},
		{"a level that is none", "k", handler.KeepLogs("loud"), flowfabric.ErrInvalidInput, "error or off"},
		{"no frames", "k", handler.StreamFrames(0), flowfabric.ErrInvalidInput, "1..1000000"},
		{"too many frames", "k", handler.StreamFrames(1_000_001), denied.Policy, "1000000"},
		{"no reclaims", "k", handler.MaxReclaims(0), flowfabric.ErrInvalidInput, "1..10000"},
		{"no retention", "k", flowfabric.Retention(0), flowfabric.ErrInvalidInput, "1s..10 years"},
		{"a broken second of retention", "k", flowfabric.Retention(1500 * time.Millisecond), denied.Policy,
			"whole seconds"},
		{"11 years of retention", "k", flowfabric.Retention(11 * 365 * 24 * time.Hour), denied.Policy, "10 years"},
		{"1001 replays", "k", handler.MaxReplays(1001), denied.Policy, "-1..1000"},
		{"-2 replays", "k", handler.MaxReplays(-2), denied.Policy, "-1..1000"},
		{"too many reclaims", "k", handler.MaxReclaims(10_001), denied.Policy, "10000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := handler.Define[string, string](tc.kind, tc.opt)
			_, _, submitted := d.Encode("x")
			_, decoded := d.Decode([]byte(`"x"`))
			bound := handler.Bind(d, handler.Plain(echo[string])).Err()
			for where, err := range map[string]error{"Err": d.Err(), "Encode": submitted, "Decode": decoded,
				"Bind": bound} {
				if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) ||
					!strings.Contains(err.Error(), "definition of kind") {
					t.Errorf("%s: got %v, want %v that says %q and names the kind", where, err, tc.want, tc.says)
				}
			}
		})
	}
	if n := handler.Define[string, string]("k", flowfabric.Capabilities(tokens[:256]...), flowfabric.Priority(9000),
		flowfabric.Lane(strings.Repeat("l", 64))); n.Err() != nil {
		t.Errorf("limits themselves: %v", n.Err())
	}
	both := handler.Define[string, string]("k", flowfabric.Priority(-1), flowfabric.Lane("")).Err()
	if !strings.Contains(both.Error(), "Priority") || !strings.Contains(both.Error(), "lane") {
		t.Errorf("got %v, want both defects", both)
	}
}

func TestEncodeLimit(t *testing.T) {
	d := handler.Define[[]byte, []byte]("raw")
	if _, _, err := d.Encode(make([]byte, limits.MaxPayload)); err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	_, _, err := d.Encode(make([]byte, limits.MaxPayload+1))
	if !errors.Is(err, flowfabric.ErrPayloadTooLarge) ||
		!strings.Contains(err.Error(), "raw has 1048577 bytes, want at most 1048576") {
		t.Fatalf("got %v", err)
	}
	if _, _, err := handler.Define[chan int, int]("chan").Encode(nil); err == nil || !strings.Contains(err.Error(),
		"input of kind chan") {
		t.Fatalf("got %v", err)
	}
}

// Neither 0 nor -1 may mean the default of a policy.
func TestMaxReplaysNever(t *testing.T) {
	for n, want := range map[int]int{-1: -1, 0: -1, 1: 1, 1000: 1000} {
		d := handler.Define[string, string]("k", flowfabric.Retries(0), handler.MaxReplays(n))
		if p := d.Info().Policy; d.Err() != nil || p.MaxReplays != want || valid.PackPolicy(p) == "" {
			t.Errorf("MaxReplays(%d): %+v, packed %q, %v", n, p, valid.PackPolicy(p), d.Err())
		}
	}
}

func TestNilDefinition(t *testing.T) {
	var d *handler.Definition[string, string]
	_, _, encoded := d.Encode("x")
	_, decoded := d.Decode(nil)
	for where, err := range map[string]error{"Err": d.Err(), "Encode": encoded, "Decode": decoded} {
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "the definition is nil") {
			t.Errorf("%s: %v", where, err)
		}
	}
}
