package engine

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// Config says where the server is and how to talk to it. Only URL is required.
type Config struct {
	// URL: redis://, rediss:// (TLS), valkey://, valkeys:// with [user:pass@]host:port[,host:port…][/db], or
	// unix://[user:pass@]/path/to.sock[?db=N]. Several hosts are seeds of one cluster. Default port 6379, database 0.
	// Special characters of user and password are percent-encoded. No part of a URL that is refused is ever shown.
	//
	// Or redis+sentinel://, rediss+sentinel:// (TLS to sentinels and servers), valkey+sentinel://,
	// valkeys+sentinel:// with
	// [user:pass@]host:port[,host:port…]/primary-name[/db][?sentinel_username=…&sentinel_password=…]. The hosts are
	// Sentinels, default port 26379; user and password are for the primary.
	URL string
	// Username and Password win over those in the URL; they are not for Sentinels.
	Username, Password string
	// TLS replaces the default TLS settings of rediss:// and valkeys://, and turns TLS on for the others.
	TLS *tls.Config
	// ClientName is shown in CLIENT LIST. Default "flowfabric".
	ClientName string
	// DialTimeout bounds one connection attempt, default 10 s. CallTimeout bounds one call without its repeats,
	// default 5 s.
	DialTimeout, CallTimeout time.Duration
	// Partitions is the number of execution partitions, 1..1024, default 64, on the embedded server 8. It is used
	// only by the process that boots the store first; everybody else uses what is stored.
	Partitions uint16
	// CreateConfig false refuses to start on a store that was never booted. Default (nil) true.
	CreateConfig *bool
	// Logger for the few things worth a line, default slog.Default().
	Logger *slog.Logger
	// OnCall is told every call of a server function: its name, how long the answer took with all repeats, and the
	// error. For metrics, tracing or a circuit breaker's bookkeeping. It runs on the caller's goroutine and must not
	// block. Default nobody.
	OnCall func(function string, took time.Duration, err error)
	// TestClock loads the library variant whose clock can be moved. Tests only: a server that carries the one variant
	// is refused to who wants the other.
	TestClock bool
	// Box seals what programs store and opens what they read; nil for none.
	Box *sealed.Box
}

const (
	maxPartitions = 1024
	// silence is after how long an idle connection is asked whether the other end is still there. A worker has two of
	// them, and in a fleet without work these pings are most of what is sent.
	silence = 5 * time.Second
)

func (c Config) withDefaults() Config {
	c.ClientName = cmp.Or(c.ClientName, "flowfabric")
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
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
		return bad(
			"URL is empty: set FLOWFABRIC_URL (for example redis://127.0.0.1:6379), or use embedded:./data for a store inside the process")
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
	o = rueidis.ClientOption{
		ClientName: c.ClientName, DisableCache: true, DisableRetry: true,
		Dialer: net.Dialer{Timeout: c.DialTimeout, KeepAlive: silence}, ConnWriteTimeout: c.CallTimeout,
		BlockingPoolSize: 16, RingScaleEachConn: 10, ReadBufferEachConn: 1 << 16, WriteBufferEachConn: 1 << 16,
		PipelineMultiplex: -1,
	}
	if err := locate(&o, c.URL); err != nil {
		return rueidis.ClientOption{}, err
	}
	o.Username, o.Password = cmp.Or(c.Username, o.Username), cmp.Or(c.Password, o.Password)
	if c.TLS != nil {
		o.TLSConfig = c.TLS
	}
	if watched(o) {
		o.Sentinel.Dialer, o.Sentinel.TLSConfig, o.Sentinel.ClientName = o.Dialer, o.TLSConfig, o.ClientName
	}
	return o, nil
}
