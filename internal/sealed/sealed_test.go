package sealed

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

var (
	secretA = strings.Repeat("ab", 32)
	secretB = strings.Repeat("cd", 32)
)

func boxOf(t testing.TB, text string) *Box {
	t.Helper()
	k, err := Parse(text)
	must.No(t, err)
	return New(k)
}

// What one process seals another one opens, also with the next key in front; no other can, and all say why.
func TestKeys(t *testing.T) {
	old, next, other := boxOf(t, "a:"+secretA), boxOf(t, "b:"+secretB+", a:"+secretA), boxOf(t, "c:"+secretB)
	same := boxOf(t, "a:"+secretB)
	for _, plain := range []string{"x", `{"card":"4111"}`, string(make([]byte, 1<<20))} {
		data, err := old.Seal([]byte(plain))
		must.No(t, err)
		if !Is(data) || len(data) > len(plain)+old.Room() || len(plain) > 1 && bytes.Contains(data, []byte(plain)) {
			t.Fatalf("sealed as %.60q", data)
		}
		for name, b := range map[string]*Box{"itself": old, "another process": boxOf(t, "a:"+secretA),
			"the next": next} {
			if got, err := b.Open(data); err != nil || string(got) != plain {
				t.Errorf("%s: %.40q, %v", name, got, err)
			}
		}
		for name, x := range map[string]struct {
			b    *Box
			data []byte
			want error
		}{
			"no key": {nil, data, ErrNoKey}, "another key": {other, data, ErrNoKey},
			"another secret": {same, data, ErrDamaged}, "cut short": {old, data[:len(data)-1], ErrDamaged},
			"only the mark": {old, data[:len(mark)], ErrDamaged},
			"half a header": {old, data[:len(mark)+9], ErrDamaged},
			"changed":       {old, append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1), ErrDamaged},
			"other salt":    {old, changed(data, len(mark)+3), ErrDamaged},
		} {
			got, err := x.b.Open(x.data)
			var e *Error
			if got != nil || !errors.Is(err, x.want) || !errors.As(err, &e) || e.Final() != (x.want == ErrDamaged) {
				t.Errorf("%s: %.40q, %v", name, got, err)
			}
			if shown := x.b.Shown(x.data); !bytes.Equal(shown, x.data) {
				t.Errorf("%s: shown as %.40q", name, shown)
			}
		}
	}
}

