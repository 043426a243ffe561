package engine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// opening opens a URL and returns why that is refused. A refusal that is not noticed at once would take an hour.
func opening(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	e, err := Open(ctx, Config{URL: url, Logger: slog.New(slog.DiscardHandler), DialTimeout: time.Hour})
	if err == nil {
		e.Close()
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return err
}

// What a server refuses a connection for is named by its class, at once, and with what to do. It is no defect of the
// library.
func TestRefusedConnections(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			s := testserver.Start(t, kind, testserver.TCP())
			oneLine(t, "no such database", opening(t, s.URL()+"/99"), flowfabric.ErrConfig,
				"no database of the number in the URL")
			oneLine(t, "TLS on a plain port", opening(t, "rediss://"+s.Address()), flowfabric.ErrConfig,
				"write redis://")
			oneLine(t, "a wrong password", opening(t, "redis://u:p@"+s.Address()), flowfabric.ErrAuth, "WRONGPASS")
			s.Kill()
			err := opening(t, s.URL())
			oneLine(t, "nobody listens", err, flowfabric.ErrTransport, "server listening there")
			if !NotSent(err) {
				t.Errorf("a connection that was refused may have sent something: %v", err)
			}
		})
		t.Run(string(kind)+" with too many clients", func(t *testing.T) {
			s := testserver.Start(t, kind, testserver.TCP(), testserver.Args("--maxclients", "1"))
			conn, err := net.Dial("tcp", s.Address())
			must.No(t, err)
			defer func() { _ = conn.Close() }()
			if _, err := conn.Write([]byte("PING\r\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 7)); err != nil {
				t.Fatal(err)
			}
			// the server may hang up before its reason is read
			oneLine(t, "too many clients", opening(t, s.URL()), flowfabric.ErrTransport, "connect to "+s.Address())
		})
	}
}

// A TLS handshake that nobody answers ends in the time that a connection attempt may take; a server that answers
// something else than TLS is named.
func TestTLSWhereNobodySpeaksIt(t *testing.T) {
	for what, x := range map[string]struct {
		answer string // to whatever comes
		dial   time.Duration
		kind   error
		hint   string
	}{
		"silence":        {"", 100 * time.Millisecond, flowfabric.ErrTransport, "no TLS handshake within"},
		"a web server":   {"HTTP/1.1 400 Bad Request\r\n\r\n", time.Hour, flowfabric.ErrConfig, "speaks plain text"},
		"a plain answer": {"-ERR Protocol error\r\n", time.Hour, flowfabric.ErrConfig, "speaks plain text"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must.No(t, err)
		stop := context.AfterFunc(t.Context(), func() { _ = listener.Close() })
		done := make(chan struct{})
		go func() {
			defer close(done)
			var open []net.Conn
			for {
				conn, err := listener.Accept()
				if err != nil {
					break
				}
				open = append(open, conn)
				_, _ = conn.Write([]byte(x.answer))
			}
			for _, conn := range open {
				_ = conn.Close()
			}
		}()
		ctx, cancel := testwait.Context(t, t.Context())
		_, err = Open(ctx, Config{URL: "rediss://" + listener.Addr().String(), Logger: slog.New(slog.DiscardHandler),
			DialTimeout: x.dial})
		if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.hint) || ctx.Err() != nil {
			t.Errorf("%s: %v, want %q", what, err, x.hint)
		}
		cancel()
		stop()
		_ = listener.Close()
		<-done
	}
}

// While one call waits for a connection to a host that says nothing, others that need the same connection wait as
// long as their own contexts allow.
func TestCallsDoNotWaitForTheDialOfAnother(t *testing.T) {
	s := testserver.Start(t, testserver.ServerRedis, testserver.TCP())
	e, err := Open(t.Context(), Config{URL: s.URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler),
		DialTimeout: time.Hour})
	must.No(t, err)
	defer e.Close()
	s.Kill()
	if _, _, err := e.Poll(t.Context(), []uint16{0}); !errors.Is(err, flowfabric.ErrTransport) {
		t.Fatalf("without a server: %v", err)
	}
	silent, err := net.Listen("tcp", s.Address())
	must.No(t, err)
	accepted := make(chan net.Conn, 16)
	go func() {
		defer close(accepted)
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	patient, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, _, err := e.Poll(patient, []uint16{0}); ended <- err }()
	go func() { _, err := e.RenewSession(patient, 0, "w~1", time.Minute, 0); ended <- err }()
	for range 2 { // of the two clients
		conn := <-accepted
		defer func() { _ = conn.Close() }()
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"call": func(ctx context.Context) error { _, _, err := e.Poll(ctx, []uint16{0}); return err },
		"renew": func(ctx context.Context) error {
			_,
				err := e.RenewSession(ctx, 0, "w~1", time.Minute, 0)
			return err
		},
		"read": func(ctx context.Context) error { _, err := e.ReadFeed(ctx, 0, stream.Cursor{}, 1); return err },
	} {
		// timed: the host says nothing, so that only its context ends the call
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := call(ctx); !errors.Is(err, flowfabric.ErrTransport) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		stop()
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, flowfabric.ErrTransport) {
			t.Errorf("the first to wait: %v", err)
		}
	}
	_ = silent.Close()
}
