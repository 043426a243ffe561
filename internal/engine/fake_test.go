package engine

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// TestMain keeps the log quiet and finds goroutines that an engine leaves behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// see internal/cluster
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// fake is a server that speaks just enough RESP3 to be opened, and answers function calls with what a test wants.
type fake struct {
	listener net.Listener
	hello    string // the reply to HELLO

	mu    sync.Mutex
	fcall func(function string) string // the raw reply to FCALL
	get   string                       // the raw reply to GET, HGETALL and XRANGE
}

const (
	nilReply = "_\r\n"
	okReply  = "+OK\r\n"
)

func bulk(s string) string { return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n" }

func integer(n int64) string { return ":" + strconv.FormatInt(n, 10) + "\r\n" }

func array(items ...string) string {
	return "*" + strconv.Itoa(len(items)) + "\r\n" + strings.Join(items, "")
}

// envelope is a reply of the library: status, then text slots.
func envelope(status int64, slots ...string) string {
	items := []string{integer(status)}
	for _, s := range slots {
		items = append(items, bulk(s))
	}
	return array(items...)
}

func helloReply(server, version, mode string) string {
	return "%3\r\n" + bulk("server") + bulk(server) + bulk("version") + bulk(version) + bulk("mode") + bulk(mode)
}

func startFake(t testing.TB) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	f := &fake{listener: l, hello: helloReply("redis", "7.0.15", "standalone"), get: nilReply}
	f.fcall = func(name string) string {
		switch name {
		case "ff_version":
			return envelope(1, "OK", protocol, "999999", "hash") // newer, so nothing is loaded
		case "ff_configure":
			return envelope(1, "OK", "4", "32", "32", "0")
		}
		return envelope(1, "OK", protocol)
	}
	var connections conc.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	connections.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			connections.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		connections.Wait()
	})
	return f
}

func (f *fake) url() string { return "redis://" + f.listener.Addr().String() }

func (f *fake) answer(reply func(function string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fcall = reply
}

func (f *fake) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, f.reply(args)); err != nil {
			return
		}
	}
}

func (f *fake) reply(args []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		return f.hello
	case "FCALL":
		return f.fcall(args[1])
	case "GET", "HGETALL", "XRANGE":
		return f.get
	case "HGET":
		return nilReply
	case "MGET": // there is no record, and the payload has a key of its own
		return "*2\r\n$-1\r\n" + f.get
	case "INFO":
		return bulk("redis_version:7.0.15\r\n")
	case "PING":
		return "+PONG\r\n"
	}
	return okReply
}

func readCommand(r *bufio.Reader) ([]string, error) {
	line := func() (string, error) {
		s, err := r.ReadString('\n')
		return strings.TrimRight(s, "\r\n"), err
	}
	head, err := line()
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(head, "*"))
	args := make([]string, n)
	for i := range args {
		size, err := line()
		if err != nil {
			return nil, err
		}
		k, _ := strconv.Atoi(strings.TrimPrefix(size, "$"))
		b := make([]byte, k+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:k])
	}
	return args, nil
}

// openFake opens an engine on a fake server.
func openFake(t testing.TB) (*Engine, *fake) {
	t.Helper()
	f := startFake(t)
	e, err := Open(context.Background(), Config{URL: f.url()})
	must.No(t, err)
	t.Cleanup(e.Close)
	return e, f
}
