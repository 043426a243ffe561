package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// clerk is a desk that knows what the holder of one token may know.
type clerk struct {
	*desk
	token suspend.Token
	known suspend.Asked
}

func (c *clerk) ReadQuestion(_ context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	if id != c.token.Execution() || waitpoint != c.token.Waitpoint() || digest != c.token.Digest() {
		return suspend.Asked{}, flowfabric.ErrInvalidToken
	}
	return c.known, nil
}

var answeredAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func stored(name, source string, payload any) *suspend.StoredSignal {
	text, _ := json.Marshal(payload)
	return &suspend.StoredSignal{ID: mint.UUID(), Name: name, Source: source, AcceptedAt: answeredAt, Payload: text}
}

// An answered link shows the answer to the holder of its token, and no buttons; others see the usual page.
func TestAnsweredLink(t *testing.T) {
	token, other := aToken(t), aToken(t)
	c := &clerk{&desk{}, token,
		suspend.Asked{Open: true, Answer: stored("approve", "claimed", suspend.Answer{Choice: "approve",
			Comment: "Ship <it>\nnow", By: "Anna & Otto"})}}
	h := New(Config{Deliver: c, Logger: quiet})
	v := request{method: "GET", target: Link("/", token)}.to(h)
	for _, want := range []string{"<h1>Your answer is needed</h1>", `<p role="status">This was answered.`,
		"<dt>Answer</dt><dd>Approve</dd>", "<dt>By</dt><dd>Anna &amp; Otto</dd>",
		`<dt>At</dt><dd><time datetime="2026-03-04T05:06:07Z">2026-03-04 05:06 UTC</time></dd>`,
		"<dt>Comment</dt><dd>Ship &lt;it&gt;\nnow</dd>"} {
		if v.Code != http.StatusOK || !strings.Contains(v.body, want) {
			t.Errorf("%d, the page lacks %s:\n%s", v.Code, want, v.body)
		}
	}
	if strings.Contains(v.body, "<form") || strings.Contains(v.body, "<button") ||
		strings.Contains(v.body, secret(token)) {
		t.Errorf("an answered link has a form: %s", v.body)
	}
	v = request{method: "GET", target: Link("/", token), header: map[string]string{"Accept": typeJSON}}.to(h)
	const want = `{"status":"answered","title":"Your answer is needed","choices":[{"name":"approve","label":"Approve"},{"name":"reject","label":"Reject"}],` +
		`"answer":{"choice":"approve","label":"Approve","comment":"Ship \u003cit\u003e\nnow","by":"Anna \u0026 Otto","at":"2026-03-04T05:06:07Z"}}` +
		"\n"
	if v.body != want {
		t.Errorf("%s", v.body)
	}
	if v := (request{method: "GET", target: Link("/", other)}).to(h); strings.Contains(v.body, "Otto") ||
		!strings.Contains(v.body, "<form") {
		t.Errorf("another token: %s", v.body)
	}
	own := New(Config{Deliver: c, Logger: quiet, Question: func(*http.Request, suspend.Token) suspend.Question {
		return suspend.Question{Title: "Ship?", Text: "42 tests", Choices: []suspend.Choice{{Name: "approve",
			Label: "Ship it"}, {Name: "reject", Label: ""}}}
	}})
	if v := (request{method: "GET", target: Link("/", token)}).to(own); !strings.Contains(v.body,
		"<h1>Ship?</h1>\n<div class=\"prose\" dir=\"auto\"><p class=\"pre\">42 tests</p></div>") ||
		!strings.Contains(v.body, "<dd>Ship it</dd>") {
		t.Errorf("a page of the application: %s", v.body)
	}

	c.known.Answer = stored("other", "webhook-7", []int{1})
	if v := (request{method: "GET", target: Link("/", token)}).to(h); !strings.Contains(v.body, "<dd>other</dd>") ||
		!strings.Contains(v.body, "<dd>webhook-7</dd>") || strings.Contains(v.body, "<dt>Comment") {
		t.Errorf("an answer in other words: %s", v.body)
	}
	c.known = suspend.Asked{}
	if v := (request{method: "GET", target: Link("/", token)}).to(h); v.Code != http.StatusOK ||
		!strings.Contains(v.body, "<h1>Already closed</h1>") || strings.Contains(v.body, "<form") {
		t.Errorf("closed without an answer: %d %s", v.Code, v.body)
	}
	if len(c.sent) != 0 {
		t.Errorf("looking has sent %+v", c.sent)
	}
}

