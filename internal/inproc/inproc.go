// Package inproc gives servers inside this process an address, so that an engine can be pointed at one by its URL
// alone and talk to it through memory instead of a socket.
//
//	Listen(dial) ─▶ "inproc://7" ─▶ engine.Config.URL ─▶ Dial("7") ─▶ dial() ─▶ one end of a pipe
//
// A connection in memory is what a testing/synctest bubble needs: a goroutine that waits for a socket keeps the
// bubble's clock from moving, one that waits for a pipe does not.
//
// It also leads from embedded:// to package embedded, if the program has it.
//
// An address is valid until it is released; dialling it afterwards fails as dialling a dead host does.
package inproc

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Scheme begins every URL that [Listen] returns.
const Scheme = "inproc"

// Dialer opens one connection to a server of this process.
type Dialer func(ctx context.Context) (net.Conn, error)

var listening struct {
	sync.Mutex
	last    uint64
	dialers map[string]Dialer
}

// Listen gives dial an address that no other has in this process. release takes it away; it is idempotent and
// leaves connections alone. Safe for concurrent use.
func Listen(dial Dialer) (url string, release func()) {
	listening.Lock()
	defer listening.Unlock()
	if listening.dialers == nil {
		listening.dialers = map[string]Dialer{}
	}
	listening.last++
	name := strconv.FormatUint(listening.last, 10)
	listening.dialers[name] = dial
	return Scheme + "://" + name, func() {
		listening.Lock()
		defer listening.Unlock()
		delete(listening.dialers, name)
	}
}

// Dial opens a connection to the address, which is a URL of [Listen] with or without its scheme.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	name := strings.TrimPrefix(address, Scheme+"://")
	listening.Lock()
	dial := listening.dialers[name]
	listening.Unlock()
	if dial == nil {
		return nil, fmt.Errorf("dial %s://%s: nothing of this process listens there", Scheme, name)
	}
	return dial(ctx)
}
