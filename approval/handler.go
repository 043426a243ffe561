package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/slowbody"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Config says how the handler of [New] answers. Only Deliver is required.
type Config struct {
	// Deliver takes the signals; a *client.Client.
	Deliver Deliverer
	// Question is what people are asked who open a link, with one button a choice, in this order. It is called for
	// every token that looks like one, before anybody has checked it, so it must show nothing that only the holder of
	// a good one may know. With it, programs may post its choices only. Without it, and if Deliver is a
	// *client.Client, the holder of a good token sees the stored question (handler.Task.Ask). Default otherwise "Your
	// answer is needed" with Approve and Reject; programs may then also post signals of other names.
	Question func(*http.Request, suspend.Token) suspend.Question
	// By says who makes a request, from the application's own login. It is asked before anything is shown or taken,
	// and its name wins over what a form or a program says: it is the source of the signal and Answer.By. An empty
	// name leaves that to the form. An error refuses the request: with 401 if it wraps [ErrSignIn], else with 403;
	// its text is only logged. Posts of other sites are refused then, because a login may be borrowed. A name has at
	// most 256 bytes in one line. Default nobody is known.
	By func(*http.Request) (name string, err error)
	// Texts are the words of the page, for example in the language that Accept-Language asks for. Default English.
	Texts func(*http.Request) Texts
	// ClosedStatus is the status for a signal that came too late, because the waitpoint is closed or the execution
	// has ended: 200, so that senders who repeat until they see success stop, or 409. Default 200.
	ClosedStatus int
	// Logger is told what an operator must repair (at level error), of refused tokens (a count, at level warn,
	// every ten seconds at most), and of each refusal (at level debug). Default slog.Default().
	Logger *slog.Logger
}

// Deliverer brings a signal to a waitpoint for the holder of its token, of which digest is suspend.Token.Digest;
// *client.Client is one.
type Deliverer interface {
	DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
		s suspend.SentSignal) (suspend.Delivered, error)
}

// ErrSignIn is returned, wrapped or not, by Config.By for a request of an unknown person.
var ErrSignIn = errors.New("not signed in")

// page is what people see who open a link.
type page suspend.Question

// maxComment is the longest comment of the page's form, in bytes.
const maxComment = 8 << 10

// Link is an address under base, where a handler of [New] is mounted, that carries the token. Anybody who has it may
// answer: send it to one person only and never log it.
func Link(base string, t suspend.Token) string {
	base, fragment, _ := strings.Cut(base, "#")
	separator := "?"
	if strings.Contains(base, "?") {
		separator = "&"
	}
	link := base + separator + "token=" + url.QueryEscape(t.Reveal())
	if fragment != "" {
		link += "#" + fragment
	}
	return link
}

