package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/roundtrip"
	"github.com/flowfabric/flowfabric-go/mcp/internal/operations"
)

// operate serves the tools that operate FlowFabric. Behind them is the HTTP API: of a process that serves it, or its
// handler here, over a store.
func operate(ctx context.Context, f flags, stdio mcp.Transport, log *slog.Logger) error {
	key, err := taskKey(os.Getenv("FLOWFABRIC_MCP_KEY"))
	if err != nil {
		return err
	}
	cfg := operations.Config{Write: f.write, Version: version(), Key: key, Logger: log}
	token, open := os.Getenv("FLOWFABRIC_TOKEN"), false
	if served(f.url) {
		if f.by != "" || f.bound || f.tokens != "" {
			return fmt.Errorf("%w: -by, -namespace and -tokens go with the URL of a store: a process that serves "+
				"knows its callers by their tokens", errUsage)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		defer transport.CloseIdleConnections()
		cfg.Door = operations.Door{Base: strings.TrimRight(f.url, "/"), Send: transport}
	} else {
		var end func()
		if cfg.Door, open, end, err = f.inside(ctx, log); err != nil {
			return err
		}
		defer end()
		token = "" // the door knows who is served
	}
	s, err := operations.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.http == "" {
		return s.Run(ctx, stdio, token)
	}
	return listen(ctx, f, s.HTTP(open), log)
}

// inside is the door of the API's handler in this process. open tells whether it lets everybody in.
func (f *flags) inside(ctx context.Context, log *slog.Logger) (d operations.Door, open bool, end func(), err error) {
	authorize := func(*http.Request) (httpapi.Principal, error) { return f.local(), nil }
	if f.http != "" {
		if authorize, err = f.authorize(log); err != nil {
			return d, false, nil, err
		}
		if open = f.tokens == "" && os.Getenv("FLOWFABRIC_API_TOKENS") == ""; open {
			authorize = func(*http.Request) (httpapi.Principal, error) { return f.local(), nil }
		}
	}
	c, err := client.Connect(ctx, client.Config{URL: f.url, ClientName: "flowfabric-mcp", Logger: log})
	if err != nil {
		return d, false, nil, err
	}
	h, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: authorize,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Close()
		return d, false, nil, err
	}
	return operations.Door{Base: "http://localhost", Send: roundtrip.To{Handler: h}}, open,
		func() { h.Close(); c.Close() }, nil
}

// local is who is served without a token. It may read, and with -write do what operators may.
func (f *flags) local() httpapi.Principal {
	p := httpapi.Principal{Name: cmp.Or(f.by, username()), Role: httpapi.Viewer}
	if f.write {
		p.Role = httpapi.Operator
	}
	if f.bound {
		p.Namespaces = []string{f.namespace}
	}
	return p
}

// served tells whether a URL is that of a process that serves the API, not of a store.
func served(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}