func changed(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

// What is not sealed passes; sealing twice is sealing once; the same text is never sealed the same.
func TestSealOnce(t *testing.T) {
	b := boxOf(t, "a:"+secretA)
	first, _ := b.Seal([]byte("x"))
	second, _ := b.Seal([]byte("x"))
	again, _ := b.Seal(first)
	if bytes.Equal(first, second) || !bytes.Equal(first, again) {
		t.Errorf("% x, % x, % x", first, second, again)
	}
	for _, plain := range []string{"", "x", "\xff"} {
		if got, err := b.Open([]byte(plain)); err != nil || string(got) != plain {
			t.Errorf("%q: %q, %v", plain, got, err)
		}
	}
	var none *Box
	if got, err := none.Seal([]byte("x")); err != nil || string(got) != "x" || none.Room() != 0 || New(nil) != nil {
		t.Errorf("without a cipher: %q, %v", got, err)
	}
}

func TestText(t *testing.T) {
	b := boxOf(t, "a:"+secretA)
	long := strings.Repeat("ä", 2000)
	for _, most := range []int{256, 1024} {
		s := b.SealText(long, most)
		if got := b.OpenText(s); len(s) > most || len(got) < most/2 || !strings.HasPrefix(long, got) {
			t.Errorf("%d bytes of %d: %q", len(s), most, got)
		}
	}
	s := b.SealText("not paid", 1024)
	if s != b.SealText(s, 1024) || strings.Contains(s, "paid") {
		t.Errorf("sealed as %q", s)
	}
	for text, want := range map[string]string{"": "", "plain": "plain", s: "not paid",
		"anna: " + s + " (by bob), " + s: "anna: not paid (by bob), not paid", s[:len(s)-2]: Hidden, textMark: Hidden} {
		if got := b.OpenText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var none *Box
	if got := none.OpenText("so " + s); got != "so "+Hidden || none.SealText("x", 9) != "x" {
		t.Errorf("without a key: %q", got)
	}
	if got := New(failing{}).SealText("secret", 1024); got != lost {
		t.Errorf("what cannot be sealed: %q", got)
	}
	if got := Text([]byte("x")) + Text([]byte(mark+"abc")); got != "x(encrypted, 8 bytes)" {
		t.Errorf("shown as %q", got)
	}
}

type failing struct{ more int }

func (f failing) Seal(p []byte) ([]byte, error) {
	if f.more > 0 {
		return make([]byte, len(p)+f.more), nil
	}
	return nil, errors.New("away")
}
func (failing) Open([]byte) ([]byte, error) { return nil, errors.New("away") }

func TestOtherCiphers(t *testing.T) {
	if _, err := New(failing{more: Room}).Seal([]byte("x")); err == nil {
		t.Error("a cipher that adds more than there is room for was taken")
	}
	_, err := New(failing{}).Open([]byte(mark + "x"))
	var e *Error
	if !errors.As(err, &e) || e.Final() {
		t.Errorf("a key service that is away: %v", err)
	}
}

// Neither an error nor what is printed shows a secret.
func TestParse(t *testing.T) {
	for _, text := range []string{"", "a", "a:", ":" + secretA, "a:" + secretA[2:], "a:" + secretA + "00", secretA,
		"a:" + secretA + ",", "a:" + secretA + ",a:" + secretB, strings.Repeat("k", 33) + ":" + secretA,
		"a b:" + secretA} {
		if k, err := Parse(text); err == nil || k != nil || strings.Contains(err.Error(), secretA[2:]) {
			t.Errorf("%q: %v, %v", text, k, err)
		}
	}
	k, err := Parse("a:" + secretA + ",b:" + secretB)
	must.No(t, err)
	if text := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(text, secretA[:8]) ||
		!strings.Contains(text, "a, b") {
		t.Error(text)
	}
}

func TestConfigured(t *testing.T) {
	t.Setenv(Env, "a:"+secretA)
	if c, err := Configured(nil); err != nil || c.(*Keys).String() != "cipher keys a" {
		t.Errorf("%v, %v", c, err)
	}
	if c, _ := Configured(failing{}); c != (failing{}) {
		t.Errorf("what is given is %v", c)
	}
	t.Setenv(Env, "a")
	if c, err := Configured(nil); err == nil || c != nil {
		t.Errorf("%v, %v", c, err)
	}
	t.Setenv(Env, "")
	if c, err := Configured(nil); err != nil || c != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// Whatever bytes there are: no panic, no plain text that was never sealed, and what is sealed comes back.
func FuzzEnvelope(f *testing.F) {
	b := boxOf(f, "a:"+secretA+",b:"+secretB)
	good, _ := b.Seal([]byte("x"))
	for _, seed := range [][]byte{nil, []byte("x"), good, good[:9], []byte(mark), []byte(mark + "\x01a"),
		[]byte(mark + "\xff")} {
		f.Add(seed, 0)
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		plain, err := b.Open(data)
		switch {
		case !Is(data) && (err != nil || !bytes.Equal(plain, data)):
			t.Fatalf("what is not sealed: %q, %v", plain, err)
		case Is(data) && err == nil && string(plain) != "x": // a seed
			t.Fatalf("%q was never sealed, and opens as %q", data, plain)
		}
		_ = b.OpenText(string(data))
		out, err := b.Seal(data)
		must.No(t, err)
		if again, err := b.Open(out); !Is(data) && (err != nil || !bytes.Equal(again, data)) {
			t.Fatalf("%q, %v", again, err)
		}
		if !Is(data) && len(data) > 0 && at >= len(mark) && at < len(out) {
			if got, err := b.Open(changed(out, at)); err == nil {
				t.Fatalf("changed at %d it opens as %q", at, got)
			}
		}
		if text := b.SealText(string(data), 1024); len(text) > 1024 {
			t.Fatalf("%d bytes", len(text))
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	box := boxOf(b, "a:"+secretA)
	for _, n := range []int{20, 1 << 10, 64 << 10} {
		plain := make([]byte, n)
		data, _ := box.Seal(plain)
		b.Run(fmt.Sprintf("seal/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = box.Seal(plain)
			}
		})
		b.Run(fmt.Sprintf("open/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = box.Open(data)
			}
		})
	}
	b.Run("none", func(b *testing.B) {
		var none *Box
		plain := make([]byte, 1<<10)
		for b.Loop() {
			_, _ = none.Seal(plain)
			_ = none.Shown(plain)
		}
	})
}
