package howto_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Support is a conversation: one execution, which goes on for as long as somebody writes. The web server and the
// workers share it.
var Support = handler.Define[chat.Conversation, agent.Result]("support",
	handler.Retry(5, time.Second, time.Minute), // of a model's service that fails
	handler.MaxReplays(1000))                   // a conversation that has ended is brought back by a message

type Supporter struct{ Model agent.Model }

func (s *Supporter) Handle(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
	return chat.Run(ctx, t, in, agent.Config{
		Model:  s.Model,
		System: "You answer customers of a shop. Look facts up.",
		Tools:  []agent.Tool{search, refund},
	})
}

// conversations mounts the chat in the application, behind its login.
func conversations(mux *http.ServeMux, c *client.Client, login func(*http.Request) (string, bool)) (*chat.Handler,
	error) {
	h, err := chat.New(c, Support, chat.Config{
		Who: func(q *http.Request) (string, error) {
			if user, ok := login(q); ok {
				return user, nil // whose conversations the request reaches, and who did it in the audit trail
			}
			return "", errors.New("not logged in")
		},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("/api/chat", http.StripPrefix("/api/chat", h))
	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
	return h, nil
}

// serve answers requests, and works, until ctx ends or the process gets SIGINT or SIGTERM. Web server and worker may be
// processes of their own, on the same url.
func serve(ctx context.Context, url string, listener net.Listener, model agent.Model) error {
	c, err := client.Connect(ctx, client.Config{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	mux := http.NewServeMux()
	h, err := conversations(mux, c, login)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux}
	var serving conc.WaitGroup
	serving.Go(func() { _ = web.Serve(listener) })
	err = runtime.Run(ctx, runtime.Config{URL: url}, runtime.Handle(Support, (&Supporter{model}).Handle))
	h.Close()
	_ = web.Shutdown(context.WithoutCancel(ctx))
	serving.Wait()
	return err
}

// hours stands in for the model of a service: it says one thing, word by word.
var hours = agent.ModelFunc(func(_ context.Context, _ agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	text := "We open at ten."
	for _, word := range strings.SplitAfter(text, " ") {
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd}, nil
})

// refunds stands in for the model of a service: it calls the tool refund, and then says what the tool returned.
var refunds = agent.ModelFunc(func(_ context.Context, q agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	last := q.Messages[len(q.Messages)-1]
	if last.Role == agent.User {
		call := agent.ToolCall{ID: "call-" + last.ID, Name: "refund", Arguments: []byte(`{"order":"7","cents":2000}`)}
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}, Stop: agent.StopTools}, nil
	}
	return agent.Response{Message: agent.Message{Parts: agent.Text(last.Text())}, Stop: agent.StopEnd},
		delta(agent.Delta{Text: last.Text()})
})

// login is the application's own.
func login(q *http.Request) (user string, ok bool) {
	user, _, ok = q.BasicAuth()
	return user, ok
}

// The stand-in of the page about AG-UI calls the tool for a message of the user, and else repeats its result.
func TestRefundsCallsTheTool(t *testing.T) {
	quiet := func(agent.Delta) error { return nil }
	for role, want := range map[agent.Role]int{agent.User: 1, agent.ToolRole: 0} {
		said := []agent.Message{{Role: role, ID: "u1", Parts: agent.Text("paid")}}
		got, err := refunds.Generate(t.Context(), agent.Request{Messages: said}, quiet)
		if err != nil || len(got.Message.Calls) != want || (want == 0) != (got.Message.Text() == "paid") {
			t.Errorf("%s: %+v, %v", role, got, err)
		}
	}
}

// Who is logged in talks to the agent, and somebody else finds nothing.
func TestConversations(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving conc.WaitGroup
	defer serving.Wait()
	defer stop()
	serving.Go(func() {
		if err := serve(ctx, s.URL(), listener, hours); err != nil {
			t.Error(err)
		}
	})
	api := "http://" + listener.Addr().String() + "/api/chat"
	ask := func(user, method, path, body string) (status int, lines []string) {
		t.Helper()
		q, err := http.NewRequestWithContext(ctx, method, api+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		if user != "" {
			q.SetBasicAuth(user, "")
		}
		got, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		for all := bufio.NewScanner(got.Body); all.Scan(); {
			lines = append(lines, all.Text())
		}
		_, _ = io.Copy(io.Discard, got.Body)
		return got.StatusCode, lines
	}
	const message = `{"id":"hours","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"When?"}]}]}`
	if status, _ := ask("", http.MethodPost, "", message); status != http.StatusUnauthorized {
		t.Errorf("nobody gets %d", status)
	}
	for range 2 { // a POST that comes again says nothing twice
		status, lines := ask("ada", http.MethodPost, "", message)
		if all := strings.Join(lines, "\n"); status != http.StatusOK ||
			strings.Count(all, `"type":"text-delta"`) != 4 ||
			!strings.HasSuffix(strings.TrimSpace(all), "data: [DONE]") {
			t.Errorf("%d %s", status, all)
		}
	}
	status, lines := ask("ada", http.MethodGet, "/hours", "")
	if all := strings.Join(lines, ""); status != http.StatusOK || strings.Count(all, "We open at ten.") != 1 {
		t.Errorf("%d %s", status, all)
	}
	if status, _ := ask("bob", http.MethodGet, "/hours", ""); status != http.StatusNotFound {
		t.Errorf("somebody else gets %d", status)
	}
}
