package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// What probers, pages and workers ask for every few seconds does not fill the log; changes and refusals have their
// line.
func TestReadsAreNotLogged(t *testing.T) {
	c, err := client.Connect(t.Context(),
		client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: "embedded://"})
	must.No(t, err)
	defer c.Close()
	var log bytes.Buffer
	h, err := New(Config{Admin: admin.New(c), Authorize: Open,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must.No(t, err)
	defer h.Close()
	call := func(method, path, body string, want int) string {
		t.Helper()
		log.Reset()
		w, q := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
		q.Host = "localhost"
		q.Header.Set("Content-Type", "application/json")
		if h.ServeHTTP(w, q); w.Code != want {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if want == http.StatusCreated {
			return w.Body.String()
		}
		return log.String()
	}
	_, rest, _ := strings.Cut(call("POST", "/v1/workers", `{"kinds":["k"]}`, http.StatusCreated), `"session":"`)
	session, _, _ := strings.Cut(rest, `"`)
	for _, path := range []string{"GET /healthz", "GET /readyz", "GET /v1/workers",
		"POST /v1/workers/" + session + ":claim", "POST /v1/workers/" + session + ":renew"} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" {
			body = map[bool]string{true: `{"wait_ms":0}`, false: `{"leases":[]}`}[strings.HasSuffix(path, "claim")]
		}
		if got := call(method, path, body, http.StatusOK); got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := call("POST", "/v1/lanes/side:set", `{"state":"paused"}`, http.StatusNoContent); strings.Count(got,
		"level=INFO") != 1 || !strings.Contains(got, "path=/v1/lanes/side:set") {
		t.Errorf("%s", got)
	}
	if got := call("GET", "/v1/executions/nonsense", "", http.StatusBadRequest); strings.Count(got, "level=INFO") != 1 {
		t.Errorf("%s", got)
	}
}
