package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	s, err := embedded.Start(t.Context(), cfg)
	must.No(t, err)
	t.Cleanup(s.Close)
	return s
}

// conn is a minimal client of the wire protocol; replies come back as flat lines without their length rows.
type conn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, url string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "redis://"))
	must.No(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &conn{t: t, Conn: c, r: bufio.NewReader(c)}
}

func (c *conn) do(args ...string) []string {
	c.t.Helper()
	fmt.Fprintf(c, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(a), a)
	}
	return c.reply()
}

func (c *conn) reply() []string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	line = strings.TrimSpace(line)
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '*':
		var all []string
		for range n {
			all = append(all, c.reply()...)
		}
		return all
	case '$':
		if n < 0 {
			return []string{"(nil)"}
		}
		text := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(c.r, text); err != nil {
			c.t.Fatal(err)
		}
		return []string{string(text[:n])}
	}
	return []string{line[1:]}
}

func (c *conn) time() time.Time {
	c.t.Helper()
	parts := c.do("TIME")
	sec, _ := strconv.ParseInt(parts[0], 10, 64)
	micro, _ := strconv.ParseInt(parts[1], 10, 64)
	return time.Unix(sec, micro*1000)
}

func TestStartAnnouncesOnce(t *testing.T) {
	var log bytes.Buffer
	s := start(t, embedded.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.HasPrefix(s.URL(), "redis://127.0.0.1:") {
		t.Errorf("URL %q is not on loopback", s.URL())
	}
	if got := dial(t, s.URL()).do("PING"); got[0] != "PONG" {
		t.Errorf("PING answered %q", got)
	}
	s.Close()
	s.Close()
	if n := strings.Count(log.String(), "development only"); n != 1 {
		t.Errorf("announced %d times, want 1: %s", n, &log)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "redis://")); err == nil {
		t.Error("the port still answers after Close")
	}
}

func TestCloseWithOpenSubscription(t *testing.T) {
	s := start(t, embedded.Config{})
	dial(t, s.URL()).do("SUBSCRIBE", "news")
	s.Close() // goleak proves that nothing of the connection stays behind
}

func TestStartOnGivenAddress(t *testing.T) {
	first := start(t, embedded.Config{})
	addr := strings.TrimPrefix(first.URL(), "redis://")
	if _, err := embedded.Start(t.Context(), embedded.Config{Addr: addr, Logger: quiet()}); err == nil {
		t.Fatal("two servers on one port")
	}
	first.Close()
	if second := start(t, embedded.Config{Addr: addr}); second.URL() != first.URL() {
		t.Errorf("URL %q, want %q", second.URL(), first.URL())
	}
}

func TestStartRefuses(t *testing.T) {
	t.Run("production", func(t *testing.T) {
		t.Setenv("FLOWFABRIC_ENV", "Production")
		for name, err := range map[string]error{
			"Start":   second(embedded.Start(t.Context(), embedded.Config{Logger: quiet()})),
			"Resolve": third(embedded.Resolve(t.Context(), embedded.URL, quiet())),
		} {
			if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "FLOWFABRIC_ENV") {
				t.Errorf("%s: %v does not name the variable as a configuration error", name, err)
			}
		}
	})
	for _, addr := range []string{"0.0.0.0:0", ":0", "10.0.0.1:0", "127.0.0.1", "example.com:0"} {
		if _, err := embedded.Start(t.Context(), embedded.Config{Addr: addr, Logger: quiet()}); !errors.Is(err,
			flowfabric.ErrConfig) {
			t.Errorf("address %q: %v, want a configuration error", addr, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(flowfabric.ErrDraining)
	if _, err := embedded.Start(ctx, embedded.Config{Logger: quiet()}); !errors.Is(err, flowfabric.ErrDraining) {
		t.Errorf("ended context: %v, want its cause", err)
	}
}

// Key TTLs must run by themselves, as on a real server.
func TestKeysExpireWithTheClock(t *testing.T) {
	s := start(t, embedded.Config{})
	c := dial(t, s.URL())
	c.do("SET", "short", "1", "PX", "10")
	c.do("SET", "long", "1", "EX", "1000")
	testwait.Until(t, "the key has expired", func() bool { return c.do("EXISTS", "short")[0] == "0" })
	if c.do("EXISTS", "long")[0] != "1" {
		t.Error("a key went before its time")
	}
}

func TestTimeIsRealUnlessPinned(t *testing.T) {
	s := start(t, embedded.Config{})
	c := dial(t, s.URL())
	near := func(what string, want time.Time) {
		t.Helper()
		if d := c.time().Sub(want).Abs(); d > 5*time.Second {
			t.Errorf("%s: TIME is off by %s", what, d)
		}
	}
	near("fresh", time.Now())

	c.do("SET", "hour", "1", "EX", "3600")
	base := time.Now()
	s.SetTime(base)
	if got := c.time(); !got.Equal(base.Truncate(time.Microsecond)) {
		t.Errorf("pinned TIME %s, want %s", got, base)
	}
	s.SetTime(base.Add(59 * time.Minute))
	if c.do("EXISTS", "hour")[0] != "1" {
		t.Error("gone after 59 of 60 minutes")
	}
	s.SetTime(base.Add(30 * time.Minute)) // backwards: nothing breaks
	s.SetTime(base.Add(61 * time.Minute))
	if c.do("EXISTS", "hour")[0] != "0" {
		t.Error("still there after 61 of 60 minutes")
	}
	s.SetTime(time.Time{})
	near("released", time.Now())
}

func TestResolveSharesOneServer(t *testing.T) {
	type got struct {
		url     string
		release func()
	}
	results := make([]got, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			url, release, err := embedded.Resolve(t.Context(), embedded.URL, quiet())
			if err != nil {
				t.Error(err)
			}
			results[i] = got{url, release}
		})
	}
	wg.Wait()
	url := results[0].url
	for _, r := range results[1:] {
		if r.url != url {
			t.Errorf("two servers: %q and %q", r.url, url)
		}
		r.release()
		r.release() // idempotent: must not take another user's share
	}
	if got := dial(t, url).do("PING"); got[0] != "PONG" {
		t.Errorf("released under a user: %q", got)
	}
	results[0].release()
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "redis://")); err == nil {
		t.Error("the server outlived its last user")
	}
}

func TestResolvePassesOthersThrough(t *testing.T) {
	for _, url := range []string{"", "redis://localhost:6379", "unix:///tmp/x.sock"} {
		got, release, err := embedded.Resolve(t.Context(), url, nil)
		if got != url || err != nil {
			t.Errorf("%q became %q, %v", url, got, err)
		}
		release()
	}
	_, release, err := embedded.Resolve(t.Context(), "embedded://somewhere:1", nil)
	if !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("embedded URL with a host: %v", err)
	}
	release()
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }
