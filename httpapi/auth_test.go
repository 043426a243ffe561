package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/browsertoken"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// The tokens of pages, as roles: one that reads, one that a producer has made to write, and one of an operator.
const (
	pageReads   Role = "page that reads"
	pageWrites  Role = "page that writes"
	pageAnswers Role = "page that answers"
)

// forPages are the routes that take them.
var forPages = map[string][]Role{
	"followExecution": {pageReads, pageWrites, pageAnswers},
	"readStream":      {pageReads, pageWrites, pageAnswers},
	"getExecution":    {pageWrites, pageAnswers},
	"getWait":         {pageWrites, pageAnswers},
	"listMessages":    {pageWrites, pageAnswers},
	"sendMessage":     {pageWrites, pageAnswers},
	"stop":            {pageWrites, pageAnswers},
	"answerWaitpoint": {pageAnswers},
}

// page is the token of a page for an execution.
func (a *api) page(id string, kind Role) string {
	return browsertoken.Mint(a.h.cfg.StreamKey, browsertoken.Token{For: id, Until: time.Now().Add(time.Minute),
		As: map[Role]string{pageWrites: string(Producer), pageAnswers: string(Operator)}[kind]})
}

// streamToken is a token that reads, made by one that is known as maker.
func (a *api) streamToken(id, maker string, until time.Time) string {
	return browsertoken.Mint(a.h.cfg.StreamKey, browsertoken.Token{For: id, Until: until, Maker: maker})
}

