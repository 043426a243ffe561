package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Every role at every route: who may, may; who may not is told so, and nothing is looked at for them.
func TestRolesAndRoutes(t *testing.T) {
	a := newAPI(t)
	nobody := flowfabric.NewExecutionID(1).String()
	cells := 0
	for _, r := range routes {
		path := strings.NewReplacer("{id}", nobody, "{key}", "k").Replace(r.path)
		for _, role := range []Role{Viewer, Producer, Operator, Admin, Worker, "", "wrong"} {
			if r.name == "followEvents" || r.name == "followOverview" {
				path = r.path + "?after=nonsense" // it would go on for ever
			}
			q := request{method: r.method, path: path, role: string(role)}
			if role == "wrong" {
				q.role, q.header = "", http.Header{"Authorization": {"Bearer fft_nonsense"}}
				a.h.failed = newLimiter()
			}
			if r.method == "POST" || r.method == "PUT" {
				q.body = `{}`
			}
			g := a.do(q)
			may := len(r.need) == 0 || slices.Contains(r.need, role)
			switch {
			case may && (g.status == 401 || g.status == 403), !may && (role == "" || role == "wrong") && g.status != 401, !may && role != "" && role != "wrong" && g.status != 403:
				t.Errorf("%s as %q: %d: %s", r.name, role, g.status, g.body)
			}
			if g.status == 401 && g.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: 401 without WWW-Authenticate", r.name)
			}
			cells++
		}
	}
	if cells != 7*len(routes) {
		t.Errorf("%d cells", cells)
	}
	for name, secret := range secrets {
		if strings.Contains(a.logs.String(), secret) {
			t.Errorf("the secret of %s is in the log", name)
		}
	}
	if !strings.Contains(a.logs.String(), "by=the-operator") {
		t.Error("the log does not say who")
	}
}

// A token that is bound to a namespace neither sees nor changes anything elsewhere, and what it submits goes there.
func TestNamespacesBound(t *testing.T) {
	a := newAPI(t)
	foreign := a.submit(`{"kind":"echo","input":1}`)
	a.until(foreign, "completed")
	for _, r := range routes {
		if !strings.Contains(r.path, "executions/{id}") {
			continue
		}
		path := strings.NewReplacer("/v1/executions/{id}", foreign, "{key}", "k").Replace(r.path)
		q := request{method: r.method, path: path, role: "blue"}
		if r.method == "POST" {
			q.body = `{}`
		}
		if g := a.do(q); g.status != 404 {
			t.Errorf("%s: %d: %s", r.name, g.status, g.body)
		}
	}
	a.as("blue", "POST", "/v1/executions", `{"kind":"echo","namespace":"default"}`, 403)
	own := into[submitted](t, a.as("blue", "POST", "/v1/executions", `{"kind":"echo","input":2}`, 201))
	if x := into[execution](t, a.as("blue", "GET", "/v1/executions/"+own.ID, "", 200)); x.Namespace != "blue" {
		t.Errorf("%+v", x)
	}
	a.until("/v1/executions/"+own.ID, "completed")
	if page := into[executionPage](t, a.as("blue", "GET", "/v1/executions", "", 200)); len(page.Items) != 1 || page.Items[0].ID != own.ID {
		t.Errorf("%+v", page)
	}
	for _, path := range []string{"/v1/executions?namespace=default", "/v1/executions?namespace=*", "/v1/lanes?namespace=default", "/v1/queues?namespace=default"} {
		a.as("blue", "GET", path, "", 403)
	}
	if all := into[executionPage](t, a.as("viewer", "GET", "/v1/executions?namespace=*", "", 200)); len(all.Items) != 2 {
		t.Errorf("%+v", all)
	}
}