// The application's login says who answers, whatever the request says.
func TestBy(t *testing.T) {
	token, d := aToken(t), &desk{}
	name, refusal := "Zoë Login", error(nil)
	var log bytes.Buffer
	h := New(Config{Deliver: d,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		By:     func(r *http.Request) (string, error) { return name, refusal }})
	v := request{method: "GET", target: Link("/", token)}.to(h)
	if !strings.Contains(v.body, "<p>You answer as Zoë Login.</p>") || strings.Contains(v.body, `name="by"`) {
		t.Errorf("%s", v.body)
	}
	form := url.Values{"token": {token.Reveal()}, "choice": {"approve"}, "comment": {"ok"}, "by": {"Mallory"}}
	postForm(h, form, "text/html")
	postJSON(h,
		`{"token":"`+token.Reveal()+
			`","name":"approve","source":"Mallory","source_type":"x","payload":{"choice":"approve","bY":"Mallory","BY":"M","more":1}}`)
	postJSON(h, asJSON(t, "token", token.Reveal(), "name", "paid", "source", "Mallory", "payload",
		map[string]any{"by": "Mallory"}))
	for i, want := range []string{`{"choice":"approve","comment":"ok","by":"Zoë Login"}`,
		`{"by":"Zoë Login","choice":"approve","more":1}`, `{"by":"Mallory"}`} {
		if s := d.sent[i]; string(s.Payload) != want || s.Source != name || s.SourceType != pageType {
			t.Errorf("sent %s from %s %s", s.Payload, s.SourceType, s.Source)
		}
	}

	name = ""
	postForm(h, form, "text/html")
	if s := d.sent[3]; s.Source != "Mallory" {
		t.Errorf("nobody known: from %q", s.Source)
	}
	sent := len(d.sent)
	for _, c := range []struct {
		name       string
		err        error
		status     int
		says, code string
	}{
		{"", fmt.Errorf("hidden reason: %w", ErrSignIn), http.StatusUnauthorized, "Please sign in", codeSignIn},
		{"", errors.New("hidden reason"), http.StatusForbidden, "You may not answer this", codeForbidden},
		{"two\nlines", nil, http.StatusInternalServerError, "Something is wrong", "internal"},
		{strings.Repeat("x", 257), nil, http.StatusInternalServerError, "Something is wrong", "internal"},
	} {
		name, refusal = c.name, c.err
		for what, v := range map[string]visit{
			"get":      request{method: "GET", target: Link("/", token)}.to(h),
			"no token": request{method: "GET", target: "/"}.to(h), "form": postForm(h, form, "text/html"),
		} {
			if v.Code != c.status || !strings.Contains(v.body, c.says) || strings.Contains(v.body, "hidden") ||
				strings.Contains(v.body, "<form") || v.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("%v, %s: %d %v %s", c.err, what, v.Code, v.Header(), v.body)
			}
		}
		if v := postJSON(h, asJSON(t, "token", token.Reveal(), "payload", 1)); v.Code != c.status ||
			!strings.Contains(v.body, `"error":"`+c.code+`"`) {
			t.Errorf("%v: %d %s", c.err, v.Code, v.body)
		}
	}
	if len(d.sent) != sent || strings.Contains(log.String(), "refused requests whose token") {
		t.Errorf("%d signals were sent; log: %s", len(d.sent)-sent, &log)
	}
}

// A page of another site may not use the login of who looks at it.
func TestByRefusesOtherSites(t *testing.T) {
	token, d := aToken(t), &desk{}
	asked := 0
	h := New(Config{Deliver: d, Logger: quiet,
		By: func(*http.Request) (string, error) { asked++; return "Zoë", nil }})
	body := url.Values{"token": {token.Reveal()}, "choice": {"approve"}}.Encode()
	post := func(site string) visit {
		return request{method: "POST", target: "/", kind: typeForm, body: body,
			header: map[string]string{"Sec-Fetch-Site": site, "Origin": "null"}}.to(h)
	}
	if v := post("cross-site"); v.Code != http.StatusForbidden || !strings.Contains(v.body, "from the page itself") ||
		asked != 0 || len(d.sent) != 0 {
		t.Errorf("%d %s", v.Code, v.body)
	}
	if v := post("same-origin"); v.Code != http.StatusOK || len(d.sent) != 1 {
		t.Errorf("%d %s", v.Code, v.body)
	}
	if v := (request{method: "GET", target: Link("/", token),
		header: map[string]string{"Sec-Fetch-Site": "cross-site"}}).to(h); v.Code != http.StatusOK {
		t.Errorf("a link in a mail: %d", v.Code)
	}
	free := New(Config{Deliver: d, Logger: quiet})
	if v := (request{method: "POST", target: "/", kind: typeForm, body: body,
		header: map[string]string{"Sec-Fetch-Site": "cross-site"}}).to(free); v.Code != http.StatusOK {
		t.Errorf("without a login there is nothing to borrow: %d", v.Code)
	}
}

