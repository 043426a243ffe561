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
		Why: "first\n\x1f" + strings.Repeat("é", 600), Detail: "7"})
	text, ok := strings.CutPrefix(Of(With(ctx, Note{Action: "part of it"})), separator)
	n, parsed := Parse(text)
	if !ok || !parsed || len(n.Why) > maxWhy || !utf8.ValidString(n.Why) || !strings.HasPrefix(n.Why, "first\n é") {
		t.Fatalf("%q", text)
	}
	n.Why = ""
	if want := (Note{Request: "r", Action: "cancel", On: "execution", Name: "a b c", Namespace: "blue", By: "token",
		From: "api ::1", Detail: "7"}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
	if again := As(ctx, "otto", ""); Of(again) != Of(ctx) {
		t.Error("a part of a change is made by somebody else")
	}
	as := As(context.Background(), strings.Repeat("é", 200), "why")
	n, _ = Parse(strings.TrimPrefix(Of(as), separator))
	if n.By != strings.Repeat("é", maxBy/2) || n.Why != "why" || n.From != "" || n.Action != "" {
		t.Errorf("%+v", n)
	}
	if n, _ = Parse(strings.TrimPrefix(Of(With(as, Note{Action: "cancel"})), separator)); n.Action != "cancel" {
		t.Errorf("%+v", n)
	}
	if Of(context.Background()) != "" {
		t.Error("a note of nothing")
	}
	here, _ := Parse(strings.TrimPrefix(Of(With(context.Background(), Note{Action: "seal"})), separator))
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
		written := n.Text()
		if again, ok := Parse(strings.TrimPrefix(written, separator)); !ok || again.Text() != written {
			t.Errorf("%q is written as %q, and that as %q", text, written, again.Text())
		}
	})
}
