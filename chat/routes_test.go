package chat

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/client"
)

// Conversations are listed with their titles, newest first and in pages, each owner's for itself; they are renamed and
// deleted.
func TestListTitleDelete(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, nil)
	long := strings.Repeat("word ", 30)
	for n, text := range []string{"hello\n you", long, "third"} {
		s.tell("ann", fmt.Sprint("c", n), "u1", text)
	}
	s.tell("ben", "c0", "u1", "mine")
	type page struct {
		Conversations []shown
		Next          string
	}
	list := func(query string) (p page) {
		r := s.ask("ann", http.MethodGet, query, nil)
		if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.status != http.StatusOK {
			t.Fatalf("%+v, %v", r, err)
		}
		return p
	}
	all := list("").Conversations
	var titles []string
	for _, c := range all {
		titles = append(titles, c.Title)
		if c.State != "idle" || c.CreatedAt.IsZero() || c.UpdatedAt.Before(c.CreatedAt) {
			t.Errorf("%+v", c)
		}
	}
	want := []string{"third", strings.TrimSpace(strings.Repeat("word ", 12)) + "…", "hello you"}
	if !slices.Equal(titles, want) || all[0].ID != "c2" {
		t.Errorf("%q, want %q", titles, want)
	}
	var ids []string
	for query := "?limit=2"; query != ""; {
		p := list(query)
		for _, c := range p.Conversations {
			ids = append(ids, c.ID)
		}
		if query = ""; p.Next != "" {
			query = "?limit=2&cursor=" + p.Next
		}
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"c0", "c1", "c2"}) {
		t.Errorf("in pages: %q", ids)
	}
	rename := func(title any) reply {
		return s.ask("ann", http.MethodPatch, "/c0", map[string]any{"title": title})
	}
	if r := rename(" other\tone "); r.status != http.StatusOK || !strings.Contains(r.body, `"title":"other one"`) {
		t.Errorf("%+v", r)
	}
	if r := s.ask("ann", http.MethodGet, "/c0", nil); !strings.Contains(r.body, `"title":"other one"`) ||
		!strings.Contains(r.body, "hello") {
		t.Errorf("%+v", r)
	}
	if r := rename(strings.Repeat("x", 257)); r.status != http.StatusBadRequest || !strings.Contains(r.body, "256") {
		t.Errorf("%+v", r)
	}
	for range 2 {
		if r := s.ask("ann", http.MethodDelete, "/c0", nil); r.status != http.StatusNoContent {
			t.Errorf("%+v", r)
		}
	}
	if r := s.ask("ann", http.MethodGet, "/c0", nil); r.status != http.StatusNotFound {
		t.Errorf("deleted: %+v", r)
	}
	if got := list("").Conversations; len(got) != 2 {
		t.Errorf("%+v", got)
	}
	if got := s.tell("ann", "c0", "u1", "anew"); got != "1: anew" {
		t.Errorf("%q", got)
	}
	if r := s.ask("ben", http.MethodGet, "/c0", nil); !strings.Contains(r.body, "mine") {
		t.Errorf("of the other owner: %+v", r)
	}
}

// A watcher gets all changes of another tab, and no text of a message.
func TestWatch(t *testing.T) {
	s := stageOf(t, approving(func(int) {}), nil)
	asked := s.follow("ann", http.MethodPost, "", say("c", "u1", "secret")).until("tool-approval-request")
	w := s.follow("ann", http.MethodGet, "/c/watch", nil)
	until := func(good func(seenNow) bool) {
		t.Helper()
		for {
			data, _ := w.line()
			var now seenNow
			if err := json.Unmarshal([]byte(data), &now); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(data, "secret") {
				t.Error(data)
			}
			if good(now) {
				return
			}
		}
	}
	until(func(now seenNow) bool { return now == seenNow{2, false, doingAsk, 1} })
	if r := s.ask("ann", http.MethodPost, "/c/answer", map[string]any{"approvalId": asked.ApprovalID,
		"approved": true}); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	until(func(now seenNow) bool { return now == seenNow{2, false, doingIdle, 0} })
	s.follow("ann", http.MethodPost, "", say("c", "u2", "secret"))
	until(func(now seenNow) bool { return now == seenNow{4, false, doingAsk, 1} })
	if r := s.ask("ann", http.MethodDelete, "/c", nil); r.status != http.StatusNoContent {
		t.Errorf("%+v", r)
	}
	until(func(now seenNow) bool { return now.State == doingEnded })
	if data, _ := w.line(); data != "" {
		t.Errorf("behind the end: %s", data)
	}
}

