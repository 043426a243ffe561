package conformance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// monitor sees what a server runs for a call, the commands inside the function too. MONITOR tells it to a connection of
// its own; the calls go over a second one, so that the bytes of a reply are seen as they come.
type monitor struct {
	w           *env
	seen, calls net.Conn
	lines, raw  *bufio.Reader
}

// monitor watches the server that has the scenario's partition.
func (w *env) monitor() *monitor {
	w.Helper()
	m := &monitor{w: w, seen: w.dial(), calls: w.dial()}
	m.lines, m.raw = bufio.NewReader(m.seen), bufio.NewReader(m.calls)
	m.write(m.seen, "MONITOR")
	same(w, "monitor", m.line(), "+OK")
	return m
}

func (w *env) dial() net.Conn {
	w.Helper()
	network, address := "tcp", strings.TrimPrefix(w.srv.URL, "redis://")
	if path, ok := strings.CutPrefix(w.srv.URL, "unix://"); ok {
		network, address = "unix", path
	}
	if w.srv.Node != nil {
		address = w.srv.Node(w.p)
	}
	conn, err := net.Dial(network, address)
	w.no(err)
	w.Cleanup(func() { _ = conn.Close() })
	stop := context.AfterFunc(w.ctx, func() { _ = conn.Close() }) // for a server that hangs
	w.Cleanup(func() { stop() })
	return conn
}

func (m *monitor) write(conn net.Conn, args ...string) {
	m.w.Helper()
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	_, err := conn.Write([]byte(text))
	m.w.no(err)
}

func (m *monitor) line() string {
	m.w.Helper()
	text, err := m.lines.ReadString('\n')
	m.w.no(err)
	return strings.TrimSuffix(text, "\r\n")
}

// call runs a function, one of whose arguments is mark and in no other call. It returns the reply's bytes, and the
// commands that the function ran, in order, with every id, digest and kid struck out.
func (m *monitor) call(name, mark string, args ...string) (reply string, commands []string) {
	m.w.Helper()
	end := uuid.NewString()
	m.write(m.calls, append([]string{"FCALL", name, "1", string(m.w.k)}, args...)...)
	m.write(m.calls, "ECHO", end)
	for last := "$" + strconv.Itoa(len(end)) + "\r\n" + end + "\r\n"; !strings.HasSuffix(reply, last); {
		part, err := m.raw.ReadString('\n')
		m.w.no(err)
		reply += part
	}
	inside := false
	for {
		line := m.line()
		if strings.Contains(line, end) {
			break
		}
		_, text, _ := strings.Cut(line, "] ")
		switch {
		case strings.HasPrefix(text, `"FCALL"`):
			inside = strings.Contains(text, mark)
		case inside && strings.Contains(line, " lua] "):
			commands = append(commands, secretive.ReplaceAllString(text, "…"))
		default:
			inside = false // another client's, which is never in the middle of a function
		}
	}
	return strings.TrimSuffix(reply, "$"+strconv.Itoa(len(end))+"\r\n"+end+"\r\n"), commands
}

// secretive is what may differ between calls that must not be told apart: it makes none of them more work.
var secretive = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|k:[^"]*`)
