// Package link is what package client and package admin share without showing it: the connection of a client, what it
// knows of gates, the words for refusals, and the pauses of waits.
package link

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

// Connection is a client as package admin sees it. Nothing of it changes after it was made.
type Connection struct {
	Engine        *engine.Engine     // nil over a store that a test made up
	Tails         *framelog.Hub      // of the client's tails; nil with Engine
	Keyring       *tokenkeys.Keyring // nil: no token keys
	Namespace     string             // of calls that name none
	Creator       string             // who asks if a call does not say; may be empty
	SubmitTimeout time.Duration
	Logger        *slog.Logger
	Life          context.Context // ends when the client closes
	Closed        func() error    // the client's error once Close was called, before that nil
	Gates         *Gates
}
