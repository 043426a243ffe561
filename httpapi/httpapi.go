package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/gateway"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/slowbody"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Bounds of requests. They are part of the OpenAPI document.
const (
	maxBody     = 4<<20/3 + 64<<10 // an input of 1 MiB, in base64, and everything around it
	maxBatch    = 1000             // executions of one batch
	maxPage     = 1000             // entries of one page
	defaultPage = 100
	maxWait     = time.Minute // of a Prefer: wait
)

// Config holds the dependencies and settings of a handler.
type Config struct {
	// Admin is the connection that the handler uses; required. It is the caller's to close, after the handler has no
	// more requests.
	Admin *admin.Admin
	// Authorize says who asks; required, but with Tokens. An error that wraps [ErrForbidden] answers 403, any other
	// 401; its text is logged and not sent. It is asked for each request, and for an open stream at least every minute
	// with the request that opened it: an error then ends the stream, so it must judge the request anew and keep no
	// answers. It is not asked about tokens of pages. Without Tokens one that somebody made is good until its time is
	// over, at most an hour, whatever Authorize says of them meanwhile; another StreamKey ends all of them.
	Authorize func(*http.Request) (Principal, error)
	// AllowedOrigins may call from a browser: scheme, host and port, exactly. Default none, which leaves pages of the
	// same origin.
	AllowedOrigins []string
	// Tokens are the tokens that Authorize looks at, if it does, and authorize by themselves where Authorize is nil.
	// A token of a page opens an execution only while the token that made it does. Default: one is good until its time
	// is over.
	Tokens *Tokens
	// TrustedProxies are the addresses of proxies in front, whose X-Forwarded-For says from where a request comes.
	// Wrong tokens are counted by that address, and the audit trail notes it. Default none: the address of the
	// connection.
	TrustedProxies []netip.Prefix
	// StreamKey signs the tokens of pages, which follow one execution or take part in it, at least 32 bytes. Processes
	// that share it accept each other's. Default: a random one, of this handler alone.
	StreamKey []byte
	// Redact decides what of the payloads of programs a reader sees. It is called for every input, result, recorded
	// step, message of a mailbox, summary document, frame, message of progress and message of a failure that is about
	// to leave over a route that people read, and returns what to show instead. It may return the payload as it is.
	// nil withholds it: the answer has the text "[withheld]" in its place, which is a string where JSON is expected.
	//
	// What workers over HTTP take and what callers submit is not redacted. Neither are names, tags, keys, categories
	// of failures, and reasons that people gave for what they did. The function sees each frame alone: a secret that
	// is split over two frames passes, unless it withholds them. It sees the bytes of an append to a stream as a whole;
	// of those that it changes no part is shown, but "[withheld]".
	//
	// It is called by many requests at once, and must not block for long. When it panics the request fails with 500
	// and a stream ends. Default: everything is shown as it is.
	Redact func(Redaction) []byte
	// Metrics answers /metrics, for those who may read; nil: there is no such route.
	Metrics http.Handler
	// OnRequest is told of each request when it was answered: the operation of the OpenAPI document, "" if there is
	// none, the status, and how long it took. It must not block. Default: nobody is told.
	OnRequest func(operation string, status int, took time.Duration)
	// Logger gets a line for each request, without its query and its headers: at level info for changes and for what
	// was refused; what only reads, and what a worker asks for by itself (claims, renewals, frames, steps), is at
	// level debug if it went well. Default slog.Default().
	Logger *slog.Logger
	// History looks at the store every 10 s from the beginning, so that the overview has an hour to show. Default:
	// from the first request of the overview on.
	History bool
	// Heartbeat is the pause after which an event stream that has nothing to say sends a comment: 1 s..1 min. Default
	// 15 s.
	Heartbeat time.Duration
	// WriteTimeout is how long a reader of an event stream may take to take what was sent, before it is cut off: 1
	// s..5 min. Default 30 s. It resumes with Last-Event-ID.
	WriteTimeout time.Duration
}

// Handler is the API. It is an [http.Handler] and safe for concurrent use. Make it with [New].
type Handler struct {
	cfg     Config
	admin   *admin.Admin
	client  *client.Client
	conn    *link.Connection
	seeds   tokenkeys.Seeds
	gateway *gateway.Gateway
	workers workers
	doctor  examinations
	mux     *http.ServeMux
	actions map[string]map[string]*route // by pattern without its action, then by action
	cross   *http.CrossOriginProtection
	failed  *limiter
	sampler *sampler
	sharing sharing
	timing  *measuring
	rooms   rooms
	routes  []*route
	slow    time.Duration // how long a body may take
	poll    time.Duration // that a long poll of a durable stream waits
	most    int           // bytes of payloads that a transcript has, about
	again   time.Duration // after which a reader of a stream is asked again who it is
	written func(stream.TailEvent) []byte
}

