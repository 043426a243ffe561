package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/browsertoken"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// bearing is a request of a page with its token, as a browser's fetch sends it.
func (a *api) bearing(token, method, path, body string, want int) got {
	a.t.Helper()
	g := a.do(request{method: method, path: path, body: body,
		header: http.Header{"Authorization": {"Bearer " + token}}})
	if g.status != want {
		a.t.Errorf("%s %s: %d, want %d: %s", method, path, g.status, want, g.body)
	}
	return g
}

// A token that writes takes part in one execution under the name of its person, who is in the trail, and makes no other
// token. A viewer makes none.
func TestBrowserTokensThatWrite(t *testing.T) {
	a := newAPI(t)
	path, other := a.submit(`{"kind":"stuck"}`), a.submit(`{"kind":"stuck"}`)
	a.until(path, "active")
	made := func(role, body string) string {
		return into[streamTokenAnswer](t, a.as(role, "POST", path+"/stream-token", body, 201)).AccessToken
	}
	anna, nameless := made("producer", `{"write":true,"name":"Anna Ünlü"}`), made("operator", `{"write":true}`)
	reads := made("producer", `{}`)
	for role, body := range map[string]string{"viewer": `{"write":true}`, "worker": `{}`} {
		a.as(role, "POST", path+"/stream-token", body, 403)
	}
	for _, body := range []string{`{"name":"anna"}`, `{"write":true,"name":"a\nb"}`, `{"write":true,"life_s":3601}`,
		`{"write":true,"name":"` + strings.Repeat("x", 65) + `"}`, `{"write":true,"life_s":-1}`, `{"write":1}`} {
		a.as("operator", "POST", path+"/stream-token", body, 400)
	}

	message := `{"mailbox":"user","payload":{"id":"u-1","text":"hi"},"idempotency_key":"u-1"}`
	sent := into[client.Sent](t, a.bearing(anna, "POST", path+"/messages", message, 200))
	if again := into[client.Sent](t, a.bearing(anna, "POST", path+"/messages", message, 200)); !again.Duplicate ||
		again.Number != sent.Number {
		t.Errorf("%+v, then %+v", sent, again)
	}
	a.as("", "POST", path+"/messages?access_token="+nameless, `{"mailbox":"user","payload":"hey"}`, 200)
	heard := into[client.Mailboxes](t, a.bearing(anna, "GET", path+"/messages", "", 200))
	if len(heard.Messages) != 2 || heard.Messages[0].By != "Anna Ünlü" || heard.Messages[1].By != "browser" {
		t.Errorf("%+v", heard)
	}
	if x := into[flowfabric.Snapshot](t, a.bearing(anna, "GET", path, "", 200)); x.Kind != "stuck" {
		t.Errorf("%+v", x)
	}
	a.bearing(anna, "GET", path+"/wait", "", 204)
	if s := into[client.Stopped](t, a.bearing(anna, "POST", path+":stop", `{"reason":"enough"}`, 200)); s.By !=
		"Anna Ünlü" || s.Already {
		t.Errorf("%+v", s)
	}
	a.as("", "POST", path+":stop?access_token="+nameless, `{}`, 200)
	if all, status := a.follow(path+"/events", http.Header{"Authorization": {"Bearer " + anna}},
		func(sse) bool { return true }); status != 200 || len(all) == 0 {
		t.Errorf("%d %s", status, names(all))
	}

	for _, token := range []string{anna, nameless, reads} {
		for _, forbidden := range []string{":cancel", ":rewind", ":fork", ":purge", ":replay", "/stream-token"} {
			a.bearing(token, "POST", path+forbidden, `{}`, 403)
		}
		for _, forbidden := range []string{"/steps", "/history", "/transcript", "/result", "/input"} {
			a.bearing(token, "GET", path+forbidden, "", 403)
		}
		a.h.failed = newLimiter()
		for _, unknown := range []string{"/v1/executions", "/v1/me", "/v1/approvals", other + "/events", other,
			"/v1/flows/" + path[len("/v1/executions/"):]} {
			a.bearing(token, "GET", unknown, "", 401)
		}
		a.bearing(token, "POST", other+"/messages", `{"mailbox":"user","payload":1}`, 401)
		a.bearing(token, "POST", other+":stop", `{}`, 401)
		if strings.Contains(a.logs.String(), token) {
			t.Error("the token is in the log")
		}
	}
	a.bearing(reads, "POST", path+"/messages", message, 403)
	a.bearing(reads, "POST", path+":stop", `{}`, 403)
	a.bearing(reads, "GET", path, "", 403)
	var by []string
	for _, change := range into[changePage](t, a.as("viewer", "GET", "/v1/trail?on=execution", "", 200)).Items {
		if strings.HasPrefix(change.From, "browser ") {
			by = append(by, change.By)
		}
	}
	if !slices.Contains(by, "Anna Ünlü") {
		t.Errorf("in the trail: %q", by)
	}
	close(a.release)
	a.until(path, "completed")
}

