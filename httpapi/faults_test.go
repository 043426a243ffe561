package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Whatever is wrong with a request is refused with its place, and nothing is made.
func TestBadRequests(t *testing.T) {
	a := newAPI(t)
	id := mint.ID(1).String()
	const submit = "/v1/executions"
	for _, x := range []struct {
		method, path, body string
		status             int
		field, detail      string
	}{
		{"POST", submit, `{`, 400, "", "not JSON"},
		{"POST", submit, `[]`, 400, "", "want an object"},
		{"POST", submit, `{"kind":"a"} x`, 400, "", "not JSON"},
		{"POST", submit, `{"kind":"a","kind":"b"}`, 400, "/kind", "twice"},
		{"POST", submit, `{"kind":"a","prioritty":1}`, 400, "/prioritty", "no such member"},
		{"POST", submit, `{"Kind":"a"}`, 400, "/Kind", "no such member"},
		{"POST", submit, `{"kind":1}`, 400, "/kind", "want a string"},
		{"POST", submit, `{"kind":{}}`, 400, "/kind", "it is a JSON object, want a string"},
		{"POST", submit, `{"kind":"a","priority":"5"}`, 400, "/priority", "want a whole number"},
		{"POST", submit, `{"kind":"a","limits":[{"key":7}]}`, 400, "/limits/0/key", "want a string"},
		{"POST", submit, ``, 400, "/kind", "missing"},
		{"POST", submit, `{"kind":"a{}"}`, 400, "", "kind"},
		{"POST", submit, `{"kind":"a","priority":9001}`, 400, "/priority", "priority"},
		{"POST", submit, `{"kind":"a","delay_ms":-1}`, 400, "/delay_ms", "delay"},
		{"POST", submit, `{"kind":"a","delay_ms":18446744073710}`, 400, "/delay_ms", "that a duration holds"},
		{"POST", submit, `{"kind":"a","delay_ms":-18446744073710}`, 400, "/delay_ms", "that a duration holds"},
		{"POST", submit, `{"kind":"a","deadline_ms":18446744074000}`, 400, "/deadline_ms", "that a duration holds"},
		{"POST", submit, `{"kind":"a","timeout_ms":18446744074000}`, 400, "/timeout_ms", "that a duration holds"},
		{"POST", submit, `{"kind":"a","limits":[{"key":"k","rate":1,"per_ms":18446744074000}]}`, 400,
			"/limits/0/per_ms", "that a duration holds"},
		{"POST", submit, `{"kind":"a","retention_s":{"completed":18446744100}}`, 400, "", "retention"},
		{"POST", submit, `{"kind":"a","debounce_key":"k"}`, 400, "/debounce_ms", "debounce_key"},
		{"POST", submit, `{"kind":"a","debounce_max_ms":1}`, 400, "/debounce_max_ms", "no debounce_key"},
		{"POST", submit, `{"kind":"a","debounce_key":"k","debounce_ms":5,"delay_until":"2030-01-01T00:00:00Z"}`, 400,
			"/debounce_ms",
			"delay_until"},
		{"POST", submit, `{"kind":"a","delay_ms":1,"delay_until":"2030-01-01T00:00:00Z"}`, 400, "/delay_until", "too"},
		{"POST", submit, `{"kind":"a","retention_s":{"happy":1}}`, 400, "/retention_s", "not an outcome"},
		{"POST", submit, `{"kind":"a","unique_key":"k","idempotency_key":"k"}`, 400, "", "one key"},
		{"POST", submit, `{"kind":"a","gates":["none"]}`, 404, "", "gate"},
		{"POST", submit, `{"kind":"a","input":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "", "1048576"},
		{"POST", submit, `{"kind":"a","input":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "",
			"the body has more than"},
		{"POST", submit + ":batch", `{"items":[]}`, 400, "/items", "1..1000"},
		{"GET", submit + "?limit=0", "", 400, "limit", "1..1000"},
		{"GET", submit + "?limit=10&limit=20", "", 400, "limit", "2 times"},
		{"GET", submit + "?colour=blue", "", 400, "colour", "no such parameter"},
		{"GET", submit + "?since=yesterday", "", 400, "since", "time"},
		{"GET", submit + "?tag=a", "", 400, "tag", "key=value"},
		{"GET", submit + "?newest=yes", "", 400, "newest", "true or false"},
		{"GET", submit + "?state=happy", "", 400, "state", "happy"},
		{"GET", submit + "?cursor=nonsense", "", 400, "", "cursor"},
		{"GET", submit + "?x=" + strings.Repeat("y", 9000), "", 400, "", "8192"},
		{"GET", submit + "?x=%zz", "", 400, "", "well formed"},
		{"GET", submit + "/nonsense", "", 400, "id", "not an execution id"},
		{"GET", submit + "/%7B%7D", "", 400, "id", "not an execution id"},
		{"GET", submit + "/%00%0a", "", 400, "id", "not an execution id"},
		{"GET", submit + "/..%2f..%2fetc", "", 400, "id", "not an execution id"},
		{"GET", submit + "/" + id, "", 404, "", "does not exist"},
		{"GET", submit + "/" + id + "/frames?attempt=x", "", 400, "attempt", "1.."},
		{"GET", submit + "/" + id + "/events?after=x", "", 400, "after", "no id of an event"},
		{"GET", "/v1/events?after=x", "", 400, "after", "no id of an event"},
		{"GET", "/v1/events?after=eHh4", "", 400, "after", "feed cursor"},
		{"GET", submit + "/" + id + "/events", "", 404, "", "does not exist"},
		{"POST", submit + "/" + id + ":explode", `{}`, 404, "", "no route"},
		{"POST", submit + "/" + id, `{}`, 404, "", "no route"},
		{"POST", submit + "/" + id + ":delay", `{"delay_ms":-5}`, 400, "", "delay"},
		{"POST", submit + "/" + id + ":unhold", `{"why":"x"}`, 400, "/why", "no such member"},
		{"POST", "/v1/signals", `{"token":"nonsense"}`, 403, "", ""},
		{"DELETE", submit, "", 405, "", "GET"},
		{"PUT", submit + "/" + id, "", 405, "", "GET"},
		{"GET", "/v2/executions", "", 404, "", "no route"},
		{"GET", "/", "", 404, "", "no route"},
	} {
		g := a.do(request{method: x.method, path: x.path, role: "admin", body: x.body})
		if g.status != x.status {
			t.Errorf("%s %.60s %.60s: %d, want %d: %s", x.method, x.path, x.body, g.status, x.status, g.body)
			continue
		}
		p := into[problem](t, g)
		if p.Status != x.status || p.Field != x.field || !strings.Contains(p.Detail, x.detail) || p.Code == "" ||
			p.Request != g.header.Get("X-Request-Id") {
			t.Errorf("%s %.60s %.60s: %+v, want field %q and %q", x.method, x.path, x.body, p, x.field, x.detail)
		}
		if x.status == 405 && !strings.Contains(g.header.Get("Allow"), "GET") {
			t.Errorf("Allow: %q", g.header.Get("Allow"))
		}
	}
	for name, h := range map[string]http.Header{"Content-Type": {"Content-Type": {"text/plain"}},
		"Idempotency-Key": {"Idempotency-Key": {`""`}}} {
		g := a.do(request{method: "POST", path: submit, role: "producer", body: `{"kind":"echo"}`, header: h})
		if p := into[problem](t, g); p.Field != name {
			t.Errorf("%s: %d %s", name, g.status, g.body)
		}
	}
	if page := into[executionPage](t, a.as("viewer", "GET", submit, "", 200)); len(page.Items) != 0 {
		t.Errorf("something was made: %+v", page)
	}
	for sent, kept := range map[string]bool{"my-id.7": true, "bad id": false, strings.Repeat("x", 65): false} {
		g := a.do(request{method: "GET", path: "/healthz", header: http.Header{"X-Request-Id": {sent}}})
		if got := g.header.Get("X-Request-Id"); (got == sent) != kept {
			t.Errorf("request id %q is answered as %q", sent, got)
		}
	}
}

// A reader that has nothing to read hears that the stream lives; one that leaves is forgotten.
func TestHeartbeat(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.Heartbeat = time.Second })
	a.h.slow = 300 * time.Millisecond // is for bodies, and must not end a stream
	path := a.submit(`{"kind":"echo","delay_ms":3600000}`)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", a.server.URL+path+"/events", nil)
	r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
	answer, err := http.DefaultClient.Do(r)
	must.No(t, err)
	defer answer.Body.Close()
	lines, comments := bufio.NewScanner(answer.Body), 0
	for comments < 2 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), ": ") && lines.Text() != ": follow" {
			comments++
		}
	}
	if comments != 2 {
		t.Errorf("%d comments: %v", comments, lines.Err())
	}
}

