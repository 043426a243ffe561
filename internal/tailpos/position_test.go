package tailpos_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
)

func TestPosition(t *testing.T) {
	for text, want := range map[string]tailpos.Parts{
		"":               {},
		"a1":             {Attempt: 1},
		"a1r":            {Attempt: 1, Stage: tailpos.Announced},
		"a2z17":          {Attempt: 2, Stage: tailpos.Over, Ms: 17},
		"a1.0-0.0.0.0.0": {Attempt: 1, Stage: tailpos.Begun},
		"a3.17-1.5.4.2.9": {Attempt: 3, Stage: tailpos.Begun, Ms: 17, Seq: 1, Sequence: 5, Durables: 4, Run: 2,
			Wait: 9},
		"a4294967295.18446744073709551615-18446744073709551615.18446744073709551615.18446744073709551615.4294967295.18446744073709551615": {
			Attempt: math.MaxUint32, Stage: tailpos.Begun, Ms: math.MaxUint64, Seq: math.MaxUint64,
			Sequence: math.MaxUint64, Durables: math.MaxUint64,
			Run: math.MaxUint32, Wait: math.MaxUint64},
	} {
		p, err := tailpos.Parse(text)
		if err != nil || p != want || tailpos.Text(p) != text || len(text) > 140 {
			t.Errorf("%q: %+v, %q, %v", text, p, tailpos.Text(p), err)
		}
	}
	for _, text := range []string{"a0", "a0r", "a0.0-0.0.0.0.0", "a", "1", "a01", "a+1", "a-1", "a1rz", "a1z", "a1z01",
		"a1zr", "a1x", "a4294967296", "a1.", "a1.1-1.1.1.1", "a1.1-1.1.1.1.1.1", "a1.1.1.1.1.1", "a1r.1-1.1.1.1.1",
		"a1.1-01.1.1.1.1",
		"a1.1-1.1.1.4294967296.1", " a1", "a1 ", "a1.-.1.1.1.1", "A1", strings.Repeat("a", 200)} {
		if p, err := tailpos.Parse(text); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a0", "a1", "a2r", "a3z5", "a3.17-1.5.4.2.9", "a1.1-1.1.1.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := tailpos.Parse(text)
		if err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) || p != (tailpos.Parts{}) {
				t.Fatalf("%q: %v, %v", text, p, err)
			}
			return
		}
		if tailpos.Text(p) != text {
			t.Fatalf("%q reads as %q", text, tailpos.Text(p))
		}
	})
}
