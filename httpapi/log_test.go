package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
)

// What a prober asks every few seconds does not fill the log; everything else has its line.
func TestProbesAreNotLogged(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Config{URL: "embedded://"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var log bytes.Buffer
	h, err := New(Config{Admin: admin.New(c), Authorize: Open,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, path := range []string{"/healthz", "/readyz", "/v1/workers"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "path=/v1/workers") {
		t.Errorf("%s", got)
	}
}
