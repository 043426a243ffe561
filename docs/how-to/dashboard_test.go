package howto_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/dashboard"
	"github.com/flowfabric/flowfabric-go/httpapi"
)

func checkSession(session string) error {
	if session != "good" {
		return errors.New("the session is not known")
	}
	return nil
}

func authorize(q *http.Request) (httpapi.Principal, error) {
	cookie, err := q.Cookie("session")
	if err != nil {
		return httpapi.Principal{}, errors.New("nobody is signed in")
	}
	return httpapi.Principal{Name: "anna", Role: httpapi.Operator}, checkSession(cookie.Value)
}

func mountDashboard(c *client.Client, mux *http.ServeMux) (*httpapi.Handler, error) {
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: authorize, History: true})
	if err != nil {
		return nil, err
	}
	page, err := dashboard.New(dashboard.Config{API: api})
	if err != nil {
		return nil, err
	}
	mux.Handle("/jobs/", http.StripPrefix("/jobs", page))
	return api, nil
}

// The dashboard is mounted beside the pages of an application, whose cookie says who is there.
func TestDashboard(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Config{URL: "embedded://", Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer c.Close()
	mux := http.NewServeMux()
	api, err := mountDashboard(c, mux)
	must(t, err)
	defer api.Close()
	web := httptest.NewServer(mux)
	defer web.Close()
	get := func(path, session string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(context.Background(), "GET", web.URL+path, nil)
		must(t, err)
		if session != "" {
			q.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		answer, err := http.DefaultClient.Do(q)
		must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, string(body)
	}
	if status, body := get("/jobs/", ""); status != 200 || !strings.Contains(body, "assets/main.js") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/jobs/v1/me", "good"); status != 200 || !strings.Contains(body, `"name":"anna"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get("/jobs/v1/me", "bad"); status != 401 {
		t.Errorf("%d", status)
	}
}
