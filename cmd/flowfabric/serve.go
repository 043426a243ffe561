package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/dashboard"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
	"github.com/flowfabric/flowfabric-go/internal/slowbody"
)

const (
	defaultHTTP = "127.0.0.1:7788"
	// metricPrefix is that of workers by default: they and serve tell of partitions with the same metrics.
	metricPrefix = "flowfabric_"
	// stopWithin is how long serve lets requests end; endStreams is when it ends those that would not by themselves.
	stopWithin = 20 * time.Second
	endStreams = 2 * time.Second
)

type serveFlags struct {
	own          ownStore
	addr, tokens string
	origins      []string
	proxies      []string
	traceURL     string
	idle         bool
	logJSON      bool
	webhooks     string
	connections  int
}

func serveCommand(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard and the HTTP API, and keep time, until interrupted",
		Long: `serve is the process to deploy beside your workers. It serves the dashboard (/), the HTTP API with
live streams (/v1), the pages on which people answer by link (/approve), and metrics (/metrics, for
viewers). It also runs the maintenance without any worker (delays, timeouts, lost leases, schedules,
gates). You may run several; they share the maintenance with each other and with workers.

Every caller needs a bearer token. --tokens names a file of tokens, which serve reads again when it
changes; FLOWFABRIC_API_TOKENS may hold its content instead. "flowfabric token new" makes an entry.
Without any token serve listens on a loopback address only, and everybody on this machine may do
everything.

With --data serve needs no server: it keeps everything in a folder, and other processes reach that store at
--store-addr, as redis://127.0.0.1:7700, or redis://:PASSWORD@host:7700 with --store-password-file, which an
address beyond this machine requires. Workers need the keys that sign tokens, which the folder has in the file
token-keys, as FLOWFABRIC_TOKEN_KEYS. One process at a time uses a folder.

--webhooks names a file of webhooks: whom to tell, by signed requests, of ends, waits and budgets; and from whom to
take requests at /v1/hooks/NAME, to submit, signal or send messages.

FLOWFABRIC_STREAM_KEY (64 hex digits, openssl rand -hex 32) signs the tokens with which browsers follow an
execution; give it to all processes behind one address. serve does not do TLS; put a proxy in front of it.`,
		Example: `  flowfabric serve --url redis://127.0.0.1:6379
  flowfabric serve --data /var/lib/flowfabric
  flowfabric serve --addr 0.0.0.0:7788 --tokens /etc/flowfabric/tokens.json --allow-origin https://app.example`,
		Args: cobra.NoArgs,
		RunE: a.lasting(func(ctx context.Context, _ []string) error { return a.serve(ctx, f) }),
	}
	flags := cmd.Flags()
	f.own.add(flags)
	flags.StringVar(&f.addr, "addr", defaultHTTP, "`host:port` to listen on")
	flags.StringVar(&f.tokens, "tokens", os.Getenv("FLOWFABRIC_API_TOKENS_FILE"),
		"`file` of tokens (default $FLOWFABRIC_API_TOKENS_FILE)")
	flags.StringArrayVar(&f.origins, "allow-origin", nil,
		"`origin` of pages that may call, such as https://app.example; may be repeated")
	flags.StringArrayVar(&f.proxies, "trusted-proxy", nil,
		"`address` or range of a proxy whose X-Forwarded-For is believed, such as 10.0.0.0/8; may be repeated")
	flags.StringVar(&f.traceURL, "trace-url", "",
		"`address` at which people see a trace, with {trace} in the place of its id; the dashboard links to it")
	webhooksFlag(flags, &f.webhooks)
	flags.BoolVar(&f.idle, "no-maintenance", false, "do not keep time: workers or other processes do")
	flags.BoolVar(&f.logJSON, "log-json", false, "log JSON lines")
	flags.IntVar(&f.connections, "max-connections", 20_000, "connections at once; more wait")
	return cmd
}

