package chat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Config says how conversations are served. Only Who is required.
type Config struct {
	// Who returns the user of a request, who owns the conversations that it may reach: 1..64 bytes of UTF-8 without
	// control characters. The audit trail records the user. After an error the response is 401, without its text.
	Who func(q *http.Request) (owner string, err error)
	// Begin returns the start of a new conversation, and the options of its execution: tags, gates, lane, priority.
	// Owner and ID of the conversation are set afterwards; the options must have no key. A tag chat.title replaces the
	// default title, the beginning of the first message; "" means none. The response to flowfabric.ErrInvalidInput is
	// 400 with its text, and to another error 500. Begin may be called although another request begins the conversation
	// at the same time. Default: an empty conversation.
	Begin func(ctx context.Context, q *http.Request, owner, id string) (Conversation, []client.SubmitOption, error)
	// EditHistory takes the first message of the user that differs from the server's as an edit: the server drops its
	// messages from there on, and answers the front end's message. A front end that lacks the newest messages drops
	// them, so use this for conversations that one front end holds at a time. Default false: a history that differs
	// gets 409, code history_differs. One that only lacks the newest messages, as that of a second tab, does not
	// differ.
	EditHistory bool
	// Blobs stores the files of messages; give the agent the same store (agent.Config.Blobs). Default nil: files stay
	// in their message, which has at most 64 KiB.
	Blobs blob.Store
	// MaxBody bounds the body of a request, in bytes: 1 KiB..1 GiB. Default 1 MiB, and 32 MiB with Blobs.
	MaxBody int64
	// ShowError returns the text that people see when the execution fails. It gets the category and the message, which
	// may have internal details. It must be fast. Default "An error occurred."
	ShowError func(category flowfabric.Category, message string) string
	// CrossOrigin refuses requests that change something and come from a page of another origin. The default trusts no
	// other origin. To allow an origin, set a protection that trusts it.
	CrossOrigin *http.CrossOriginProtection
	// Logger gets errors of requests. Default slog.Default().
	Logger *slog.Logger
}

// masked is the text that people see after a failure.
const masked = "An error occurred."

// Handler serves conversations to front ends. It is made by [New], and is mounted by the application, behind its login
// and with its own prefix:
//
//	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
//	mux.Handle("/api/chat", http.StripPrefix("/api/chat", h))
//
// See the package comment for the routes.
type Handler struct {
	cfg    Config
	client *client.Client
	admin  *admin.Admin
	kind   string
	tags   map[string]string // of the definition
	codec  handler.Codec
	submit func(context.Context, Conversation, []client.SubmitOption) (flowfabric.ExecutionID, error)
	attach func(ctx context.Context, key string) (flowfabric.ExecutionID, error)
	rooms  *rooms
}

