package admin_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// A client that runs while the store is flushed goes on by itself: waits and tails of what is gone end with
// ErrNotFound, what is submitted anew is there, and a subscription says that something is missing and goes on with
// what happens from then on.
func TestAClientOutlivesAFlush(t *testing.T) {
	for name, url := range map[string]string{"embedded": testserver.Embedded(t),
		"redis": testserver.Redis(t, testserver.TCP())} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
				Partitions: 4, Logger: slog.New(slog.DiscardHandler)})
			must.No(t, err)
			defer c.Close()
			s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
			must.No(t, err)
			collect(t, ctx, s, len(cancelled(t, ctx, c, 12))) // so that partitions have counted events
			x, err := client.Submit(ctx, c, write, draft{Topic: "gone"})
			must.No(t, err)
			ends := make(chan error, 2)
			go func() { _, err := x.Result(ctx); ends <- err }()
			go func() {
				var last error
				for _, err := range x.Tail(ctx) {
					last = err
				}
				ends <- last
			}()
			flush(t, url)

			// The subscription notices without any call of this client, and loses nothing after that.
			for gaps := 0; gaps < 4; gaps++ {
				for _, err := range s.Events(ctx) {
					if !errors.Is(err, flowfabric.ErrFeedGap) || !strings.Contains(err.Error(), "booted again") {
						t.Fatalf("gap %d: %v", gaps, err)
					}
					break
				}
			}
			ids := cancelled(t, ctx, c, 12)
			seen := collect(t, ctx, s, 12)
			for _, id := range ids {
				if seen[id] != 1 {
					t.Errorf("%s came %d times", id, seen[id])
				}
			}
			for range 2 {
				if err := <-ends; !errors.Is(err, flowfabric.ErrNotFound) {
					t.Errorf("a wait for what is gone: %v", err)
				}
			}

			// A cursor of before begins with what is there, and says so.
			old := s.Cursor()
			flush(t, url)
			resumed, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{From: old})
			must.No(t, err)
			for _, err := range resumed.Events(ctx) {
				if !errors.Is(err, flowfabric.ErrFeedGap) {
					t.Errorf("first event after a cursor of a lost store: %v", err)
				}
				break
			}
		})
	}
}

// flush empties a store behind everybody's back.
func flush(t *testing.T, url string) {
	t.Helper()
	send(t, url, "FLUSHALL")
}

// send sends a server a command, whatever it answers.
func send(t *testing.T, url string, command ...string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "redis://"))
	must.No(t, err)
	defer conn.Close()
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
}