// New returns the handler by which outsiders answer a waitpoint with its token. People do it on a page that a [Link]
// opens, programs with JSON (signed callbacks). Mount it anywhere, also under http.StripPrefix; it serves every path
// alike. New panics when Deliver is nil.
//
//	GET, HEAD   The page, or with "Accept: application/json" its title, text and choices. It never acts, so mail
//	            scanners and link previews do no harm. Every token that looks like one gets a page. A stored question
//	            (handler.Task.Ask) is on it only after the store has judged the token. An answered link shows the
//	            answer instead of the buttons: what was decided, by whom, when, and the comment. That costs a read of the
//	            store, and needs a *client.Client as Deliver.
//	POST        A form (token, choice, comment, by) or JSON (token, name, payload, idempotency_key, source,
//	            source_type, correlation, category). JSON needs the token and a payload, which may be null; name is
//	            "signal" by default.
//
// The token may come as the query parameter token, as the field token, or as Authorization: Bearer; twice only if
// equal. It is the whole right to answer, unless Config.By refuses. The handler sets no cookies, so there is nothing
// for a forged request of another site to borrow.
//
// A JSON post answers the page if Config.Question is set, if a question is stored, if its name is one of the choices,
// or if its payload has a choice. It must then be what the form would send: name is a choice of the page, and payload
// a suspend.Answer with that choice. Anything else is refused, and the waitpoint stays open. Any other post is a
// callback, whose name and payload are for the handler to judge: mount a handler of its own for callbacks.
//
// A JSON post is remembered under idempotency_key or the header Idempotency-Key: a repeat is answered like the first.
// The page takes one decision for a waitpoint: a second click changes nothing, and a second decision is told which
// one stands. To ask several people, give each a waitpoint of their own (suspend.Count with suspend.Waitpoints).
//
//	200  {"status":"delivered"|"duplicate", "signal", "effect", "open"}
//	200  {"status":"closed"}: too late
//	200  of a GET: {"status":"question", "title", "text", "choices", "expires_at"},
//	     {"status":"answered", …, "answer"}, or closed
//	400  a field is missing or not valid
//	401  no token, or one that opens nothing: always the same bytes
//	401  a token whose key was rotated out: its holder is told to get a new link
//	401  not signed in, 403 refused (Config.By)
//	405  neither GET, HEAD nor POST
//	409  too late, with ClosedStatus 409
//	413  a payload over 64 KiB
//	415  neither JSON nor a form
//	429  the waitpoint has its maximum of signals
//	500, 503  the store cannot answer now; nothing is known to have been done
//
// An answer that counts is in the audit trail (admin.Admin.TrailPage): by the name that Config.By or the form
// gives, from "link" and the address of the connection.
//
// A body has 30 s to come. The http.Server needs timeouts of its own: ReadHeaderTimeout 5 s, ReadTimeout 15 s and
// IdleTimeout 60 s end connections that send slowly or nothing, and WriteTimeout 30 s leaves time for a store that
// answers late.
//
// Every answer says no-store, no-referrer, nosniff, and forbids frames, scripts and foreign resources. The server in
// front should not log query strings, and must speak TLS. Safe for concurrent use.
func New(cfg Config) http.Handler {
	if cfg.Deliver == nil {
		panic("approval.New: Config.Deliver is nil")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.ClosedStatus = cmp.Or(cfg.ClosedStatus, http.StatusOK)
	if cfg.ClosedStatus != http.StatusOK && cfg.ClosedStatus != http.StatusConflict {
		panic("approval.New: Config.ClosedStatus is neither 200 nor 409")
	}
	return &callback{cfg: cfg, cross: http.NewCrossOriginProtection()}
}

// callback is the handler.
type callback struct {
	cfg   Config
	cross *http.CrossOriginProtection

	mu      sync.Mutex
	refused int // tokens since the last warning
	warned  time.Time
}

// warnEvery is how often refused tokens are worth a warning.
const warnEvery = 10 * time.Second

// warn tells an operator of refused tokens, with their number and nothing of them.
func (h *callback) warn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused++
	if now := time.Now(); now.Sub(h.warned) >= warnEvery {
		h.cfg.Logger.Warn("flowfabric: refused requests whose token is missing, cut, forged or expired", "count",
			h.refused)
		h.refused, h.warned = 0, now
	}
}

func (h *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer slowbody.Limit(w, r, slowbody.Within)()
	guard(w.Header())
	x := &exchange{h: h, r: fromLink(r), texts: english}
	if h.cfg.Texts != nil {
		x.texts = h.cfg.Texts(r).complete()
	}
	a := x.answer(w)
	if a.status == http.StatusUnauthorized && a.body.Error != codeSignIn {
		h.warn()
	}
	a.write(w, r)
}

// fromLink says for the audit trail where an answer comes from, unless who mounts the handler did.
func fromLink(r *http.Request) *http.Request {
	a := trail.ActorOf(r.Context())
	if a.From != "" {
		return r
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a.From = "link " + host
	return r.WithContext(trail.Acting(r.Context(), a))
}

// exchange is one request, and what is known of it.
type exchange struct {
	h     *callback
	r     *http.Request
	texts Texts
	name  string // of who makes it, "" if Config.By knows nobody
}

// answer does what the request asks for.
func (x *exchange) answer(w http.ResponseWriter) *reply {
	var do func() *reply
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		do = x.show
	case http.MethodPost:
		do = func() *reply { return x.act(w) }
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		return x.refused(http.StatusMethodNotAllowed, "method_not_allowed", func(t Texts) (string, string) {
			return t.DoesNotWork, "Only GET, HEAD and POST are answered here."
		})
	}
	if a := x.identify(); a != nil {
		return a
	}
	return do()
}

// Codes of refusals of a request for who makes it.
const (
	codeSignIn    = "not_signed_in"
	codeForbidden = "forbidden"
)

