package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// desk takes signals: it answers with err, or remembers keys as a server does.
type desk struct {
	err    error
	effect suspend.Effect
	sent   []suspend.SentSignal
	known  map[string]suspend.Delivered
}

func (d *desk) DeliverSignal(_ context.Context, _ flowfabric.ExecutionID, _ flowfabric.UUID, _ string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	d.sent = append(d.sent, s)
	if d.err != nil {
		return suspend.Delivered{}, d.err
	}
	if s.ID.IsZero() {
		s.ID = mint.UUID()
	}
	if first, ok := d.known[s.IdempotencyKey]; ok && s.IdempotencyKey != "" {
		first.Duplicate = first.Signal != s.ID
		return first, nil
	}
	out := suspend.Delivered{Signal: s.ID, Effect: d.effect, Open: true}
	if out.Effect == "" {
		out.Effect = waitwords.EffectSatisfied
	}
	if d.known == nil {
		d.known = map[string]suspend.Delivered{}
	}
	d.known[s.IdempotencyKey] = out
	return out, nil
}

// visit is one request, and what came back.
type visit struct {
	*httptest.ResponseRecorder
	body string
}

type request struct {
	method, target, kind, body string
	header                     map[string]string
}

func (q request) to(h http.Handler) visit {
	r := httptest.NewRequest(q.method, q.target, strings.NewReader(q.body))
	if q.kind != "" {
		r.Header.Set("Content-Type", q.kind)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return visit{w, w.Body.String()}
}

func postJSON(h http.Handler, body string, header ...string) visit {
	q := request{method: "POST", target: "/", kind: typeJSON, body: body, header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		q.header[header[i]] = header[i+1]
	}
	return q.to(h)
}

func postForm(h http.Handler, fields url.Values, accept string) visit {
	return request{method: "POST", target: "/", kind: typeForm + "; charset=utf-8", body: fields.Encode(),
		header: map[string]string{"Accept": accept}}.to(h)
}

var quiet = slog.New(slog.DiscardHandler)

func newHandler(d *desk) http.Handler {
	return New(Config{Deliver: d, Logger: quiet})
}

// asJSON builds a body from pairs of fields.
func asJSON(t *testing.T, pairs ...any) string {
	t.Helper()
	fields := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(fields)
	must.No(t, err)
	return string(text)
}

// tokenOnce reports whether a page has the token in the one place where it must be.
func tokenOnce(page string, token suspend.Token) bool {
	field := `<input type="hidden" name="token" value="` + token.Reveal() + `">`
	return strings.Count(page, field) == 1 && strings.Count(page, secret(token)) == 1 &&
		!strings.Contains(page, token.Digest())
}

func TestLink(t *testing.T) {
	token := aToken(t)
	escaped := url.QueryEscape(token.Reveal())
	for base, want := range map[string]string{
		"https://x.org/a":       "https://x.org/a?token=" + escaped,
		"https://x.org/a?b=c":   "https://x.org/a?b=c&token=" + escaped,
		"https://x.org/a#there": "https://x.org/a?token=" + escaped + "#there",
	} {
		if got := Link(base, token); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		u, err := url.Parse(Link(base, token))
		if err != nil || u.Query().Get("token") != token.Reveal() {
			t.Errorf("%v, %v", u, err)
		}
	}
}

// Looking changes nothing, however often.
func TestGetShowsAndNeverActs(t *testing.T) {
	token, d := aToken(t), &desk{}
	h := New(Config{Deliver: d, Logger: quiet, Question: func(_ *http.Request, got suspend.Token) suspend.Question {
		if got != token {
			t.Error("the page is asked about another token")
		}
		return suspend.Question{Title: "Pay <b>ACME</b>?", Text: "Amount: 5 €\n\"now\"",
			Choices: []suspend.Choice{{Name: "yes", Label: "Yes & pay"}, {Name: "no", Label: ""}}}
	}})
	var pages []string
	for _, q := range []request{
		{method: "GET", target: Link("/", token)},
		{method: "HEAD", target: Link("/deep/er", token)},
		{method: "GET", target: "/", header: map[string]string{"Authorization": "bearer " + token.Reveal()}},
		{method: "GET", target: Link("/", token) + "&choice=yes&token=" + url.QueryEscape(token.Reveal())},
		{method: "GET", target: Link("/", token), kind: typeForm, body: "choice=yes"},
	} {
		v := q.to(h)
		if v.Code != 200 || v.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
			q.method == "GET" && !tokenOnce(v.body, token) {
			t.Errorf("%+v: %d %v\n%s", q, v.Code, v.Header(), v.body)
		}
		if q.method == "GET" {
			pages = append(pages, v.body)
		}
	}
	for _, want := range []string{`<html lang="en">`, "<title>Pay &lt;b&gt;ACME&lt;/b&gt;?</title>",
		"<h1>Pay &lt;b&gt;ACME&lt;/b&gt;?</h1>", "Amount: 5 €\n&#34;now&#34;",
		`<button type="submit" name="choice" value="yes">Yes &amp; pay</button>`,
		`<button type="submit" name="choice" value="no">no</button>`,
		`<form method="post" action="?"`, `<label for="comment">`, `<label for="by">`, `name="viewport"`, `<main>`} {
		if !strings.Contains(pages[0], want) {
			t.Errorf("the page lacks %s:\n%s", want, pages[0])
		}
	}
	for _, foreign := range []string{"<script", "http:", "https:", "src=", "href=", "@import", "url("} {
		if strings.Contains(pages[0], foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
	v := request{method: "GET", target: Link("/", token), header: map[string]string{"Accept": typeJSON}}.to(h)
	const want = `{"status":"question","title":"Pay \u003cb\u003eACME\u003c/b\u003e?","text":"Amount: 5 €\n\"now\"",` +
		`"choices":[{"name":"yes","label":"Yes \u0026 pay"},{"name":"no","label":"no"}]}` + "\n"
	if v.body != want || v.Header().Get("Content-Type") != typeJSON {
		t.Errorf("%s", v.body)
	}
	if len(d.sent) != 0 {
		t.Errorf("somebody looked, and it acted: %+v", d.sent)
	}
}

func TestThePageWithoutAPage(t *testing.T) {
	v := request{method: "GET", target: Link("/", aToken(t))}.to(newHandler(&desk{}))
	for _, want := range []string{"<h1>Your answer is needed</h1>", `value="approve">Approve<`,
		`value="reject">Reject<`} {
		if !strings.Contains(v.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The address may hold a token: nothing may keep it, pass it on, or put the page into a frame.
func TestHeadersOfEveryAnswer(t *testing.T) {
	token := aToken(t)
	h := newHandler(&desk{})
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`)
	for what, q := range map[string]request{
		"page":      {method: "GET", target: Link("/", token)},
		"no token":  {method: "GET", target: "/"},
		"method":    {method: "DELETE", target: Link("/", token)},
		"media":     {method: "POST", target: "/", kind: "text/plain"},
		"delivered": {method: "POST", target: Link("/", token), kind: typeJSON, body: `{"payload":1}`},
		"invalid":   {method: "POST", target: "/", kind: typeJSON, body: "["},
	} {
		v := q.to(h)
		header := v.Result().Header
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow",
			"Vary": "Accept"} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", what, name, header.Get(name), want)
			}
		}
		csp := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'",
			"base-uri 'none'"} {
			if !slices.Contains(strings.Split(csp, "; "), want) {
				t.Errorf("%s: the policy %q lacks %s", what, csp, want)
			}
		}
		if len(header.Values("Set-Cookie"))+len(header.Values("Location")) > 0 {
			t.Errorf("%s: %v", what, header)
		}
		if m := style.FindStringSubmatch(v.body); m != nil && m[1] != pageStyle {
			t.Errorf("%s: the style sheet is not the one whose hash the policy names", what)
		}
	}
}

// A caller without a good token gets the same bytes, whatever is wrong and whatever there is.
func TestRefusalsAreByteIdentical(t *testing.T) {
	token := aToken(t)
	other := strings.Replace(token.Reveal(), "1.", "63.", 1)
	refusal := func(code string) *desk { return &desk{err: denied.New("fake", code)} }
	never := func() *desk { return &desk{err: errors.New("the store was asked")} }
	far := &desk{err: fmt.Errorf("ff_deliver_signal: %w: partition 63 of 4", flowfabric.ErrInvalidInput)}
	for _, accept := range []string{"text/html", typeJSON} {
		var first string
		for what, x := range map[string]struct {
			d *desk
			q request
		}{
			"no token, get": {never(), request{method: "GET", target: "/"}},
			"junk, get":     {never(), request{method: "GET", target: "/?token=junk"}},
			"empty, get":    {never(), request{method: "GET", target: "/?token="}},
			"no token, form": {never(),
				request{method: "POST", target: "/", kind: typeForm, body: "choice=approve"}},
			"junk, form": {never(),
				request{method: "POST", target: "/", kind: typeForm, body: "choice=approve&token=junk"}},
			"junk, bad choice": {never(),
				request{method: "POST", target: "/", kind: typeForm, body: "choice=&token=junk"}},
			"no token, JSON": {never(),
				request{method: "POST", target: "/", kind: typeJSON, body: `{"name":"go"}`}},
			"junk, JSON": {never(),
				request{method: "POST", target: "/", kind: typeJSON, body: `{"token":"junk"}`}},
			"junk, bad name": {never(),
				request{method: "POST", target: "/", kind: typeJSON, body: `{"token":"junk","name":"__x"}`}},
			"junk, bearer": {never(), request{method: "POST", target: "/", kind: typeJSON, body: "{}",
				header: map[string]string{"Authorization": "Bearer junk"}}},
			"other scheme": {never(), request{method: "POST", target: "/", kind: typeJSON, body: "{}",
				header: map[string]string{"Authorization": "Basic " + token.Reveal()}}},
			"wrong token, form": {refusal("invalid_token"),
				request{method: "POST", target: "/", kind: typeForm, body: "choice=approve&token=" + token.Reveal()}},
			"wrong token, JSON": {refusal("invalid_token"), request{method: "POST", target: "/", kind: typeJSON,
				body: asJSON(t, "token", token.Reveal(), "payload", 1)}},
			"missing, server": {refusal("missing_token"), request{method: "POST", target: "/", kind: typeJSON,
				body: asJSON(t, "token", token.Reveal(), "payload", 1)}},
			"unknown partition": {far,
				request{method: "POST", target: "/", kind: typeJSON, body: asJSON(t, "token", other, "payload", 1)}},
			"unknown, form": {far,
				request{method: "POST", target: "/", kind: typeForm, body: "choice=approve&token=" + other}},
			"wrong token in link": {refusal("invalid_token"),
				request{method: "POST", target: Link("/", token), kind: typeJSON, body: `{"payload":1}`}},
		} {
			if x.q.header == nil {
				x.q.header = map[string]string{}
			}
			x.q.header["Accept"] = accept
			v := x.q.to(newHandler(x.d))
			answer := fmt.Sprint(v.Code, v.Result().Header, v.body)
			if first == "" {
				first = answer
			}
			if v.Code != 401 || answer != first || v.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s:\n%s\nwant\n%s", what, answer, first)
			}
		}
		if strings.Contains(first, secret(token)) || !strings.Contains(first, "new link") {
			t.Errorf("the refusal says %s", first)
		}
	}
}

func TestStatusOfEachError(t *testing.T) {
	token := aToken(t)
	for code, want := range map[string]struct {
		status      int
		body, error string
	}{
		"invalid_token":               {401, "It may be incomplete", "invalid_token"},
		"token_expired":               {401, "new link", "token_expired"},
		"hmac_secret_not_initialized": {503, "later", "unavailable"},
		"invalid_secret":              {503, "later", "unavailable"},
		"partition_frozen":            {503, "later", "unavailable"},
		"partition_missing":           {503, "later", "unavailable"},
		"protocol_mismatch":           {503, "later", "unavailable"},
		"transport":                   {503, "later", "unavailable"},
		"out_of_memory":               {503, "later", "unavailable"},
		"waitpoint_closed":            {200, "already answered", "closed"},
		"target_not_signalable":       {200, "already answered", "closed"},
		"signal_limit_exceeded":       {429, "Nothing more", "signal_limit_exceeded"},
		"payload_too_large":           {413, "65536 bytes", "payload_too_large"},
		"invalid_input":               {400, "source: this waitpoint", "invalid_input"},
		"corrupt":                     {500, "later", "internal"},
		"nobody_knows_this":           {500, "later", "internal"},
	} {
		for _, accept := range []string{"text/html", typeJSON} {
			detail := "detail that stays inside"
			if code == "invalid_input" {
				detail = "source: this waitpoint wants one"
			}
			var log bytes.Buffer
			h := New(Config{
				Deliver: &desk{err: fmt.Errorf("signal %s: %w", token.Execution(), denied.New("fake", code, detail))},
				Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			v := postJSON(h, asJSON(t, "token", token.Reveal(), "payload", 1), "Accept", accept)
			says := want.body
			if accept == typeJSON && want.error == "closed" {
				says = `{"status":"closed"}` + "\n"
			}
			if v.Code != want.status || !strings.Contains(v.body, says) ||
				accept == typeJSON && !strings.Contains(v.body, `"`+want.error+`"`) {
				t.Errorf("%s: %d %s, want %d %q", code, v.Code, v.body, want.status, says)
			}
			if strings.Contains(v.body, "stays inside") {
				t.Errorf("%s tells too much: %s", code, v.body)
			}
			if loud := strings.Contains(log.String(), "level=ERROR"); loud != (want.status >= 500) ||
				!strings.Contains(log.String(), code) {
				t.Errorf("%s: logged %q", code, log.String())
			}
			hides(t, "log", log.String(), token)
			if retry := v.Header().Get("Retry-After"); (retry != "") != (want.status == 503) {
				t.Errorf("%s: Retry-After %q", code, retry)
			}
		}
	}
	h := New(Config{Deliver: &desk{err: denied.New("fake", "waitpoint_closed", "resumed", "1000")},
		ClosedStatus: 409, Logger: quiet})
	if v := postJSON(h, asJSON(t, "token", token.Reveal(), "payload", 1)); v.Code != 409 ||
		v.body != `{"status":"closed"}`+"\n" {
		t.Errorf("with ClosedStatus: %d %s", v.Code, v.body)
	}
}

func TestOtherMethodsAndTypes(t *testing.T) {
	d := &desk{}
	h := newHandler(d)
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "SMILE"} {
		if v := (request{method: method, target: Link("/", aToken(t))}).to(h); v.Code != 405 ||
			v.Header().Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: %d %v", method, v.Code, v.Header())
		}
	}
	for _, kind := range []string{"", "text/plain", "multipart/form-data; boundary=x", "application/jsonx",
		"application/json; charset", "/"} {
		v := request{method: "POST", target: Link("/", aToken(t)), kind: kind, body: "choice=approve"}.to(h)
		if v.Code != 415 || !strings.Contains(v.Header().Get("Accept-Post"), typeForm) {
			t.Errorf("%q: %d %v", kind, v.Code, v.Header())
		}
	}
	if len(d.sent) != 0 {
		t.Errorf("sent %+v", d.sent)
	}
}

func TestJSONPosts(t *testing.T) {
	token := aToken(t)
	d := &desk{}
	v := postJSON(newHandler(d), asJSON(t, "token", token.Reveal(), "name", "paid", "payload",
		map[string]int{"cents": 5}, "idempotency_key", "evt-1",
		"source", "stripe", "source_type", "psp", "correlation", "c-1", "category", "payments"))
	want := suspend.SentSignal{Name: "paid", Category: "payments", SourceType: "psp", Source: "stripe",
		Correlation:    "c-1",
		IdempotencyKey: "evt-1", Encoding: "json", Payload: []byte(`{"cents":5}`)}
	if len(d.sent) != 1 || fmt.Sprintf("%+v", d.sent[0]) != fmt.Sprintf("%+v", want) {
		t.Errorf("sent %+v", d.sent)
	}
	first := d.known["evt-1"].Signal.String()
	if v.Code != 200 || v.body != `{"status":"delivered","signal":"`+first+
		`","effect":"resume_condition_satisfied","open":true}`+"\n" {
		t.Errorf("%d %s", v.Code, v.body)
	}
	again := postJSON(newHandler(d), `{"payload":null}`, "Authorization", "Bearer "+token.Reveal(), "Idempotency-Key",
		"evt-1")
	if again.Code != 200 || again.body != `{"status":"duplicate","signal":"`+first+
		`","effect":"resume_condition_satisfied","open":true}`+"\n" {
		t.Errorf("%d %s", again.Code, again.body)
	}
	if s := d.sent[1]; s.Name != "signal" || s.SourceType != "webhook" || string(s.Payload) != "null" ||
		s.IdempotencyKey != "evt-1" {
		t.Errorf("defaults: %+v", s)
	}
	for what, payload := range map[string]string{"list": `[1, 2]`, "text": `"a"`, "null": "null", "spaces": "{ }"} {
		d := &desk{}
		if v := postJSON(newHandler(d), `{"token":"`+token.Reveal()+`","payload":`+payload+"} \n"); v.Code != 200 ||
			string(d.sent[0].Payload) != payload {
			t.Errorf("%s: %d %s, sent %+v", what, v.Code, v.body, d.sent)
		}
	}
}

func TestJSONPostsThatAreRefused(t *testing.T) {
	token := aToken(t).Reveal()
	another := aToken(t).Reveal()
	with := func(pairs ...any) string { return asJSON(t, append([]any{"token", token, "payload", 1}, pairs...)...) }
	for what, x := range map[string]struct {
		body   string
		header []string
		status int
		says   string
	}{
		"empty":          {"", nil, 400, "must be one JSON object"},
		"null":           {" null", nil, 400, "must be one JSON object"},
		"list":           {"[]", nil, 400, "must be one JSON object"},
		"text":           {`"` + token + `"`, nil, 400, "must be one JSON object"},
		"cut":            {`{"token":"` + token, nil, 400, "must be one JSON object"},
		"two":            {"{}{}", nil, 400, "must be one JSON object"},
		"trailing":       {with() + "x", nil, 400, "must be one JSON object"},
		"unknown field":  {with("tokn", token), nil, 400, "must be one JSON object"},
		"number as name": {with("name", 1), nil, 400, "must be one JSON object"},
		"reserved name":  {with("name", "__timeout"), nil, 400, "do not begin with __"},
		"name of 129": {with("name", strings.Repeat("n", 129)), nil, 400,
			"signal name has 129 bytes, want at most 128"},
		"control":       {with("source", "a\nb"), nil, 400, "signal source has control character 0x0a at 1"},
		"source of 257": {with("source", strings.Repeat("s", 257)), nil, 400, "signal source has 257 bytes"},
		"source type of 65": {with("source_type", strings.Repeat("s", 65)), nil, 400,
			"signal source type has 65 bytes"},
		"category of 65": {with("category", strings.Repeat("s", 65)), nil, 400, "signal category has 65 bytes"},
		"correlation of 257": {with("correlation", strings.Repeat("s", 257)), nil, 400,
			"signal correlation has 257 bytes"},
		"key of 257": {with("idempotency_key", strings.Repeat("s", 257)), nil, 400,
			"idempotency key has 257 bytes"},
		"key header of 257": {with(), []string{"Idempotency-Key", strings.Repeat("s", 257)}, 400,
			"idempotency key has 257 bytes"},
		"two keys": {with("idempotency_key", "a"), []string{"Idempotency-Key", "b"}, 400,
			"two different idempotency keys"},
		"two tokens":       {with(), []string{"Authorization", "Bearer " + another}, 400, "two different tokens"},
		"no payload":       {asJSON(t, "token", token), nil, 400, "payload is missing"},
		"payload of 65537": {with("payload", strings.Repeat("x", 65535)), nil, 413, "65536 bytes"},
		"body too large":   {with() + strings.Repeat(" ", maxBody), nil, 413, "65536 bytes"},
	} {
		d := &desk{}
		v := postJSON(newHandler(d), x.body, x.header...)
		if v.Code != x.status || !strings.Contains(v.body, x.says) || !strings.HasPrefix(v.body, `{"status":"error"`) ||
			len(d.sent) != 0 {
			t.Errorf("%s: %d %s, want %d %q; sent %d", what, v.Code, v.body, x.status, x.says, len(d.sent))
		}
		if strings.Contains(v.body, token) || strings.Contains(v.body, "validation") {
			t.Errorf("%s shows the token: %s", what, v.body)
		}
	}
	d := &desk{}
	if v := postJSON(newHandler(d), with("payload", strings.Repeat("x", 65534))); v.Code != 200 ||
		len(d.sent[0].Payload) != limits.MaxSignal {
		t.Errorf("a payload of 65536 bytes: %d %s", v.Code, v.body)
	}
}

// What programs post where people are asked is one of the answers, whole: whatever is taken uses the waitpoint up.
func TestJSONAnswers(t *testing.T) {
	token := aToken(t)
	asks := func(*http.Request, suspend.Token) suspend.Question {
		return suspend.Question{Choices: []suspend.Choice{{Name: "ship", Label: "Ship it"}, {Name: "hold", Label: ""}}}
	}
	type body = map[string]any
	for what, x := range map[string]struct {
		question func(*http.Request, suspend.Token) suspend.Question
		body     body
		says     string // "" when it is taken
	}{
		"an answer": {asks,
			body{"name": "ship", "payload": suspend.Answer{Choice: "ship", Comment: "now", By: "anna"}}, ""},
		"the other one": {asks, body{"name": "hold", "payload": body{"choice": "hold", "more": 1}}, ""},
		"a choice of the default page": {asks, body{"name": "approve", "payload": suspend.Answer{Choice: "approve"}},
			`must be one of the choices: \"ship\", \"hold\".`},
		"by label": {asks, body{"name": "Ship it", "payload": suspend.Answer{Choice: "Ship it"}},
			"must be one of the choices"},
		"no name": {asks, body{"payload": suspend.Answer{Choice: "ship"}}, "must be one of the choices"},
		"a callback": {asks, body{"name": "paid", "payload": body{"cents": 5}},
			"must be one of the choices"},
		"no payload": {asks, body{"name": "ship"}, "payload is missing"},
		"null":       {asks, body{"name": "ship", "payload": nil}, "must be an object"},
		"a text":     {asks, body{"name": "ship", "payload": "ship"}, "must be an object"},
		"no choice":  {asks, body{"name": "ship", "payload": body{}}, "must be an object"},
		"another choice": {asks, body{"name": "ship", "payload": suspend.Answer{Choice: "hold"}},
			"must be an object"},
		"a choice that is a number": {asks, body{"name": "ship", "payload": body{"choice": 1}}, "must be an object"},
		"a comment that is a number": {asks, body{"name": "ship", "payload": body{"choice": "ship", "comment": 1}},
			"must be an object"},
		"a comment that is too long": {asks, body{"name": "ship",
			"payload": suspend.Answer{Choice: "ship", Comment: strings.Repeat("x", maxComment+1)}}, "8193 bytes"},
		"a name of lines": {asks, body{"name": "ship", "payload": suspend.Answer{Choice: "ship", By: "a\nb"}},
			"a single line"},

		"default: an answer":          {nil, body{"name": "reject", "payload": suspend.Answer{Choice: "reject"}}, ""},
		"default: a callback":         {nil, body{"name": "paid", "payload": body{"cents": 5}}, ""},
		"default: a callback of null": {nil, body{"name": "paid", "payload": nil}, ""},
		"default: no payload":         {nil, body{"name": "approve"}, "payload is missing"},
		"default: nothing at all":     {nil, body{}, "payload is missing"},
		"default: an answer of null":  {nil, body{"name": "approve", "payload": nil}, "must be an object"},
		"default: another choice": {nil, body{"name": "approve", "payload": suspend.Answer{Choice: "reject"}},
			"must be an object"},
		"default: an unknown choice": {nil, body{"name": "launch", "payload": suspend.Answer{Choice: "launch"}},
			"must be one of the choices"},
		"default: a choice in the dark": {nil, body{"payload": suspend.Answer{Choice: "approve"}},
			"must be one of the choices"},
	} {
		d := &desk{}
		x.body["token"] = token.Reveal()
		text, err := json.Marshal(x.body)
		must.No(t, err)
		v := postJSON(New(Config{Deliver: d, Logger: quiet, Question: x.question}), string(text))
		if taken := x.says == ""; taken != (v.Code == 200 && len(d.sent) == 1) || taken != (v.Code != 400) ||
			!strings.Contains(v.body, x.says) {
			t.Errorf("%s: %d %s, sent %d", what, v.Code, v.body, len(d.sent))
		}
	}
}

func TestFormPosts(t *testing.T) {
	token, d := aToken(t), &desk{}
	v := postForm(newHandler(d), url.Values{"token": {token.Reveal()}, "choice": {"approve"},
		"comment": {" looks\r\ngood \xff"}, "by": {"Anna "}}, "text/html")
	if v.Code != 200 || !strings.Contains(v.body, "<h1>Thank you</h1>") ||
		!strings.Contains(v.body, "Your answer “Approve” was recorded.") {
		t.Errorf("%d %s", v.Code, v.body)
	}
	s := d.sent[0]
	var answer suspend.Answer
	if err := json.Unmarshal(s.Payload, &answer); err != nil ||
		!reflect.DeepEqual(answer, suspend.Answer{Choice: "approve", Comment: "looks\ngood \uFFFD", By: "Anna"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if s.Name != "approve" || s.SourceType != "person" || s.Source != "Anna" || s.Encoding != "json" ||
		s.DedupTTL != limits.MaxDedupTTL {
		t.Errorf("sent %+v", s)
	}
	if strings.Contains(v.body, secret(token)) || strings.Contains(v.body, "<form") {
		t.Errorf("the answer has the token: %s", v.body)
	}
	d = &desk{}
	if v = postForm(newHandler(d), url.Values{"token": {token.Reveal()}, "choice": {"reject"}},
		typeJSON); v.Code != 200 || !strings.HasPrefix(v.body, `{"status":"delivered"`) ||
		string(d.sent[0].Payload) != `{"choice":"reject"}` {
		t.Errorf("%d %s, %s", v.Code, v.body, d.sent[0].Payload)
	}
}

// The form says what to change, keeps what was typed, and escapes it.
func TestFormPostsThatAreRefused(t *testing.T) {
	token := aToken(t)
	evil := `"><script>alert(1)</script>`
	for what, x := range map[string]struct {
		fields url.Values
		says   string
	}{
		"no choice":       {url.Values{}, "Please choose one"},
		"unknown choice":  {url.Values{"choice": {"destroy"}}, "Please choose one"},
		"choice by label": {url.Values{"choice": {"Approve"}}, "Please choose one"},
		"two choices":     {url.Values{"choice": {"approve", "reject"}}, "the field choice twice"},
		"comment too long": {url.Values{"choice": {"approve"}, "comment": {strings.Repeat("é", maxComment/2) + "x"}},
			"it has 8193 bytes, at most 8192"},
		"name too long": {url.Values{"choice": {"approve"}, "by": {strings.Repeat("x", 257)}}, "at most 256 bytes"},
		"name of lines": {url.Values{"choice": {"approve"}, "by": {"a\nb"}}, "a single line"},
		"markup":        {url.Values{"choice": {evil}, "comment": {evil}, "by": {evil}}, "Please choose one"},
	} {
		d := &desk{}
		x.fields.Set("token", token.Reveal())
		v := postForm(newHandler(d), x.fields, "text/html")
		if v.Code != 400 || !strings.Contains(v.body, `<p role="alert" id="problem">`) ||
			!strings.Contains(v.body, x.says) || len(d.sent) != 0 {
			t.Errorf("%s: %d %s", what, v.Code, v.body)
		}
		if what != "two choices" && !tokenOnce(v.body, token) || strings.Contains(v.body, "<script") ||
			strings.Contains(v.body, `value="">`+evil) {
			t.Errorf("%s: the page has something it must not have: %s", what, v.body)
		}
		if what == "markup" && strings.Count(html.UnescapeString(v.body), evil) != 2 {
			t.Errorf("%s: what was typed is lost: %s", what, v.body)
		}
		if v := postForm(newHandler(d), x.fields, typeJSON); v.Code != 400 || !strings.Contains(v.body, x.says) {
			t.Errorf("%s: %d %s", what, v.Code, v.body)
		}
	}
	d := &desk{}
	for _, body := range []string{"choice=%zz&token=" + token.Reveal(), "choice=approve;token=" + token.Reveal()} {
		if v := (request{method: "POST", target: "/", kind: typeForm, body: body}).to(newHandler(d)); v.Code != 400 ||
			len(d.sent) != 0 {
			t.Errorf("%s: %d %s", body, v.Code, v.body)
		}
	}
	exact := url.Values{"token": {token.Reveal()}, "choice": {"approve"},
		"comment": {strings.Repeat("é", maxComment/2)}, "by": {strings.Repeat("x", 256)}}
	if v := postForm(newHandler(d), exact, ""); v.Code != 200 {
		t.Errorf("at the limits: %d %s", v.Code, v.body)
	}
}

var nonceField = regexp.MustCompile(`name="nonce" value="([0-9a-f]{16})"`)

// render opens the page and returns its nonce.
func render(t *testing.T, h http.Handler, token suspend.Token) string {
	t.Helper()
	m := nonceField.FindStringSubmatch(request{method: "GET", target: Link("/", token)}.to(h).body)
	if m == nil {
		t.Fatal("the page has no nonce")
	}
	return m[1]
}

// A double click is one decision, a second decision is told which one stands.
func TestTheSecondDecision(t *testing.T) {
	token, d := aToken(t), &desk{}
	h := newHandler(d)
	one, two := render(t, h, token), render(t, h, token)
	if one == two {
		t.Fatal("two renderings have one nonce")
	}
	click := func(nonce, choice string) string {
		return postForm(h, url.Values{"token": {token.Reveal()}, "nonce": {nonce}, "choice": {choice}},
			"text/html").body
	}
	first := click(one, "approve")
	if again := click(one, "approve"); again != first ||
		!strings.Contains(first, "Your answer “Approve” was recorded.") {
		t.Errorf("a double click: %s\nthen %s", first, again)
	}
	for what, page := range map[string]string{"the other button": click(one, "reject"),
		"another tab": click(two, "approve"), "another person": click(two, "reject"), "no nonce": click("", "reject"),
		"bad nonce": click("zz", "approve")} {
		if !strings.Contains(page, "Already answered") || !strings.Contains(page,
			"An answer was already recorded: “Approve”. It stands, and yours was not recorded.") {
			t.Errorf("%s: %s", what, page)
		}
	}
	d.known[pageKey] = suspend.Delivered{Signal: mint.UUID(), Effect: waitwords.EffectSatisfied}
	if page := click(two, "reject"); !strings.Contains(page, "An answer was already recorded. It stands") {
		t.Errorf("a decision that nobody here knows: %s", page)
	}
	ids := map[flowfabric.UUID]bool{}
	for _, s := range d.sent {
		if s.IdempotencyKey != pageKey || uuid.UUID(s.ID).Version() != 8 || uuid.UUID(s.ID).Variant() != uuid.RFC4122 {
			t.Errorf("%+v", s)
		}
		ids[s.ID] = true
	}
	if len(ids) != 6 { // one for each rendering and choice, and a random one for each click without a nonce
		t.Errorf("%d ids", len(ids))
	}
}

// An answer that the wait does not accept must not keep out the one that it does.
func TestADecisionThatIsIgnored(t *testing.T) {
	token, d := aToken(t), &desk{effect: waitwords.EffectUnmatched}
	h := newHandler(d)
	click := func(choice string) string {
		return postForm(h, url.Values{"token": {token.Reveal()}, "choice": {choice}}, "text/html").body
	}
	if page := click("reject"); !strings.Contains(page, "Not accepted") ||
		!strings.Contains(page, "“Reject” was received, but it is not among the answers that are waited for.") {
		t.Errorf("%s", page)
	}
	d.effect = waitwords.EffectSatisfied
	if page := click("approve"); !strings.Contains(page, "Your answer “Approve” was recorded.") {
		t.Errorf("%s", page)
	}
	if page := click("approve"); !strings.Contains(page, "already recorded: “Approve”") {
		t.Errorf("again: %s", page)
	}
}

// What is asked for decides, then what was sent.
func TestAccept(t *testing.T) {
	for what, x := range map[string]struct {
		method, kind, accept string
		json                 bool
	}{
		"browser":           {"GET", "", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		"nothing, get":      {"GET", "", "", false},
		"anything, get":     {"GET", "", "*/*", false},
		"JSON, get":         {"GET", "", "application/json", true},
		"problem+json, get": {"GET", "", "application/problem+json", true},
		"both, JSON first":  {"GET", "", "application/json, text/html;q=0.5", true},
		"both, equal":       {"GET", "", "application/json, text/html", false},
		"JSON refused":      {"GET", "", "application/json;q=0, text/html;q=0", false},
		"nothing, form":     {"POST", typeForm, "", false},
		"JSON, form":        {"POST", typeForm, "application/json", true},
		"nothing, JSON":     {"POST", typeJSON, "", true},
		"anything, JSON":    {"POST", typeJSON, "*/*", true},
		"page, JSON":        {"POST", typeJSON, "text/html", false},
		"junk":              {"POST", typeJSON, "text/html;q=x, ;;", true},
	} {
		v := request{method: x.method, target: "/", kind: x.kind, body: "{}",
			header: map[string]string{"Accept": x.accept}}.to(newHandler(&desk{}))
		if got := v.Header().Get("Content-Type") == typeJSON; got != x.json || v.Code != 401 {
			t.Errorf("%s: %d %s", what, v.Code, v.Header().Get("Content-Type"))
		}
	}
}

// A body that ends in the middle is not acted upon.
func TestABodyThatBreaksOff(t *testing.T) {
	d := &desk{}
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(asJSON(t, "token", aToken(t).Reveal())),
		broken{}))
	r.Header.Set("Content-Type", typeJSON)
	w := httptest.NewRecorder()
	newHandler(d).ServeHTTP(w, r)
	if w.Code != 400 || len(d.sent) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestNewWithoutDeliver(t *testing.T) {
	for what, cfg := range map[string]Config{"no Deliver": {},
		"closed status": {Deliver: &desk{}, ClosedStatus: 404}} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "Config.") {
					t.Errorf("%s: %v", what, r)
				}
			}()
			New(cfg)
		}()
	}
}

// Refused tokens are told to an operator by their number, seldom, and not at all while there are none.
func TestRefusedTokensAreTold(t *testing.T) {
	var log bytes.Buffer
	d := &desk{}
	h := New(Config{Deliver: d, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	token := aToken(t)
	body := asJSON(t, "token", token.Reveal(), "payload", 1)
	if postJSON(h, body); log.Len() > 0 {
		t.Errorf("a good token: %s", log.String())
	}
	d.err = denied.New("fake", "invalid_token")
	for range 5 {
		postJSON(h, body)
	}
	postJSON(h, `{"token":"junk"}`)
	if text := log.String(); strings.Count(text, "level=WARN") != 1 ||
		!strings.Contains(text, "refused requests whose token") || !strings.Contains(text, "count=1") {
		t.Errorf("at first: %s", text)
	}
	h.(*callback).warned = h.(*callback).warned.Add(-warnEvery)
	postJSON(h, body)
	if text := log.String(); strings.Count(text, "level=WARN") != 2 || !strings.Contains(text, "count=6") {
		t.Errorf("later: %s", text)
	}
	hides(t, "log", log.String(), token)
}