// Every word of every page is one of Texts, and programs are told the same in English.
func TestTextsAreComplete(t *testing.T) {
	var own Texts
	fields := reflect.ValueOf(&own).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.String {
			fields.Field(i).SetString("«" + fields.Type().Field(i).Name + "»")
		}
	}
	own.Lang, own.Dir = "ar", "rtl"
	own.AnsweringAs += " {name}"
	own.AnswerUntil += " {time}"
	own.Time = func(t time.Time) string { return "«Time»" }
	for _, text := range []*string{&own.Recorded, &own.OtherStands, &own.NotWaitedFor} {
		*text += " {answer}"
	}
	own.CommentTooLong += " {bytes}"

	token := aToken(t)
	var seen strings.Builder
	see := func(v visit) visit { seen.WriteString(v.body); return v }
	get := request{method: "GET", target: Link("/", token)}
	form := func(pairs ...string) url.Values {
		fields := url.Values{"token": {token.Reveal()}}
		for i := 0; i < len(pairs); i += 2 {
			fields.Set(pairs[i], pairs[i+1])
		}
		return fields
	}
	texts := func(*http.Request) Texts { return own }
	with := func(d Deliverer) http.Handler {
		return New(Config{Deliver: d, Logger: quiet, Texts: texts})
	}

	d := &desk{}
	h := with(d)
	see(get.to(h))
	see(request{method: "GET", target: "/"}.to(h))
	see(request{method: "PUT", target: "/"}.to(h))
	see(postForm(h, form(), "text/html"))
	see(postForm(h, form("choice", "approve", "comment", strings.Repeat("x", maxComment+1)), "text/html"))
	see(postForm(h, form("choice", "approve", "by", "a\nb"), "text/html"))
	see(postForm(h, form("choice", "approve"), "text/html"))
	see(postForm(h, form("choice", "reject"), "text/html"))
	d.known[pageKey] = suspend.Delivered{Signal: mint.UUID(), Effect: waitwords.EffectSatisfied}
	see(postForm(h, form("choice", "reject"), "text/html"))
	see(postForm(with(&desk{effect: waitwords.EffectUnmatched}), form("choice", "reject"), "text/html"))
	see(postJSON(h, asJSON(t, "token", token.Reveal(), "payload", 1), "Accept", "text/html"))
	for _, code := range []string{"token_expired", "waitpoint_closed", "signal_limit_exceeded", "payload_too_large",
		"corrupt", "transport"} {
		see(postForm(with(&desk{err: denied.New("fake", code)}), form("choice", "approve"), "text/html"))
	}
	see(get.to(with(&clerk{d, token, suspend.Asked{Answer: stored("approve", "", suspend.Answer{Choice: "approve",
		Comment: "c", By: "b"})}})))
	asks := with(&clerk{d, token, suspend.Asked{Open: true, ExpiresAt: time.Now(), Question: &suspend.Question{
		Title: "?", Arguments: []byte(`{}`)}}})
	see(get.to(asks))
	see(postForm(asks, form("choice", "approve", "arguments", "{"), "text/html"))
	for _, err := range []error{nil, ErrSignIn, errors.New("no")} {
		see(get.to(New(Config{Deliver: d, Logger: quiet, Texts: texts,
			By: func(*http.Request) (string, error) { return "Zoë", err }})))
	}
	see(request{method: "POST", target: "/", header: map[string]string{"Sec-Fetch-Site": "cross-site",
		"Accept": "text/html"}}.to(New(Config{Deliver: d, Logger: quiet, Texts: texts,
		By: func(*http.Request) (string, error) { return "Zoë", nil }})))

	all := seen.String()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if name != "Lang" && name != "Dir" && !strings.Contains(all, "«"+name+"»") {
			t.Errorf("no page has the text %s", name)
		}
	}
	for i, usual := 0, reflect.ValueOf(english); i < usual.NumField(); i++ {
		text := usual.Field(i).String()
		if usual.Field(i).Kind() == reflect.String && len(text) > 12 && !strings.Contains(text, "{") &&
			strings.Contains(all, text) {
			t.Errorf("a page has English in it: %s", text)
		}
	}
	for _, want := range []string{`<html lang="ar" dir="rtl">`, "«AnsweringAs» Zoë", "«AnswerUntil» «Time»",
		"«Recorded» «Approve»", "«CommentTooLong» 8193"} {
		if !strings.Contains(all, want) {
			t.Errorf("no page has %s", want)
		}
	}
	if v := postForm(h, form(), typeJSON); !strings.Contains(v.body, english.ChooseOne) {
		t.Errorf("a program is told %s", v.body)
	}
	half := New(Config{Deliver: d, Logger: quiet, Texts: func(r *http.Request) Texts {
		return Texts{Lang: "de", Comment: "Bemerkung"}
	}})
	if v := get.to(half); !strings.Contains(v.body, `<html lang="de">`) ||
		!strings.Contains(v.body, "Bemerkung <span>(optional)") {
		t.Errorf("%s", v.body)
	}
}
