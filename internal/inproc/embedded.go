package inproc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// EmbeddedURL is the URL of the server in this process that keeps its data in memory. One with a folder behind it, or
// with only "embedded:" before the folder, keeps its data there.
const EmbeddedURL = "embedded://"

// ServerName is what the embedded server calls itself.
const ServerName = "flowfabric"

// IsEmbedded reports whether a URL selects a server in this process.
func IsEmbedded(url string) bool { return strings.HasPrefix(url, "embedded:") }

// Resolver turns a URL for which [IsEmbedded] is true into an address to dial, see embedded.Resolve.
type Resolver func(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error)

var embedded atomic.Pointer[Resolver]

// SetEmbedded is how package embedded, which a producer does not link, makes itself known to who imports it.
func SetEmbedded(r Resolver) { embedded.Store(&r) }

// Resolve is embedded.Resolve, if the program has package embedded; every URL of another scheme passes through
// unchanged. release is never nil.
func Resolve(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error) {
	if !IsEmbedded(url) {
		return url, func() {}, nil
	}
	if r := embedded.Load(); r != nil {
		return (*r)(ctx, url, logger)
	}
	return "", func() {},
		fmt.Errorf(
			`%w: URL: embedded:// needs the embedded server in this program; add the import _ "github.com/flowfabric/flowfabric-go/embedded"`,
			flowfabric.ErrConfig)
}
