package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/httpapi"
)

// errOver ends what runs beside the web server.
var errOver = errors.New("the chat is over")

// serve is the main process: the store, if none is given, the web server, and the keeper of the worker process.
func serve(ctx context.Context, o options, env func(string) string, stdout io.Writer) error {
	model, err := choose(env, o.pace)
	if err != nil {
		return err
	}
	url, release, err := embedded.Resolve(ctx, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	if o.url == embedded.URL {
		fmt.Fprintf(stdout, "Store: %s, embedded in this program, in memory, for development only.\n", url)
	}
	if o.keys == "" { // only of an embedded store, which ends with this program
		o.keys = "demo:" + randomHex(32)
	}
	o.url = url // an address that worker processes can reach, too
	if o.published == "" {
		if o.published, err = os.MkdirTemp("", "chat-published-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.published)
	}
	c, err := client.Connect(ctx, client.Config{URL: o.url, TokenKeys: o.keys, Logger: o.log})
	if err != nil {
		return err
	}
	defer c.Close()
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: everybody, Logger: o.log})
	if err != nil {
		return err
	}
	s := &site{options: o, client: c, admin: admin.New(c), keeper: &keeper{options: o}, api: api, model: nameOf(model)}
	s.chat, err = chat.New(c, Talk, chat.Config{Who: anybody, Begin: s.beginning, Blobs: blob.Folder(o.published),
		Logger: o.log})
	if err != nil {
		return err
	}
	defer s.chat.Close()
	return s.run(ctx, stdout)
}

// everybody may talk, and answer what the agent asks. The page is on a loopback address only; a service for several
// people checks here who asks.
func everybody(*http.Request) (httpapi.Principal, error) {
	return httpapi.Principal{Name: "user", Role: httpapi.Operator}, nil
}

// anybody is the one owner of all conversations, for the same reason.
func anybody(*http.Request) (string, error) { return "user", nil }

func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// run serves until ctx ends, or until the worker process cannot be kept up.
func (s *site) run(outer context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(errOver)
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	server.RegisterOnShutdown(s.api.Close)
	server.RegisterOnShutdown(s.chat.Close)
	var beside conc.WaitGroup
	defer beside.Wait()
	defer cancel(errOver)
	if !s.onlyWeb {
		beside.Go(func() {
			if err := s.keeper.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	beside.Go(func() {
		<-ctx.Done()
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if server.Shutdown(late) != nil { // pages that follow a conversation do not end by themselves
			_ = server.Close()
		}
	})
	fmt.Fprintf(stdout, "Model: %s.\nOpen http://%s/ in a browser. Ctrl-C ends it.\n", s.model, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if cause := context.Cause(ctx); outer.Err() == nil && !errors.Is(cause, errOver) {
		return cause
	}
	return nil
}
