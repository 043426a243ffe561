package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
)

//go:embed page
var pageFiles embed.FS

// policy lets the page load its own files and nothing else. There is no inline script or style, so markup that came
// through would not run.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// budgetTag is the tag of a conversation that names its budget, for the page.
const budgetTag = "chat.budget"

// site is the web server. It speaks the HTTP API, which has nearly all that its own page needs, the protocols of chat
// front ends, and four routes of its own.
type site struct {
	options
	client *client.Client
	admin  *admin.Admin
	keeper *keeper
	api    *httpapi.Handler
	chat   *chat.Handler
	model  string
}

// routes are all of them.
func (s *site) routes() http.Handler {
	pages, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", s.api)
	chats := http.StripPrefix("/api/chat", s.chat)
	mux.Handle("/api/chat", chats)
	mux.Handle("/api/chat/", chats)
	mux.HandleFunc("POST /chat/conversations", s.begin)
	mux.HandleFunc("POST /chat/conversations/{id}/more", s.allowMore)
	mux.HandleFunc("GET /chat/about", s.about)
	mux.HandleFunc("POST /chat/kill", s.kill)
	mux.HandleFunc("GET /published/{name}", s.note)
	mux.Handle("GET /page/", http.StripPrefix("/page", http.FileServerFS(pages)))
	index := func(w http.ResponseWriter, q *http.Request) { http.ServeFileFS(w, q, pages, "index.html") }
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /c/{id}", index)
	if s.react != "" {
		built := os.DirFS(s.react)
		react := func(name string) http.HandlerFunc {
			return func(w http.ResponseWriter, q *http.Request) { http.ServeFileFS(w, q, built, name) }
		}
		mux.HandleFunc("GET /react/{$}", react("index.html"))
		mux.HandleFunc("GET /react/c/{id}", react("index.html"))
		mux.HandleFunc("GET /react/minimal", react("minimal.html"))
		mux.Handle("GET /react/assets/", http.StripPrefix("/react", http.FileServerFS(built)))
	}
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard refuses requests that a page of another name sends here: a name that an attacker makes point to a loopback
// address.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		host, _, err := net.SplitHostPort(q.Host)
		if err != nil {
			host = q.Host
		}
		if host != "localhost" && !net.ParseIP(host).IsLoopback() {
			http.Error(w, "this server is for loopback addresses", http.StatusMisdirectedRequest)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, q)
	})
}

// beginning gives a conversation a budget to spend of.
func (s *site) beginning(ctx context.Context, _ *http.Request, _, _ string) (chat.Conversation, []client.SubmitOption,
	error) {
	name := "chat-" + randomHex(6)
	if err := s.admin.PutGate(ctx, s.budget(name, s.limit), flowfabric.IfNew()); err != nil {
		return chat.Conversation{}, nil, err
	}
	return chat.Conversation{}, []client.SubmitOption{flowfabric.Gates(name),
		flowfabric.Tags(map[string]string{budgetTag: name})}, nil
}

// begin begins a conversation that the page without a build follows.
func (s *site) begin(w http.ResponseWriter, q *http.Request) {
	in, options, err := s.beginning(q.Context(), q, "", "")
	if err != nil {
		s.fail(w, err)
		return
	}
	talk, err := client.Submit(q.Context(), s.client, Talk, in, options...)
	if err != nil {
		s.fail(w, err)
		return
	}
	answer(w, http.StatusCreated, map[string]string{"id": talk.ID().String()})
}

// budget is what a conversation may use. A spend that would pass the limit is refused, and the handler decides what
// follows.
func (s *site) budget(name string, limit int64) admission.Gate {
	return admission.Gate{Name: name, Scope: "a conversation of the chat example", OnHard: admission.HardReject,
		Limits: map[string]admission.Limit{dimension: {Hard: limit}}}
}

// allowMore raises the limit of a conversation. What waits for its budget goes on at once; where the handler asks,
// the page answers then.
func (s *site) allowMore(w http.ResponseWriter, q *http.Request) {
	id, err := s.find(q.Context(), q.PathValue("id"))
	if err != nil {
		s.fail(w, err)
		return
	}
	talk, err := s.client.Execution(id).Get(q.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	b, err := s.admin.GetGate(q.Context(), talk.Tags[budgetTag])
	if err != nil {
		s.fail(w, err)
		return
	}
	limit := b.Limits[dimension].Hard + s.limit
	if err := s.admin.PutGate(q.Context(), s.budget(b.Name, limit), flowfabric.IfRevision(b.Revision),
		flowfabric.By("user")); err != nil {
		s.fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]int64{"limit": limit})
}

// find is the execution of a conversation, by its own id, or by the name that a chat front end has given it.
func (s *site) find(ctx context.Context, name string) (flowfabric.ExecutionID, error) {
	id, err := flowfabric.ParseExecutionID(name)
	if err == nil {
		return id, nil
	}
	page, listed := s.admin.ListPage(ctx,
		admin.Filter{Kind: Talk.Kind(), Tags: map[string]string{"chat.id": name}}, "", 1)
	if listed != nil || len(page.Items) == 0 {
		return id, errors.Join(err, listed)
	}
	return page.Items[0].ID, nil
}

// about says who answers.
func (s *site) about(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"model": s.model, "worker": s.keeper.view(), "lease_s": s.lease.Seconds(),
		"step": s.limit})
}

// kill kills the worker process.
func (s *site) kill(w http.ResponseWriter, _ *http.Request) {
	killed, err := s.keeper.kill()
	if err != nil {
		answer(w, http.StatusConflict, map[string]string{"detail": err.Error()})
		return
	}
	answer(w, http.StatusOK, killed)
}

var noteName = regexp.MustCompile(`^[0-9a-f]{12}\.txt$`)

// note shows what was published, as plain text.
func (s *site) note(w http.ResponseWriter, q *http.Request) {
	name := q.PathValue("name")
	if !noteName.MatchString(name) {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	http.ServeFile(w, q, s.published+"/"+name)
}

// fail answers an error as the HTTP API does: with a detail.
func (s *site) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, flowfabric.ErrInvalidInput):
		status = http.StatusBadRequest
	case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, flowfabric.ErrConflict):
		status = http.StatusConflict
	}
	s.log.Warn("chat: a request failed", slog.Any("error", err))
	answer(w, status, map[string]string{"detail": fmt.Sprint(err)})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who is gone gets nothing
}
