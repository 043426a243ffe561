package howto_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Fetch is tried at most nine times, with pauses of 2 s, 4 s, 8 s … 5 min. One attempt may take a minute, all of them
// an hour.
var Fetch = handler.Define[string, string]("fetch",
	handler.Retry(8, 2*time.Second, 5*time.Minute),
	flowfabric.Timeout(time.Minute),
	flowfabric.Deadline(time.Hour))

func fetch(ctx context.Context, t *handler.Task, url string) (string, error) {
	page, status, err := get(ctx, url)
	switch {
	case err != nil:
		return "", err // retried
	case status == http.StatusNotFound:
		return "", handler.Permanent(errors.New("no such page")) // not retried
	case status == http.StatusTooManyRequests:
		return "", handler.RetryAfter(30*time.Second, errors.New("too many requests")) // retried after this pause
	case status == http.StatusServiceUnavailable:
		return "", handler.Delay(time.Minute) // not a failure: run again later, no retry is used up
	case status == http.StatusGone:
		return "", handler.Cancel("the page was removed") // ends as cancelled
	case status >= 500:
		return "", handler.Category("upstream", errors.New("server error")) // retried, counted under its own name
	}
	return page, nil
}

// get answers as the page of this name would.
func get(_ context.Context, url string) (page string, status int, err error) {
	switch url {
	case "gone":
		return "", http.StatusGone, nil
	case "missing":
		return "", http.StatusNotFound, nil
	}
	return "<html>", http.StatusOK, nil
}

func TestFail(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Fetch, fetch))
	exec, err := client.Submit(ctx, c, Fetch, "missing")
	must(t, err)

	page, err := exec.Result(ctx)
	var outcome *client.OutcomeError
	switch {
	case errors.Is(err, flowfabric.ErrFailed) && errors.As(err, &outcome):
		t.Log("failed:", outcome.Category, outcome.Reason)
	case errors.Is(err, flowfabric.ErrCancelled), errors.Is(err, flowfabric.ErrExpired):
		t.Log("ended without a result:", err)
	case err != nil:
		t.Log("not known: the store is away, or ctx has ended:", err)
	default:
		t.Log(page)
	}
	if outcome == nil || outcome.Category != "handler_error" || outcome.Reason != "no such page" {
		t.Errorf("category or reason: %v", outcome)
	}
	exec, err = client.Submit(ctx, c, Fetch, "gone")
	must(t, err)
	if _, err := exec.Result(ctx); !errors.Is(err, flowfabric.ErrCancelled) {
		t.Error(err)
	}
}
