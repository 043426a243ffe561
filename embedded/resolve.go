package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// URL is the value of client.Config.URL and runtime.Config.URL that selects the development server in this process. A
// program that imports package runtime has the server. A program of clients alone does not link it; it imports this
// package for its effect:
//
//	import _ "github.com/flowfabric/flowfabric-go/embedded"
//
// All users in the process share one server. It starts with the first and stops, losing all data, when the last one
// has closed, so keep one client or worker open throughout. To choose the port or keep the data longer, use [Start]
// and [Server.URL].
const URL = inproc.EmbeddedURL

func init() { inproc.SetEmbedded(Resolve) }

// shared is the server behind [URL]: a worker and a producer in one program must meet on the same one.
var shared struct {
	sync.Mutex
	server *Server
	users  int
}

// Resolve turns "embedded://" into the address of the server this process shares, starting it for the first
// user; every other URL passes through unchanged. release gives the server back, and the last release stops
// it and drops its data; it is never nil, is idempotent, and must be called after the last connection to the
// address was closed. logger receives the announcement of a start; nil means slog.Default().
//
// Errors are those of [Start], plus [flowfabric.ErrConfig] for an embedded URL with a host or a path: a server
// on a chosen port is what [Start] is for. Resolve may be called concurrently.
func Resolve(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error) {
	rest, ok := strings.CutPrefix(url, URL)
	if !ok {
		return url, func() {}, nil
	}
	if rest != "" {
		return "", func() {}, fmt.Errorf("%w: URL: an embedded URL takes neither host, path nor parameters, write %q",
			flowfabric.ErrConfig, URL)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		if shared.server, err = Start(ctx, Config{Logger: logger}); err != nil {
			return "", func() {}, err
		}
	}
	shared.users++
	return shared.server.URL(), sync.OnceFunc(releaseShared), nil
}

func releaseShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users == 0 {
		shared.server.Close()
		shared.server = nil
	}
}