// A body that does not come is not waited for.
func TestSlowBody(t *testing.T) {
	a := newAPI(t)
	a.h.slow = 200 * time.Millisecond
	conn, err := net.Dial("tcp", a.server.Listener.Addr().String())
	must.No(t, err)
	defer conn.Close()
	fmt.Fprintf(conn,
		"POST /v1/executions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer %s\r\n\r\n{",
		secrets["producer"])
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.No(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%d", answer.StatusCode)
	}
}

// A body that never comes holds its connection for as long as a body may take, for every request and
// every caller.
func TestBodiesThatNeverCome(t *testing.T) {
	a := newAPI(t)
	a.h.slow = 200 * time.Millisecond
	for _, first := range []string{"GET /healthz", "GET /v1/me", "POST /v1/executions", "GET /nowhere",
		"DELETE /v1/executions", "POST /v1/signals"} {
		conn, err := net.Dial("tcp", a.server.Listener.Addr().String())
		must.No(t, err)
		fmt.Fprintf(conn,
			"%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer guess\r\n\r\n{",
			first)
		_ = conn.SetReadDeadline(time.Now().Add(time.Hour)) // timed: longer than any test
		if _, err := io.ReadAll(conn); err != nil {         // the answer, and the end of the connection
			t.Errorf("%s: %v", first, err)
		}
		conn.Close()
	}
}

