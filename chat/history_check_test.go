package chat

import (
	"errors"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
)

func userSaid(id, text string) front {
	return front{id: id, role: agent.User, text: text, parts: agent.Text(text)}
}

func replied(id, text string) front { return front{id: id, role: agent.Assistant, text: text} }

// What a front end sends is compared with what the server has: new messages are sent, known ones followed, changed
// ones are edits where the front end says so, and all else is another history.
func TestCompare(t *testing.T) {
	known := truthOf([]message{
		{id: "u1", role: agent.User, said: agent.Message{Parts: agent.Text("one")}},
		{id: "re-u1", role: agent.Assistant, events: []event{{kind: kindText, text: "first "},
			{kind: kindText, text: "answer"}}},
		{id: "u2", role: agent.User, said: agent.Message{Parts: agent.Text("two")}},
		{id: "re-u2", role: agent.Assistant, events: []event{{kind: kindText, text: "second"}}},
	}, false)
	u1, a1, u2, a2 := userSaid("u1", "one"), replied("re-u1", "first answer"), userSaid("u2", "two"),
		replied("re-u2", "second")
	u0, u3, u4, u9 := userSaid("u0", "x"), userSaid("u3", "x"), userSaid("u4", "x"), userSaid("u9", "x")
	for name, tc := range map[string]struct {
		history    []front
		replaces   string
		cut        bool
		want       string // "send id…", "edit id instead", "follow id"; "" for another history
		wantEdit   string // with Config.EditHistory
		wantNoMind bool   // the same
	}{
		"whole":              {[]front{u1, a1, u2, a2, u3}, "", false, "send u3", "", true},
		"whole, two":         {[]front{u1, a1, u2, a2, u3, u4}, "", false, "send u3 u4", "", true},
		"last alone":         {[]front{u3}, "", false, "send u3", "", true},
		"a replayed POST":    {[]front{u1, a1, u2}, "", false, "follow u2", "", true},
		"an older one":       {[]front{u1}, "", false, "follow u1", "", true},
		"half an answer":     {[]front{u1, replied("re-u1", "first"), u3}, "", false, "send u3", "edit u3 u2", false},
		"a greeting":         {[]front{replied("hello", "hi"), u1, a1, u2, a2, u3}, "", false, "send u3", "", true},
		"another tab's":      {[]front{u1, a1, u3}, "", false, "send u3", "edit u3 u2", false},
		"two are other":      {[]front{u1, a1, u3, u4}, "", false, "send u3 u4", "", false},
		"an edit":            {[]front{u1, a1, userSaid("u2", "zwei")}, "u2", false, "edit u2 u2", "", true},
		"an edit of one":     {[]front{userSaid("u1", "eins")}, "u1", false, "edit u1 u1", "", true},
		"an edit, repeated":  {[]front{u1, a1, u2}, "u2", false, "follow u2", "", true},
		"changed, unsaid":    {[]front{u1, a1, userSaid("u2", "zwei")}, "", false, "", "edit u2 u2", false},
		"changed before":     {[]front{userSaid("u1", "eins"), a1, u2, a2, u3}, "", false, "", "", true},
		"changed, and edit":  {[]front{userSaid("u1", "eins"), a1, userSaid("u2", "zwei")}, "u2", false, "", "", true},
		"another answer":     {[]front{u1, replied("re-u1", "other"), u2, a2, u3}, "", false, "", "", true},
		"another order":      {[]front{u2, a2, u1, a1, u3}, "", false, "", "", true},
		"one inserted":       {[]front{u1, a1, u9, replied("z", ""), u2, a2, u3}, "", false, "", "", true},
		"one before":         {[]front{u0, u1, a1, u2, a2, u3}, "", false, "", "", true},
		"one before the cut": {[]front{u0, u1, a1, u2, a2, u3}, "", true, "send u3", "", true},
	} {
		known.cut = tc.cut
		if tc.wantNoMind {
			tc.wantEdit = tc.want
		}
		for edits, want := range map[bool]string{false: tc.want, true: tc.wantEdit} {
			p, err := known.compare(tc.history, tc.replaces, edits)
			got := ""
			switch {
			case p.edit != nil:
				got = "edit " + p.edit.id + " " + p.instead
			case p.follow != "":
				got = "follow " + p.follow
			case p.send != nil:
				got = "send"
				for _, m := range p.send {
					got += " " + m.id
				}
			}
			refused, ok := errors.AsType[*problem](err)
			if got != want || (want == "") != ok || ok && (refused.Status != 409 || refused.Code != codeHistory) {
				t.Errorf("%s, edits %t: %q, %v, want %q", name, edits, got, err, want)
			}
		}
	}
}

// A text that was cut for readers is compared as far as it goes; of files there is only their number.
func TestSame(t *testing.T) {
	known := truthOf([]message{
		{id: "u1", role: agent.User, said: agent.Message{Parts: agent.Text("long… (cut: 70000 bytes)")}},
		{id: "u2", role: agent.User, said: agent.Message{Parts: []agent.Part{{Type: agent.PartImage, Blob: "b"}}}},
	}, false)
	file := front{id: "u2", role: agent.User, parts: []agent.Part{{Type: agent.PartImage, Data: []byte("x")}}}
	if !known.same(userSaid("u1", "longer")) || known.same(userSaid("u1", "other")) || !known.same(file) ||
		known.same(front{id: "u2", role: agent.User}) {
		t.Error("they are not compared as they should be")
	}
}
