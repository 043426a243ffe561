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
