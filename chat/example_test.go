package chat_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Talk is what the web server and the worker share.
var Talk = handler.Define[chat.Conversation, agent.Result]("talk")

// parrot stands in for the model of a service.
var parrot = agent.ModelFunc(func(_ context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	text := "You said: " + req.Messages[len(req.Messages)-1].Text()
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd},
		delta(agent.Delta{Text: text})
})

// A conversation is a handler of the worker, and an http.Handler of the web server. Any front end of the AI SDK is
// pointed at the mount point.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// The worker.
	w, err := runtime.New(runtime.Config{URL: s.URL(), Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(Talk, func(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
			return chat.Run(ctx, t, in, agent.Config{Model: parrot})
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer stop()
	working.Go(func() { _ = w.Run(ctx) })

	// The web server.
	c, err := client.Connect(ctx, client.Config{URL: s.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	h, err := chat.New(c, Talk, chat.Config{Who: func(q *http.Request) (string, error) {
		if name, _, ok := q.BasicAuth(); ok { // the application's own login
			return name, nil
		}
		return "", errors.New("not logged in")
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	mux := http.NewServeMux()
	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
	mux.Handle("/api/chat", http.StripPrefix("/api/chat", h))
	web := httptest.NewServer(mux)
	defer web.Close()

	// What useChat sends.
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/api/chat", strings.NewReader(
		`{"id":"greetings","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	q.SetBasicAuth("ada", "")
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `"delta"`) {
			fmt.Println(answer.StatusCode, strings.Contains(lines.Text(), "You said: hello"))
		}
	}
	// Output: 200 true
}
