package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// fault is what a proxy does to some of the calls: those whose "METHOD path" has On in it, or whose body completes
// something, if On is "complete".
type fault struct {
	On    string `json:"on"`
	How   string `json:"how"`
	Times int    `json:"times"`
}

// proxy stands between a client and the server, and spoils what it is told to.
type proxy struct {
	mu     sync.Mutex
	faults []*fault
	to     *httputil.ReverseProxy
}

// proxies makes proxies for runners: POST /new answers {"id", "url"}, and POST /ID with a fault adds it.
func proxies(t *testing.T, server string) (control string) {
	target, err := url.Parse(server)
	must.No(t, err)
	var mu sync.Mutex
	var all []*proxy
	mux := http.NewServeMux()
	mux.HandleFunc("POST /new", func(w http.ResponseWriter, q *http.Request) {
		p := &proxy{to: httputil.NewSingleHostReverseProxy(target)}
		p.to.FlushInterval = -1
		p.to.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
		s := httptest.NewServer(p)
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p)
		fmt.Fprintf(w, `{"id":%d,"url":%q}`, len(all)-1, s.URL)
	})
	mux.HandleFunc("POST /{id}", func(w http.ResponseWriter, q *http.Request) {
		n, _ := strconv.Atoi(q.PathValue("id"))
		mu.Lock()
		p := all[n]
		mu.Unlock()
		f := new(fault)
		if err := json.NewDecoder(q.Body).Decode(f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.Times = max(f.Times, 1)
		p.mu.Lock()
		p.faults = append(p.faults, f)
		p.mu.Unlock()
		fmt.Fprint(w, "{}")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// hits is the fault of a call.
func (p *proxy) hits(call, body string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.Times > 0 && (strings.Contains(call, f.On) || f.On == "complete" && strings.Contains(body, `"lease"`) &&
			strings.Contains(body, `"complete":[{`)) {
			f.Times--
			return f.How
		}
	}
	return ""
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	q.Body = io.NopCloser(strings.NewReader(string(body)))
	problem := func(status int, code string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":"a fault","status":%d,"code":%q,"request_id":"none"}`, status,
			code)
	}
	switch p.hits(q.Method+" "+q.URL.Path, string(body)) {
	case "":
		p.to.ServeHTTP(w, q)
	case "drop": // the server never hears of it
		panic(http.ErrAbortHandler)
	case "busy":
		w.Header().Set("Retry-After", "0")
		problem(http.StatusServiceUnavailable, "unavailable")
	case "gone":
		problem(http.StatusNotFound, "session_not_found")
	case "garbage":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id": "`)
	case "cut": // the server has done it
		p.to.ServeHTTP(httptest.NewRecorder(), q)
		panic(http.ErrAbortHandler)
	case "half":
		p.to.ServeHTTP(&half{ResponseWriter: w, left: 400}, q)
		panic(http.ErrAbortHandler)
	}
}

// half lets a part of an answer pass.
type half struct {
	http.ResponseWriter
	left int
}

func (h *half) Write(b []byte) (int, error) {
	if h.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	n := min(len(b)/2+1, h.left)
	if len(b) > 400 {
		n = min(len(b), h.left)
	}
	h.left -= n
	if _, err := h.ResponseWriter.Write(b[:n]); err != nil {
		return 0, err
	}
	h.ResponseWriter.(http.Flusher).Flush()
	if n < len(b) || h.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	return len(b), nil
}

func (h *half) Flush() { h.ResponseWriter.(http.Flusher).Flush() }

// freePort is an address of this machine on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	defer l.Close()
	return l.Addr().String()
}