// A reader that does not take what it is sent is cut off, and the handler is gone; it would go on behind the last
// event.
func TestSlowReader(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.WriteTimeout = time.Second })
	ended := make(chan struct{})
	inner := a.h
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/events") {
			defer close(ended)
		}
		inner.ServeHTTP(w, q)
	}))
	defer server.Close()
	path := a.submit(`{"kind":"talks","input":9000}`)
	a.until(path, "completed")
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must.No(t, err)
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(conn, "GET %s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, secrets["viewer"])
	select {
	case <-ended:
	case <-testwait.End(t):
		t.Fatal("the handler still writes to somebody who does not read")
	}
}

// A thousand readers of one execution share one subscription, and all get everything.
func TestManyReaders(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"stuck"}`)
	a.until(path, "active")
	const readers = 300
	var group conc.WaitGroup
	first := make(chan struct{}, readers)
	bad := make(chan string, readers)
	for range readers {
		group.Go(func() {
			all, status := a.follow(path+"/events", nil, func(e sse) bool {
				if e.name == "frame" && string(e.data.Frame.Payload) == "before" {
					first <- struct{}{}
				}
				return e.name == "end"
			})
			if got := names(all); status != 200 || got != "attempt frame frame attempt_end end" {
				bad <- got
			}
		})
	}
	for range readers {
		<-first
	}
	close(a.release)
	group.Wait()
	close(bad)
	for got := range bad {
		t.Errorf("a reader has %q", got)
	}
}

// A reader that was cut off goes on at another process, in which nobody knows it, while its execution loses the
// worker: nothing is lost or repeated within an attempt, and the new attempt is announced.
func TestResumeElsewhere(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"stuck"}`)
	seen, _ := a.follow(path+"/events", nil, func(e sse) bool { return e.name == "frame" })
	if names(seen) != "attempt frame" {
		t.Fatalf("%s", names(seen))
	}
	a.as("operator", "POST", path+":revoke", `{"reason":"as if it were lost"}`, 204)
	c, err := client.Connect(t.Context(), client.Config{URL: a.store.URL(), Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer c.Close()
	cfg := a.h.cfg
	cfg.Admin = admin.New(c)
	other, err := New(cfg)
	must.No(t, err)
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	first := a.server
	a.server = elsewhere
	defer func() { a.server = first }()
	released := false
	rest, _ := a.follow(path+"/events", http.Header{"Last-Event-ID": {seen[1].id}}, func(e sse) bool {
		if e.name == "frame" && !released {
			released = true
			close(a.release)
		}
		return e.name == "end"
	})
	got := strings.ReplaceAll(names(rest), "retry ", "") // told if it is still waited for
	if got != "attempt_end attempt frame frame attempt_end end" {
		t.Fatalf("%s", got)
	}
	for _, e := range rest {
		switch {
		case e.name == "attempt" && (e.data.Attempt != 2 || e.data.Type != "reclaim"),
			e.name == "frame" && e.data.Attempt != 2,
			e.name == "end" && e.data.State != "completed":
			t.Errorf("%+v", e)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// While the store is away requests are 503 with Retry-After, the process lives and is not ready.
func TestStoreGone(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"echo","input":1}`)
	a.until(path, "completed")
	a.store.Close()
	a.as("", "GET", "/healthz", "", 200)
	if g := a.as("", "GET", "/readyz", "", 503); g.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if g := a.as("viewer", "GET", path, "", 503); into[problem](t, g).Code != "transport" ||
		g.header.Get("Retry-After") == "" {
		t.Errorf("%s", g.body)
	}
}

// What the store cannot answer is 503 with Retry-After, but for health.
func TestStoreAway(t *testing.T) {
	p := problemOf(fmt.Errorf("get: %w", flowfabric.ErrTransport))
	if p.Status != 503 || !p.Retry || p.Code != "transport" {
		t.Errorf("%+v", p)
	}
	for err, want := range map[error]int{
		flowfabric.ErrNotFound: 404, flowfabric.ErrResultPurged: 410, denied.Idempotency: 409,
		flowfabric.ErrOutOfMemory: 503, flowfabric.ErrInvalidInput: 400, flowfabric.ErrPayloadTooLarge: 413,
		flowfabric.ErrTerminal: 409, flowfabric.ErrPartitionFrozen: 503, flowfabric.ErrCorrupt: 500,
		denied.KeyTaken: 409, flowfabric.ErrInvalidToken: 403, errors.New("bug"): 500,
		io.ErrUnexpectedEOF: 500,
	} {
		if p := problemOf(fmt.Errorf("x: %w", err)); p.Status != want {
			t.Errorf("%v: %d, want %d", err, p.Status, want)
		}
	}
	h := &Handler{}
	w := httptest.NewRecorder()
	h.fail(w, httptest.NewRequest("GET", "/", nil), flowfabric.ErrTransport)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// Whatever comes as a body or a query is read or refused, and never more.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"kind":"a"}`, `{`, `[]`, `{"kind":"a","kind":"b"}`, `{"input":{"a":1}}`, "\xff",
		`{"limits":[{"key":"k","per_ms":1e99}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := httptest.NewRequest("POST", "/v1/executions", strings.NewReader(text))
		q.Header.Set("Content-Type", "application/json")
		var s submission
		err := (&call{h: &Handler{slow: time.Second}, w: httptest.NewRecorder(), r: q, route: &route{}}).body(&s)
		if err != nil {
			if p := problemOf(err); p.Status < 400 || p.Status > 415 || p.Code == "internal" {
				t.Fatalf("%q: %+v", text, p)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"limit=5", "tag=a=b&tag=c=d", "%zz", "limit=-1", "since=2026-01-01T00:00:00Z",
		"a=b"} {
		f.Add(seed)
	}
	r := routeOf("GET", "/v1/executions")
	f.Fuzz(func(t *testing.T, text string) {
		request := httptest.NewRequest("GET", "/v1/executions", nil)
		request.URL.RawQuery = text
		q := (&call{r: request, route: r}).query()
		_, _, _, _ = q.number("limit", 1, 10, 5), q.instant("since"), q.tags("tag"), q.flag("newest")
		if q.err != nil && problemOf(q.err).Status != 400 {
			t.Fatalf("%q: %v", text, q.err)
		}
	})
}
