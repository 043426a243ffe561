package browsertoken

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	key = []byte(strings.Repeat("k", 32))
	now = time.Unix(1000, 0)
)

// A token says what its maker said, for the one thing and while it lasts, and no other text does.
func TestTokens(t *testing.T) {
	for _, want := range []Token{{For: "x", Until: now.Add(time.Minute)},
		{For: "a\nb", Until: now.Add(time.Second), Maker: "m"},
		{For: "x", Until: now.Add(time.Hour), Maker: "m", As: "producer", Name: "Anna Ünlü"},
		{For: "x", Until: now.Add(time.Hour), As: "operator"}} {
		text := Mint(key, want)
		if got, err := Read(key, text, want.For, now); err != nil || !reflect.DeepEqual(got, want) ||
			got.Writes() != (want.As != "") {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
		if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Errorf("%s does not fit into a query", text)
		}
		if _, err := Read(key, text, want.For, want.Until); !errors.Is(err, ErrOver) {
			t.Errorf("at its end: %v", err)
		}
		reads := want
		reads.As, reads.Name = "", ""
		said, _, _ := strings.Cut(Mint(key, reads), ".")
		for what, other := range map[string]string{"another thing": text, "a line feed": text + "\n",
			"longer": text + ".", "shorter": text[:len(text)-1], "a later end": "2" + text, "no mac": said, "": ""} {
			thing := want.For
			if what == "another thing" {
				thing = "y"
			}
			if got, err := Read(key, other, thing, now); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		if _, err := Read(append([]byte("x"), key...), text, want.For, now); !errors.Is(err, ErrInvalid) {
			t.Errorf("another key: %v", err)
		}
	}
}

// What is asked of a token is bounded.
func TestChecks(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{0: DefaultLife, 1: time.Second, 3600: MostLife, -1: 0, 3601: 0,
		1 << 62: 0} {
		if got, err := CheckLife(seconds); got != want || (err == nil) != (want > 0) {
			t.Errorf("%d seconds: %v, %v", seconds, got, err)
		}
	}
	for name, good := range map[string]bool{"": true, "Anna Ünlü": true, strings.Repeat("é", 32): true,
		strings.Repeat("é", 32) + "x": false, "a\nb": false, "\xff": false, "\u202eanna": false} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Nothing but what was minted is taken, and what is taken is minted again as the same text.
func FuzzRead(f *testing.F) {
	reads := Mint(key, Token{For: "x", Until: now.Add(time.Minute), Maker: "maker"})
	writes := Mint(key, Token{For: "x", Until: now.Add(time.Minute), Maker: "maker", As: "producer", Name: "anna"})
	for _, seed := range []string{reads, writes, "", "1060.", "1060.a.b.c.d", strings.Replace(writes, ".", "..", 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Read(key, text, "x", now)
		if good := text == reads || text == writes; good != (err == nil) ||
			good && (Mint(key, got) != text || got.Writes() != (text == writes)) {
			t.Fatalf("%q is %+v, %v", text, got, err)
		}
	})
}
