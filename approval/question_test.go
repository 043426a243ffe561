package approval

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// asker is a desk that knows a question of one token.
type asker struct {
	*desk
	token suspend.Token
	asked suspend.Question
}

func (a *asker) ReadQuestion(_ context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	if id != a.token.Execution() || waitpoint != a.token.Waitpoint() || digest != a.token.Digest() {
		return suspend.Asked{}, flowfabric.ErrInvalidToken
	}
	return suspend.Asked{Question: &a.asked, Open: true}, nil
}

// The text of a question may be Markdown, which the page shows without a script; nothing else of it becomes markup.
func TestPageShowsMarkdown(t *testing.T) {
	token := aToken(t)
	a := &asker{&desk{}, token, suspend.Question{Title: "Ship?",
		Text:    "**42** tests, [log](https://log.example/1)\n- <b>one</b>\n\n[no](javascript:x)",
		Choices: []suspend.Choice{{Name: "ship"}, {Name: "wait"}}}}
	page := request{method: "GET", target: Link("/", token)}.to(New(Config{Deliver: a, Logger: quiet}))
	for _, want := range []string{"<strong>42</strong>",
		`<a href="https://log.example/1" target="_blank" rel="noopener`,
		"<li>&lt;b&gt;one&lt;/b&gt;</li>", "[no](javascript:x)"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s:\n%s", want, page.body)
		}
	}
}

// The page shows a stored question to the holder of its token, and takes its choices alone; the holder of another
// token sees the usual page.
func TestPageShowsTheStoredQuestion(t *testing.T) {
	token, other := aToken(t), aToken(t)
	a := &asker{&desk{}, token,
		suspend.Question{Title: "Ship <it>?", Text: "42 tests", Choices: []suspend.Choice{{Name: "ship",
			Label: "Ship"}, {Name: "wait", Label: ""}}}}
	h := New(Config{Deliver: a, Logger: quiet})
	page := request{method: "GET", target: Link("/", token)}.to(h)
	if page.Code != http.StatusOK || !strings.Contains(page.body, "Ship &lt;it&gt;?") ||
		!strings.Contains(page.body, `value="ship">Ship<`) || !strings.Contains(page.body, `value="wait">wait<`) {
		t.Errorf("%d %s", page.Code, page.body)
	}
	if page := (request{method: "GET", target: Link("/", other)}).to(h); strings.Contains(page.body, "Ship") ||
		!strings.Contains(page.body, "Your answer is needed") {
		t.Errorf("%s", page.body)
	}
	if r := postJSON(h, asJSON(t, "token", token.Reveal(), "name", "approve", "payload", map[string]any{
		"choice": "approve"})); r.Code != http.StatusBadRequest || !strings.Contains(r.body, `\"ship\", \"wait\"`) {
		t.Errorf("%d %s", r.Code, r.body)
	}
	if r := postJSON(h, asJSON(t, "token", token.Reveal(), "payload", "callback")); r.Code != http.StatusBadRequest {
		t.Errorf("a callback to a question: %d %s", r.Code, r.body)
	}
	if r := postJSON(h, asJSON(t, "token", token.Reveal(), "name", "ship", "payload",
		map[string]any{"choice": "ship"})); r.Code != http.StatusOK {
		t.Errorf("%d %s", r.Code, r.body)
	}
	if page := (request{method: "GET", target: Link("/", token)}).to(New(Config{Deliver: a, Logger: quiet,
		Question: func(*http.Request,
			suspend.Token) suspend.Question {
			return suspend.Question{Title: "Own"}
		}})); !strings.Contains(page.body, "Own") {
		t.Errorf("%s", page.body)
	}
}

// The page shows what an answer may change, and sends it only if it was changed. What does not fit is told on the page,
// with what was typed.
func TestPageTakesChangedArguments(t *testing.T) {
	token := aToken(t)
	a := &asker{&desk{}, token, suspend.Question{Title: "Pay?", Arguments: []byte(`{"cents":5}`),
		Choices: []suspend.Choice{{Name: "approve"}, {Name: "reject"}}}}
	h := New(Config{Deliver: a, Logger: quiet})
	page := request{method: "GET", target: Link("/", token)}.to(h)
	if !strings.Contains(page.body, `name="arguments"`) || !strings.Contains(page.body, "&#34;cents&#34;: 5") {
		t.Errorf("%s", page.body)
	}
	for typed, want := range map[string]string{
		"{\r\n  \"cents\": 5\r\n}": `{"choice":"approve"}`,
		`{"cents":4}`:              `{"choice":"approve","arguments":{"cents":4}}`,
	} {
		r := postForm(h, url.Values{"token": {token.Reveal()}, "choice": {"approve"}, "arguments": {typed}},
			"text/html")
		if sent := a.sent[len(a.sent)-1]; r.Code != http.StatusOK || string(sent.Payload) != want {
			t.Errorf("%q: %d %s", typed, r.Code, sent.Payload)
		}
	}
	for _, typed := range []string{"{cents", ""} { // who empties the field does not mean what stood there
		r := postForm(h, url.Values{"token": {token.Reveal()}, "choice": {"approve"}, "arguments": {typed}},
			"text/html")
		if r.Code != http.StatusBadRequest || !strings.Contains(r.body, "not JSON") ||
			!strings.Contains(r.body, `aria-describedby="problem" autofocus>`+typed+"<") {
			t.Errorf("%d %s", r.Code, r.body)
		}
	}
}
