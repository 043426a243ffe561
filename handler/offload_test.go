package handler_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// spied is a store that keeps what it was given last.
type spied struct {
	blob.Store
	last     []byte
	puts     int
	put, get error
}

func (k *spied) Put(ctx context.Context, data []byte) (string, error) {
	k.last, k.puts = bytes.Clone(data), k.puts+1
	if k.put != nil {
		return "", k.put
	}
	return k.Store.Put(ctx, data)
}

func (k *spied) Get(ctx context.Context, ref string) ([]byte, error) {
	if k.get != nil {
		return nil, k.get
	}
	return k.Store.Get(ctx, ref)
}

// Payloads above the bound are references, and below it what the codec writes, unless that looks like a reference.
func TestOffloaded(t *testing.T) {
	store := &spied{Store: blob.Folder(t.TempDir())}
	codec := handler.Offloaded(handler.JSON, store, 0)
	other := string(must2(t)(codec.Encode([]byte(strings.Repeat("x", 2000)))))
	for i, tc := range []struct {
		raw  string
		puts int
	}{
		{"", 0}, {strings.Repeat("x", 1024), 0}, {strings.Repeat("x", 1025), 1}, {strings.Repeat("\x00", 1<<20), 1},
		{other, 1}, {`{"flowfabric_blob":"`, 1}, {`{"flowfabric_blobs":"`, 0},
	} {
		store.puts = 0
		data, err := codec.Encode([]byte(tc.raw))
		if err != nil || store.puts != tc.puts || tc.puts > 0 && len(data) > 120 ||
			tc.puts == 0 && string(data) != tc.raw {
			t.Errorf("%d: %d bytes, %d stored, %v", i, len(data), store.puts, err)
		}
		var got []byte
		if err := codec.Decode(data, &got); err != nil || string(got) != tc.raw {
			t.Errorf("%d: %d bytes of %d: %v", i, len(got), len(tc.raw), err)
		}
	}
}

func must2(t *testing.T) func([]byte, error) []byte {
	return func(data []byte, err error) []byte { must.No(t, err); return data }
}

// With a cipher the store gets cipher text, and the digest of an input is that of its plain bytes.
func TestOffloadedAndEncrypted(t *testing.T) {
	store := &spied{Store: blob.Folder(t.TempDir())}
	secret := strings.Repeat("hunter2 ", 500)
	_, plain, _ := handler.Define[string, string]("k").Encode(secret)
	cipher, err := flowfabric.CipherKeys("a:" + strings.Repeat("ab", 32))
	must.No(t, err)
	d := handler.Define[string, string]("k",
		handler.WithCodec(handler.Offloaded(handler.JSON, blob.Encrypted(store, cipher), 1024)))
	data, digest, err := d.Encode(secret)
	if err != nil || digest != plain || len(data) > 120 || bytes.Contains(store.last, []byte("hunter2")) ||
		len(store.last) < len(secret) {
		t.Errorf("%s, %v", data, err)
	}
	if got, err := d.Decode(data); err != nil || got != secret {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	other, err := flowfabric.CipherKeys("a:" + strings.Repeat("cd", 32))
	must.No(t, err)
	if _, err := blob.Encrypted(store, other).Get(t.Context(), blob.Ref(store.last)); err == nil {
		t.Error("another key opens it")
	}
	if _, err := blob.Encrypted(store, cipher).Put(t.Context(), make([]byte, blob.MaxSize)); !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) {
		t.Error(err)
	}
}

// A store that is away is retried by policy; bytes that are gone are not.
func TestOffloadedFailures(t *testing.T) {
	store := &spied{Store: blob.Folder(t.TempDir())}
	d := handler.Define[[]byte, []byte]("k", handler.WithCodec(handler.Offloaded(handler.JSON, store, 1024)))
	input, _, err := d.Encode(make([]byte, 2000))
	must.No(t, err)
	away := errors.New("away")
	for name, tc := range map[string]struct {
		put, get  error
		input     []byte
		category  string
		permanent bool
	}{
		"read, away":   {get: away, input: input, category: causes.Decode},
		"read, gone":   {get: flowfabric.ErrNotFound, input: input, category: causes.Decode, permanent: true},
		"no reference": {input: []byte(`{"flowfabric_blob":"x`), category: causes.Decode, permanent: true},
		"stored, away": {put: away, input: input, category: causes.HandlerError},
		"stored, too large": {put: flowfabric.ErrPayloadTooLarge, input: input, category: causes.HandlerError,
			permanent: true},
	} {
		store.put, store.get = tc.put, tc.get
		out := handler.Bind(d, handler.Plain(echo[[]byte])).Run(context.Background(),
			newTask(tasks.Config{Claim: &engine.Claim{Input: tc.input}}))
		if out.Kind != codes.OutcomeFail || string(out.Failure.Category) != tc.category ||
			out.Failure.Permanent != tc.permanent {
			t.Errorf("%s: got %+v", name, out)
		}
	}
}

// Inputs, results and values of steps far above the limits of the server pass through it, whenever the worker dies.
func TestOffloadedOnAWorker(t *testing.T) {
	store := blob.Folder(t.TempDir())
	d := handler.Define[string, string]("large", handler.Retry(3, time.Second, time.Minute),
		handler.WithCodec(handler.Offloaded(handler.JSON, store, 64<<10)))
	input := strings.Repeat("in ", 1<<20)
	crashes := fftest.Crashes(t, d, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, task *handler.Task, in string) (string, error) {
			return handler.Step(ctx, task, "double", func(context.Context) (string, error) { return in + in, nil })
		}
	}, input, func(r *fftest.Report[string]) {
		if r.Err != nil || r.Result != input+input {
			t.Errorf("%s: %d bytes, %v", r.Crash, len(r.Result), r.Err)
		}
	})
	if crashes == 0 {
		t.Error("no crash")
	}
}