// reachable is an address that works on this machine: one that stands for all addresses names none, and logs take
// [::] for a secret.
func reachable(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return at.String()
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	logger := slog.New(slog.NewTextHandler(&redacting{a.err}, nil))
	if f.logJSON {
		logger = slog.New(slog.NewJSONHandler(&redacting{a.err}, nil))
	}
	tokens, err := f.authorize(logger)
	if err != nil {
		return err
	}
	proxies, err := prefixes(f.proxies)
	if err != nil {
		return err
	}
	streamKey, err := streamKey(os.Getenv("FLOWFABRIC_STREAM_KEY"))
	if err != nil {
		return err
	}
	if f.connections < 1 {
		return usage("--max-connections is %d, want 1 or more", f.connections)
	}
	hooks, err := readWebhooks(f.webhooks, a.namespace)
	if err != nil {
		return err
	}
	at, err := a.store(ctx, &f.own, logger)
	if err != nil {
		return err
	}
	defer at.close()
	c, err := client.Connect(ctx, client.Config{URL: at.url, Password: at.password, TokenKeys: at.tokenKeys,
		ClientName: "flowfabric-serve", Namespace: a.namespace, Creator: "api", DialTimeout: a.dial(), Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	registry := prometheus.NewRegistry()
	api, err := newGateway(gatewayConfig{client: c, tokens: tokens, origins: f.origins, proxies: proxies,
		streamKey: streamKey, traceURL: f.traceURL, logger: logger, registry: registry, connections: f.connections,
		webhooks: hooks})
	if err != nil {
		return err
	}
	defer api.api.Close()
	defer api.end()
	var eng *engine.Engine // before anybody is served, so that a stop meanwhile leaves nothing behind
	if !f.idle {
		if eng, err = engine.Open(ctx, engine.Config{URL: at.url, Password: at.password,
			ClientName: "flowfabric-serve-ticks", DialTimeout: a.dial(), Logger: logger}); err != nil {
			return err
		}
		defer eng.Close()
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return fmt.Errorf("the HTTP API: %w; --addr names another address", err)
	}
	base := "http://" + reachable(listener.Addr())
	logger.Info("flowfabric: serving", "dashboard", base+"/", "api", base+"/v1/openapi.json", "maintenance", !f.idle)
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(func(ctx context.Context) error { return api.serve(ctx, listener) })
	tasks.Go(func(ctx context.Context) error { return hooks.run(ctx, at, c, logger) })
	if eng != nil {
		partitions := partmetrics.New(metricPrefix)
		registry.MustRegister(partitions)
		host, _ := os.Hostname()
		owner := shorten("serve-"+strconv.Itoa(os.Getpid())+"-"+host, 48)
		tasks.Go(func(ctx context.Context) error { return tend(ctx, eng, owner, logger, partitions) })
	}
	return tasks.Wait()
}

// authorize says who may ask: holders of tokens, or, for nil, everybody on this machine.
func (f *serveFlags) authorize(logger *slog.Logger) (*httpapi.Tokens, error) {
	text := os.Getenv("FLOWFABRIC_API_TOKENS")
	switch {
	case f.tokens != "" && text != "":
		return nil, usage("--tokens and FLOWFABRIC_API_TOKENS are both set; want one of them")
	case f.tokens != "":
		tokens, err := httpapi.LoadTokens(f.tokens, logger)
		if errors.Is(err, fs.ErrNotExist) {
			err = usage("--tokens: %s does not exist: 'flowfabric token new NAME --role operator --file %s' makes it",
				f.tokens, f.tokens)
		}
		return tokens, err
	case text != "":
		return httpapi.ParseTokens(text)
	case !loopback(f.addr):
		return nil, usage(
			"--addr %s is no loopback address: without tokens everybody who reaches it may do everything; name some with --tokens ('flowfabric token new' makes them)",
			f.addr)
	}
	logger.Warn("flowfabric: no tokens: everybody on this machine may do everything")
	return nil, nil
}

// prefixes reads addresses, and ranges of them.
func prefixes(texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if one, failed := netip.ParseAddr(text); failed == nil {
			p, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		if err != nil {
			return nil, usage("--trusted-proxy is %q, want an address or a range such as 10.0.0.0/8", text)
		}
		list = append(list, p)
	}
	return list, nil
}

// loopback tells whether an address can be reached from this machine only.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func streamKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) < 32 {
		return nil, usage("FLOWFABRIC_STREAM_KEY wants 64 hex digits or more: openssl rand -hex 32")
	}
	return key, nil
}