// Every role at every route: who may, may; who may not is told so, and nothing is looked at for them.
func TestRolesAndRoutes(t *testing.T) {
	a := newAPI(t)
	nobody := mint.ID(1).String()
	cells := 0
	for _, r := range routes {
		path := strings.NewReplacer("{id}", nobody, "{key}", "k", "{session}", "k", "{name...}", "a/b").Replace(r.path)
		for _, role := range []Role{Viewer, Producer, Operator, Admin, Worker, "", "wrong", pageReads, pageWrites,
			pageAnswers} {
			if r.name == "followEvents" || r.name == "followOverview" {
				path = r.path + "?after=nonsense" // it would go on for ever
			}
			q := request{method: r.method, path: path, role: string(role)}
			if role == "wrong" {
				q.role, q.header = "", http.Header{"Authorization": {"Bearer fft_nonsense"}}
				a.h.failed = newLimiter()
			}
			paged := slices.Contains([]Role{pageReads, pageWrites, pageAnswers}, role)
			if paged {
				q.role, q.header = "", http.Header{"Authorization": {"Bearer " + a.page(nobody, role)}}
				a.h.failed = newLimiter()
			}
			if r.method == "POST" || r.method == "PUT" {
				q.body = `{}`
			}
			g := a.do(q)
			may := len(r.need) == 0 || slices.Contains(r.need, role) || slices.Contains(forPages[r.name], role)
			switch {
			case paged && !may && (g.status != 401 && g.status != 403 ||
				strings.HasPrefix(r.path, "/v1/executions/{id}") != (g.status == 403)):
				t.Errorf("%s as %q: %d: %s", r.name, role, g.status, g.body)
			case paged && !may:
			case may && (g.status == 401 || g.status == 403), !may && (role == "" || role == "wrong") &&
				g.status != 401, !may && role != "" && role != "wrong" && g.status != 403:
				t.Errorf("%s as %q: %d: %s", r.name, role, g.status, g.body)
			}
			if g.status == 401 && g.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: 401 without WWW-Authenticate", r.name)
			}
			cells++
		}
	}
	if cells != 10*len(routes) {
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
		path := strings.NewReplacer("/v1/executions/{id}", foreign, "{key}", "k", "{session}", "k").Replace(r.path)
		q := request{method: r.method, path: path, role: "blue"}
		if r.body != nil {
			text, _ := json.Marshal(example(schemaOf(r.body, true), false))
			q.body = string(text)
		}
		if g := a.do(q); g.status != 404 {
			t.Errorf("%s: %d: %s", r.name, g.status, g.body)
		}
	}
	a.as("blue", "POST", "/v1/executions", `{"kind":"echo","namespace":"default"}`, 403)
	own := into[submitted](t, a.as("blue", "POST", "/v1/executions", `{"kind":"echo","input":2}`, 201))
	if x := into[flowfabric.Snapshot](t, a.as("blue", "GET", "/v1/executions/"+own.ID, "",
		200)); x.Namespace != "blue" {
		t.Errorf("%+v", x)
	}
	a.until("/v1/executions/"+own.ID, "completed")
	if page := into[executionPage](t, a.as("blue", "GET", "/v1/executions", "", 200)); len(page.Items) != 1 ||
		page.Items[0].ID.String() != own.ID {
		t.Errorf("%+v", page)
	}
	for _, path := range []string{"/v1/executions?namespace=default", "/v1/executions?namespace=*",
		"/v1/lanes?namespace=default", "/v1/queues?namespace=default"} {
		a.as("blue", "GET", path, "", 403)
	}
	// What belongs to no namespace is refused, with the reason, and /v1/me does not offer it.
	mine := into[self](t, a.as("blue", "GET", "/v1/me", "", 200)).Operations
	globals := 0
	for _, r := range routes {
		bound := request{method: r.method, path: strings.NewReplacer("{key}", "k", "{session}", "k").Replace(r.path),
			role: "blue"}
		if !r.global() || !slices.Contains(r.need, Operator) {
			continue
		}
		globals++
		if g := a.do(bound); g.status != 403 || !strings.Contains(string(g.body), "is bound to blue") {
			t.Errorf("%s: %d: %s", r.name, g.status, g.body)
		}
		if slices.Contains(mine, r.name) {
			t.Errorf("%s is offered", r.name)
		}
	}
	if globals < 10 || !slices.Contains(mine, "listExecutions") || !slices.Contains(mine, "listWorkers") {
		t.Errorf("%d operations of no namespace; offered %q", globals, mine)
	}
	// A worker of a namespace reads no results elsewhere, and is told of nothing that is there: neither by a body
	// that names it nor by a lease.
	own = into[submitted](t, a.as("blue", "POST", "/v1/executions", `{"kind":"mine"}`, 201))
	r := a.open("blue", `{"kinds":["mine"]}`)
	x, later, gone := r.one(), a.submit(`{"kind":"nobody"}`), a.submit(`{"kind":"echo"}`)
	a.until(gone, "completed")
	a.as("admin", "POST", gone+":purge", "", 204)
	id := func(path string) string { return path[len("/v1/executions/"):] }
	var told []string
	for _, other := range []string{mint.ID(1).String(), id(foreign), id(later), id(gone)} {
		p := into[problem](t, r.call("children", x.Lease, `"wait":"w","others":[{"name":"o","execution":"`+other+`"}]`,
			404))
		forged, _ := parseLease(x.Lease)
		forged.Execution, _ = flowfabric.ParseExecutionID(other)
		all := p.Code + p.Detail
		for verb, members := range writes {
			all += into[problem](t, r.call(verb, leaseText(forged, ""), members, 409)).Code
		}
		told = append(told, all)
	}
	if len(slices.Compact(told)) != 1 {
		t.Errorf("the answers differ: %q", told)
	}
	a.as("blue", "POST", "/v1/executions/"+own.ID+":cancel", "", 204)
	if all := into[executionPage](t, a.as("viewer", "GET", "/v1/executions?namespace=*", "", 200)); len(all.Items) !=
		4 {
		t.Errorf("%+v", all)
	}
}

