package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/signature"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("WEBHOOK_TEST_CHILD"); url != "" {
		os.Exit(child(url))
	}
	goleak.VerifyTestMain(m)
}

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 32 bytes for a test!"))

// secretRef makes a file of a secret, and tells how a configuration names it.
func secretRef(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	must.No(t, os.WriteFile(name, []byte(text), 0o600))
	return "file:" + name
}

// endpointAt is an endpoint for a receiver on this machine.
func endpointAt(t testing.TB, url string) Endpoint {
	return Endpoint{URL: url, Secrets: []string{secretRef(t, testSecret)}, Events: types,
		AllowAddresses: []string{"127.0.0.1"}}
}

func read(t testing.TB, e Endpoint) *endpoint {
	t.Helper()
	all, err := Read(map[string]Endpoint{"test": e})
	must.No(t, err)
	t.Cleanup(all["test"].http.CloseIdleConnections)
	return all["test"]
}

// verified tells whether a request is signed as a receiver wants it.
func verified(q *http.Request, body []byte) error {
	s := signature.Schemes["standard"]
	c, err := s.Read(q.Header, time.Now(), 5*time.Minute)
	if err != nil {
		return err
	}
	secret, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	return s.Check(c, [][]byte{secret}, body)
}

var sample = Delivery{Endpoint: "test", ID: "msg_1", Body: json.RawMessage(`{"type":"execution.failed"}`)}

// What a receiver does decides what follows, and none can keep us or lead us elsewhere.
func TestReceivers(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	sent := atomic.Int64{}
	hold := make(chan struct{})
	answers := map[string]http.HandlerFunc{
		"/ok":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"/wrong": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"/gone":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"/redirect": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		},
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"/slow": func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-hold:
			case <-q.Context().Done():
			}
		},
		"/gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			part := make([]byte, 1<<20)
			for range 1 << 10 {
				n, err := w.Write(part)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		},
		"/headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		},
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answers[q.URL.Path](w, q)
	}))
	defer receiver.Close()
	defer close(hold)
	away, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	must.No(t, away.Close())
	for _, c := range []struct{ url, wrong, outcome string }{
		{receiver.URL + "/ok", "", "complete"},
		{receiver.URL + "/wrong", "the receiver answered 500 Internal Server Error", "fail"},
		{receiver.URL + "/gone", "the receiver answered 410 Gone", "permanent"},
		{receiver.URL + "/busy", "the receiver answered 429 Too Many Requests", "after 7s"},
		{receiver.URL + "/redirect", "redirects are not followed", "fail"},
		{receiver.URL + "/slow", "cannot be reached", "fail"},
		{receiver.URL + "/gigabyte", "", "complete"},
		{receiver.URL + "/headers", "cannot be reached", "fail"},
		{"http://" + away.Addr().String() + "/secret-in-a-path", "cannot be reached: dial tcp", "fail"},
	} {
		e := endpointAt(t, c.url)
		e.Timeout = flowfabric.Millis(minTimeout)
		_, err := read(t, e).send(t.Context(), sample)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", c.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "/") && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the URL: %v", err)
		}
		if got := outcome(t, err); got != c.outcome {
			t.Errorf("%s: %s, want %s", c.url, got, c.outcome)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes of the answer were taken", n)
	}
}

// outcome is what a worker makes of an error.
func outcome(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return "complete"
	}
	switch f := handler.Classify(t.Context(), nil, err).Failure; {
	case f.Permanent:
		return "permanent"
	case f.RetryAfter != nil:
		return "after " + f.RetryAfter.String()
	}
	return "fail"
}

// Requests are signed with each secret.
func TestSigned(t *testing.T) {
	var problem error
	count := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		problem = verified(q, sample.Body)
		count = len(strings.Fields(q.Header.Get("webhook-signature")))
		if q.Header.Get("webhook-id") != sample.ID || q.Header.Get("Content-Type") != "application/json" {
			problem = errors.Join(problem, fmt.Errorf("headers %v", q.Header))
		}
	}))
	defer receiver.Close()
	e := endpointAt(t, receiver.URL)
	next := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of 32 bytes: next"))
	e.Secrets = append([]string{secretRef(t, next)}, e.Secrets...)
	if _, err := read(t, e).send(t.Context(), sample); err != nil || problem != nil || count != 2 {
		t.Errorf("%v, %v, %d signatures", err, problem, count)
	}
}