// New makes a handler of the conversations of a kind. The client stays the application's, which closes it after
// [Handler.Close]. Errors: flowfabric.ErrInvalidInput for a nil argument and for a field of cfg that is out of bounds,
// and the definition's own.
func New[Out any](c *client.Client, def *handler.Definition[Conversation, Out], cfg Config) (*Handler, error) {
	switch {
	case c == nil:
		return nil, invalid("the client is nil")
	case def == nil:
		return nil, invalid("the definition is nil")
	case def.Err() != nil:
		return nil, def.Err()
	case cfg.Who == nil:
		return nil, invalid("Config.Who is nil: it says whose conversations a request may reach")
	case cfg.MaxBody != 0 && (cfg.MaxBody < 1<<10 || cfg.MaxBody > 1<<30):
		return nil, invalid("Config.MaxBody is %d, want 1024..%d, or 0 for the default", cfg.MaxBody, 1<<30)
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 1 << 20
		if cfg.Blobs != nil {
			cfg.MaxBody = 32 << 20
		}
	}
	if cfg.Begin == nil {
		cfg.Begin = func(context.Context, *http.Request, string, string) (Conversation, []client.SubmitOption, error) {
			return Conversation{}, nil, nil
		}
	}
	if cfg.ShowError == nil {
		cfg.ShowError = func(flowfabric.Category, string) string { return masked }
	}
	if cfg.CrossOrigin == nil {
		cfg.CrossOrigin = http.NewCrossOriginProtection()
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	h := &Handler{cfg: cfg, client: c, admin: admin.New(c), kind: def.Kind(), codec: def.Codec(),
		tags: def.Info().Tags}
	h.rooms = newRooms(roomsConfig{client: c, begin: h.begin, transcript: agent.TranscriptOptions{Codec: h.codec}})
	h.submit = func(ctx context.Context, in Conversation, opts []client.SubmitOption) (flowfabric.ExecutionID, error) {
		x, err := client.Submit(ctx, c, def, in, opts...)
		if err != nil {
			return flowfabric.ExecutionID{}, err
		}
		return x.ID(), nil
	}
	h.attach = func(ctx context.Context, key string) (flowfabric.ExecutionID, error) {
		x, err := client.AttachKey(ctx, c, def, key)
		if err != nil {
			return flowfabric.ExecutionID{}, err
		}
		return x.ID(), nil
	}
	return h, nil
}

// Close ends the open streams and releases what the handler holds in memory. Later requests get 503. It returns when
// everything has ended, and is idempotent.
func (h *Handler) Close() { h.rooms.close() }

// route is a path below the mount point: {id} stands for the application's name of a conversation.
type route struct {
	path    string
	changes bool // something, so pages of other origins may not request it
	streams bool
	serve   func(h *Handler, c *request) error
}

// routes lists the routes. HEAD is served as GET.
var routes = map[string][]route{
	http.MethodPost: {{"/", true, true, (*Handler).post}, {"/agui", true, true, (*Handler).agui},
		{"/{id}/stop", true, false, (*Handler).stop}, {"/{id}/answer", true, false, (*Handler).answer}},
	http.MethodGet: {{"/", false, false, (*Handler).list}, {"/{id}", false, false, (*Handler).show},
		{"/{id}/stream", false, true, (*Handler).resume}, {"/{id}/watch", false, true, (*Handler).watch},
		{"/{id}/files/{ref}", false, false, (*Handler).file}},
	http.MethodPatch:  {{"/{id}", true, false, (*Handler).rename}},
	http.MethodDelete: {{"/{id}", true, false, (*Handler).remove}},
}

// request is a request of a front end.
type request struct {
	w     http.ResponseWriter
	q     *http.Request
	owner string
	id    string  // of the conversation, as the application names it
	ref   string  // of a file
	rooms []*room // entered until the request ends
}

func (c *request) ctx() context.Context { return c.q.Context() }

// streams sets the headers of a stream of events, which proxies must forward at once.
func (c *request) streams() {
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if err := h.serve(w, q); err != nil {
		h.fail(w, q, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, q *http.Request) error {
	parts, ok := segments(q.URL)
	if !ok {
		return refuse(http.StatusNotFound, codeNoRoute, "there is no such path")
	}
	method := q.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	c := &request{w: w, q: q}
	defer c.leave()
	found, allowed := c.find(parts, method)
	switch {
	case found == nil && allowed != nil:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, codeNoMethod, "%s is not for this path, want %s", q.Method,
			strings.Join(allowed, " or "))
	case found == nil:
		return refuse(http.StatusNotFound, codeNoRoute, "there is no such path")
	}
	if found.changes {
		if err := h.cfg.CrossOrigin.Check(q); err != nil {
			return refuse(http.StatusForbidden, codeCrossOrigin, "the page that asks is of another origin")
		}
	}
	owner, err := h.cfg.Who(q)
	if err != nil {
		return refuse(http.StatusUnauthorized, codeUnauthorized, "you are not logged in")
	}
	if owner == "" || len(owner) > limits.MaxChatOwner || !plain(owner) {
		h.cfg.Logger.ErrorContext(q.Context(), "flowfabric: chat: Config.Who returned an owner that is not valid",
			"bytes", len(owner))
		return refuse(http.StatusUnauthorized, codeUnauthorized, "you are not logged in")
	}
	c.owner = owner
	if slices.Contains(strings.Split(found.path, "/"), "{id}") {
		if err := checkID("the id in the path", c.id); err != nil {
			return err
		}
	}
	if found.streams && !flushes(w) { // before anything is sent to the conversation
		return errors.New("chat: the http.ResponseWriter cannot flush: a middleware that wraps it needs a method " +
			"Flush or Unwrap")
	}
	q.Body = http.MaxBytesReader(w, q.Body, h.cfg.MaxBody)
	return found.serve(h, c)
}

// flushes says that a writer can flush, by the rules of http.ResponseController.
func flushes(w http.ResponseWriter) bool {
	for {
		switch under := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = under.Unwrap()
		default:
			return false
		}
	}
}

// segments are the unescaped parts of a path below the mount point.
func segments(u *url.URL) (parts []string, ok bool) {
	path := strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(path, "/") {
		part, err := url.PathUnescape(part)
		if err != nil || part == "" {
			return nil, false
		}
		parts = append(parts, part)
	}
	return parts, true
}

// find returns the route of a path, or the methods that the path allows.
func (c *request) find(parts []string, method string) (found *route, allowed []string) {
	for m, list := range routes {
		for i, r := range list {
			if !c.matches(r.path, parts) {
				continue
			}
			if allowed = append(allowed, m); m == method {
				found = &list[i]
			}
		}
	}
	slices.Sort(allowed)
	return found, allowed
}

// matches says that a path matches a route, and sets the variables.
func (c *request) matches(pattern string, parts []string) bool {
	var names []string
	if pattern = strings.Trim(pattern, "/"); pattern != "" {
		names = strings.Split(pattern, "/")
	}
	if len(names) != len(parts) {
		return false
	}
	for i, name := range names {
		if !strings.HasPrefix(name, "{") && name != parts[i] {
			return false
		}
	}
	for i, name := range names {
		switch name {
		case "{id}":
			c.id = parts[i]
		case "{ref}":
			c.ref = parts[i]
		}
	}
	return true
}
