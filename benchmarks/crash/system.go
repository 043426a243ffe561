package crash

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// system is one way to run the agent.
type system struct {
	name  string // page.md says by this name how it is used
	serve func(ctx context.Context, program string) (driver.Server, error)
	talk  func() dialect
	// worker is the process; nil is this program, which then runs work.
	worker  func(ctx context.Context, url, service string) *exec.Cmd
	work    func(ctx context.Context, url, service string) error
	open    func(ctx context.Context, s driver.Server) (caller, error)
	version func() string
}

// caller is whoever wants something of the agent: it submits one run to an empty store, and follows it.
type caller interface {
	// submit returns once the store has the run.
	submit(ctx context.Context) error
	// result waits for the answer.
	result(ctx context.Context) (string, error)
	// pass makes the time pass after which the store takes a worker that was killed for lost.
	pass(ctx context.Context) error
	// shown is all that a reader saw which followed from the beginning, and how many tokens it was told to drop.
	shown(ctx context.Context) (tokens []string, dropped int, err error)
	close()
}

var systems = []system{flowFabric, asynqPlain, asynqSaved, riverSteps, bullSteps, goWorkflows}

// Names of the systems.
func Names() (out []string) {
	for _, s := range systems {
		out = append(out, s.name)
	}
	return out
}

func find(name string) (system, error) {
	if i := slices.IndexFunc(systems, func(s system) bool { return s.name == name }); i >= 0 {
		return systems[i], nil
	}
	return system{}, fmt.Errorf("crash: unknown system %q, want one of %s", name, strings.Join(Names(), ", "))
}

// Work is a worker process. It goes on until it is killed, or its input ends because the process that started it has
// ended.
func Work(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("crash worker: %q: want a system, a store and a service", args)
	}
	s, err := find(args[0])
	if err != nil {
		return err
	}
	go func() { // nothing outlives the process
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}()
	return s.work(ctx, args[1], args[2])
}

// redisServer starts a private server.
func redisServer(ctx context.Context, program string) (driver.Server, error) {
	return server.Start(ctx, program)
}

func respDialect() dialect { return &resp{} }

// socket is the path in a URL of a server.
func socket(url string) string { return strings.TrimPrefix(url, "unix://") }

// dialRedis opens a connection of this process.
func dialRedis(url string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{socket(url)}, DisableCache: true,
		ForceSingleClient: true, DialCtxFn: func(ctx context.Context, path string, d *net.Dialer,
			_ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
}

// The key of the transcript and that of the tokens, of peers that keep them in Redis themselves.
const (
	keyTranscript = "agent:transcript"
	keyTokens     = "agent:tokens"
	field         = "token"
)

// readTokens are those of a stream in Redis. Nothing in it changes, so a reader that followed has seen all of them.
func readTokens(ctx context.Context, c rueidis.Client, key string, token func(map[string]string) string) ([]string,
	error) {
	entries, err := c.Do(ctx, c.B().Xrange().Key(key).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if t := token(e.FieldValues); t != "" {
			out = append(out, t)
		}
	}
	return out, nil
}
