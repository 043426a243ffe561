package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func admit(t testing.TB, e *Engine, x NewExecution) error {
	t.Helper()
	x.ID = flowfabric.NewExecutionID(0)
	out, err := e.CreateExecutions(context.Background(), 0, []NewExecution{x})
	if err != nil {
		t.Fatalf("the whole call was refused: %v", err)
	}
	return out[0].Err
}

func plain() NewExecution {
	return NewExecution{Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k"}}
}

// The limits and one beyond, enforced by the server for callers that did not check.
func TestCreateLimits(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		e := open(t, Config{URL: url, Partitions: 1})
		for name, c := range map[string]struct {
			change   func(*NewExecution)
			sentinel error
		}{
			"plain":           {func(*NewExecution) {}, nil},
			"namespace of 64": {func(x *NewExecution) { x.Namespace = strings.Repeat("n", 64) }, nil},
			"namespace of 65": {func(x *NewExecution) { x.Namespace = strings.Repeat("n", 65) },
				flowfabric.ErrInvalidInput},
			"no lane":           {func(x *NewExecution) { x.Lane = "" }, flowfabric.ErrInvalidInput},
			"brace in kind":     {func(x *NewExecution) { x.Kind = "a{b" }, flowfabric.ErrInvalidInput},
			"separator in kind": {func(x *NewExecution) { x.Kind = "a\x1fb" }, flowfabric.ErrInvalidInput},
			"4096 of caps":      {func(x *NewExecution) { x.Capabilities = []string{strings.Repeat("c", 4096)} }, nil},
			"4097 of caps": {func(x *NewExecution) { x.Capabilities = []string{strings.Repeat("c", 4097)} },
				denied.Capabilities},
			"space in caps":   {func(x *NewExecution) { x.Capabilities = []string{"a b"} }, denied.Capabilities},
			"priority beyond": {func(x *NewExecution) { x.Priority = 1 << 40 }, nil}, // clamped
			"priority below":  {func(x *NewExecution) { x.Priority = -5 }, nil},
			"ten years":       {func(x *NewExecution) { x.Delay = flowfabric.Millis(limits.MaxDelay) }, nil},
			"more than that": {func(x *NewExecution) { x.Delay = flowfabric.Millis(limits.MaxDelay + time.Second) },
				flowfabric.ErrInvalidInput},
			"deadline too far": {func(x *NewExecution) { x.Deadline = flowfabric.Millis(limits.MaxDelay + time.Second) },
				flowfabric.ErrInvalidInput},
			"delay in the past": {func(x *NewExecution) { x.DelayUntil = time.Unix(1, 0) }, nil},
			"creator of 64":     {func(x *NewExecution) { x.Creator = strings.Repeat("c", 64) }, nil},
			"creator of 65": {func(x *NewExecution) { x.Creator = strings.Repeat("c", 65) },
				flowfabric.ErrInvalidInput},
			"digest of 65": {func(x *NewExecution) { x.Digest = strings.Repeat("d", 65) },
				flowfabric.ErrInvalidInput},
			"payload of 1 MiB": {func(x *NewExecution) { x.Payload = make([]byte, limits.MaxPayload) }, nil},
			"64 tags":          {func(x *NewExecution) { x.Tags = manyTags(64) }, nil},
			"tag value of 256": {
				func(x *NewExecution) { x.Tags = map[string]string{"a.b": strings.Repeat("v", 256)} }, nil},
			"tag value of 257": {func(x *NewExecution) {
				x.Tags = map[string]string{"a.b": strings.Repeat("v", 257)}
			}, flowfabric.ErrInvalidInput},
			"tag without a dot": {func(x *NewExecution) { x.Tags = map[string]string{"ab": "v"} },
				flowfabric.ErrInvalidInput},
			"a policy":           {func(x *NewExecution) { x.Policy.Retry = valid.DefaultRetry() }, nil},
			"16 retry reasons":   {func(x *NewExecution) { x.Policy.Retry = reasons(16) }, nil},
			"a year per attempt": {func(x *NewExecution) { x.Policy.AttemptTimeout = flowfabric.Millis(365 * 24 * time.Hour) }, nil},
		} {
			x := plain()
			c.change(&x)
			if err := admit(t, e, x); !errors.Is(err, c.sentinel) {
				t.Errorf("%s: %v, want %v", name, err, c.sentinel)
			}
		}
		// Refused before anything is sent: one byte more than a call may carry.
		x := plain()
		x.ID, x.Payload = flowfabric.NewExecutionID(0), make([]byte, limits.MaxPayload+1)
		if _, err := e.CreateExecutions(t.Context(), 0, []NewExecution{x}); !errors.Is(err,
			flowfabric.ErrPayloadTooLarge) {
			t.Errorf("1 MiB and a byte: %v", err)
		}
	}
}

func manyTags(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out["t.k"+string(rune('a'+i%26))+string(rune('a'+i/26))] = "v"
	}
	return out
}

func reasons(n int) flowfabric.RetryPolicy {
	p := valid.DefaultRetry()
	for i := range n {
		p.Categories = append(p.Categories, strings.Repeat(string(rune('a'+i)), 64))
	}
	return p
}

// FuzzTags: Go and the server agree on what a tag is; each checks for itself.
func FuzzTags(f *testing.F) {
	for _, s := range []string{"team.region", "a", "a.", ".a", "a..b", "A.b", "a.B", "a.b.c_1", "_a.b", "a.b-c", "ä.b",
		"a.\x00"} {
		f.Add(s, "v")
	}
	f.Add("a.b", strings.Repeat("v", 257))
	e := open(f, Config{URL: testserver.Embedded(f), Partitions: 1})
	f.Fuzz(func(t *testing.T, key, value string) {
		// The bare call: Engine.CreateExecutions would refuse a bad tag before it is sent.
		r, err := e.call(context.Background(), fnCreate, 0, protocol, "n", "l", "k",
			"", "0", "", "", "", "", "", "1", key, value, "1", flowfabric.NewExecutionID(0).UUID().String(), "",
			"payload")
		must.No(t, err)
		r.Count(1)
		_, _, refused := r.answer()
		if err := valid.Tags(map[string]string{key: value}); (refused == nil) != (err == nil) {
			t.Errorf("%q=%q: server %v, Go %v", key, value, refused, err)
		}
	})
}
