package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// URL is the value of client.Config.URL and runtime.Config.URL that selects a server in this process which keeps its
// data in memory. With a folder behind it the data is kept there:
//
//	embedded:///var/lib/app              an absolute folder
//	embedded:./data                      a folder below the current one
//	embedded:./data?fsync=always         with Config.FsyncAlways
//
// A program that imports package runtime has the server. A program of clients alone does not link it; it imports this
// package for its effect:
//
//	import _ "github.com/flowfabric/flowfabric-go/embedded"
//
// All users in the process share one server in memory, and one for each folder. It starts with the first and stops when
// the last one has closed; then data in memory is lost, so keep one client or worker open throughout. To choose the
// port or keep data in memory longer, use [Start] and [Server.URL].
const URL = inproc.EmbeddedURL

func init() { inproc.SetEmbedded(Resolve) }

// shared are the servers behind URLs, by folder: a worker and a producer in one program must meet on the same one.
var shared struct {
	sync.Mutex
	servers map[string]*sharedServer
}

type sharedServer struct {
	*Server
	users int
}

// Resolve turns an embedded URL into the address of the server this process shares, starting it for the first
// user; every other URL passes through unchanged. release gives the server back, and the last release stops
// it; it is never nil, is idempotent, and must be called after the last connection to the
// address was closed. logger receives the announcement of a start; nil means slog.Default().
//
// Errors are those of [Start], plus [flowfabric.ErrConfig] for an embedded URL with a host or an unknown parameter (a
// server on a chosen port is what [Start] is for), and for a folder that this process has open with another fsync.
// Resolve may be called concurrently.
func Resolve(ctx context.Context, url string, logger *slog.Logger) (realURL string, release func(), err error) {
	if !inproc.IsEmbedded(url) {
		return url, func() {}, nil
	}
	cfg, err := parse(url)
	if err != nil {
		return "", func() {}, err
	}
	cfg.Logger = logger
	shared.Lock()
	defer shared.Unlock()
	s := shared.servers[cfg.Dir]
	switch {
	case s == nil:
		server, err := Start(ctx, cfg)
		if err != nil {
			return "", func() {}, err
		}
		s = &sharedServer{Server: server}
		if shared.servers == nil {
			shared.servers = map[string]*sharedServer{}
		}
		shared.servers[cfg.Dir] = s
	case s.fsyncAlways != cfg.FsyncAlways:
		return "", func() {}, fmt.Errorf("%w: URL: this process has the folder %s open with another fsync",
			flowfabric.ErrConfig, cfg.Dir)
	}
	s.users++
	return s.URL(), sync.OnceFunc(func() { releaseShared(cfg.Dir) }), nil
}

// parse reads an embedded URL. Only the folder gets into an error: what is in the place of a host may be a password.
func parse(url string) (cfg Config, err error) {
	rest, parameter, has := strings.Cut(strings.TrimPrefix(url, "embedded:"), "?")
	folder := inproc.Folder(url)
	if folder == "" && rest != "//" {
		return cfg, badURL("it names no folder and takes no host; write embedded:///absolute/folder, " +
			"embedded:./relative/folder, or " + URL + " for a server in memory")
	}
	switch {
	case has && folder == "":
		return cfg, badURL("a server in memory takes no parameters")
	case !has, parameter == "fsync=everysec":
	case parameter == "fsync=always":
		cfg.FsyncAlways = true
	default:
		return cfg, badURL("its only parameter is fsync=always or fsync=everysec")
	}
	if folder != "" {
		if cfg.Dir, err = filepath.Abs(folder); err != nil {
			return cfg, badURL(err.Error())
		}
	}
	return cfg, nil
}

func badURL(what string) error {
	return fmt.Errorf("%w: URL: embedded: %s", flowfabric.ErrConfig, what)
}

func releaseShared(folder string) {
	shared.Lock()
	defer shared.Unlock()
	if s := shared.servers[folder]; s.users > 1 {
		s.users--
	} else {
		s.Close()
		delete(shared.servers, folder)
	}
}
