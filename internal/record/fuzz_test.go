package record

import (
	"reflect"
	"strings"
	"testing"
)

// Whatever a key holds is read or refused. What was read says the same once it is written.
func FuzzDecode(f *testing.F) {
	r := Record{Fields: map[string]string{"s": "R1f", "in": "2", "rz": "1"}, Input: "{}", Result: "1"}
	for _, seed := range []string{r.Encode(), "", "\n", "a b\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Decode(text)
		if err != nil {
			return
		}
		r.Attempt()
		if again, err := Decode(r.Encode()); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q reads as %+v, and that as %+v, %v", text, r, again, err)
		}
	})
}

func FuzzDecodeWaits(f *testing.F) {
	w := Waits{Suspension: map[string]string{"id": "a", "wp": "b", "x": "\x1b"},
		Waitpoints: map[string]string{"b": "p"}, Signals: []Signal{{"1", "go"}}}
	for _, seed := range []string{w.Encode(), "", "\x1c\x1c1 2 3", "\x1d\x1d\x1d\x1d\x1d\x1d\x1d\x1d*1\x1ca\x1fp",
		"\x1d\x1d\x1d\x1d\x1d\x1d\x1d\x1d*-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := DecodeWaits(text)
		written := w.Encode()
		if strings.HasPrefix(w.Suspension["wp"], "*") { // no id of a waitpoint does
			return
		}
		if again := DecodeWaits(written).Encode(); again != written {
			t.Errorf("%q is written as %q, and that as %q", text, written, again)
		}
	})
}

func FuzzDecodeLinks(f *testing.F) {
	l := Links{Group: "all 2", Edges: map[string]string{"a": "s,1,x"}, Leads: 1, To: []string{"da"}}
	for _, seed := range []string{l.Encode(), "", "-\x1f0\x1e", "-\x1f1o1\x1e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := DecodeLinks(text)
		if err != nil {
			return
		}
		if again, err := DecodeLinks(l.Encode()); err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%q reads as %+v, and that as %+v, %v", text, l, again, err)
		}
	})
}
