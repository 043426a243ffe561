package stream_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestParseCursor(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5-0", "5-0": "5-0", "0": "0-0", "007-08": "7-8",
		"18446744073709551615-18446744073709551615": "18446744073709551615-18446744073709551615",
	} {
		var c stream.Cursor
		if err := c.UnmarshalText([]byte(text)); err != nil || c.String() != want {
			t.Errorf("%q: %q, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "-", "+", "abc", "1-", "-1", "18446744073709551616", "1-18446744073709551616",
		"+5", "5-+1", " 5", "5 ", "1-2-3", "$", "(5", "5-*", "start", "end", "now", "٣", "1_000", "0x5"} {
		c := stream.Cursor{Ms: 1}
		err := c.UnmarshalText([]byte(text))
		if c != (stream.Cursor{Ms: 1}) || !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}

func TestCursorsAreOrdered(t *testing.T) {
	ordered := []stream.Cursor{{}, {Seq: 1}, {Ms: 1}, {Ms: 1, Seq: 9}, {Ms: 10}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := a.Compare(b), min(max(i-j, -1), 1); got != want {
				t.Errorf("%v with %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestCursorInJSON(t *testing.T) {
	var v struct{ After stream.Cursor }
	must.No(t, json.Unmarshal([]byte(`{"After":"12-3"}`), &v))
	if out, err := json.Marshal(v); err != nil || string(out) != `{"After":"12-3"}` {
		t.Errorf("got %s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"After":"+"}`), &v); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("got %v", err)
	}
	if (stream.Cursor{}).String() != "0-0" {
		t.Error("the zero cursor is before the first frame")
	}
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"start", "end", "5", "5-0", "", "-", "+", "1-", "-1", "18446744073709551616", "00-00",
		"5-5-5"} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^[0-9]+(-[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, text string) {
		var c, again stream.Cursor
		if err := c.UnmarshalText([]byte(text)); err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !shape.MatchString(text) {
			t.Fatalf("%q was accepted", text)
		}
		if err := again.UnmarshalText([]byte(c.String())); err != nil || again != c {
			t.Fatalf("%q reads as %v, and that as %v (%v)", text, c, again, err)
		}
	})
}
