package engine

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// Config says where the server is and how to talk to it. Only URL is required.
type Config struct {
	// URL: redis://, rediss:// (TLS), valkey://, valkeys:// with [user:pass@]host:port[,host:port…][/db], or
	// unix:///path/to.sock[?db=N]. Several hosts are seeds of one cluster. Default port 6379, database 0.
	URL string
	// Username and Password win over those in the URL.
	Username, Password string
	// TLS replaces the default TLS settings of rediss:// and valkeys://, and turns TLS on for the others.
	TLS *tls.Config
	// ClientName is shown in CLIENT LIST. Default "flowfabric".
	ClientName string
	// DialTimeout bounds one connection attempt, default 10 s. CallTimeout bounds one call without its repeats, default 5 s.
	DialTimeout, CallTimeout time.Duration
	// Partitions is the number of execution partitions, 1..1024, default 64. It is used only by whoever boots the
	// store first; everybody else uses what is stored.
	Partitions uint16
	// CreateConfig false refuses to start on a store that was never booted. Default (nil) true.
	CreateConfig *bool
	// Logger for the few things worth a line, default slog.Default().
	Logger *slog.Logger
	// OnCall is told every call of a server function: its name, how long the answer took with all repeats, and the
	// error. For metrics, tracing or a circuit breaker's bookkeeping. It runs on the caller's goroutine and must not
	// block. Default nobody.
	OnCall func(function string, took time.Duration, err error)
	// TestClock loads the library variant whose clock can be moved. Tests only: a server that carries the one variant is
	// refused to who wants the other.
	TestClock bool
}

const (
	maxPartitions = 1024
	// silence is after how long an idle connection is asked whether the other end is still there: two pings a worker, without work.
	silence = 2 * time.Second
)

func (c Config) withDefaults() Config {
	c.ClientName = cmp.Or(c.ClientName, "flowfabric")
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
	c.Partitions = cmp.Or(c.Partitions, flowfabric.DefaultExecutionPartitions)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// options turns the configuration into the driver's; every mistake is named before any I/O.
func (c Config) options() (rueidis.ClientOption, error) {
	var o rueidis.ClientOption
	bad := func(format string, args ...any) (rueidis.ClientOption, error) {
		return o, fmt.Errorf("%w: %s", flowfabric.ErrConfig, fmt.Sprintf(format, args...))
	}
	if c.URL == "" {
		return bad("URL is empty: set FLOWFABRIC_URL (for example redis://127.0.0.1:6379), or use embedded:// for a development server inside the process")
	}
	if c.DialTimeout < 0 || c.CallTimeout < 0 {
		return bad("DialTimeout and CallTimeout must not be negative")
	}
	if c.Partitions > maxPartitions {
		return bad("Partitions is %d, want 1..%d", c.Partitions, maxPartitions)
	}
	if len(c.ClientName) > 64 || strings.ContainsAny(c.ClientName, " \r\n") {
		return bad("ClientName %q, want at most 64 bytes without spaces", c.ClientName)
	}
	scheme, rest, ok := strings.Cut(c.URL, "://")
	if !ok {
		return bad("URL %q has no scheme, want redis://host:6379, rediss://, valkey://, unix:///path or embedded://", redact(c.URL))
	}
	o = rueidis.ClientOption{
		ClientName: c.ClientName, DisableCache: true, DisableRetry: true, Dialer: net.Dialer{Timeout: c.DialTimeout, KeepAlive: silence},
		ConnWriteTimeout: c.CallTimeout, BlockingPoolSize: 16, RingScaleEachConn: 10, ReadBufferEachConn: 1 << 16, WriteBufferEachConn: 1 << 16,
		PipelineMultiplex: -1,
	}
	db := ""
	switch scheme {
	case "redis", "valkey", "rediss", "valkeys":
		hosts, path, _ := strings.Cut(rest, "/")
		if strings.Contains(path, "@") {
			return bad("URL has a / before the @: write it as %%2F in the password")
		}
		path, query, _ := strings.Cut(path, "?")
		if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
			user, pass, _ := strings.Cut(hosts[:at], ":")
			var err1, err2 error
			o.Username, err1 = url.PathUnescape(user)
			o.Password, err2 = url.PathUnescape(pass)
			if err1 != nil || err2 != nil {
				return bad("URL: user or password is not valid percent-encoding")
			}
			hosts = hosts[at+1:]
		}
		for host := range strings.SplitSeq(hosts, ",") {
			h, p, err := net.SplitHostPort(host)
			if err != nil {
				h, p = strings.Trim(host, "[]"), "6379"
			}
			if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 || h == "" {
				return bad("URL: %q is not host:port", host)
			}
			o.InitAddress = append(o.InitAddress, net.JoinHostPort(h, p))
		}
		db = path
		if v, err := url.ParseQuery(query); err != nil || len(v) > 0 {
			return bad("URL: unknown parameters %q", query)
		}
		if strings.HasSuffix(scheme, "s") && scheme != "redis" {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	case "unix":
		path, query, _ := strings.Cut(rest, "?")
		v, err := url.ParseQuery(query)
		if err != nil || path == "" {
			return bad("URL %q, want unix:///path/to.sock[?db=N]", c.URL)
		}
		if db = v.Get("db"); len(v) > 1 || len(v) == 1 && !v.Has("db") {
			return bad("URL: unknown parameters %q", query)
		}
		o.InitAddress = []string{path}
		o.ForceSingleClient = true
		o.DialCtxFn = dialUnix
	case inproc.Scheme: // a server of this process, see embedded.Config.InProcess
		if rest == "" {
			return bad("URL %q names no server", c.URL)
		}
		o.InitAddress = []string{c.URL}
		o.ForceSingleClient = true
		o.DialCtxFn = dialInProcess
		o.Dialer.KeepAlive = -1 // nothing to probe: memory does not go silent
	case "embedded":
		return bad("URL embedded:// is resolved by runtime and client (or embedded.Start); package engine wants a server's address")
	default:
		return bad("URL scheme %q, want redis, rediss, valkey, valkeys, unix or embedded", scheme)
	}
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 || n > 1023 {
			return bad("URL: database %q is not a number of 0..1023", db)
		}
		o.SelectDB = n
	}
	o.Username, o.Password = cmp.Or(c.Username, o.Username), cmp.Or(c.Password, o.Password)
	if c.TLS != nil {
		o.TLSConfig = c.TLS
	}
	return o, nil
}

// redact hides what may be a password in a URL that is shown.
func redact(raw string) string {
	if at := strings.LastIndexByte(raw, '@'); at >= 0 {
		return "…" + raw[at:]
	}
	return raw
}
