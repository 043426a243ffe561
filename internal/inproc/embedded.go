package inproc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// EmbeddedURL begins the URL of the development server in this process.
const EmbeddedURL = "embedded://"

// Resolver turns a URL that begins with [EmbeddedURL] into an address to dial, see embedded.Resolve.
type Resolver func(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error)

var embedded atomic.Pointer[Resolver]

// SetEmbedded is how package embedded, which a producer does not link, makes itself known to who imports it.
func SetEmbedded(r Resolver) { embedded.Store(&r) }

// Resolve is embedded.Resolve, if the program has package embedded; every URL of another scheme passes through
// unchanged. release is never nil.
func Resolve(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error) {
	if !strings.HasPrefix(url, EmbeddedURL) {
		return url, func() {}, nil
	}
	if r := embedded.Load(); r != nil {
		return (*r)(ctx, url, logger)
	}
	return "", func() {},
		fmt.Errorf(
			`%w: URL: embedded:// needs the development server in this program; add the import _ "github.com/flowfabric/flowfabric-go/embedded"`,
			flowfabric.ErrConfig)
}
