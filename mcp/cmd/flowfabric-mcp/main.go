// Command flowfabric-mcp serves tools of the Model Context Protocol: to the process that starts it, over standard input
// and output, or over HTTP. Without a file they operate the system, see operations.go. A file names kinds of work, each
// of which becomes a tool; the workers that have their handlers run elsewhere.
// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/mcp.md has examples. "flowfabric mcp" runs it, too.
package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
	ours "github.com/flowfabric/flowfabric-go/mcp"
)

const usage = `flowfabric-mcp serves MCP tools: over standard input and output, or with -http over HTTP.

Usage: flowfabric-mcp [flags]                       tools that operate FlowFabric; they only read without -write
       flowfabric-mcp -config tools.json [flags]    kinds of work as tools

Environment:
  FLOWFABRIC_URL         the server
  FLOWFABRIC_TOKEN       the token for an https:// URL
  FLOWFABRIC_MCP_KEY     signs the ids of tasks: 64 hex digits (openssl rand -hex 32). Give it to all processes
                         behind one address, and keep it, so that tasks are found again
  FLOWFABRIC_API_TOKENS  the content of the file of tokens, instead of -tokens

Flags:
`

// endCalls is how long requests may go on after the process was asked to stop; executions go on in any case.
const endCalls = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type flags struct {
	config, url, namespace, by, http, path, tokens string
	write, bound                                   bool // bound: to the namespace, which was said
}

// errUsage marks a command line that makes no sense.
var errUsage = errors.New("invalid usage")

// run is main without the process. The exit code is 2 for a command line or a file that makes no sense, and 1 for
// everything else that went wrong.
func run(ctx context.Context, args []string, in io.ReadCloser, out io.WriteCloser, problems io.Writer) int {
	var f flags
	set := flag.NewFlagSet("flowfabric-mcp", flag.ContinueOnError)
	set.SetOutput(problems)
	set.Usage = func() { fmt.Fprint(problems, usage); set.PrintDefaults() }
	set.StringVar(&f.config, "config", "",
		"`file` that names kinds of work as tools (default: the tools operate FlowFabric)")
	set.StringVar(&f.url, "url", os.Getenv("FLOWFABRIC_URL"),
		"`address` of the server: redis://, rediss://, valkey://, valkeys:// or unix://; without -config also https://"+
			" of a process that serves the API")
	set.StringVar(&f.namespace, "namespace", "default",
		"`namespace` of executions, for callers that have none of their own; without -config the only one they see"+
			" (default all)")
	set.BoolVar(&f.write, "write", false,
		"without -config: also have tools that change something, as far as the role allows; each change asks its user")
	set.StringVar(&f.by, "by", os.Getenv("FLOWFABRIC_BY"),
		"`who` is served over standard input and output (default the user of the operating system)")
	set.StringVar(&f.http, "http", "", "`host:port` to listen on (default: standard input and output)")
	set.StringVar(&f.path, "path", "/mcp", "`path` of the server over HTTP")
	set.StringVar(&f.tokens, "tokens", os.Getenv("FLOWFABRIC_API_TOKENS_FILE"),
		"`file` of bearer tokens, as flowfabric serve reads it ('flowfabric token new' makes them)")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	set.Visit(func(given *flag.Flag) { f.bound = f.bound || given.Name == "namespace" })
	err := serve(ctx, f, set.Args(), &mcp.IOTransport{Reader: in, Writer: out},
		slog.New(slog.NewTextHandler(problems, nil)))
	if err == nil || ctx.Err() != nil {
		return 0
	}
	fmt.Fprintln(problems, "flowfabric-mcp:", err)
	if errors.Is(err, errUsage) || errors.Is(err, flowfabric.ErrConfig) {
		return 2
	}
	return 1
}

