package crash

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// Listen gives the server at url an address in this process whose connections are written down: every call and its
// answer go through [Journal.answered]. release takes the address away.
func (j *Journal) Listen(url string) (address string, release func(), err error) {
	network, host := "unix", strings.TrimPrefix(url, "unix://")
	if rest, ok := strings.CutPrefix(url, "redis://"); ok {
		network, host = "tcp", rest
	} else if host == url {
		return "", nil, fmt.Errorf("URL %q is neither unix nor redis", url)
	}
	address, release = inproc.Listen(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: c, journal: j}, nil
	})
	return address, release, nil
}

// wire is a connection that pairs requests with replies, which come in order. One goroutine writes, one reads.
type wire struct {
	net.Conn
	journal *Journal
	out, in []byte // what is not yet a whole request, or reply

	mu      sync.Mutex
	waiting []request
}

// request is a call that waits for its reply. Calls that nobody is interested in have no args.
type request struct {
	sent time.Time
	args []string
}

func (w *wire) Write(p []byte) (int, error) {
	now := time.Now() // not later than it is sent
	w.out = append(w.out, p...)
	at := 0
	for {
		var parts [][]byte
		n, whole := scan(w.out[at:], &parts)
		if !whole {
			break
		}
		at += n
		if len(parts) == 0 || isSubscription(parts[0]) { // those are answered by pushes
			continue
		}
		r := request{sent: now}
		if interesting(parts) {
			for _, part := range parts {
				r.args = append(r.args, string(part[:min(len(part), 64)]))
			}
		}
		w.mu.Lock()
		w.waiting = append(w.waiting, r)
		w.mu.Unlock()
	}
	w.out = append(w.out[:0], w.out[at:]...)
	return w.Conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.in = append(w.in, p[:n]...)
	at := 0
	for {
		var slots [][]byte
		size, whole := scan(w.in[at:], &slots)
		if !whole {
			break
		}
		kind := w.in[at]
		at += size
		if kind == '>' {
			continue
		}
		w.mu.Lock()
		var r request
		if len(w.waiting) > 0 {
			r, w.waiting = w.waiting[0], w.waiting[1:]
		}
		w.mu.Unlock()
		if r.args != nil && kind == '*' {
			w.journal.answered(r, slots)
		}
	}
	w.in = append(w.in[:0], w.in[at:]...)
	return n, err
}

func isSubscription(name []byte) bool {
	return bytes.HasSuffix(bytes.ToUpper(name), []byte("SUBSCRIBE"))
}

// interesting tells the calls that claim or write under a fence.
func interesting(parts [][]byte) bool {
	return len(parts) > 5 && strings.EqualFold(string(parts[0]), "FCALL") && operations[string(parts[1])] != ""
}

// scan reads one RESP3 value from the front of b, appends its leaves to out and returns its length; whole is false
// when more bytes are needed.
func scan(b []byte, out *[][]byte) (size int, whole bool) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 1 {
		return 0, false
	}
	head, at := b[1:end], end+2
	count, _ := strconv.Atoi(string(head))
	switch b[0] {
	case '$', '=', '!':
		if count < 0 {
			*out = append(*out, nil)
			return at, true
		}
		if len(b) < at+count+2 {
			return 0, false
		}
		*out = append(*out, b[at:at+count])
		return at + count + 2, true
	case '*', '~', '>', '%', '|':
		switch b[0] {
		case '%':
			count *= 2
		case '|': // attributes stand before the value they belong to
			count = count*2 + 1
		}
		for range count {
			n, whole := scan(b[at:], out)
			if !whole {
				return 0, false
			}
			at += n
		}
		return at, true
	}
	*out = append(*out, head)
	return at, true
}
