package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/docs/tutorial/articles"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// The service becomes ready, does its work, shows metrics, and ends without an error when it is stopped.
func TestService(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()
	t.Setenv("FLOWFABRIC_URL", "embedded://")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running conc.WaitGroup
	var ended error
	running.Go(func() { ended = serve(ctx, listener, articles.Model{}) })

	get := func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	until := func(path, want string) {
		t.Helper()
		testwait.Progress(t, path, func() (bool, any) {
			status, body := get(path)
			return status == http.StatusOK && strings.Contains(body, want), body
		})
	}
	until("/readyz", "")
	c, err := client.Connect(t.Context(), client.Config{URL: "embedded://"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := client.Submit(t.Context(), c, articles.Write, articles.Draft{Topic: "tides"}); err != nil {
		t.Fatal(err)
	}
	until("/metrics", `flowfabric_settled_total{category="",kind="write-article",outcome="suspend"} 1`)
	until("/healthz", "")
	stop()
	running.Wait()
	if ended != nil {
		t.Error(ended)
	}
}