// Ten wrong tokens in a minute are enough for an address; a good one is good from there all the same, and who had one
// does not guess.
func TestWrongTokensAreLimited(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"echo"}`)
	for range 2 * maxFailures { // a page that was left open
		a.as("", "GET", path+"/events?access_token="+a.streamToken(path[len("/v1/executions/"):], "",
			time.Now().Add(-time.Second)), "", 401)
	}
	wrong := request{method: "GET", path: "/v1/workers", header: http.Header{"Authorization": {"Bearer guess"}}}
	for i := range maxFailures {
		if g := a.do(wrong); g.status != 401 {
			t.Fatalf("guess %d: %d", i, g.status)
		}
	}
	if g := a.do(wrong); g.status != 429 || g.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	a.as("", "GET", path+"/events?access_token=1.x.y", "", 429)
	a.as("", "GET", "/v1/workers", "", 401)
	a.as("viewer", "GET", "/v1/workers", "", 200)
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
		`[{"name":"","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `"}]`:    "name",
		`[{"name":"a b","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `"}]`: "name",
		`[{"name":"a","role":"king","sha256":"` + strings.Repeat("0", 64) + `"}]`:     "role",
		`[{"name":"a","role":"viewer","sha256":"` + strings.Repeat("0", 64) +
			`","secret":"x"}]`: "secret",
		`[{"name":"a","role":"viewer","namespaces":["{}"],"sha256":"` + strings.Repeat("0", 64) +
			`"}]`: "namespace",
		`[` + strings.Repeat(`{"name":"a","role":"viewer","sha256":"`+strings.Repeat("0", 64)+`"},`, 2) + `1]`: "",
	} {
		if _, err := ParseTokens(text); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := NewToken("a", "king", time.Time{}); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("%v", err)
	}
	first, one, _ := NewToken("one", Viewer, time.Time{})
	second, two, _ := NewToken("two", Operator, time.Time{}, "blue", "red")
	path := filepath.Join(t.TempDir(), "tokens.json")
	write := func(text string) {
		t.Helper()
		must.No(t, os.WriteFile(path, []byte(text), 0o600))
	}
	if _, err := LoadTokens(path, nil); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("no file: %v", err)
	}
	write("[" + one + "]")
	var log bytes.Buffer
	tokens, err := LoadTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	must.No(t, err)
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
		must.No(t, os.Chtimes(path, at, at))
		tokens.looked = time.Time{}
	}
	later("["+two+"]", time.Now().Add(time.Minute))
	if got := who(second) + who(first); got != "twooperator[blue red]no token has this secret" {
		t.Error(got)
	}
	later("nonsense", time.Now().Add(2*time.Minute))
	if got := who(second); got != "twooperator[blue red]" ||
		!strings.Contains(log.String(), "read before stay valid") {
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
	began := time.Now()
	made := into[streamTokenAnswer](t, a.as("viewer", "POST", path+"/stream-token", `{}`, 201))
	if end := made.ExpiresAt.Add(-5 * time.Minute); end.Before(began.Add(-time.Second)) || end.After(time.Now()) {
		t.Errorf("expires at %s", made.ExpiresAt)
	}
	if all, status := a.follow(path+"/events?access_token="+made.AccessToken, nil, nil); status != 200 ||
		!strings.HasSuffix(names(all), "end") {
		t.Errorf("%d %s", status, names(all))
	}
	a.as("", "GET", path+"/events?access_token="+made.AccessToken+"&access_token=x", "", 400)
	id := path[len("/v1/executions/"):]
	for what, token := range map[string]string{"another execution": other, "nonsense": "x",
		"over": a.streamToken(id, "", time.Now().Add(-time.Second))} {
		if what == "another execution" {
			a.as("", "GET", other+"/events?access_token="+made.AccessToken, "", 401)
		} else {
			a.as("", "GET", path+"/events?access_token="+token, "", 401)
		}
	}
	a.as("", "GET", path+"?access_token="+made.AccessToken, "", 403)
	a.as("", "GET", path+"/steps?access_token="+made.AccessToken, "", 401)
	a.as("viewer", "POST", path+"/stream-token", `{"life_s":3601}`, 400)
	if strings.Contains(a.logs.String(), made.AccessToken) {
		t.Error("the stream token is in the log")
	}
}

// Pages of other origins may call if they are named, and are told so beforehand.
func TestOrigins(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.example"} })
	preflight := request{method: "OPTIONS", path: "/v1/executions",
		header: http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"POST"}}}
	r, _ := http.NewRequest(preflight.method, a.server.URL+preflight.path, nil)
	r.Header = preflight.header
	answer, err := http.DefaultClient.Do(r)
	must.No(t, err)
	answer.Body.Close()
	if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	post := func(origin string) got {
		return a.do(request{method: "POST", path: "/v1/executions", role: "producer", body: `{"kind":"echo"}`,
			header: http.Header{"Origin": {origin}, "Sec-Fetch-Site": {"cross-site"}}})
	}
	if g := post("https://app.example"); g.status != 201 || g.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	path := a.submit(`{"kind":"echo"}`)
	says := func(origin string) got { // a page with a token that writes
		return a.do(request{method: "POST", path: path + ":stop", body: `{}`, header: http.Header{"Origin": {origin},
			"Sec-Fetch-Site": {"cross-site"},
			"Authorization":  {"Bearer " + a.page(path[len("/v1/executions/"):], pageWrites)}}})
	}
	a.until(path, "completed")
	if g := says("https://app.example"); g.status != 409 || g.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := says("https://evil.example"); g.status != 403 || into[problem](t, g).Code != "cross_origin" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := post("https://evil.example"); g.status != 403 || g.header.Get("Access-Control-Allow-Origin") != "" ||
		into[problem](t, g).Code != "cross_origin" {
		t.Errorf("%d %s", g.status, g.body)
	}
}

