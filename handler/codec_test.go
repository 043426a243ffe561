package handler_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
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

type gcm struct{ cipher.AEAD }

func newGCM(t *testing.T) gcm {
	t.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	must.No(t, err)
	aead, err := cipher.NewGCM(block)
	must.No(t, err)
	return gcm{aead}
}

func (g gcm) Seal(plain []byte) ([]byte, error) {
	nonce := make([]byte, g.NonceSize())
	_, _ = rand.Read(nonce)
	return g.AEAD.Seal(nonce, nonce, plain, nil), nil
}

func (g gcm) Open(sealed []byte) ([]byte, error) {
	if len(sealed) < g.NonceSize() {
		return nil, handler.Permanent(errors.New("too short"))
	}
	return g.AEAD.Open(nil, sealed[:g.NonceSize()], sealed[g.NonceSize():], nil)
}

func TestEncrypted(t *testing.T) {
	d := handler.Define[string, string]("secret", handler.WithCodec(handler.Encrypted(handler.JSON, newGCM(t))))
	first, digest1, err1 := d.Encode("hunter2")
	second, digest2, err2 := d.Encode("hunter2")
	if err1 != nil || err2 != nil || bytes.Contains(first, []byte("hunter2")) || bytes.Equal(first, second) {
		t.Fatalf("not sealed: %q, %v, %v", first, err1, err2)
	}
	_, plainDigest, _ := handler.Define[string, string]("secret").Encode("hunter2")
	if digest1 != digest2 || digest1 != plainDigest || len(digest1) != 32 {
		t.Fatalf("digests %q, %q and unencrypted %q, want one of 32 digits", digest1, digest2, plainDigest)
	}
	steps := &recorder{}
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: first}, Steps: steps})
	out := handler.Bind(d, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		return handler.Step(ctx, t, "upper", func(context.Context) (string, error) { return in + "!", nil })
	}).Run(context.Background(), task)
	if got, err := d.Decode(out.Result); err != nil || got != "hunter2!" {
		t.Fatalf("got %q, %v (%+v)", got, err, out)
	}
	if sealed := steps.values["upper"]; len(sealed) == 0 || bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatalf("the step was recorded as %q", sealed)
	}
}

type failingCipher struct{ seal, open error }

func (f failingCipher) Seal(p []byte) ([]byte, error) { return p, f.seal }
func (f failingCipher) Open(p []byte) ([]byte, error) { return p, f.open }

// A key service that is away must not fill the dead letters; bytes that will never decode must not be retried.
func TestCipherFailures(t *testing.T) {
	away := errors.New("key service away")
	for _, tc := range []struct {
		name      string
		cipher    failingCipher
		input     string
		category  string
		permanent bool
	}{
		{"open, may pass", failingCipher{open: away}, `"x"`, causes.Decode, false},
		{"open, final", failingCipher{open: handler.Permanent(away)}, `"x"`, causes.Decode, true},
		{"opened, not JSON", failingCipher{}, `{`, causes.Decode, true},
		{"seal, may pass", failingCipher{seal: away}, `"x"`, causes.HandlerError, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := handler.Define[string, string]("k", handler.WithCodec(handler.Encrypted(handler.JSON, tc.cipher)))
			out := handler.Bind(d, handler.Plain(echo[string])).Run(context.Background(),
				newTask(tasks.Config{Claim: &engine.Claim{Input: []byte(tc.input)}}))
			if out.Kind != codes.OutcomeFail || string(out.Failure.Category) != tc.category ||
				out.Failure.Permanent != tc.permanent {
				t.Fatalf("got %+v", out)
			}
		})
	}
}

// recorder keeps steps in memory, like the server would.
type recorder struct {
	values map[string][]byte
	before func(ctx context.Context) error
	calls  int
}

func (r *recorder) RecordStep(ctx context.Context, _ flowfabric.Fence, name string, value []byte,
	_ time.Duration) (bool, error) {
	r.calls++
	if r.before != nil {
		if err := r.before(ctx); err != nil {
			return false, err
		}
	}
	if r.values == nil {
		r.values = map[string][]byte{}
	}
	r.values[name] = value
	return false, nil
}

func echo[T any](_ context.Context, in T) (T, error) { return in, nil }
