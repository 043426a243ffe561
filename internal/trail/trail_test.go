package trail

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotes(t *testing.T) {
	ctx := Acting(context.Background(), Actor{By: "token", From: "api ::1", Namespace: "blue"})
	ctx = With(ctx, Note{Request: "r", Action: "cancel", On: "execution", Name: "a\x1fb\nc", By: "anna",
		Why: strings.Repeat("é", 400), Detail: "7"})
	text, ok := strings.CutPrefix(Of(With(ctx, Note{Action: "part of it"})), separator)
	n, parsed := Parse(text)
	if !ok || !parsed || len(n.Why) > maxPart || !utf8.ValidString(n.Why) {
		t.Fatalf("%q", text)
	}
	n.Why = ""
	if want := (Note{Request: "r", Action: "cancel", On: "execution", Name: "a b c", Namespace: "blue", By: "token",
		From: "api ::1", Detail: "7"}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
	if Of(context.Background()) != "" {
		t.Error("a note of nothing")
	}
	here, _ := Parse(strings.TrimPrefix(Of(With(context.Background(), Note{})), separator))
	if !strings.HasPrefix(here.From, "go") || here.Request == "" {
		t.Errorf("%+v", here)
	}
	if _, ok := Parse("a" + separator + "b"); ok {
		t.Error("two parts are a note")
	}
}

// A note that was read says the same once it is written, but for control characters and what is too long.
func FuzzParse(f *testing.F) {
	f.Add("r\x1fme\x1fgo\x1fcancel\x1fexecution\x1fa\x1fblue\x1fwhy\x1f7")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := Parse(text)
		if ok != (strings.Count(text, separator) == 8) {
			t.Fatalf("%q is a note: %v", text, ok)
		}
		written := n.text()
		if again, ok := Parse(strings.TrimPrefix(written, separator)); !ok || again.text() != written {
			t.Errorf("%q is written as %q, and that as %q", text, written, again.text())
		}
	})
}
