package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// dialer opens one connection; it is how a configuration reaches its server.
type dialer func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// noConnection is the error of a connection that could not be made. Nothing was sent on it.
type noConnection struct{ err error }

func (e *noConnection) Error() string { return e.err.Error() }
func (e *noConnection) Unwrap() error { return e.err }

// NotSent reports that a call failed because no connection to the server could be made, in any of its tries:
// certainly nothing of it was done. Any other error that matches flowfabric.ErrTransport leaves that open.
func NotSent(err error) bool {
	_, ok := errors.AsType[*noConnection](err)
	return ok
}

// dialing marks the errors of a dialer.
func dialing(dial dialer) dialer {
	return func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, d, t)
		if err != nil {
			return nil, &noConnection{err}
		}
		return conn, nil
	}
}

// dials are the connection attempts of an engine. The driver lets all calls wait for the attempt that one of them
// makes, whatever their contexts say, and a silent host keeps an attempt going for Config.DialTimeout.
type dials struct {
	underway atomic.Int64
	life     context.Context // of all attempts; end ends it
	end      context.CancelFunc

	mu      sync.Mutex
	stopped bool
	waiting conc.WaitGroup // calls that may outlive the patience of their callers
}

// counted notes when an attempt is under way, up to the first answer of the server, and ends it with the engine.
func (d *dials) counted(dial dialer) dialer {
	return func(ctx context.Context, address string, n *net.Dialer, t *tls.Config) (net.Conn, error) {
		d.underway.Add(1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.life, cancel)()
		conn, err := dial(ctx, address, n, t)
		if err != nil {
			d.underway.Add(-1)
			return nil, err
		}
		c := &greeted{Conn: conn, settle: sync.OnceFunc(func() { d.underway.Add(-1) })}
		c.forget = context.AfterFunc(d.life, func() {
			if !c.heard.Load() {
				c.settle()
				_ = c.Conn.Close() // not Close, which may not be called before forget is known
			}
		})
		return c, nil
	}
}

// greeted is a connection that is being made until its server has said something.
type greeted struct {
	net.Conn
	heard  atomic.Bool
	settle func()
	forget func() bool
}

func (c *greeted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.heard.Load() {
		c.heard.Store(true)
		c.settle()
	}
	return n, err
}

func (c *greeted) Close() error {
	c.forget()
	c.settle()
	return c.Conn.Close()
}

// within waits for call no longer than ctx allows. The call itself ends when the attempts of its engine do.
func within[T any](ctx context.Context, d *dials, what string, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	started := d.start(func() {
		value, err := call()
		answers <- answer{value, err}
	})
	if !started {
		return call() // nothing is waited for any more
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: %w: waiting for a connection: %w", what, flowfabric.ErrTransport,
			context.Cause(ctx))
	}
}

// start runs f in a goroutine that stop waits for; false after stop.
func (d *dials) start(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.waiting.Go(f)
	return true
}

// stop ends all attempts and keeps calls from waiting for more.
func (d *dials) stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.end()
}

func dialNetwork(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return &plainConn{Conn: conn, address: address, dialer: d}, nil
	}
	if t.ServerName == "" {
		t = t.Clone()
		t.ServerName, _, _ = net.SplitHostPort(address) // as tls.Dialer does
	}
	secure := tls.Client(conn, t)
	if err := shakeHands(ctx, secure, address, d); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func dialUnix(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "unix", path)
}

func dialInProcess(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return inproc.Dial(ctx, address)
}

// A server that speaks plain text may wait for the rest of what it takes for a command, so neither side says anything.
// After handshakeSilence it is asked in plain text whether it is one of those; it gets plainAnswer to say so.
const (
	handshakeSilence = time.Second
	plainAnswer      = 2 * time.Second
)

var errPlain = fmt.Errorf(
	"%w: the server speaks plain text where TLS is asked for; write redis:// (or valkey://) instead of rediss://, or use the server's TLS port",
	flowfabric.ErrConfig)

var errTLS = fmt.Errorf(
	"%w: the server speaks TLS where plain text is asked for; write rediss:// (or valkeys://) instead of redis://, or use the server's plain port",
	flowfabric.ErrConfig)

// plainConn is a connection without TLS. A server that expects TLS answers with an alert, or hangs up without a word.
type plainConn struct {
	net.Conn
	address string
	dialer  *net.Dialer
	heard   bool // of the reader alone
}

const tlsAlert = 21 // the first byte of such a record; no answer of the protocol begins with it

func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.heard {
		return n, err
	}
	c.heard = true
	if n > 0 && b[0] == tlsAlert || n == 0 && err != nil && !errors.Is(err, net.ErrClosed) && speaksTLS(c.address,
		c.dialer) {
		return 0, errTLS
	}
	return n, err
}

// speaksTLS asks on a connection of its own, over which nothing is sent but the handshake. A server that refuses this
// client in words of TLS speaks it.
func speaksTLS(address string, d *net.Dialer) bool {
	ctx, cancel := context.WithTimeout(context.Background(), plainAnswer)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(
		ctx) //nolint:gosec // nothing is trusted here, and nothing told
	_, refused := errors.AsType[tls.AlertError](err)
	var remote *net.OpError // how an alert of the other side is reported without QUIC
	return err == nil || refused || errors.As(err, &remote) && remote.Op == "remote error"
}

// shakeHands makes the TLS handshake, within the time that a connection attempt may take.
func shakeHands(ctx context.Context, secure *tls.Conn, address string, d *net.Dialer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout, fmt.Errorf("no TLS handshake within %s", d.Timeout))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	var asking conc.WaitGroup
	asking.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(handshakeSilence):
			if speaksPlain(ctx, address, d) {
				giveUp(errPlain)
			}
		}
	})
	err := secure.HandshakeContext(ctx)
	cause := context.Cause(ctx)
	giveUp(nil)
	asking.Wait()
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil:
		return nil
	case noTLS, errors.Is(cause, errPlain):
		return errPlain
	case cause != nil:
		return cause
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// speaksPlain asks on a connection of its own. Any answer of the protocol will do, a refusal too.
func speaksPlain(ctx context.Context, address string, d *net.Dialer) bool {
	ctx, cancel := context.WithTimeout(ctx, plainAnswer)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close()
		}
	}()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	first := make([]byte, 1)
	_, err = conn.Read(first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}
