package engine

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// listening serves every connection with f, in turn, until the test ends.
func listening(t *testing.T, l net.Listener, f func(net.Conn)) (address string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// redis:// at a server that expects TLS says so, whether that server sends an alert or hangs up.
func TestPlainTextWhereTLSIsSpoken(t *testing.T) {
	cert, key := testserver.Certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	must.No(t, err)
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.No(t, err)
		return l
	}
	const hint = "write rediss://"
	shake := func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
	}
	oneLine(t, "a server with TLS", opening(t, "redis://"+listening(t, listen(), shake)), flowfabric.ErrConfig, hint)
	oneLine(t, "a server with TLS that hangs up", opening(t, "redis://"+listening(t, listen(), func(conn net.Conn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(conn, first); err == nil && first[0] == 22 { // a handshake
			_ = tls.Server(&pushedBack{conn, first}, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
		}
	})), flowfabric.ErrConfig, hint)
	oneLine(t, "a server that hangs up on everybody", opening(t, "redis://"+listening(t, listen(), func(net.Conn) {})),
		flowfabric.ErrTransport, "server listening there")

	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		l := listen()
		address := l.Addr().String()
		_ = l.Close()
		_, port, _ := net.SplitHostPort(address)
		testserver.Start(t, kind, testserver.Args("--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
			"--tls-auth-clients", "no", "--tls-ca-cert-file", cert))
		oneLine(t, string(kind), opening(t, "redis://"+address), flowfabric.ErrConfig, hint)
	}
}

// pushedBack reads what was taken before first.
type pushedBack struct {
	net.Conn
	first []byte
}

func (c *pushedBack) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
