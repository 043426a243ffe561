package httpapi

import (
	"cmp"
	"crypto/hmac"
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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Role decides which routes a [Principal] may use. The OpenAPI document says of each route who may.
type Role string

// The roles. Each but worker may do what those before it may.
const (
	Viewer   Role = "viewer"   // reads everything
	Producer Role = "producer" // also submits, signals, sends messages and cancels
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

// Principal is who makes a request.
type Principal struct {
	Name       string   // noted with every change; 1..64 bytes
	Role       Role     // what they may do
	Namespaces []string // where; empty: everywhere. The first is the default of their requests
}

// may tells whether the principal sees a namespace.
func (p Principal) may(namespace string) bool {
	return len(p.Namespaces) == 0 || slices.Contains(p.Namespaces, namespace)
}

// ErrForbidden is what an Authorize function wraps for somebody whom it knows and who may do nothing here.
var ErrForbidden = errors.New("forbidden")

// Open lets everybody do everything, under the name "api". It is for a loopback address.
func Open(*http.Request) (Principal, error) { return Principal{Name: "api", Role: Admin}, nil }

// Tokens are bearer tokens. They are read from a file, and again when it has changed, at most once a second. Make them with [LoadTokens].
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
	Name       string   `json:"name"`
	Role       Role     `json:"role"`
	Namespaces []string `json:"namespaces,omitzero"`
	SHA256     string   `json:"sha256"`

	sum [sha256.Size]byte
}

// LoadTokens reads a file of tokens: a JSON array of objects with name, role, sha256 (of the secret, hex) and, to bound it, namespaces. The
// command "flowfabric token new" makes an entry. A later version of the file that cannot be read is logged, and the tokens stay as they are.
// Errors wrap flowfabric.ErrConfig. log may be nil.
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
		case x.Name == "" || len(x.Name) > limits.MaxName || strings.ContainsFunc(x.Name, func(r rune) bool { return r < 0x21 || r > 0x7e }):
			return nil, fmt.Errorf("token %d: name %.64q, want 1..%d printable characters without spaces", i, x.Name, limits.MaxName)
		case names[x.Name]:
			return nil, fmt.Errorf("token %d: the name %s is there twice", i, x.Name)
		case !slices.Contains([]Role{Viewer, Producer, Operator, Admin, Worker}, x.Role):
			return nil, fmt.Errorf("token %s: role %.32q, want viewer, producer, operator, admin or worker", x.Name, x.Role)
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

// NewToken makes a secret, to be shown once, and the entry for the file of tokens, as JSON.
func NewToken(name string, role Role, namespaces ...string) (secret, entry string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = "fft_" + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(secret))
	made := token{Name: name, Role: role, Namespaces: namespaces, SHA256: hex.EncodeToString(sum[:])}
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
	return Principal{Name: found.Name, Role: found.Role, Namespaces: found.Namespaces}, nil
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
		t.log.Error("flowfabric: api: the tokens cannot be read again; those that were read stay", "path", t.path, "error", err)
		return
	}
	t.list.Store(&list)
	t.written = info.ModTime()
	t.log.Info("flowfabric: api: tokens were read again", "path", t.path, "tokens", len(list))
}

// authorize finds out who asks, and whether they may.
func (c *call) authorize() error {
	if len(c.route.need) == 0 {
		return nil
	}
	from := c.r.RemoteAddr
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	if wait := c.h.failed.blocked(from); wait > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		return &problem{Status: http.StatusTooManyRequests, Code: "too_many_failed_tokens", Detail: "too many requests with a wrong token came from this address"}
	}
	who, err := c.identify()
	switch {
	case errors.Is(err, ErrForbidden):
		return &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "you may do nothing here"}
	case err != nil:
		if !errors.Is(err, errNoToken) {
			c.h.failed.fail(from)
		}
		c.h.cfg.Logger.InfoContext(c.ctx(), "flowfabric: api: refused", "request", identityOf(c.r).id, "from", from, "error", err)
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="flowfabric"`)
		return &problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "the header Authorization: Bearer TOKEN is missing, or its token is not known here"}
	}
	c.who = who
	identityOf(c.r).name = who.Name
	c.acting("api "+from, "")
	if !slices.Contains(c.route.need, who.Role) {
		return &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: fmt.Sprintf("%s is a %s; this wants one of %s", who.Name, who.Role, joined(c.route.need))}
	}
	return nil
}

// acting says in the audit trail on whose behalf something is changed, and in which namespace that is.
func (c *call) acting(from, namespace string) {
	a := trail.ActorOf(c.ctx())
	c.r = c.r.WithContext(trail.Acting(c.ctx(), trail.Actor{By: c.who.Name, From: cmp.Or(from, a.From), Namespace: namespace}))
}

// identify is Authorize, but for a stream token where the route takes one.
func (c *call) identify() (Principal, error) {
	if secret := c.r.URL.Query().Get("access_token"); secret != "" && c.route.streamToken {
		id := c.r.PathValue("id")
		if !c.h.streamTokenValid(secret, id, time.Now()) {
			return Principal{}, errors.New("the stream token is not valid, or no longer")
		}
		return Principal{Name: "stream", Role: Viewer}, nil
	}
	return c.h.cfg.Authorize(c.r)
}

func joined(roles []Role) string {
	var text []string
	for _, r := range roles {
		text = append(text, string(r))
	}
	return strings.Join(text, ", ")
}

// streamToken lets its bearer follow one execution until an instant: "<unix seconds>.<mac>".
func (h *Handler) streamToken(id string, until time.Time) string {
	at := strconv.FormatInt(until.Unix(), 10)
	return at + "." + base64.RawURLEncoding.EncodeToString(h.streamMAC(id, at))
}

func (h *Handler) streamMAC(id, until string) []byte {
	mac := hmac.New(sha256.New, h.cfg.StreamKey)
	mac.Write([]byte("flowfabric stream token\n" + id + "\n" + until))
	return mac.Sum(nil)
}

func (h *Handler) streamTokenValid(text, id string, now time.Time) bool {
	at, mac, _ := strings.Cut(text, ".")
	until, err := strconv.ParseInt(at, 10, 64)
	given, err2 := base64.RawURLEncoding.DecodeString(mac)
	return err == nil && err2 == nil && hmac.Equal(given, h.streamMAC(id, at)) && now.Unix() < until
}

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
