package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/hookin"
	"github.com/flowfabric/flowfabric-go/internal/misfit"
	"github.com/flowfabric/flowfabric-go/internal/webhook"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// maxWebhooksFile bounds the file of --webhooks, in bytes.
const maxWebhooksFile = 1 << 20

// webhooks are those of a file: what goes out, and what comes in.
type webhooks struct {
	out webhook.Endpoints
	in  hookin.Hooks
}

func webhooksFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "webhooks", os.Getenv("FLOWFABRIC_WEBHOOKS_FILE"),
		"`file` of webhooks out and in, see docs/how-to/webhooks.md (default $FLOWFABRIC_WEBHOOKS_FILE)")
}

// readWebhooks reads the file of --webhooks; without one there are none.
func readWebhooks(file, namespace string) (w webhooks, err error) {
	if file == "" {
		return w, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return w, usage("--webhooks: %v", err)
	}
	if len(text) > maxWebhooksFile {
		return w, usage("--webhooks: %s has %d bytes, want at most %d", file, len(text), maxWebhooksFile)
	}
	var said struct {
		Out map[string]webhook.Endpoint `json:"out"`
		In  map[string]hookin.Hook      `json:"in"`
	}
	if err := json.Unmarshal(text, &said, json.RejectUnknownMembers(true)); err != nil {
		return w, usage("--webhooks: %s: %s", file, misread(text, &said, err))
	}
	if w.out, err = webhook.Read(said.Out); err == nil {
		w.in, err = hookin.Read(said.In, namespace)
	}
	if err != nil {
		return w, fmt.Errorf("--webhooks: %s: %w", file, err)
	}
	return w, nil
}

// misread says where a file is not as it should be, and how, without our types.
func misread(text []byte, into any, err error) string {
	if bad, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(bad.Err, json.ErrUnknownName) {
		return string(bad.JSONPointer) + ": " + misfit.Unknown
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(bad.Err, jsontext.ErrDuplicateName) {
		return string(bad.JSONPointer) + ": it is there twice"
	}
	pointer, wrong := misfit.Decoding(text, into)
	return pointer + ": " + wrong
}

// handle adds the route of webhooks that come in.
func (w webhooks) handle(mux *http.ServeMux, c *client.Client, logger *slog.Logger) {
	if len(w.in) > 0 {
		mux.Handle("POST /v1/hooks/{name}", &hookin.Handler{Hooks: w.in, Client: c, Logger: logger})
	}
}

// run sends what goes out until ctx ends, with a worker of its own.
func (w webhooks) run(ctx context.Context, at reached, c *client.Client, logger *slog.Logger) error {
	if len(w.out) == 0 {
		return nil
	}
	sender := webhook.New(webhook.Config{Endpoints: w.out, Admin: admin.New(c), Logger: logger, Stop: ctx})
	worker, err := runtime.New(runtime.Config{URL: at.url, Password: at.password, TokenKeys: at.tokenKeys,
		Namespace: webhook.Namespace, Worker: "webhooks", Capabilities: w.out.Capabilities(),
		Concurrency: webhook.Concurrency, LeaseTTL: 15 * time.Second, DrainTimeout: 5 * time.Second,
		DisableMaintenance: true, Logger: logger.With("worker", "webhooks")}, sender.Bindings()...)
	if err != nil {
		return err
	}
	defer w.out.Close()
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(worker.Run)
	tasks.Go(sender.Keep)
	return tasks.Wait()
}
