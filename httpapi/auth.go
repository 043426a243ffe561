package httpapi

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/browsertoken"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Role decides which routes a [Principal] may use. The OpenAPI document says of each route who may.
type Role string

// The roles. Each but worker may do what those before it may.
const (
	Viewer   Role = "viewer"   // reads everything
	Producer Role = "producer" // also submits, signals, sends messages, cancels, stops, rewinds, forks, writes streams
	Operator Role = "operator" // also changes what there is: replays, priorities, lanes, answers to approvals
	Admin    Role = "admin"    // also purges
	Worker   Role = "worker"   // takes work and settles it, and reads what it holds
)

// need is who may use a route, as a set of roles.
type need []Role

var (
	viewer   = need{Viewer, Producer, Operator, Admin}
	producer = need{Producer, Operator, Admin}
	operator = need{Operator, Admin}
	root     = need{Admin}
	takes    = need{Worker, Admin}
	everyone = need{Viewer, Producer, Operator, Admin, Worker}
	anybody  = need{} // without a token
)

// Principal is the caller of a request.
type Principal struct {
	Name string `json:"name"` // noted with every change; 1..64 bytes
	Role Role   `json:"role"` // what they may do
	// where; empty: everywhere. The first is the default of their requests
	Namespaces []string `json:"namespaces,omitzero" jsonschema:"absent: all of them"`
	// what the token is known by among Config.Tokens, no secret; "" if it is none of them
	Token string `json:"-"`
}

// may tells whether the principal sees a namespace.
func (p Principal) may(namespace string) bool {
	return len(p.Namespaces) == 0 || slices.Contains(p.Namespaces, namespace)
}

// ErrForbidden is wrapped by an Authorize function for a known caller who may do nothing here.
var ErrForbidden = errors.New("forbidden")

// Open lets everybody do everything, under the name "api". It is for a loopback address, and forbids requests to a
// host of another name: a page of somebody else whose name leads here would be everybody, too.
func Open(q *http.Request) (Principal, error) {
	if q != nil && !localHost(q.Host) {
		return Principal{}, fmt.Errorf("%w: without tokens the host is localhost or a loopback address, not %.80q",
			ErrForbidden, q.Host)
	}
	return Principal{Name: "api", Role: Admin}, nil
}

// localHost tells whether a header Host names this machine by a name that is nobody else's.
func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && at.Unmap().IsLoopback()
}

// Tokens are bearer tokens. They are read from a file, and again when it has changed, at most once a second. Make
// them with [LoadTokens].
type Tokens struct {
	path    string
	log     *slog.Logger
	list    atomic.Pointer[[]token]
	mu      sync.Mutex // of one reload
	looked  time.Time
	written time.Time // of the file that was read
}

// token is one entry of the file: SHA256 is that of the secret, in hex.
type token struct {
	Principal
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires,omitzero"`

	sum [sha256.Size]byte
}

// LoadTokens reads a file of tokens: a JSON array of objects with name, role, sha256 (of the secret, hex) and, to
// bound it, namespaces and expires (RFC 3339), from when on it is good for nothing. "flowfabric token new" makes an
// entry. A later version of the file that cannot be read is logged, and the tokens stay as they are. Errors wrap
// flowfabric.ErrConfig. log may be nil.
func LoadTokens(path string, log *slog.Logger) (*Tokens, error) {
	if log == nil {
		log = slog.Default()
	}
	t := &Tokens{path: path, log: log}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: tokens: %w", flowfabric.ErrConfig, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: tokens: %w", flowfabric.ErrConfig, err)
	}
	list, err := parseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("%w: tokens of %s: %w", flowfabric.ErrConfig, path, err)
	}
	t.list.Store(&list)
	t.written, t.looked = info.ModTime(), time.Now()
	return t, nil
}