// Ten wrong tokens in a minute are enough for an address; who has a right one there waits, too.
func TestWrongTokensAreLimited(t *testing.T) {
	a := newAPI(t)
	wrong := request{method: "GET", path: "/v1/workers", header: http.Header{"Authorization": {"Bearer guess"}}}
	for i := range maxFailures {
		if g := a.do(wrong); g.status != 401 {
			t.Fatalf("guess %d: %d", i, g.status)
		}
	}
	if g := a.do(wrong); g.status != 429 || g.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	a.as("viewer", "GET", "/v1/workers", "", 429)
	a.as("", "GET", "/healthz", "", 200)
	l := newLimiter()
	for i := range maxAddresses + 5 {
		l.fail(fmt.Sprint(i))
	}
	if len(l.counts) > maxAddresses {
		t.Errorf("%d addresses are kept", len(l.counts))
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                             "array",
		`[{"name":"a","role":"viewer"}]`: "64 hex digits",
		`[{"name":"","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `"}]`:                             "name",
		`[{"name":"a b","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `"}]`:                          "name",
		`[{"name":"a","role":"king","sha256":"` + strings.Repeat("0", 64) + `"}]`:                              "role",
		`[{"name":"a","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `","secret":"x"}]`:               "secret",
		`[{"name":"a","role":"viewer","namespaces":["{}"],"sha256":"` + strings.Repeat("0", 64) + `"}]`:        "namespace",
		`[` + strings.Repeat(`{"name":"a","role":"viewer","sha256":"`+strings.Repeat("0", 64)+`"},`, 2) + `1]`: "",
	} {
		if _, err := ParseTokens(text); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := NewToken("a", "king"); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("%v", err)
	}
	first, one, _ := NewToken("one", Viewer)
	second, two, _ := NewToken("two", Operator, "blue", "red")
	path := filepath.Join(t.TempDir(), "tokens.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadTokens(path, nil); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("no file: %v", err)
	}
	write("[" + one + "]")
	var log bytes.Buffer
	tokens, err := LoadTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	who := func(secret string) string {
		q, _ := http.NewRequest("GET", "/", nil)
		q.Header.Set("Authorization", "bearer "+secret)
		p, err := tokens.Authorize(q)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(p.Name, p.Role, p.Namespaces)
	}
	if got := who(first); got != "oneviewer[]" {
		t.Error(got)
	}
	later := func(text string, at time.Time) { // as a second later
		write(text)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		tokens.looked = time.Time{}
	}
	later("["+two+"]", time.Now().Add(time.Minute))
	if got := who(second) + who(first); got != "twooperator[blue red]no token has this secret" {
		t.Error(got)
	}
	later("nonsense", time.Now().Add(2*time.Minute))
	if got := who(second); got != "twooperator[blue red]" || !strings.Contains(log.String(), "cannot be read again") {
		t.Errorf("%s, log %s", got, log.String())
	}
	for _, header := range []string{"", "Bearer", "Basic " + second} {
		q, _ := http.NewRequest("GET", "/", nil)
		q.Header.Set("Authorization", header)
		if _, err := tokens.Authorize(q); !errors.Is(err, errNoToken) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

// A stream token opens the events of one execution, for a while, and nothing else.
func TestStreamTokens(t *testing.T) {
	a := newAPI(t)
	path, other := a.submit(`{"kind":"echo"}`), a.submit(`{"kind":"echo"}`)
	a.until(path, "completed")
	made := into[streamTokenAnswer](t, a.as("viewer", "POST", path+"/stream-token", `{}`, 201))
	if left := time.Until(made.ExpiresAt); left > 5*time.Minute || left < 4*time.Minute {
		t.Errorf("expires in %s", left)
	}
	if all, status := a.follow(path+"/events?access_token="+made.AccessToken, nil, nil); status != 200 || !strings.HasSuffix(names(all), "end") {
		t.Errorf("%d %s", status, names(all))
	}
	a.as("", "GET", path+"/events?access_token="+made.AccessToken+"&access_token=x", "", 400)
	id := path[len("/v1/executions/"):]
	for what, token := range map[string]string{"another execution": other, "nonsense": "x", "over": a.h.streamToken(id, time.Now().Add(-time.Second))} {
		if what == "another execution" {
			a.as("", "GET", other+"/events?access_token="+made.AccessToken, "", 401)
		} else {
			a.as("", "GET", path+"/events?access_token="+token, "", 401)
		}
	}
	a.as("", "GET", path+"?access_token="+made.AccessToken, "", 401)
	a.as("viewer", "POST", path+"/stream-token", `{"life_s":3601}`, 400)
	if strings.Contains(a.logs.String(), made.AccessToken) {
		t.Error("the stream token is in the log")
	}
}

// Pages of other origins may call if they are named, and are told so beforehand.
func TestOrigins(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.example"} })
	preflight := request{method: "OPTIONS", path: "/v1/executions", header: http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"}}}
	r, _ := http.NewRequest(preflight.method, a.server.URL+preflight.path, nil)
	r.Header = preflight.header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	post := func(origin string) got {
		return a.do(request{method: "POST", path: "/v1/executions", role: "producer", body: `{"kind":"echo"}`, header: http.Header{"Origin": {origin}, "Sec-Fetch-Site": {"cross-site"}}})
	}
	if g := post("https://app.example"); g.status != 201 || g.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := post("https://evil.example"); g.status != 403 || g.header.Get("Access-Control-Allow-Origin") != "" || into[problem](t, g).Code != "cross_origin" {
		t.Errorf("%d %s", g.status, g.body)
	}
}

func TestConfig(t *testing.T) {
	a := newAPI(t)
	good := a.h.cfg
	for name, change := range map[string]func(*Config){
		"Admin": func(c *Config) { c.Admin = nil }, "Authorize": func(c *Config) { c.Authorize = nil }, "StreamKey": func(c *Config) { c.StreamKey = []byte("short") },
		"Heartbeat": func(c *Config) { c.Heartbeat = time.Millisecond }, "WriteTimeout": func(c *Config) { c.WriteTimeout = time.Hour },
		"AllowedOrigins": func(c *Config) { c.AllowedOrigins = []string{"app.example/path"} },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := Open(nil); err != nil || p.Role != Admin {
		t.Errorf("%+v, %v", p, err)
	}
}
