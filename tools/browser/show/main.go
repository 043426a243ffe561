// Command show fills a Redis of its own with a scene and serves the dashboard for it, until it is interrupted: for
// people who change the pages.
//
//	go run ./show -addr 127.0.0.1:7799 -assets ../../dashboard/assets   # the files as they are now, without building again
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/dashboard"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7799", "where to listen")
	url := flag.String("url", "", "store to use; default: an embedded server")
	assets := flag.String("assets", "", "folder of the files of the dashboard; default: those that were built in")
	flag.Parse()
	if err := run(*addr, *url, *assets); err != nil {
		fmt.Fprintln(os.Stderr, "show:", err)
		os.Exit(1)
	}
}

func run(addr, url, assets string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if url == "" {
		server, err := embedded.Start(ctx, embedded.Config{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
	}
	s, err := scene.Start(ctx, url)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Fill(ctx); err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Config{URL: url, TokenKeys: scene.Keys, Creator: "api"})
	if err != nil {
		return err
	}
	defer c.Close()
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, History: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer api.Close()
	page, err := dashboard.New(dashboard.Config{API: api})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	if assets != "" {
		mux.Handle("/assets/", http.StripPrefix("/assets/", http.FileServer(http.Dir(assets))))
	}
	fmt.Printf("http://%s/\nexecution %s\nsuspended %s\nfailed %s\nflow %s\nbroken flow %s\n", addr, s.Written,
		s.Suspended, s.Failed, s.Flow, s.BrokenFlow)
	server := &http.Server{Addr: addr, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	_ = server.ListenAndServe()
	return nil
}