// New makes the API. Errors wrap flowfabric.ErrConfig and name the field.
func New(cfg Config) (*Handler, error) {
	bad := func(format string, args ...any) (*Handler, error) {
		return nil, fmt.Errorf("%w: httpapi: %s", flowfabric.ErrConfig, fmt.Sprintf(format, args...))
	}
	if cfg.Admin == nil {
		return bad("Admin is nil")
	}
	if cfg.Authorize == nil && cfg.Tokens != nil {
		cfg.Authorize = cfg.Tokens.Authorize
	}
	if cfg.Authorize == nil {
		return bad("Authorize is nil: name Tokens, or use Open on a loopback address")
	}
	if cfg.StreamKey == nil {
		cfg.StreamKey = make([]byte, 32)
		_, _ = rand.Read(cfg.StreamKey) // never fails
	}
	if len(cfg.StreamKey) < 32 {
		return bad("StreamKey has %d bytes, want at least 32", len(cfg.StreamKey))
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Heartbeat < time.Second || cfg.Heartbeat > time.Minute {
		return bad("Heartbeat is %s, want 1s..1m", cfg.Heartbeat)
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	if cfg.WriteTimeout < time.Second || cfg.WriteTimeout > 5*time.Minute {
		return bad("WriteTimeout is %s, want 1s..5m", cfg.WriteTimeout)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	h := &Handler{cfg: cfg, admin: cfg.Admin, client: cfg.Admin.Client(), conn: cfg.Admin.Client().Link(),
		workers: workers{known: map[string]*workerSession{}}, mux: http.NewServeMux(),
		actions: map[string]map[string]*route{}, cross: http.NewCrossOriginProtection(), failed: newLimiter(),
		sampler: newSampler(cfg.Admin), sharing: sharing{answers: map[string]*sharedAnswer{}}, routes: routes,
		slow:  slowbody.Within,
		again: time.Minute, most: maxTranscript, poll: durablePoll, written: written}
	for _, origin := range cfg.AllowedOrigins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			return bad("AllowedOrigins: %v", err)
		}
	}
	h.seeds = tokenkeys.Seeds{Keyring: h.conn.Keyring, Store: h.conn.Engine}
	h.gateway = gateway.New(h.conn.Engine, cfg.Logger)
	h.timing = newMeasuring(h.conn.Engine, cfg.Logger)
	if cfg.History {
		h.sampler.start()
	}
	h.register()
	return h, nil
}

// Close ends what the handler does in the background: for workers that wait for work, which are answered 503, and for
// the overview. Call it when no more requests come: after http.Server.Shutdown, or with
// http.Server.RegisterOnShutdown, so that those who wait do not hold that up. It may be called again.
func (h *Handler) Close() {
	h.gateway.Close()
	h.timing.close()
	h.sampler.close()
	h.rooms.close()
}

// register puts the routes into the mux, which knows no pattern that ends in an action: those of one path are told
// apart here.
func (h *Handler) register() {
	for _, r := range routes {
		base, action, _ := strings.Cut(r.path, ":")
		if !strings.HasSuffix(base, "}") { // no pattern before it
			base, action = r.path, ""
		}
		pattern := r.method + " " + base
		if h.actions[pattern] == nil {
			h.actions[pattern] = map[string]*route{}
			h.mux.HandleFunc(pattern,
				func(w http.ResponseWriter, q *http.Request) { h.dispatch(w, q, h.actions[pattern]) })
		}
		h.actions[pattern][action] = r
	}
	if h.cfg.Metrics != nil {
		h.mux.Handle("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			h.serve(w, q, &route{name: "metrics", need: viewer,
				handle: func(c *call) error { h.cfg.Metrics.ServeHTTP(c.w, c.r); return nil }})
		}))
	}
}