func serve(ctx context.Context, f flags, rest []string, stdio mcp.Transport, log *slog.Logger) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%w: %q is not a flag; the tools are in the file of -config", errUsage, rest[0])
	case f.config != "" && f.write:
		return fmt.Errorf("%w: -write is for the tools that operate FlowFabric, which -config does not serve", errUsage)
	case f.url == "":
		return fmt.Errorf("%w: no server is named: set -url or FLOWFABRIC_URL (redis://host:6379)", errUsage)
	}
	if strings.HasPrefix(f.url, "embedded:") {
		return fmt.Errorf(
			"%w: embedded: is a store inside another program; use the address redis://… that the program logs at its start",
			errUsage)
	}
	if f.config == "" {
		return operate(ctx, f, stdio, log)
	}
	file, kinds, err := load(f.config)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, f.config, err)
	}
	cfg := ours.Config{Name: cmp.Or(file.Name, "flowfabric"), Title: file.Title, Instructions: file.Instructions,
		Version: version(), Logger: log, Local: httpapi.Principal{Name: cmp.Or(f.by, username()), Role: httpapi.Admin}}
	if cfg.TaskKey, err = taskKey(os.Getenv("FLOWFABRIC_MCP_KEY")); err != nil {
		return err
	}
	if len(cfg.TaskKey) == 0 {
		log.Warn(
			"flowfabric-mcp: FLOWFABRIC_MCP_KEY is not set: clients cannot come back for a task once this process has ended")
	}
	if f.http != "" {
		if cfg.Authorize, err = f.authorize(log); err != nil {
			return err
		}
	}
	c, err := client.Connect(ctx, client.Config{URL: f.url, ClientName: "flowfabric-mcp", Namespace: f.namespace,
		Logger: log})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := ours.New(c, cfg, kinds...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.config, err)
	}
	if f.http == "" {
		return s.Run(ctx, stdio)
	}
	h, err := s.HTTP()
	if err != nil {
		return err
	}
	return listen(ctx, f, h, log)
}

// listen serves over HTTP until ctx ends.
func listen(ctx context.Context, f flags, h http.Handler, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle(f.path, h)
	listener, err := net.Listen("tcp", f.http)
	if err != nil {
		return err
	}
	log.Info("flowfabric-mcp: serving", "url", "http://"+listener.Addr().String()+f.path)
	requests, end := context.WithCancel(context.Background())
	defer end()
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ctx, cancel := context.WithCancel(ctx)
	var stopping conc.WaitGroup
	stopping.Go(func() {
		<-ctx.Done()
		end() // calls would wait for their executions, which go on without them
		within, cancel := context.WithTimeout(context.Background(), endCalls)
		defer cancel()
		if web.Shutdown(within) != nil {
			_ = web.Close()
		}
	})
	err = web.Serve(listener)
	cancel()
	stopping.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// authorize says who may call: holders of tokens, or everybody on this machine.
func (f *flags) authorize(log *slog.Logger) (func(*http.Request) (httpapi.Principal, error), error) {
	text := os.Getenv("FLOWFABRIC_API_TOKENS")
	host, _, err := net.SplitHostPort(f.http)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: -http %s: %w", errUsage, f.http, err)
	case f.tokens != "" && text != "":
		return nil, fmt.Errorf("%w: -tokens and FLOWFABRIC_API_TOKENS are both set; want one of them",
			errUsage)
	case f.tokens != "":
		tokens, err := httpapi.LoadTokens(f.tokens, log)
		if err != nil {
			return nil, err
		}
		return tokens.Authorize, nil
	case text != "":
		tokens, err := httpapi.ParseTokens(text)
		if err != nil {
			return nil, err
		}
		return tokens.Authorize, nil
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return nil, fmt.Errorf(
			"%w: -http %s is not a loopback address: without tokens everybody who reaches it may call and answer; name some with -tokens ('flowfabric token new' makes them)",
			errUsage, f.http)
	}
	log.Warn("flowfabric-mcp: no tokens: everybody on this machine may call and answer")
	return httpapi.Open, nil
}

func taskKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) < 32 {
		return nil, fmt.Errorf("%w: FLOWFABRIC_MCP_KEY must be 64 hex digits or more: openssl rand -hex 32", errUsage)
	}
	return key, nil
}

// username is the user of the operating system, cut to what names a change.
func username() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "local"
	}
	return u.Username[:min(len(u.Username), 64)]
}
