package handler_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Every byte value survives, in both directions, untouched.
func TestRawBytesPassThrough(t *testing.T) {
	raw := make([]byte, 256)
	for i := range raw {
		raw[i] = byte(i)
	}
	d := handler.Define[[]byte, []byte]("raw")
	payload, _, err := d.Encode(raw)
	must.No(t, err)
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: payload}})
	out := handler.Bind(d, handler.Plain(echo[[]byte])).Run(context.Background(), task)
	result, err := d.Decode(out.Result)
	if err != nil || !bytes.Equal(result, raw) {
		t.Fatalf("got % x, %v", result, err)
	}
}

func TestJSONEmptyInput(t *testing.T) {
	var nothing struct{}
	if err := handler.JSON.Decode(nil, &nothing); err != nil {
		t.Errorf("struct{}: %v", err)
	}
	var text string
	if err := handler.JSON.Decode(nil, &text); err == nil {
		t.Error("an empty payload decoded into a string")
	}
}

// boxOf is a box with one key.
func boxOf(t *testing.T) *sealed.Box {
	t.Helper()
	c, err := flowfabric.CipherKeys("k:" + strings.Repeat("ab", 32))
	must.No(t, err)
	return sealed.New(c)
}

// What a handler stores is sealed before it leaves the handler, and an input that no engine could open is opened here.
func TestEncrypted(t *testing.T) {
	d, box := handler.Define[string, string]("secret"), boxOf(t)
	plain, _, err := d.Encode("hunter2")
	must.No(t, err)
	input, err := box.Seal(plain)
	must.No(t, err)
	steps := &recorder{}
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: input}, Steps: steps, Box: box})
	out := handler.Bind(d, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		return handler.Step(ctx, t, "upper", func(context.Context) (string, error) { return in + "!", nil })
	}).Run(context.Background(), task)
	if _, err := d.Decode(out.Result); !errors.Is(err, flowfabric.ErrEncrypted) {
		t.Errorf("decoding what is encrypted: %v", err)
	}
	result, err := box.Open(out.Result)
	must.No(t, err)
	if got, err := d.Decode(result); err != nil || got != "hunter2!" {
		t.Fatalf("got %q, %v (%+v)", got, err, out)
	}
	if step := steps.values["upper"]; !sealed.Is(step) || bytes.Contains(step, []byte("hunter2")) {
		t.Fatalf("the step was recorded as %q", step)
	}
	again := newTask(tasks.Config{Claim: &engine.Claim{Input: input, Steps: steps.values}, Box: box})
	if out := handler.Bind(d, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		return handler.Step(ctx, t, "upper", func(context.Context) (string, error) { return "", errors.New("again") })
	}).Run(context.Background(), again); out.Kind != codes.OutcomeComplete {
		t.Errorf("the recorded step: %+v", out)
	}
}

type failingCipher struct{ seal, open error }

func (f failingCipher) Seal(p []byte) ([]byte, error) { return p, f.seal }
func (f failingCipher) Open(p []byte) ([]byte, error) { return p, f.open }

// A key service that is away must not fill the dead letters; bytes that will never decode must not be retried.
func TestCipherFailures(t *testing.T) {
	away, keys := errors.New("key service away"), boxOf(t)
	good, err := keys.Seal([]byte(`"x"`))
	must.No(t, err)
	half, _ := sealed.New(failingCipher{}).Seal([]byte("{"))
	for _, tc := range []struct {
		name      string
		box       *sealed.Box
		input     []byte
		category  string
		permanent bool
	}{
		{"open, may pass", sealed.New(failingCipher{open: away}), good, causes.Decode, false},
		{"open, final", sealed.New(failingCipher{open: handler.Permanent(away)}), good, causes.Decode, true},
		{"no key at all", nil, good, causes.Decode, false},
		{"changed", keys, append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1), causes.Decode, true},
		{"cut short", keys, good[:20], causes.Decode, true},
		{"opened, not JSON", sealed.New(failingCipher{}), half, causes.Decode, true},
		{"seal, may pass", sealed.New(failingCipher{seal: away}), []byte(`"x"`), causes.HandlerError, false},
		{"seal, final", sealed.New(failingCipher{seal: handler.Permanent(away)}), []byte(`"x"`), causes.HandlerError,
			true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := handler.Bind(handler.Define[string, string]("k"), handler.Plain(echo[string])).Run(t.Context(),
				newTask(tasks.Config{Claim: &engine.Claim{Input: tc.input}, Box: tc.box}))
			if out.Kind != codes.OutcomeFail || string(out.Failure.Category) != tc.category ||
				out.Failure.Permanent != tc.permanent {
				t.Fatalf("got %+v", out)
			}
		})
	}
}

// An answer, and messages, that stay encrypted are a failure to decode, which another worker may not have.
func TestEncryptedAnswers(t *testing.T) {
	box := boxOf(t)
	data, err := box.Seal([]byte(`"yes"`))
	must.No(t, err)
	for _, tc := range []struct {
		box *sealed.Box
	}{{nil}, {sealed.New(failingCipher{open: errors.New("away")})}} {
		task := newTask(tasks.Config{Box: tc.box, Claim: &engine.Claim{Input: []byte(`"x"`), Resume: &suspend.Result{
			Name: "go", Cause: suspend.CauseSignal,
			Signals: []suspend.StoredSignal{{Name: "signal", Encoding: "json", Payload: data}}}}})
		out := handler.Bind(handler.Define[string, []byte]("k"), func(ctx context.Context, t *handler.Task,
			_ string) ([]byte, error) {
			return handler.Await[[]byte](ctx, t, "go")
		}).Run(t.Context(), task)
		if out.Kind != codes.OutcomeFail || string(out.Failure.Category) != causes.Decode || out.Failure.Permanent {
			t.Errorf("%+v", out)
		}
	}
}

// recorder keeps steps in memory, like the server would.
type recorder struct {
	values map[string][]byte
	before func(ctx context.Context) error
	calls  int
}

func (r *recorder) RecordTurn(ctx context.Context, _ flowfabric.Fence, s engine.Step) (engine.Recorded, error) {
	r.calls++
	if r.before != nil {
		if err := r.before(ctx); err != nil {
			return engine.Recorded{}, err
		}
	}
	if r.values == nil {
		r.values = map[string][]byte{}
	}
	r.values[s.Name] = s.Value
	return engine.Recorded{}, nil
}

func echo[T any](_ context.Context, in T) (T, error) { return in, nil }