// dispatch finds the route of an action: "/v1/executions/<id>:cancel".
func (h *Handler) dispatch(w http.ResponseWriter, q *http.Request, actions map[string]*route) {
	last, action := "", ""
	for _, name := range []string{"key", "session", "id"} {
		if value := q.PathValue(name); value != "" {
			var found bool
			if last, action, found = cutLast(value, ":"); found && (len(actions) > 1 || actions[""] == nil) {
				q.SetPathValue(name, last)
			} else {
				action = ""
			}
			break
		}
	}
	r := actions[action]
	if r == nil {
		h.fail(w, q, notFound("there is no route %s %s", q.Method, q.URL.Path))
		return
	}
	h.serve(w, q, r)
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	began := time.Now()
	id := requestID(q)
	seen := &watched{ResponseWriter: w}
	header := seen.Header()
	header.Set("X-Request-Id", id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	who := &identity{id: id}
	defer slowbody.Limit(seen, q, h.slow)()
	q = q.WithContext(context.WithValue(q.Context(), identityKey{}, who))
	defer func() {
		if h.cfg.OnRequest != nil {
			h.cfg.OnRequest(who.operation, seen.status, time.Since(began))
		}
	}()
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			h.cfg.Logger.ErrorContext(q.Context(), "flowfabric: api: panic", "request", id, "panic", fmt.Sprint(p))
			if seen.status == 0 {
				h.fail(seen, q, &problem{Status: http.StatusInternalServerError, Code: "internal",
					Detail: "the request failed here; the log has the request id"})
			}
		}
		level := slog.LevelInfo
		if seen.status < http.StatusBadRequest &&
			(who.often || q.Method == http.MethodGet || q.Method == http.MethodHead) {
			level = slog.LevelDebug
		}
		h.cfg.Logger.Log(q.Context(), level, "flowfabric: api", "method", q.Method, "path", q.URL.Path, "status",
			seen.status, "bytes", seen.bytes, "took", time.Since(began).Round(time.Microsecond), "by", who.name,
			"request", id)
	}()
	if h.crossed(seen, q) {
		return
	}
	if p := q.URL.EscapedPath(); strings.Contains(p, "//") ||
		path.Clean("/"+p) != strings.TrimSuffix("/"+strings.TrimPrefix(p, "/"), "/") && p != "/" {
		h.fail(seen, q, notFound("there is no route %s %s: the path has empty segments, or dots", q.Method, q.URL.Path))
		return
	}
	handler, pattern := h.mux.Handler(q)
	if pattern != "" {
		h.mux.ServeHTTP(seen, q)
		return
	}
	none := &watched{ResponseWriter: discard{http.Header{}}}
	handler.ServeHTTP(none, q) // to learn whether another method would do
	if none.status == http.StatusMethodNotAllowed {
		header.Set("Allow", none.Header().Get("Allow"))
		h.fail(seen, q, &problem{Status: none.status, Code: "method_not_allowed",
			Detail: "want " + none.Header().Get("Allow")})
		return
	}
	h.fail(seen, q, notFound("there is no route %s %s", q.Method, q.URL.Path))
}

// crossed answers what a browser asks before a call from another page, and refuses calls from pages that may not.
func (h *Handler) crossed(w http.ResponseWriter, q *http.Request) (answered bool) {
	origin := q.Header.Get("Origin")
	if origin != "" && slices.Contains(h.cfg.AllowedOrigins, origin) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", origin)
		header.Add("Vary", "Origin")
		header.Set("Access-Control-Expose-Headers",
			"X-Request-Id, Retry-After, Preference-Applied, Location, ETag, "+streamAnswers)
		if q.Method == http.MethodOptions && q.Header.Get("Access-Control-Request-Method") != "" {
			header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
			header.Set("Access-Control-Allow-Headers",
				"Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer, X-Request-Id, "+
					streamAsks)
			header.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return true
		}
	}
	if err := h.cross.Check(q); err != nil {
		h.fail(w, q, &problem{Status: http.StatusForbidden, Code: "cross_origin",
			Detail: "a page of another origin may not do this; name it in the allowed origins"})
		return true
	}
	return false
}

// serve authorizes a request and lets the route answer it.
func (h *Handler) serve(w http.ResponseWriter, q *http.Request, r *route) {
	c := &call{h: h, w: w, r: q, route: r}
	who := identityOf(q)
	who.operation, who.often = r.name, slices.Contains(r.need, Worker)
	if err := c.authorize(); err != nil {
		h.fail(w, q, err)
		return
	}
	handle := r.handle
	if age := c.age(); age > 0 && r.shared || r.costly { // a new answer of a costly route is for the others, too
		handle = func(c *call) error { return h.sharing.answer(c, age) }
	}
	if err := handle(c); err != nil {
		if errors.Is(err, context.Canceled) && q.Context().Err() != nil {
			return // nobody is there any more
		}
		h.fail(w, q, err)
	}
}

// call is one request at its route.
type call struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	route *route
	who   Principal
	paged bool // by a token of a browser, whose rights were looked at

	broken error // why nothing may be answered: see redactor.shown
}

func (c *call) ctx() context.Context { return c.r.Context() }

// watched notes what was answered.
type watched struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard is a writer that only has headers.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// identity is what is known of a request while it is served.
type identity struct {
	id, name, operation string
	often               bool // the call is one of many that a worker makes by itself
}

type identityKey struct{}

func identityOf(q *http.Request) *identity {
	if who, ok := q.Context().Value(identityKey{}).(*identity); ok {
		return who
	}
	return &identity{}
}

// requestID is the one that the caller gave, if it may be logged, or a new one.
func requestID(q *http.Request) string {
	id := q.Header.Get("X-Request-Id")
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.", r)
	}
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return uuid.NewString()
	}
	return id
}