// ParseTokens is [LoadTokens] for a text, such as that of an environment variable. It is never read again.
func ParseTokens(text string) (*Tokens, error) {
	list, err := parseTokens([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: tokens: %w", flowfabric.ErrConfig, err)
	}
	t := &Tokens{log: slog.Default()}
	t.list.Store(&list)
	return t, nil
}

func parseTokens(text []byte) ([]token, error) {
	var list []token
	if err := json.Unmarshal(text, &list, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("want a JSON array of tokens: %w", err)
	}
	names := map[string]bool{}
	for i := range list {
		x := &list[i]
		sum, err := hex.DecodeString(x.SHA256)
		switch {
		case x.Name == "" || len(x.Name) > limits.MaxName ||
			strings.ContainsFunc(x.Name, func(r rune) bool { return r < 0x21 || r > 0x7e }):
			return nil, fmt.Errorf("token %d: name %.64q, want 1..%d printable characters without spaces", i, x.Name,
				limits.MaxName)
		case names[x.Name]:
			return nil, fmt.Errorf("token %d: the name %s is there twice", i, x.Name)
		case !slices.Contains([]Role{Viewer, Producer, Operator, Admin, Worker}, x.Role):
			return nil, fmt.Errorf("token %s: role %.32q, want viewer, producer, operator, admin or worker", x.Name,
				x.Role)
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("token %s: sha256 wants 64 hex digits", x.Name)
		}
		for _, namespace := range x.Namespaces {
			if err := valid.Name("namespace", namespace); err != nil {
				return nil, fmt.Errorf("token %s: %w", x.Name, err)
			}
		}
		names[x.Name] = true
		copy(x.sum[:], sum)
	}
	return list, nil
}

// NewToken makes a secret, to be shown once, and the entry for the file of tokens, as JSON. A zero expires is never.
func NewToken(name string, role Role, expires time.Time, namespaces ...string) (secret, entry string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = "fft_" + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(secret))
	made := token{Principal: Principal{Name: name, Role: role, Namespaces: namespaces},
		SHA256: hex.EncodeToString(sum[:]), Expires: expires.UTC()}
	text, err := json.Marshal(made)
	if err == nil {
		_, err = parseTokens([]byte("[" + string(text) + "]"))
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", flowfabric.ErrConfig, err)
	}
	return secret, string(text), nil
}

// Authorize finds the token of a request in its header Authorization: Bearer.
func (t *Tokens) Authorize(q *http.Request) (Principal, error) {
	t.reload()
	scheme, secret, ok := strings.Cut(q.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return Principal{}, errNoToken
	}
	sum := sha256.Sum256([]byte(secret))
	var found *token
	list := *t.list.Load()
	for i := range list { // all of them, whichever it is
		if subtle.ConstantTimeCompare(list[i].sum[:], sum[:]) == 1 {
			found = &list[i]
		}
	}
	if found == nil {
		return Principal{}, errors.New("no token has this secret")
	}
	if found.over() {
		return Principal{}, fmt.Errorf("%w: %s expired at %s", errOver, found.Name, found.Expires.Format(time.RFC3339))
	}
	return found.principal(), nil
}

func (x *token) over() bool { return !x.Expires.IsZero() && !time.Now().Before(x.Expires) }

func (x *token) principal() Principal {
	who := x.Principal
	who.Token = hex.EncodeToString(x.sum[:8])
	return who
}

// recall finds the token of a [Principal] that it has authorized, as it is now.
func (t *Tokens) recall(known string) (Principal, bool) {
	t.reload()
	for _, x := range *t.list.Load() {
		if p := x.principal(); p.Token == known {
			return p, !x.over()
		}
	}
	return Principal{}, false
}

var errNoToken = errors.New("no bearer token")

