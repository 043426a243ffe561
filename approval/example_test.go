package approval_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// serve runs a worker until stop is called, and connects a client.
func serve(bindings ...handler.Binding) (ctx context.Context, c *client.Client, stop func()) {
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet}, bindings...)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	if c, err = client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet}); err != nil {
		panic(err)
	}
	return ctx, c, func() { c.Close(); cancel(); running.Wait() }
}

// People answer on a page that their link opens. Opening it does nothing; only their click does.
func ExampleNew() {
	release := handler.Define[string, string]("release")
	mailed := make(chan suspend.Token, 1)
	ctx, c, stop := serve(handler.Bind(release,
		func(ctx context.Context, t *handler.Task, version string) (string, error) {
			token, err := t.Pending(ctx, "approval", time.Hour)
			if err != nil {
				return "", err
			}
			if _, err := handler.Step(ctx, t, "mail",
				func(context.Context) (bool, error) { mailed <- token; return true, nil }); err != nil {
				return "", err
			}
			answer, err := handler.Await[suspend.Answer](ctx, t, "approval")
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s: %s by %s", version, answer.Choice, answer.By), nil
		}))
	defer stop()
	mux := http.NewServeMux()
	mux.Handle("/answers",
		approval.New(approval.Config{Deliver: c, Question: func(*http.Request, suspend.Token) suspend.Question {
			return suspend.Question{Title: "Release v2?",
				Choices: []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}}
		}}))
	web := httptest.NewServer(mux)
	defer web.Close()

	exec, err := client.Submit(ctx, c, release, "v2")
	if err != nil {
		fmt.Println(err)
		return
	}
	token := <-mailed
	page, err := http.Get(approval.Link(web.URL+"/answers", token)) // the page with its form
	if err != nil {
		fmt.Println(err)
		return
	}
	page.Body.Close()
	fmt.Println(page.StatusCode, page.Header.Get("Cache-Control"), page.Header.Get("Referrer-Policy"))

	// the click
	sent, err := http.PostForm(web.URL+"/answers",
		url.Values{"token": {token.Reveal()}, "choice": {"approve"}, "by": {"anna"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent.Body.Close()
	fmt.Println(sent.StatusCode)
	fmt.Println(exec.Result(ctx))
	// Output:
	// 200 no-store no-referrer
	// 200
	// v2: approve by anna <nil>
}
