package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/clienttest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/stream"
)

// keyed opens an engine and a client of one store, with a cipher or without.
func keyed(t testing.TB, url string, c flowfabric.Cipher) (*engine.Engine, *client.Client) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{CallTimeout: time.Hour, URL: url, Partitions: 1,
		Logger: slog.New(slog.DiscardHandler), Box: sealed.New(c)})
	must.No(t, err)
	t.Cleanup(e.Close)
	own, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		Logger: slog.New(slog.DiscardHandler), Cipher: c})
	must.No(t, err)
	t.Cleanup(own.Close)
	return e, own
}

func keys(t testing.TB) flowfabric.Cipher {
	t.Helper()
	c, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	return c
}

// Frames that are plain, encrypted and damaged come in one order: those that can be read are, and of the others it is
// said; following them live is the same. A step that is recorded again with the same value is the same step, although
// it is never encrypted the same.
func TestPlainEncryptedAndDamaged(t *testing.T) {
	url := testserver.Redis(t)
	e, c := keyed(t, url, keys(t))
	blind, _ := keyed(t, url, nil)
	x := clienttest.Submit(t.Context(), t, c, "tides")
	held := clienttest.Claim(t.Context(), t, e, x.ID())
	damaged, err := e.Box().Seal([]byte("text"))
	must.No(t, err)
	damaged = append(bytes.Clone(damaged[:len(damaged)-1]), damaged[len(damaged)-1]^1)
	for i, by := range []struct {
		e    *engine.Engine
		text []byte
	}{{e, []byte("one")}, {blind, []byte("two")}, {blind, damaged}, {blind, damaged[:9]}, {e, []byte("five")}} {
		_, err := by.e.AppendFrames(t.Context(), held.Fence, uint64(i+1), []stream.Frame{{Type: "t", Payload: by.text}})
		must.No(t, err)
	}
	want := func(f stream.Frame) {
		t.Helper()
		told := []string{1: "one", 2: "two", 3: "", 4: "", 5: "five"}[f.Sequence]
		if f.Encrypted != (told == "") || !f.Encrypted && (string(f.Payload) != told || f.Encoding != stream.UTF8) ||
			f.Encrypted && f.Encoding != stream.Bytes {
			t.Errorf("frame %d: %t %s %.40q", f.Sequence, f.Encrypted, f.Encoding, f.Payload)
		}
	}
	frames, err := c.Execution(x.ID()).Frames(t.Context(), 1, stream.Range{})
	must.No(t, err)
	for _, f := range frames {
		want(f)
	}
	n := 0
	for event, err := range x.Tail(t.Context()) {
		must.No(t, err)
		if event.Kind == stream.TailFrame {
			want(event.Frame)
			if n++; n == 5 {
				break
			}
		}
	}
	tr, err := c.Execution(x.ID()).Transcript(t.Context())
	if text := tr.Text(); err != nil || text != fmt.Sprintf("onetwo(encrypted, %d bytes)(encrypted, 9 bytes)five",
		len(damaged)) {
		t.Errorf("%q, %v", text, err)
	}
	for _, tc := range []struct {
		value   string
		already bool
		err     error
	}{{"v", false, nil}, {"v", true, nil}, {"w", false, denied.StepConflict}} {
		if already, err := e.RecordStep(t.Context(), held.Fence, "s", []byte(tc.value), 0); already != tc.already ||
			!errors.Is(err, tc.err) {
			t.Errorf("recording %s: %t, %v", tc.value, already, err)
		}
	}
	if listed, err := blind.Steps(t.Context(), x.ID()); err != nil || len(listed) != 1 {
		t.Errorf("%+v, %v", listed, err)
	}
}

// A key that names the same input is the same submission, and batches of inputs near the limit of a call go through.
func TestEncryptedSubmissions(t *testing.T) {
	e, c := keyed(t, testserver.Embedded(t), keys(t))
	key := flowfabric.IdempotencyKey("k")
	first := clienttest.Submit(t.Context(), t, c, "tides", key)
	if again := clienttest.Submit(t.Context(), t, c, "tides", key); again.ID() != first.ID() || !again.Duplicate() {
		t.Errorf("%s after %s", again.ID(), first.ID())
	}
	if _, err := client.Submit(t.Context(), c, clienttest.Write, clienttest.Draft{Topic: "moons"},
		key); !errors.Is(err, flowfabric.ErrConflict) {
		t.Errorf("another input: %v", err)
	}
	large := make([]clienttest.Draft, 12)
	for i := range large {
		large[i].Topic = strings.Repeat("x", limits.MaxCallBytes/4-20)
	}
	handles, err := client.SubmitMany(t.Context(), c, clienttest.Write, large)
	if err != nil || len(handles) != len(large) {
		t.Fatal(len(handles), err)
	}
	if input, err := handles[11].Input(t.Context()); err != nil || len(input) < limits.MaxCallBytes/4-20 ||
		sealed.Is(input) {
		t.Errorf("%.40q, %v", input, err)
	}
	_, err = client.Submit(t.Context(), c, clienttest.Write, clienttest.Draft{
		Topic: strings.Repeat("x", limits.MaxPayload-40)})
	if !errors.Is(err, flowfabric.ErrPayloadTooLarge) {
		t.Errorf("one that is too large once it is encrypted: %v", err)
	}
	_ = e
}

// BenchmarkEncryption is what a cipher costs: calls with a frame, with a hundred, and with a message.
func BenchmarkEncryption(b *testing.B) {
	for _, with := range []struct {
		name string
		c    flowfabric.Cipher
	}{{"plain", nil}, {"encrypted", keys(b)}} {
		e, c := keyed(b, testserver.Redis(b), with.c)
		x := clienttest.Submit(b.Context(), b, c, "tides")
		held := clienttest.Claim(b.Context(), b, e, x.ID())
		sequence := uint64(1)
		for _, n := range []int{1, 100} {
			frames := make([]stream.Frame, n)
			for i := range frames {
				frames[i] = stream.Frame{Type: "token", Payload: []byte("about twenty bytes..")}
			}
			b.Run(fmt.Sprintf("%s/frames=%d", with.name, n), func(b *testing.B) {
				for b.Loop() {
					_, err := e.AppendFrames(b.Context(), held.Fence, sequence, frames)
					must.No(b, err)
					sequence += uint64(n)
				}
			})
		}
		b.Run(with.name+"/message", func(b *testing.B) {
			sent := 0
			x := clienttest.Submit(b.Context(), b, c, "tides")
			for b.Loop() {
				if sent++; sent%limits.MaxMessages == 0 { // there is no room for more
					b.StopTimer()
					x = clienttest.Submit(b.Context(), b, c, "tides")
					b.StartTimer()
				}
				m := engine.Message{Mailbox: "m", Encoding: "json", Payload: []byte(`"about a hundred bytes of it` +
					strings.Repeat("x", 70) + `"`)}
				_, err := e.SendMessage(b.Context(), x.ID(), m)
				must.No(b, err)
			}
		})
	}
}