// Only messages of a relay that knows a secret of the endpoint are sent.
func TestForgedDelivery(t *testing.T) {
	e := read(t, endpointAt(t, "http://127.0.0.1:1"))
	d := sample
	d.Seal = seal(e.secrets[0], d)
	if !e.sealed(d) {
		t.Error("a delivery of the relay is refused")
	}
	for _, forged := range []Delivery{{Endpoint: d.Endpoint, ID: d.ID, Body: d.Body}, {"test", "msg_2", d.Body, d.Seal},
		{"test", d.ID, json.RawMessage(`{}`), d.Seal}} {
		_, err := (&Webhooks{endpoints: Endpoints{"test": e}}).deliver(t.Context(), nil, forged)
		if got := outcome(t, err); got != "permanent" {
			t.Errorf("%+v: %v", forged, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	open, some := policy{}, policy{allowed: ranges("10.1.0.0/16", "fd00::/8")}
	only := policy{allowed: ranges("10.1.0.0/16"), only: true}
	for _, c := range []struct {
		addr             string
		open, some, only bool
	}{
		{"8.8.8.8", true, true, false},
		{"2606:4700::1111", true, true, false},
		{"10.1.2.3", false, true, true},
		{"::ffff:10.1.2.3", false, true, true},
		{"::ffff:8.8.8.8", true, true, false},
		{"fd00::1", false, true, false},
		{"10.2.2.3", false, false, false},
		{"127.0.0.1", false, false, false},
		{"::ffff:127.0.0.1", false, false, false},
		{"::1", false, false, false},
		{"::", false, false, false},
		{"0.0.0.0", false, false, false},
		{"169.254.169.254", false, false, false},
		{"::ffff:169.254.169.254", false, false, false},
		{"64:ff9b::a9fe:a9fe", false, false, false},
		{"2002:7f00:1::", false, false, false},
		{"2001:0:1::1", false, false, false},
		{"::127.0.0.1", false, false, false},
		{"fe80::1%eth0", false, false, false},
		{"fe80::1", false, false, false},
		{"fc00::1", false, false, false},
		{"ff02::1", false, false, false},
		{"172.31.255.255", false, false, false},
		{"172.32.0.1", true, true, false},
		{"192.168.0.1", false, false, false},
		{"100.64.0.1", false, false, false},
		{"224.0.0.1", false, false, false},
		{"255.255.255.255", false, false, false},
	} {
		addr := netip.MustParseAddr(c.addr)
		for name, p := range map[string]struct {
			policy
			want bool
		}{"open": {open, c.open}, "some": {some, c.some}, "only": {only, c.only}} {
			if got := p.check(addr) == nil; got != p.want {
				t.Errorf("%s, %s: %v", c.addr, name, got)
			}
		}
	}
}

// A private address is refused whatever leads to it, and before anything is sent.
func TestPrivateReceivers(t *testing.T) {
	var calls atomic.Int32
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.StartTLS()
	defer receiver.Close()
	_, port, _ := net.SplitHostPort(receiver.Listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"} {
		url := "https://" + host + ":" + port
		e := &endpoint{Endpoint: Endpoint{URL: url}, name: "test", secrets: [][]byte{[]byte("secret")}}
		e.http = newHTTP(maxTimeout, policy{})
		_, err := e.send(t.Context(), sample)
		if err == nil || !strings.Contains(err.Error(), "is not public") || outcome(t, err) != "permanent" {
			t.Errorf("%s: %v", url, err)
		}
		e.http = newHTTP(maxTimeout, policy{allowed: ranges("127.0.0.0/8")})
		if _, err := e.send(t.Context(), sample); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestConfiguration(t *testing.T) {
	secret := secretRef(t, testSecret)
	right := Endpoint{URL: "https://example.com/hook", Secrets: []string{secret}, Events: []string{"execution.failed"}}
	if _, err := Read(map[string]Endpoint{"a-1": right}); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Endpoint){
		"url: it is missing":               func(e *Endpoint) { e.URL = "" },
		"url: want https://host/path":      func(e *Endpoint) { e.URL = "ftp://example.com" },
		"url: it must have no user":        func(e *Endpoint) { e.URL = "https://a:b@example.com" },
		"url: http:// is for addresses of": func(e *Endpoint) { e.URL = "http://example.com" },
		"url: the address 10.0.0.1 is":     func(e *Endpoint) { e.URL = "https://10.0.0.1" },
		"url: the address 8.8.8.8 is": func(e *Endpoint) {
			e.URL, e.AllowAddresses = "http://8.8.8.8", []string{"10.0.0.0/8"}
		},
		"url: it has 2067 bytes":           func(e *Endpoint) { e.URL += strings.Repeat("a", 2043) },
		"secrets has 0 entries, want 1..4": func(e *Endpoint) { e.Secrets = nil },
		"secrets[0]: want env:NAME":        func(e *Endpoint) { e.Secrets = []string{testSecret} },
		"events is empty":                  func(e *Endpoint) { e.Events = nil },
		`events[1] is "execution.begun"`:   func(e *Endpoint) { e.Events = append(e.Events, "execution.begun") },
		"timeout_ms is 100, want 1000":     func(e *Endpoint) { e.Timeout = flowfabric.Millis(minTimeout / 10) },
		`allow_addresses[0] is "10.`:       func(e *Endpoint) { e.AllowAddresses = []string{"10.0.0.0/33"} },
		`allow_addresses[0] is "::ffff:`:   func(e *Endpoint) { e.AllowAddresses = []string{"::ffff:10.0.0.0/8"} },
		"namespaces[0]":                    func(e *Endpoint) { e.Namespaces = []string{""} },
		"kinds has 101 entries":            func(e *Endpoint) { e.Kinds = make([]string, 101) },
		"tags:":                            func(e *Endpoint) { e.Tags = map[string]string{"nodot": "x"} },
		"gates is missing": func(e *Endpoint) {
			e.Events, e.Kinds = []string{"budget.exhausted"}, []string{"a"}
		},
	} {
		e := right
		change(&e)
		_, err := Read(map[string]Endpoint{"a-1": e})
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "out.a-1: "+want) ||
			strings.Contains(err.Error(), testSecret) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Read(map[string]Endpoint{"A": right}); err == nil {
		t.Error("a wrong name passes")
	}
}