func TestConfig(t *testing.T) {
	a := newAPI(t)
	good := a.h.cfg
	for name, change := range map[string]func(*Config){
		"Admin": func(c *Config) { c.Admin = nil }, "Authorize": func(c *Config) { c.Authorize = nil },
		"StreamKey":      func(c *Config) { c.StreamKey = []byte("short") },
		"Heartbeat":      func(c *Config) { c.Heartbeat = time.Millisecond },
		"WriteTimeout":   func(c *Config) { c.WriteTimeout = time.Hour },
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

// Without tokens nobody comes in by a name that leads here and is somebody else's.
func TestOpenIsLocal(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.Authorize = Open })
	for host, want := range map[string]int{"localhost": 200, "localhost:7788": 200, "LOCALHOST.": 200,
		"app.localhost:80": 200, "127.0.0.1": 200, "127.8.0.1:7700": 200, "[::1]:7788": 200, "[::ffff:127.0.0.1]": 200,
		"evil.example": 403, "evil.example:7788": 403, "localhost.evil.example": 403, "127.0.0.1.nip.io": 403,
		"10.0.0.1": 403, "[2001:db8::1]:80": 403, "0.0.0.0": 403, "notlocalhost": 403} {
		q := httptest.NewRequest("GET", "/v1/me", nil)
		q.Host = host
		w := httptest.NewRecorder()
		if a.h.ServeHTTP(w, q); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

// Behind proxies that are named, the address is the last one that is none of them; what others say of themselves is
// nothing.
func TestTrustedProxies(t *testing.T) {
	h := &Handler{cfg: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}}}
	for want, x := range map[string]struct {
		remote string
		hops   []string
	}{
		"192.0.2.1":   {"192.0.2.1:5", []string{"198.51.100.1"}},
		"10.0.0.1":    {"10.0.0.1:5", nil},
		"198.51.1.1":  {"10.0.0.1:5", []string{"203.0.113.9, 198.51.1.1"}},
		"198.51.1.2":  {"10.0.0.1:5", []string{"203.0.113.9", "198.51.1.2, 10.2.3.4"}},
		"2001:db8::1": {"[fd00::1]:5", []string{"2001:db8::1"}},
		"10.0.0.7":    {"10.0.0.7:5", []string{"nonsense"}},
	} {
		q := httptest.NewRequest("GET", "/", nil)
		q.RemoteAddr, q.Header["X-Forwarded-For"] = x.remote, x.hops
		if got := (&call{h: h, r: q}).from(); got != want {
			t.Errorf("%+v is from %s, want %s", x, got, want)
		}
	}
}