// reload reads the file again if it has changed.
func (t *Tokens) reload() {
	if t.path == "" || !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if time.Since(t.looked) < time.Second {
		return
	}
	t.looked = time.Now()
	info, err := os.Stat(t.path)
	if err == nil && info.ModTime().Equal(t.written) {
		return
	}
	var list []token
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(t.path); err == nil {
			list, err = parseTokens(text)
		}
	}
	if err != nil {
		t.log.Error("flowfabric: api: the file of tokens cannot be read; the tokens read before stay valid", "path",
			t.path,
			"error", err)
		return
	}
	t.list.Store(&list)
	t.written = info.ModTime()
	t.log.Info("flowfabric: api: the tokens were reloaded", "path", t.path, "tokens", len(list))
}

// authorize finds out who asks, and whether they may.
func (c *call) authorize() error {
	if len(c.route.need) == 0 {
		return nil
	}
	from := c.from()
	who, paged, err := c.identify()
	var refused *problem
	switch {
	case errors.As(err, &refused): // a token of a browser, for something else
		return refused
	case errors.Is(err, ErrForbidden):
		return &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "you may do nothing here"}
	case err != nil:
		if !errors.Is(err, errNoToken) && !errors.Is(err, errOver) {
			if wait := c.h.failed.blocked(from); wait > 0 { // a good token is good from everywhere
				c.w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
				return &problem{Status: http.StatusTooManyRequests, Code: "too_many_failed_tokens",
					Detail: "too many requests with a wrong token came from this address"}
			}
			c.h.failed.fail(from)
		}
		c.h.cfg.Logger.InfoContext(c.ctx(), "flowfabric: api: refused", "request", identityOf(c.r).id, "from", from,
			"error", err)
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="flowfabric"`)
		return &problem{Status: http.StatusUnauthorized, Code: "unauthorized",
			Detail: "the header Authorization: Bearer TOKEN is missing, or its token is not known here or has expired"}
	}
	c.who, c.paged = who, paged
	identityOf(c.r).name = who.Name
	switch {
	case c.paged:
		from = "browser " + from
	case from != "": // else the program acts itself
		from = "api " + from
	}
	if name := c.assistant(); name != "" {
		from = strings.TrimSuffix("assistant "+name+", "+from, ", ")
	}
	c.acting(from, "")
	if c.paged { // and may
		return nil
	}
	if !slices.Contains(c.route.need, who.Role) {
		return &problem{Status: http.StatusForbidden, Code: "forbidden",
			Detail: fmt.Sprintf("%s has the role %s; this wants one of %s", who.Name, who.Role, joined(c.route.need))}
	}
	if c.route.global() && len(who.Namespaces) > 0 {
		return &problem{Status: http.StatusForbidden, Code: "forbidden",
			Detail: fmt.Sprintf(
				"this belongs to no namespace, and %s is bound to %s: use a token that is bound to none",
				who.Name, strings.Join(who.Namespaces, ", "))}
	}
	return nil
}

// assistant is the name of the program that a language model drives, as it calls itself: the trail has it beside the
// name of the token. "" for other callers. It is cut to 64 bytes, so that the address behind it is kept.
func (c *call) assistant() string {
	name := strings.ToValidUTF8(c.r.Header.Get("X-Assistant"), "?")
	if len(name) > maxAssistant {
		name = strings.ToValidUTF8(name[:maxAssistant], "")
	}
	return strings.TrimSpace(name)
}

// maxAssistant bounds the header X-Assistant, in bytes.
const maxAssistant = 64

// from is the address that a request comes from: that of the connection or, behind proxies that are trusted, the last
// one that is none of them.
func (c *call) from() string {
	from := c.r.RemoteAddr
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	hops := strings.Split(strings.Join(c.r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		at, err := netip.ParseAddr(from)
		if err != nil || !slices.ContainsFunc(c.h.cfg.TrustedProxies, func(p netip.Prefix) bool {
			return p.Contains(at.Unmap())
		}) {
			break
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		from = next.String()
	}
	return from
}

// acting says in the audit trail on whose behalf something is changed, and in which namespace that is.
func (c *call) acting(from, namespace string) {
	a := trail.ActorOf(c.ctx())
	c.r = c.r.WithContext(trail.Acting(c.ctx(),
		trail.Actor{By: c.who.Name, From: cmp.Or(from, a.From), Namespace: namespace}))
}

// identify is Authorize, but for a token of a browser.
func (c *call) identify() (who Principal, paged bool, err error) {
	if who, paged, err = c.page(); paged || err != nil {
		return who, paged, err
	}
	who, err = c.h.cfg.Authorize(c.r)
	return who, false, err
}

// page finds out whether a page asks, with a token for the execution of the path: in the query, if the route takes one
// there, or as other tokens come. It may do what the route lets pages do, and its maker may.
func (c *call) page() (who Principal, found bool, err error) {
	if !strings.HasPrefix(c.route.path, "/v1/executions/{id}") {
		return who, false, nil
	}
	secret := ""
	if c.route.browser != noBrowser {
		secret = c.r.URL.Query().Get("access_token")
	}
	given := secret != ""
	if scheme, bearer, ok := strings.Cut(c.r.Header.Get("Authorization"), " "); !given && ok &&
		strings.EqualFold(scheme, "Bearer") {
		secret = bearer
	}
	token, err := browsertoken.Read(c.h.cfg.StreamKey, secret, c.r.PathValue("id"), time.Now())
	switch {
	case errors.Is(err, browsertoken.ErrInvalid) && !given:
		return who, false, nil
	case errors.Is(err, browsertoken.ErrOver):
		return who, false, fmt.Errorf("%w: a token of a browser", errOver)
	case err != nil:
		return who, false, err
	}
	maker := Principal{Role: Role(cmp.Or(token.As, string(Viewer)))}
	if c.h.cfg.Tokens != nil {
		var there bool
		if maker, there = c.h.cfg.Tokens.recall(token.Maker); !there {
			return who, false, fmt.Errorf("%w: the token that made it is not there any more", errOver)
		}
	}
	switch {
	case c.route.browser == noBrowser, c.route.browser == browserWrites && !token.Writes():
		return who, false, &problem{Status: http.StatusForbidden, Code: "forbidden",
			Detail: "this token is for a page that follows an execution, or takes part in it; it does not open this"}
	case !slices.Contains(c.route.need, maker.Role):
		return who, false, &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: fmt.Sprintf(
			"the role %s made this token; this wants one of %s", maker.Role, joined(c.route.need))}
	}
	who = follower
	if token.Writes() {
		who.Name = cmp.Or(token.Name, "browser")
	}
	who.Namespaces = maker.Namespaces
	return who, true, nil
}

// follower is who has a token of a browser. What is redacted is redacted for them, whatever their name.
var follower = Principal{Name: "stream", Role: Viewer}

func joined(roles []Role) string {
	var text []string
	for _, r := range roles {
		text = append(text, string(r))
	}
	return strings.Join(text, ", ")
}

// errOver is a token that was good once: its bearer does not guess.
var errOver = errors.New("the token is over")

// limiter counts wrong tokens by address: after maxFailures within a minute the address waits for its end.
type limiter struct {
	mu     sync.Mutex
	counts map[string]*failures
}

type failures struct {
	n     int
	until time.Time
}

const (
	maxFailures  = 10
	maxAddresses = 10_000
)

func newLimiter() *limiter { return &limiter{counts: map[string]*failures{}} }

// blocked is for how long an address has to wait.
func (l *limiter) blocked(from string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.counts[from]; f != nil && f.n >= maxFailures {
		return time.Until(f.until)
	}
	return 0
}

func (l *limiter) fail(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.counts) >= maxAddresses {
		for address, f := range l.counts {
			if now.After(f.until) {
				delete(l.counts, address)
			}
		}
		if len(l.counts) >= maxAddresses {
			clear(l.counts)
		}
	}
	f := l.counts[from]
	if f == nil || now.After(f.until) {
		f = &failures{until: now.Add(time.Minute)}
		l.counts[from] = f
	}
	f.n++
}
