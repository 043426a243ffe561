package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/dashboard"
	_ "github.com/flowfabric/flowfabric-go/embedded" // serves embedded://
	"github.com/flowfabric/flowfabric-go/httpapi"
)

// The page in an application of one's own, below a path of its mux.
func Example() {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(context.Background(), client.Config{URL: "embedded://", Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	// httpapi.Open lets everybody do everything; an application knows its users by their session, and says so here.
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	page, err := dashboard.New(dashboard.Config{API: api})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/jobs/", http.StripPrefix("/jobs", page))

	server := httptest.NewServer(mux)
	defer server.Close()
	for _, path := range []string{"/jobs/", "/jobs/v1/queues"} {
		answer, err := server.Client().Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
		fmt.Println(answer.StatusCode, kind, err)
	}
	// Output:
	// 200 text/html <nil>
	// 200 application/json <nil>
}