// Files of messages go to the store, come back only where a message has them, and can do nothing in a browser.
func TestFiles(t *testing.T) {
	store := blob.Folder(t.TempDir())
	var mu = make(chan struct{}, 1)
	var seen []agent.Part
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		mu <- struct{}{}
		seen = req.Messages[len(req.Messages)-1].Parts
		<-mu
		return echo(ctx, req, delta)
	})
	s := stageOf(t, agent.Config{Model: model, Blobs: store}, func(cfg *Config) { cfg.Blobs = store })
	page := []byte("<script>alert(1)</script>" + strings.Repeat(" ", 2000))
	image := bytes.Repeat([]byte("\x89PNG"), 600)
	body := func(id string, urls ...string) map[string]any {
		parts := []any{map[string]any{"type": "text", "text": "look"}}
		for _, u := range urls {
			media := "image/png"
			if strings.Contains(u, "html") {
				media = "text/html"
			}
			parts = append(parts, map[string]any{"type": "file", "mediaType": media, "filename": "ä\"x", "url": u})
		}
		return map[string]any{"id": "c", "message": map[string]any{"id": id, "role": "user", "parts": parts}}
	}
	data := func(media string, b []byte) string {
		return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(b)
	}
	got, _ := s.follow("ann", http.MethodPost, "", body("u1", data("image/png", image), data("text/html", page))).rest()
	if got != "1: look" || len(seen) != 3 || seen[1].Type != agent.PartImage || !bytes.Equal(seen[1].Data, image) ||
		seen[2].Type != agent.PartFile || seen[2].Media != "text/html" {
		t.Fatalf("%q, %+v", got, seen)
	}
	url := "/c/files/" + blob.Ref(image)
	for ref, want := range map[string]string{blob.Ref(image): "inline", blob.Ref(page): "attachment"} {
		r := s.ask("ann", http.MethodGet, "/c/files/"+ref, nil)
		h := r.header
		sandbox := strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox")
		if r.status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Disposition"), want+";") ||
			h.Get("X-Content-Type-Options") != "nosniff" || !sandbox ||
			want == "attachment" && h.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%+v", r)
		}
	}
	if r := s.ask("ann", http.MethodGet, url, nil); r.body != string(image) {
		t.Errorf("%d bytes", len(r.body))
	}
	// The front end refers to it in another message.
	if got, _ := s.follow("ann", http.MethodPost, "", body("u2", s.url+url)).rest(); got != "2: look" ||
		!bytes.Equal(seen[1].Data, image) {
		t.Errorf("%q, %+v", got, seen)
	}
	other, err := store.Put(t.Context(), []byte("of nobody here"))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.ask("ann", http.MethodGet, "/c/files/"+other, nil); r.status != http.StatusNotFound {
		t.Errorf("no file of the conversation: %+v", r)
	}
	for url, want := range map[string]string{s.url + "/c/files/" + other: "no file of this conversation",
		"https://example.org/x.png": "want a data: URL", "data:image/png;base64,!!": "does not decode",
		"data:image/png,": "has no bytes"} {
		if r := s.ask("ann", http.MethodPost, "", body("u3", url)); r.status != http.StatusBadRequest ||
			!strings.Contains(r.body, want) {
			t.Errorf("%s: %+v", url, r)
		}
	}
	s.cfg.Blobs = nil
	s.chat, s.url = s.open()
	if r := s.ask("ann", http.MethodPost, "", body("u3", data("image/png", bytes.Repeat(image, 30)))); r.status !=
		http.StatusRequestEntityTooLarge || !strings.Contains(r.body, "65536") {
		t.Errorf("without a store: %+v", r)
	}
}

