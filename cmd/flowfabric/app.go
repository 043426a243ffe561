package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// app is what all commands of one run share: where to read and write, and the global flags.
type app struct {
	in       io.Reader
	out, err io.Writer

	url, namespace, by, reason string
	profile                    string  // --profile
	chosen                     profile // that the command line means; the zero one: none
	byProfile                  bool    // it says the namespace
	timeout                    time.Duration
	json, plain                bool
}

// once adapts the body of a command that asks or changes something: it ends within --timeout.
func (a *app) once(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.timeout <= 0 {
			return usage("--timeout is %s, want more than 0", a.timeout)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
		defer cancel()
		return marked(ctx, body(ctx, args))
	}
}

// lasting adapts the body of a command that goes on by itself: it ends within --timeout only if that was given.
func (a *app) lasting(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("timeout") {
			return a.once(body)(cmd, args)
		}
		return marked(cmd.Context(), body(cmd.Context(), args))
	}
}

// location is --url, or that of a profile. What makes no sense from outside of a program is refused.
func (a *app) location() (string, error) {
	url := cmp.Or(a.url, a.chosen.URL, os.Getenv("FLOWFABRIC_URL"))
	switch {
	case url == "":
		return "", usage(
			"no store is named: set --url, --profile or FLOWFABRIC_URL, such as redis://host:6379, " +
				"or use --data with 'flowfabric dev' or 'flowfabric serve'")
	case inproc.IsEmbedded(url):
		return "", usage(
			"embedded: is a store inside another program; use the address redis://… that the program logs at its start, or --data DIR with 'flowfabric dev' or 'flowfabric serve' while it does not run")
	}
	return url, nil
}

// address is the URL of the store.
func (a *app) address() (string, error) {
	url, err := a.location()
	if err == nil && served(url) {
		err = usage("this command works on the store itself, and --url names a process that serves it")
	}
	return url, err
}

// boots says whether a command may be the first that ever uses a store, and so fixes its partition count.
type boots bool

const (
	mayBoot   boots = true
	mustExist boots = false
)

// client connects as a producer and operator.
func (a *app) client(ctx context.Context, first boots) (*client.Client, error) {
	url, err := a.address()
	if err != nil {
		return nil, err
	}
	by, err := a.who()
	if err != nil {
		return nil, err
	}
	create := bool(first)
	return client.Connect(ctx, client.Config{URL: url, ClientName: "flowfabric-cli", Namespace: a.namespace,
		Creator:      by,
		CreateConfig: &create, DialTimeout: a.dial(), Logger: a.logger()})
}

// engineConfig is for what looks at the servers themselves.
func (a *app) engineConfig(first boots) (engine.Config, error) {
	url, err := a.address()
	if err != nil {
		return engine.Config{}, err
	}
	create := bool(first)
	return engine.Config{URL: url, ClientName: "flowfabric-cli", CreateConfig: &create, DialTimeout: a.dial(),
		Logger: a.logger()}, nil
}

// dial is how long one attempt to connect may take.
func (a *app) dial() time.Duration { return max(min(a.timeout, 10*time.Second), time.Millisecond) }

// operate runs body with an admin.
func (a *app) operate(ctx context.Context, body func(o *admin.Admin) error) error {
	return a.with(ctx, func(c *client.Client) error { return body(admin.New(c)) })
}

// with runs body with a client.
func (a *app) with(ctx context.Context, body func(c *client.Client) error) error {
	c, err := a.client(ctx, mustExist)
	if err != nil {
		return err
	}
	defer c.Close()
	return body(c)
}

// logger shows warnings of the library, never a secret.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&redacting{a.err}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// who is the one who asks: --by, FLOWFABRIC_BY, or the user of the operating system.
func (a *app) who() (string, error) {
	if len(a.by) > limits.MaxName {
		return "", usage("--by has %d bytes, want at most %d", len(a.by), limits.MaxName)
	}
	if strings.ContainsFunc(a.by, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return "", usage("--by has control characters")
	}
	if by := cmp.Or(a.by, os.Getenv("FLOWFABRIC_BY")); by != "" {
		return shorten(by, limits.MaxName), nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return shorten(u.Username, limits.MaxName), nil
	}
	return "unknown", nil
}