// identify asks who makes the request.
func (x *exchange) identify() *reply {
	if x.h.cfg.By == nil {
		return nil
	}
	if err := x.h.cross.Check(x.r); err != nil {
		return x.refused(http.StatusForbidden, codeForbidden, func(t Texts) (string, string) {
			return t.DoesNotWork, t.OtherSite
		})
	}
	name, err := x.h.cfg.By(x.r)
	switch {
	case errors.Is(err, ErrSignIn):
		return x.refused(http.StatusUnauthorized, codeSignIn, func(t Texts) (string, string) {
			return t.SignIn, t.SignInFirst
		})
	case err != nil:
		x.h.cfg.Logger.Debug("flowfabric: an answer page is refused by Config.By", "error", err)
		return x.refused(http.StatusForbidden, codeForbidden, func(t Texts) (string, string) {
			return t.NotAllowed, t.AskWhoMay
		})
	}
	if err := checkName(name); err != nil {
		x.h.cfg.Logger.Error("flowfabric: the name from Config.By is not valid", "error", err)
		return x.refused(http.StatusInternalServerError, "internal", func(t Texts) (string, string) {
			return t.Wrong, t.TryLater
		})
	}
	x.name = name
	return nil
}

// show answers without acting.
func (x *exchange) show() *reply {
	t, a := x.onlyToken(queryTokens(x.r), bearerTokens(x.r))
	if a != nil {
		return a
	}
	known := x.asked(t)
	p, _ := x.page(t, known)
	switch {
	case known != nil && known.Answer != nil:
		return x.answered(p, known.Answer)
	case known != nil && !known.Open:
		return x.closed(http.StatusOK)
	}
	return x.question(p, t, known)
}

// page is what to show for a token, with defaults; own tells that it is a page of this waitpoint, whose answers alone
// may be posted. known is what the store says of the token, nil for nothing.
func (x *exchange) page(t suspend.Token, known *suspend.Asked) (p page, own bool) {
	if x.h.cfg.Question != nil {
		p, own = page(x.h.cfg.Question(x.r, t)), true
	} else if known != nil && known.Question != nil {
		p, own = page(*known.Question), true
	}
	p.Title = cmp.Or(p.Title, x.texts.Title)
	if len(p.Choices) == 0 {
		p.Choices = x.texts.choices()
	}
	return p, own
}

// posted is the page that a post answers.
func (x *exchange) posted(t suspend.Token) (p page, own bool) {
	if x.h.cfg.Question != nil {
		return x.page(t, nil)
	}
	return x.page(t, x.asked(t))
}

// questions tells the holder of a token what is asked; a *client.Client does.
type questions interface {
	ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
		digest string) (suspend.Asked,
		error)
}

// asked is what the store says to a good token. One that opens nothing gets the same page as one without a question,
// and a store that is away, too: the answer is judged where it is delivered.
func (x *exchange) asked(t suspend.Token) *suspend.Asked {
	reader, ok := x.h.cfg.Deliver.(questions)
	if !ok {
		return nil
	}
	known, err := reader.ReadQuestion(x.r.Context(), t.Execution(), t.Waitpoint(), t.Digest())
	if err != nil {
		x.h.cfg.Logger.Debug("flowfabric: no question is shown", "execution", t.Execution().String(), "waitpoint",
			t.Waitpoint().String(), "error", err)
		return nil
	}
	return &known
}

// act reads a post and delivers what it says.
func (x *exchange) act(w http.ResponseWriter) *reply {
	kind := mediaType(x.r)
	if kind != typeForm && kind != typeJSON {
		w.Header().Set("Accept-Post", typeJSON+", "+typeForm)
		return x.refused(http.StatusUnsupportedMediaType, "unsupported_media_type", func(t Texts) (string, string) {
			return t.DoesNotWork, "The body must be " + typeJSON + " or " + typeForm + "."
		})
	}
	body, a := x.readBody(w)
	if a != nil {
		return a
	}
	if kind == typeJSON {
		return x.actJSON(body)
	}
	return x.actForm(body)
}

// guard sets the headers of every answer. The address may carry a token, so it must not be stored or passed on.
func guard(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	header.Set("Content-Security-Policy", policy)
	header.Set("Vary", "Accept")
}

// policy lets the page use its own style sheet and its own form, and nothing else.
var policy = "default-src 'none'; style-src 'sha256-" + styleHash() +
	"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func styleHash() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return base64.StdEncoding.EncodeToString(sum[:])
}