// What is wrong is refused with a code, and with words that name the field and its limit.
func TestRefusals(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, func(cfg *Config) { cfg.MaxBody = 4 << 10 })
	s.tell("ann", "c", "u1", "hi")
	user := func(m map[string]any) map[string]any { return map[string]any{"id": "c", "messages": []any{m}} }
	part := func(p map[string]any) map[string]any {
		return user(map[string]any{"id": "u9", "role": "user", "parts": []any{p}})
	}
	twice := map[string]any{"approvalId": "x", "approved": true, "choice": "a"}
	foreign := map[string]any{"id": "new", "messages": []any{userMessage("a", "x"), assistantMessage("b", "y"),
		userMessage("c", "z")}}
	again := map[string]any{"id": "c", "trigger": "regenerate-message", "messageId": "x"}
	for name, tc := range map[string]struct {
		who, method, path string
		body              any
		want, says        string
	}{
		"nobody":          {"", "GET", "", nil, "401 unauthorized", ""},
		"a long owner":    {strings.Repeat("x", 65), "GET", "", nil, "401 unauthorized", ""},
		"no path":         {"ann", "GET", "/c/x/y/z", nil, "404 not_found", ""},
		"a method":        {"ann", "PUT", "/c", nil, "405 method_not_allowed", "DELETE or GET or PATCH"},
		"no JSON":         {"ann", "POST", "", "{", "400", "not JSON"},
		"another type":    {"ann", "POST", "", `{"id":5}`, "400", "id is a JSON number"},
		"too much":        {"ann", "POST", "", say("c", "u9", strings.Repeat("x", 5000)), "413", "4096 bytes"},
		"no id":           {"ann", "POST", "", say("", "u9", "x"), "400", "1..128"},
		"a long id":       {"ann", "GET", "/" + strings.Repeat("x", 129), nil, "400", "1..128"},
		"a control":       {"ann", "POST", "", say("a\x01", "u9", "x"), "400", "control"},
		"a step up":       {"ann", "POST", "", say("..", "u9", "x"), "400", "no path"},
		"no messages":     {"ann", "POST", "", map[string]any{"id": "c"}, "400", "messages is empty"},
		"no message id":   {"ann", "POST", "", say("c", "", "x"), "400", "messages[0].id"},
		"instructions":    {"ann", "POST", "", user(map[string]any{"id": "s", "role": "system"}), "400", "system"},
		"a role":          {"ann", "POST", "", user(map[string]any{"id": "s", "role": "x"}), "400", "role"},
		"nothing said":    {"ann", "POST", "", say("c", "u9", ""), "400", "neither text nor a file"},
		"a part":          {"ann", "POST", "", part(map[string]any{"type": "tool-x"}), "400", "parts[0].type"},
		"an assistant's":  {"ann", "POST", "", user(assistantMessage("a", "x")), "400", "answers no question"},
		"a trigger":       {"ann", "POST", "", map[string]any{"id": "c", "trigger": "x"}, "400", "trigger"},
		"an unknown one":  {"ann", "GET", "/none", nil, "404 conversation_unknown", ""},
		"no such stop":    {"ann", "POST", "/none/stop", nil, "404 conversation_unknown", ""},
		"no such watch":   {"ann", "GET", "/none/watch", nil, "404 conversation_unknown", ""},
		"no such file":    {"ann", "GET", "/c/files/x", nil, "404 file_unknown", ""},
		"a place":         {"ann", "GET", "/c/stream?after=x", nil, "400", "after"},
		"no decision":     {"ann", "POST", "/c/answer", map[string]any{"approvalId": "x"}, "400", "approved"},
		"two decisions":   {"ann", "POST", "/c/answer", twice, "400", "both"},
		"no question":     {"ann", "POST", "/c/answer", map[string]any{"approved": true}, "400", "approvalId"},
		"no title":        {"ann", "PATCH", "/c", map[string]any{}, "400", "title"},
		"a limit":         {"ann", "GET", "?limit=0", nil, "400", "1..1000"},
		"a cursor":        {"ann", "GET", "?cursor=x", nil, "400", "cursor"},
		"an old history":  {"ann", "POST", "", foreign, "409 history_differs", ""},
		"an unknown edit": {"ann", "POST", "", again, "404 message_unknown", ""},
	} {
		r := s.ask(tc.who, tc.method, tc.path, tc.body)
		switch tc.want {
		case "400":
			tc.want += " " + codeInvalid
		case "413":
			tc.want += " " + codeTooLarge
		}
		if got := fmt.Sprint(r.status, " ", r.code); got != tc.want || !strings.Contains(r.body, tc.says) {
			t.Errorf("%s: %d %s, want %s %q", name, r.status, r.body, tc.want, tc.says)
		}
	}
	q, err := http.NewRequestWithContext(t.Context(), "POST", s.url, strings.NewReader(`{"id":"c"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Who", "ann")
	q.Header.Set("Content-Type", "text/plain")
	for origin, want := range map[string]int{"cross-site": 403, "same-origin": 415} {
		again := q.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(`{"id":"c"}`))
		again.Header.Set("Sec-Fetch-Site", origin)
		res, err := http.DefaultClient.Do(again)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", origin, res.StatusCode, want)
		}
	}
}

// A configuration that is not valid is refused at once. What Begin refuses is told, and what breaks in it is not.
func TestConfig(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, func(cfg *Config) {
		cfg.Begin = func(_ context.Context, _ *http.Request, _, id string) (Conversation, []client.SubmitOption,
			error) {
			switch id {
			case "refused":
				return Conversation{}, nil, fmt.Errorf("%w: no more conversations today", flowfabric.ErrInvalidInput)
			case "broken":
				return Conversation{}, nil, errors.New("a secret of the database")
			case "key":
				return Conversation{}, []client.SubmitOption{flowfabric.IdempotencyKey("x")}, nil
			}
			return Conversation{Messages: []agent.Message{{Role: agent.User, Parts: agent.Text("before")},
				{Role: agent.Assistant, Parts: agent.Text("it was")}}}, nil, nil
		}
	})
	if got := s.tell("ann", "c", "u1", "hi"); got != "2: hi" {
		t.Errorf("%q", got)
	}
	for id, want := range map[string]struct {
		status int
		says   string
	}{"refused": {400, "no more conversations"}, "broken": {500, "an error occurred"},
		"key": {500, "an error occurred"}} {
		r := s.ask("ann", http.MethodPost, "", say(id, "u1", "x"))
		if r.status != want.status || !strings.Contains(r.body, want.says) || strings.Contains(r.body, "secret") {
			t.Errorf("%s: %+v", id, r)
		}
	}
	who := s.cfg.Who
	for name, cfg := range map[string]Config{"Who": {}, "MaxBody": {Who: who, MaxBody: 1}} {
		if _, err := New(s.client, kindTalk, cfg); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(nil, kindTalk, Config{Who: who}); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

// A title is what people have said, so a cipher encrypts it, though it is a tag.
func TestTitlesAreEncrypted(t *testing.T) {
	t.Setenv("FLOWFABRIC_CIPHER_KEYS", "k:"+strings.Repeat("ab", 32))
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, func(cfg *Config) {
		cfg.Begin = func(_ context.Context, _ *http.Request, _, id string) (Conversation, []client.SubmitOption,
			error) {
			var opts []client.SubmitOption
			if id == "named" {
				opts = append(opts, flowfabric.Tags(map[string]string{tagTitle: "Support"}))
			}
			return Conversation{}, opts, nil
		}
	})
	s.tell("ann", "c", "u1", "a secret")
	s.tell("ann", "named", "u1", "a secret")
	shows := func(want string) {
		t.Helper()
		for _, path := range []string{"/c", ""} {
			if r := s.ask("ann", http.MethodGet, path, nil); !strings.Contains(r.body, `"title":"`+want+`"`) {
				t.Errorf("%s", r.body)
			}
		}
		x, err := s.client.Execution(s.id("ann", "c")).Get(t.Context())
		if err != nil || x.Tags[tagTitle] == "" || strings.Contains(fmt.Sprint(x.Tags), "secret") {
			t.Errorf("%q, %v", x.Tags, err)
		}
	}
	shows("a secret")
	if r := s.ask("ann", http.MethodGet, "/named", nil); !strings.Contains(r.body, `"title":"Support"`) {
		t.Errorf("given: %s", r.body)
	}
	if r := s.ask("ann", http.MethodPatch, "/c", map[string]any{"title": "other secret"}); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	shows("other secret")
}

// unflushable is a response writer that a middleware has wrapped so that it cannot flush.
type unflushable struct{ w http.ResponseWriter }

func (d unflushable) Header() http.Header         { return d.w.Header() }
func (d unflushable) Write(b []byte) (int, error) { return d.w.Write(b) }
func (d unflushable) WriteHeader(status int)      { d.w.WriteHeader(status) }

// Behind a middleware that cannot flush, a request for a stream sends no message to the conversation.
func TestNoFlush(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.chat.ServeHTTP(unflushable{w}, q)
	}))
	defer server.Close()
	s.url = server.URL
	for method, path := range map[string]string{http.MethodPost: "/", http.MethodGet: "/c/watch"} {
		if r := s.ask("ann", method, path, say("c", "u1", "hi")); r.status != http.StatusInternalServerError ||
			r.code != codeInternal {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := s.ask("ann", http.MethodGet, "/c", nil); r.status != http.StatusNotFound {
		t.Errorf("it was begun: %+v", r)
	}
}
