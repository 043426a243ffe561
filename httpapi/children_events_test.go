package httpapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Events of children are among those of their parent, with whose they are; a browser goes on behind any of them, and
// a redactor is told of the child.
func TestEventsOfChildren(t *testing.T) {
	a := newAPI(t)
	talks := handler.Define[int, string]("talks")
	mother := handler.Define[int, string]("mother")
	w, err := runtime.New(runtime.Config{URL: a.store.URL(), Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(mother, func(ctx context.Context, t *handler.Task, n int) (string, error) {
			set := flow.Children("talk")
			flow.Child(set, "one", talks, n, flow.Streamed())
			flow.Child(set, "two", talks, n, flow.Streamed())
			if err := t.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			return "", t.Frame(ctx, "token", "all is said")
		}))
	must.No(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })

	path := a.submit(`{"kind":"mother","lane":"default","input":3}`)
	live, _ := a.follow(path+"/events", nil, nil)
	all, _ := a.follow(path+"/events", nil, nil)
	brief := func(events []sse) (out []string) {
		for _, e := range events {
			if e.name == "suspended" || e.name == "retry" {
				continue
			}
			name := ""
			if e.data.Child != nil {
				name = fmt.Sprint(e.data.Child.Path[0], " ", e.data.Child.ID, " ")
			}
			out = append(out, fmt.Sprint(name, e.name, " ", string(e.data.Frame.Payload)))
		}
		return out
	}
	told := brief(all)
	if !slices.Equal(brief(live), told) || len(told) != 2*7+5 {
		t.Errorf("live:\n%s\nlater:\n%s", strings.Join(brief(live), "\n"), strings.Join(told, "\n"))
	}
	for i, e := range all[:len(all)-1] {
		rest, _ := a.follow(path+"/events", http.Header{"Last-Event-Id": {e.id}}, nil)
		if !slices.Equal(brief(rest), told[i+1:]) {
			t.Errorf("behind %s:\n%s\nwant\n%s", e.id, strings.Join(brief(rest), "\n"), strings.Join(told[i+1:], "\n"))
		}
	}
	partition := func(path string) string { return strings.Split(path[strings.LastIndex(path, "/")+1:], "-")[0] }
	other := path
	for other == path || partition(other) != partition(path) {
		other = a.submit(`{"kind":"mother","lane":"default","input":1}`)
	}
	for _, e := range all {
		forged := strings.HasPrefix(e.id, "m")
		if _, status := a.follow(other+"/events", http.Header{"Last-Event-Id": {e.id}}, nil); forged && status != 400 {
			t.Errorf("children of another execution, at %s: %d", e.id, status)
		}
	}
	own, _ := a.follow(path+"/events?own=true", nil, nil)
	if got := strings.Join(brief(own), ", "); got != "attempt , resumed , frame all is said, attempt_end , end " {
		t.Errorf("own: %s", got)
	}
	said := into[transcript](t, a.as("viewer", "GET", path+"/transcript", "", 200))
	if len(said.Children) != 2 || said.Text != "all is said" || said.Children[0].Text != "word 0 word 1 word 2 " {
		t.Errorf("transcript %+v", said)
	}
	text := a.as("viewer", "GET", path+"/stream?as=events", "", 200)
	if s := string(text.body); strings.Contains(s, `"child":`) || !strings.Contains(s, "all is said") {
		t.Errorf("as a durable stream: %s", text.body)
	}

	hidden := httptest.NewServer(a.with(func(r Redaction) []byte { return []byte("by " + r.Kind + ";") }))
	defer hidden.Close()
	for _, way := range []string{"/events", "/transcript"} {
		r, err := http.NewRequest("GET", hidden.URL+path+way, nil)
		must.No(t, err)
		r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
		answer, err := http.DefaultClient.Do(r)
		must.No(t, err)
		body, err := io.ReadAll(answer.Body)
		must.No(t, err)
		answer.Body.Close()
		if text := string(body); strings.Contains(text, "word") || strings.Count(text, `"text":"by talks;`) < 6 ||
			!strings.Contains(text, `"text":"by mother;`) {
			t.Errorf("%s: %s", way, text)
		}
	}
}