// A token that has expired is refused, and who has it does not guess.
func TestExpiredTokens(t *testing.T) {
	for _, text := range []string{"soon", "1700000000", "2026-01-01"} {
		bad := `[{"name":"a","role":"viewer","sha256":"` + strings.Repeat("0", 64) + `","expires":"` + text + `"}]`
		if _, err := ParseTokens(bad); !errors.Is(err, flowfabric.ErrConfig) {
			t.Errorf("expires %q: %v", text, err)
		}
	}
	over, first, _ := NewToken("over", Viewer, time.Now().Add(-time.Second))
	good, second, _ := NewToken("good", Viewer, time.Now().Add(time.Hour))
	tokens, err := ParseTokens("[" + first + "," + second + "]")
	must.No(t, err)
	a := newAPI(t, func(c *Config) { c.Authorize, c.Tokens = nil, tokens })
	ask := func(path, secret string) *http.Response {
		t.Helper()
		q, _ := http.NewRequestWithContext(t.Context(), "GET", a.server.URL+path, nil)
		if secret != "" {
			q.Header.Set("Authorization", "Bearer "+secret)
		}
		answer, err := http.DefaultClient.Do(q)
		must.No(t, err)
		answer.Body.Close()
		return answer
	}
	for range maxFailures + 1 {
		if answer := ask("/v1/executions", over); answer.StatusCode != http.StatusUnauthorized {
			t.Fatalf("an expired token: %s", answer.Status)
		}
	}
	if answer := ask("/v1/executions", good); answer.StatusCode != http.StatusOK {
		t.Errorf("a good token: %s", answer.Status)
	}
	id := mint.ID(0).String()
	for _, x := range *mine(t, first) {
		made := a.streamToken(id, x.principal().Token, time.Now().Add(time.Hour))
		if answer := ask("/v1/executions/"+id+"/events?access_token="+made, ""); answer.StatusCode != 401 {
			t.Errorf("a stream token of an expired one: %s", answer.Status)
		}
	}
}

// A stream ends when its reader's token is gone, and a stream token with the token that made it.
func TestStreamsOfRevokedTokens(t *testing.T) {
	first, one, _ := NewToken("one", Viewer, time.Time{})
	_, two, _ := NewToken("two", Viewer, time.Time{})
	tokens, err := ParseTokens("[" + one + "]")
	must.No(t, err)
	rest, err := ParseTokens("[" + two + "]")
	must.No(t, err)
	a := newAPI(t, func(c *Config) {
		usual := c.Authorize
		c.Tokens = tokens
		c.Authorize = func(q *http.Request) (Principal, error) {
			if p, err := tokens.Authorize(q); err == nil {
				return p, nil
			}
			return usual(q)
		}
	})
	a.h.again = 20 * time.Millisecond
	path := a.submit(`{"kind":"stuck"}`)
	a.until(path, "active")
	id := path[len("/v1/executions/"):]
	own, _ := tokens.Authorize(&http.Request{Header: http.Header{"Authorization": {"Bearer " + first}}})
	made := a.streamToken(id, own.Token, time.Now().Add(time.Hour))
	bearer := http.Header{"Authorization": {"Bearer " + first}}
	for what, x := range map[string]struct {
		path   string
		header http.Header
	}{"events": {path + "/events", bearer}, "a stream token": {path + "/events?access_token=" + made, nil},
		"the feed": {"/v1/events", bearer}, "the overview": {"/v1/overview/events", bearer},
		"a durable stream": {path + "/stream?offset=-1&live=sse", bearer}} {
		tokens.list.Store(mine(t, one))
		q, _ := http.NewRequestWithContext(t.Context(), "GET", a.server.URL+x.path, nil)
		if q.Header = x.header; q.Header == nil {
			q.Header = http.Header{}
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %v %+v", what, err, answer)
		}
		tokens.list.Store(rest.list.Load())
		if _, err := io.ReadAll(answer.Body); err != nil { // until it ends
			t.Errorf("%s: %v", what, err)
		}
		answer.Body.Close()
	}
	a.as("", "GET", path+"/events?access_token="+made, "", 401)
	a.as("", "GET", path+"/events?access_token="+made+"%0A", "", 401)
	tokens.list.Store(mine(t, one))
	close(a.release)
	a.until(path, "completed")
}

// mine is a list of one token.
func mine(t *testing.T, entry string) *[]token {
	t.Helper()
	list, err := parseTokens([]byte("[" + entry + "]"))
	must.No(t, err)
	return &list
}

// Whatever a file of tokens says is refused, or it is tokens with names and roles.
func FuzzTokens(f *testing.F) {
	_, entry, err := NewToken("a", Operator, time.Unix(1000, 0), "blue")
	must.No(f, err)
	for _, seed := range []string{"[" + entry + "]", "[" + entry + "," + entry + "]", "[]", "{}", "",
		`[{"name":"a"}]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseTokens([]byte(text))
		for _, x := range list {
			if err == nil && (x.Name == "" || x.Role == "" ||
				x.sum == [32]byte{} && !strings.Contains(text, "000000")) {
				t.Fatalf("%q: %+v", text, x)
			}
		}
	})
}
