package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// joined adds the pieces and returns what comes out of each.
func joined(pieces ...string) []string {
	var text wire.Text
	var out []string
	for _, p := range pieces {
		out = append(out, text.Add([]byte(p)))
	}
	return append(out, text.End())
}

func TestTextHoldsBackASplitCharacter(t *testing.T) {
	for _, tt := range []struct {
		name       string
		in, expect []string
	}{
		{"whole", []string{"a", "ü"}, []string{"a", "ü", ""}},
		{"two bytes", []string{"a\xc3", "\xbcb"}, []string{"a", "üb", ""}},
		{"four bytes one by one", []string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"", "", "", "😀", ""}},
		{"never completed", []string{"a\xf0\x9f"}, []string{"a", "\uFFFD"}},
		{"an invalid run", []string{"a\xff\xfe", "\xfdb"}, []string{"a\uFFFD", "b", ""}},
		{"cut off by another character", []string{"\xe4\xbd", "x"}, []string{"", "\uFFFDx", ""}},
		{"invalid, then cut", []string{"\xff", "\xe4"}, []string{"\uFFFD", "", ""}},
		{"a replacement character of the service", []string{"\uFFFD\uFFFD"}, []string{"\uFFFD\uFFFD", ""}},
		{"surrogates", []string{"\xed\xa0\xbd", "\xed\xb8\x80"}, []string{"", "😀", ""}},
		{"surrogates cut within", []string{"\xed\xa0", "\xbd\xed", "\xb8\x80"}, []string{"", "", "😀", ""}},
		{"a high surrogate alone", []string{"\xed\xa0\xbd", "x"}, []string{"", "\uFFFDx", ""}},
		{"a low surrogate alone", []string{"\xed\xb8\x80x"}, []string{"\uFFFDx", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := joined(tt.in...); strings.Join(got, "|") != strings.Join(tt.expect, "|") {
				t.Errorf("pieces come out as %q, want %q", got, tt.expect)
			}
		})
	}
}

func TestStringKeepsWhatIsSplit(t *testing.T) {
	for _, tt := range []struct{ in, expect string }{
		{`"a\n\"\\\/\b\f\r\tü"`, "a\n\"\\/\b\f\r\tü"},
		{`"\u00fc\ud83d\ude00"`, "ü\xed\xa0\xbd\xed\xb8\x80"},
		{"\"\xc3\"", "\xc3"},
		{`null`, ""},
	} {
		var s wire.String
		if err := json.Unmarshal([]byte(tt.in), &s); err != nil || string(s) != tt.expect {
			t.Errorf("%s decodes as %q (%v), want %q", tt.in, s, err, tt.expect)
		}
	}
	for _, in := range []string{`1`, `{}`, `["a"]`, `true`} {
		var s wire.String
		if err := json.Unmarshal([]byte(in), &s); err == nil {
			t.Errorf("%s decodes as %q, want an error", in, s)
		}
	}
}

// FuzzText proves that the cut does not show, that the text is valid, and that it is what the standard library makes
// of it.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\xf0\x9f\x98\x80b"), uint(2), uint(4))
	f.Add([]byte("\xed\xa0\xbd\xed\xb8\x80\xff\xff"), uint(4), uint(7))
	f.Add([]byte("\xed\xb8\x80\xed\xa0"), uint(1), uint(4))
	f.Fuzz(func(t *testing.T, in []byte, a, b uint) {
		i := a % uint(len(in)+1)
		j := i + b%uint(len(in)+1-int(i))
		whole := strings.Join(joined(string(in)), "")
		for _, piece := range joined(string(in[:i]), string(in[i:j]), string(in[j:])) {
			if !utf8.ValidString(piece) {
				t.Fatalf("piece %q is not valid UTF-8", piece)
			}
		}
		if got := strings.Join(joined(string(in[:i]), string(in[i:j]), string(in[j:])), ""); got != whole {
			t.Fatalf("%q cut at %d and %d is %q, and whole %q", in, i, j, got, whole)
		}
		if want := strings.ToValidUTF8(string(in), "\uFFFD"); !strings.Contains(string(in), "\xed") && whole != want {
			t.Fatalf("%q is %q, want %q", in, whole, want)
		}
	})
}

// FuzzString proves that every string decodes as encoding/json decodes it, once its pieces are joined.
func FuzzString(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\u"`, `null`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want string
		wantErr := json.Unmarshal(in, &want)
		var raw wire.String
		err := json.Unmarshal(in, &raw)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, and encoding/json says %v", in, err, wantErr)
		}
		single := strings.NewReplacer("\uFFFD\uFFFD", "\uFFFD")
		squeeze := func(s string) string {
			for strings.Contains(s, "\uFFFD\uFFFD") {
				s = single.Replace(s)
			}
			return s
		}
		if got := strings.Join(joined(string(raw)), ""); err == nil && !strings.Contains(string(in), "\xed") &&
			squeeze(got) != squeeze(want) {
			t.Fatalf("%q is %q, want %q", in, got, want)
		}
	})
}
