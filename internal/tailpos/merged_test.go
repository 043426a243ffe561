package tailpos_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
)

const (
	first  = "0.0123456789abcdef0123456789abcdef.nresearch.a1.17-1.5.4.2.9"
	second = "1.ffffffffffffffffffffffffffffffff.xnnutu.a2r"
)

func TestMergedPosition(t *testing.T) {
	text := "m1713100800150--a1.12-3.3.3.0.0--" + first + "--" + second + "--0.0123456789abcdef0123456789abcdef.nb."
	m, err := tailpos.ParseMerged(text)
	if err != nil || tailpos.MergedText(m) != text {
		t.Fatalf("%+v, %q, %v", m, tailpos.MergedText(m), err)
	}
	if m.Clock != 1713100800150 || m.Own.Ms != 12 || len(m.Children) != 3 || m.Children[0].Name != "research" ||
		m.Children[1].Name != "ki:" || m.Children[1].Parent != 1 || m.Children[1].At.Stage != tailpos.Announced ||
		m.Children[2].At != (tailpos.Parts{}) {
		t.Errorf("%+v", m)
	}
	// Without children it is the short one.
	for _, text := range []string{"", "a1", "a3.17-1.5.4.2.9"} {
		m, err := tailpos.ParseMerged(text)
		if err != nil || tailpos.MergedText(m) != text || m.Children != nil {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	deep := "m1--a1--" + first
	for i := range limits.MaxTailedDepth - 1 {
		deep += "--" + string(rune('1'+i)) + first[1:]
	}
	if _, err := tailpos.ParseMerged(deep); err != nil {
		t.Errorf("%q: %v", deep, err)
	}
	for _, text := range []string{"m", "m1", "m1--a1", "m01--a1--" + first, "m1--b--" + first, "m1--a1--" + second,
		"m1--a1--1" + first[1:], "m1--a1--00" + first[1:], "m1--a1--" + first + "--", "m1--a1--" + first + "x",
		"m1--a1--" + strings.ToUpper(first), "m1--a1--" + strings.Replace(first, "nresearch", "n", 1),
		"m1--a1--" + strings.Replace(first, "nresearch", "xnnutu=", 1),
		"m1--a1--" + strings.Replace(first, "nresearch", "xmfrgg", 1),
		"m1--a1--" + strings.Replace(first, "research", strings.Repeat("r", 65), 1),
		deep + "--4" + first[1:], "m1--a1" + strings.Repeat("--"+first, limits.MaxTailed+1)} {
		if m, err := tailpos.ParseMerged(text); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%.80q: %+v, %v", text, m, err)
		}
	}
}

func FuzzParseMerged(f *testing.F) {
	for _, seed := range []string{"", "a3.17-1.5.4.2.9", "m7--a1--" + first, "m7--a1--" + first + "--" + second} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := tailpos.ParseMerged(text)
		if err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) || !reflect.DeepEqual(m, tailpos.Merged{}) {
				t.Fatalf("%q: %v, %v", text, m, err)
			}
			return
		}
		if tailpos.MergedText(m) != text || len(text) > 9<<10 ||
			strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
			t.Fatalf("%q reads as %q", text, tailpos.MergedText(m))
		}
	})
}

// A name of any text is in the position.
func FuzzNames(f *testing.F) {
	f.Add("research")
	f.Add("a b--c.ü")
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > 64 {
			return
		}
		m := tailpos.Merged{Clock: 1, Own: tailpos.Parts{Attempt: 1},
			Children: []tailpos.Child{{ID: uuid.UUID{1}, Name: name}}}
		got, err := tailpos.ParseMerged(tailpos.MergedText(m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%q: %+v, %v", name, got, err)
		}
	})
}
