// Package raw is the ceiling: the least that a queue on Redis or Valkey can cost a Go program, through the same
// client library as FlowFabric. It is no task system, and nobody should use it as one.
//
// A list is the queue. Submit pushes one element, and the client puts the commands of many goroutines into one write;
// SubmitMany pushes 100 in a command. A worker waits with BLMPOP for as many as it has free slots, so that one
// command takes a whole batch, and hands each to a goroutine. What is confirmed is the same as elsewhere: a
// submission returns when the server has stored it.
//
// A typed job is its JSON, encoded and decoded here like elsewhere, and has no result.
//
// What is missing: everything else. There is no identifier, no state, no lease and no fence: a worker that dies loses
// what it took, and the same goes for a panic (at most once). No retry, no delay, no priority, no deadline, no
// cancellation; nothing is retained, so no outcome, no history and no count; no metrics, no log. One key holds all,
// so it does not spread over a cluster.
package raw

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

const (
	key  = "jobs"
	many = 100 // elements of a command
)

// System is a list. It is a [driver.System].
type System struct {
	// Program is the server to start: redis-server, valkey-server or a path.
	Program string
}

// Name is "raw".
func (System) Name() string { return "raw" }

// Version says what it is made of.
func (System) Version() string {
	return "LPUSH and BLMPOP through rueidis; at most once, nothing retained"
}

// Serve starts a server.
func (s System) Serve(ctx context.Context) (driver.Server, error) {
	return server.Start(ctx, s.Program)
}

// Open connects a client.
func (System) Open(_ context.Context, at driver.Server, cfg driver.Settings) (driver.Store, error) {
	socket, ok := strings.CutPrefix(at.URL(), "unix://")
	if !ok {
		return nil, fmt.Errorf("raw: the server is at %s, want a unix socket", at.URL())
	}
	client, err := dial(socket)
	if err != nil {
		return nil, err
	}
	return &store{socket: socket, client: client, typed: cfg.Typed}, nil
}

// dial opens a client that pipelines on one connection.
func dial(socket string) (rueidis.Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{socket}, DisableCache: true,
		ForceSingleClient: true,
		DisableRetry:      true, PipelineMultiplex: -1,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	if err != nil && client != nil { // the library returns one that would dial again later
		client.Close()
	}
	return client, err
}

// store is one round's connection.
type store struct {
	socket string
	client rueidis.Client
	typed  bool
}

func (s *store) Close() { s.client.Close() }

func (s *store) Submit(ctx context.Context, payload []byte) error {
	element, err := s.element(payload)
	if err != nil {
		return err
	}
	return s.client.Do(ctx, s.client.B().Lpush().Key(key).Element(element).Build()).Error()
}

// element is what is pushed for a payload.
func (s *store) element(payload []byte) (string, error) {
	if !s.typed {
		return rueidis.BinaryString(payload), nil
	}
	document, err := json.Marshal(driver.Typed(payload))
	return rueidis.BinaryString(document), err
}

func (s *store) SubmitMany(ctx context.Context, payloads [][]byte) error {
	commands := make(rueidis.Commands, 0, len(payloads)/many+1)
	for part := range slices.Chunk(payloads, many) {
		elements := make([]string, len(part))
		for i, payload := range part {
			var err error
			if elements[i], err = s.element(payload); err != nil {
				return err
			}
		}
		commands = append(commands, s.client.B().Lpush().Key(key).Element(elements...).Build())
	}
	for _, reply := range s.client.DoMulti(ctx, commands...) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}