// A token answers the questions of its execution if an operator has made it.
func TestBrowserTokensThatAnswer(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"asks"}`)
	a.until(path, "suspended")
	made := func(role string) string {
		return into[streamTokenAnswer](t, a.as(role, "POST", path+"/stream-token", `{"write":true,"name":"ben"}`,
			201)).AccessToken
	}
	wait := into[admin.Approval](t, a.bearing(made("producer"), "GET", path+"/wait", "", 200))
	answer := path + "/waitpoints/" + wait.Waitpoints[0].Key + ":answer"
	a.bearing(made("producer"), "POST", answer, `{"payload":"yes"}`, 403)
	a.bearing(made("operator"), "POST", answer, `{"payload":"yes"}`, 200)
	a.until(path, "completed")
	var trail string
	for _, change := range into[changePage](t, a.as("viewer", "GET", "/v1/trail", "", 200)).Items {
		line, err := json.Marshal(change)
		must.No(t, err)
		trail += string(line)
	}
	if !strings.Contains(trail, "ben") || !strings.Contains(trail, "browser 127.0.0.1") {
		t.Errorf("the trail does not say who: %s", trail)
	}
}

// A token that writes ends with what its maker may, and with its maker.
func TestBrowserTokensOfMakers(t *testing.T) {
	entry := func(role Role) (secret, text string) {
		secret, text, err := NewToken("maker", role, time.Time{})
		must.No(t, err)
		return secret, text
	}
	secret, producer := entry(Producer)
	tokens, err := ParseTokens("[" + producer + "]")
	must.No(t, err)
	a := newAPI(t)
	path := a.submit(`{"kind":"stuck"}`)
	id := path[len("/v1/executions/"):]
	a.h.cfg.Tokens = tokens
	own, err := tokens.Authorize(&http.Request{Header: http.Header{"Authorization": {"Bearer " + secret}}})
	must.No(t, err)
	made := func(as Role) string {
		return browsertoken.Mint(a.h.cfg.StreamKey, browsertoken.Token{For: id, Maker: own.Token, As: string(as),
			Until: time.Now().Add(time.Minute)})
	}
	a.bearing(made(Producer), "GET", path, "", 200)
	a.bearing(made(Operator), "POST", path+"/waitpoints/x:answer", `{"payload":1}`, 403) // it was one when it made it
	changed := strings.Replace(producer, `"producer"`, `"viewer"`, 1)
	tokens.list.Store(mine(t, changed))
	a.bearing(made(Producer), "POST", path+"/messages", `{"mailbox":"user","payload":1}`, 403)
	a.bearing(made(Producer), "GET", path+"/wait", "", 204)
	bound := strings.Replace(producer, `"producer"`, `"producer","namespaces":["blue"]`, 1)
	tokens.list.Store(mine(t, bound))
	a.bearing(made(Producer), "GET", path, "", 404)
	over := strings.Replace(producer, `"sha256":"`, `"expires":"2020-01-01T00:00:00Z","sha256":"`, 1)
	tokens.list.Store(mine(t, over))
	a.bearing(made(Producer), "GET", path, "", 401)
	tokens.list.Store(&[]token{})
	a.bearing(made(Producer), "GET", path, "", 401)
	close(a.release)
	a.until(path, "completed")
}