// gateway is the API as a process serves it.
type gateway struct {
	api         *httpapi.Handler
	server      *http.Server
	end         context.CancelFunc // of streams and waits
	connections int
}

type gatewayConfig struct {
	client      *client.Client
	tokens      *httpapi.Tokens // nil: everybody on this machine may do everything
	origins     []string
	proxies     []netip.Prefix
	streamKey   []byte
	traceURL    string
	logger      *slog.Logger
	registry    *prometheus.Registry
	connections int
	webhooks    webhooks
}

func newGateway(cfg gatewayConfig) (*gateway, error) {
	api := httpapi.Config{Admin: admin.New(cfg.client), Authorize: httpapi.Open, AllowedOrigins: cfg.origins,
		TrustedProxies: cfg.proxies, StreamKey: cfg.streamKey, Logger: cfg.logger, History: true}
	if cfg.tokens != nil {
		api.Authorize, api.Tokens = nil, cfg.tokens
	}
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + "api_request_seconds",
		Help:    "How long requests took, by operation and status.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}, []string{"operation", "status"})
	cfg.registry.MustRegister(took, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	api.OnRequest = func(operation string, status int, d time.Duration) {
		took.WithLabelValues(cmp.Or(operation, "none"), strconv.Itoa(status)).Observe(d.Seconds())
	}
	api.Metrics = promhttp.HandlerFor(cfg.registry, promhttp.HandlerOpts{})
	handler, err := httpapi.New(api)
	if err != nil {
		return nil, err
	}
	page, err := dashboard.New(dashboard.Config{API: handler, TraceURL: cfg.traceURL})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("/approve", approval.New(approval.Config{Deliver: cfg.client, Logger: cfg.logger}))
	cfg.webhooks.handle(mux, cfg.client, cfg.logger)
	base, end := context.WithCancel(context.Background())
	return &gateway{api: handler, end: end, connections: cfg.connections,
		server: &http.Server{Handler: slowbody.Handler(mux), ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout: slowbody.Within, IdleTimeout: 2 * time.Minute,
			WriteTimeout:   2 * time.Minute, // streams set one of their own with every event
			MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return base },
			ErrorLog: slog.NewLogLogger(cfg.logger.Handler(), slog.LevelDebug)}}, nil
}

// serve answers until ctx ends; then requests may end, streams are ended, and what is left after a while is cut off.
func (g *gateway) serve(ctx context.Context, listener net.Listener) error {
	defer g.end()
	defer g.api.Close()
	if g.connections > 0 {
		listener = &limited{Listener: listener, slots: make(chan struct{}, g.connections)}
	}
	ctx, cancel := context.WithCancel(ctx)
	var stopping conc.WaitGroup
	var cut error
	stopping.Go(func() {
		<-ctx.Done()
		g.api.Close() // workers that wait for work go elsewhere
		defer time.AfterFunc(endStreams, g.end).Stop()
		within, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		if err := g.server.Shutdown(within); err != nil {
			cut = errors.Join(fmt.Errorf("requests were cut off after %s: %w", stopWithin, err), g.server.Close())
		}
	})
	err := g.server.Serve(listener)
	cancel()
	stopping.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return cut
}

// limited lets so many connections be open at once; more wait to be accepted.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{Conn: c, give: sync.OnceFunc(func() { <-l.slots })}, nil
}

// slot gives its place back when it is closed.
type slot struct {
	net.Conn
	give func()
}

func (s *slot) Close() error {
	defer s.give()
	return s.Conn.Close()
}
