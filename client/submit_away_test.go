package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// While nobody listens at the store's address a submit waits for as long as its context or SubmitTimeout allow, and
// then says that nothing was sent; what was not sent never comes into being.
func TestASubmitThatIsRefusedAConnectionDidNotHappen(t *testing.T) {
	def := handler.Define[int, int]("away")
	s := testserver.Start(t, testserver.ServerRedis)
	connect := func(timeout time.Duration) *client.Client {
		c, err := client.Connect(t.Context(),
			client.Config{URL: s.URL(), Partitions: 2, SubmitTimeout: timeout, Logger: slog.New(slog.DiscardHandler)})
		must.No(t, err)
		t.Cleanup(c.Close)
		return c
	}
	short, long := connect(time.Second), connect(30*time.Second)
	s.Kill()
	notSent := func(what string, err, want error) {
		t.Helper()
		if _, unknown := errors.AsType[*client.UnknownOutcomeError](err); unknown || !errors.Is(err, want) ||
			!strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The first submit may find that its old connection ends, which leaves its outcome open; the later ones find no
	// connection.
	for _, c := range []*client.Client{short, long} {
		// timed: the server is gone, so that only its context ends the call
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := client.Submit(ctx, c, def, 0)
		cancel()
		if err == nil {
			t.Fatal("submitted to a dead server")
		}
	}
	_, err := client.Submit(t.Context(), short, def, 1)
	notSent("without a deadline", err, flowfabric.ErrTransport)
	_, err = client.SubmitMany(t.Context(), short, def, []int{1, 2})
	notSent("many", err, flowfabric.ErrTransport)
	// The first attempt is over before the context ends, on a slow machine in a later round.
	patience := 300 * time.Millisecond
	for unknown := true; unknown; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience) // timed: the server is gone
		_, err = client.Submit(ctx, long, def, 2)
		cancel()
		_, unknown = errors.AsType[*client.UnknownOutcomeError](err)
	}
	notSent("with a deadline", err, context.DeadlineExceeded)

	// Of those that wait together each is told what is known of it, and its context alone decides for how long it
	// waits.
	var unknown, certain int
	var mu sync.Mutex
	var waiting sync.WaitGroup
	for i := range 40 {
		waiting.Go(func() {
			// timed: the server is gone
			ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(i*5)*time.Millisecond)
			defer cancel()
			_, err := client.Submit(ctx, long, def, i, flowfabric.IdempotencyKey(fmt.Sprint(i%4, "-", i)))
			mu.Lock()
			defer mu.Unlock()
			if _, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
				unknown++
			} else {
				notSent("together", err, context.DeadlineExceeded)
				certain++
			}
		})
	}
	waiting.Wait()
	if certain == 0 {
		t.Errorf("all of %d outcomes are unknown although no connection was ever made", unknown)
	}
}
