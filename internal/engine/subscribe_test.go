package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// listeners is how many connections the server has on a channel; the doorbell counts the same way.
func listeners(t testing.TB, e *Engine, channel string) int64 {
	t.Helper()
	command := "NUMSUB"
	if e.variant.Sharded {
		command = "SHARDNUMSUB"
	}
	answer, err := do(t, e, "PUBSUB", command, channel).AsMap()
	must.No(t, err)
	m := answer[channel]
	n, err := m.AsInt64()
	must.No(t, err)
	return n
}

func publish(t testing.TB, e *Engine, channel, message string) int64 {
	t.Helper()
	command := "PUBLISH"
	if e.variant.Sharded {
		command = "SPUBLISH"
	}
	n, err := do(t, e, command, channel, message).AsInt64()
	must.No(t, err)
	return n
}

// ear is a subscription in the background.
type ear struct {
	heard  chan string // "channel message"
	ended  chan error
	cancel context.CancelFunc
}

func listen(t testing.TB, owner *conc.WaitGroup, e *Engine, channels ...string) ear {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	x := ear{heard: make(chan string, 1024), ended: make(chan error, 1), cancel: cancel}
	ready := make(chan struct{})
	owner.Go(func() {
		x.ended <- e.Subscribe(ctx, 0, channels, func() { close(ready) }, func(c, m string) { x.heard <- c + " " + m })
	})
	select {
	case <-ready:
	case err := <-x.ended:
		x.fail(t, "subscribe: %v", err)
	case <-testwait.End(t):
		x.fail(t, "subscribe: never confirmed")
	}
	return x
}

// fail ends the subscription as well: its owner waits for it.
func (x ear) fail(t testing.TB, format string, args ...any) {
	t.Helper()
	x.cancel()
	t.Fatalf(format, args...)
}

func (x ear) expect(t testing.TB, want string) {
	t.Helper()
	select {
	case got := <-x.heard:
		if got != want {
			x.fail(t, "heard %q, want %q", got, want)
		}
	case err := <-x.ended:
		x.fail(t, "ended instead of %q: %v", want, err)
	case <-testwait.End(t):
		x.fail(t, "never heard %q", want)
	}
}

func (x ear) stop(t testing.TB) {
	t.Helper()
	x.cancel()
	select {
	case err := <-x.ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-testwait.End(t):
		t.Fatal("Subscribe did not return after its context ended")
	}
}

func everywhere(t *testing.T, run func(t *testing.T, e *Engine)) {
	for name, start := range map[string]func(testing.TB) string{
		"redis": func(t testing.TB) string { return testserver.Redis(t) }, "embedded": testserver.Embedded,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t, Config{URL: start(t), Partitions: 2})) })
	}
}

func TestSubscribe(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		var owner conc.WaitGroup
		defer owner.Wait()
		bell, events := BellChannel(0, "w1"), EventChannel(mint.ID(0))
		x := listen(t, &owner, e, bell, events)
		if publish(t, e, bell, "w") != 1 || publish(t, e, events, "T1 0") != 1 {
			t.Error("ready was called before the server knew of all channels")
		}
		x.expect(t, bell+" w")
		x.expect(t, events+" T1 0")
		x.stop(t)
		testwait.Until(t, "the server forgets the subscriber", func() bool {
			return listeners(t, e, bell)+listeners(t, e, events) == 0
		})
		if n := publish(t, e, bell, "w"); n != 0 {
			t.Errorf("%d subscribers got a message after the end", n)
		}
	})
}

// A second subscriber of the same channel keeps it alive until the last one leaves.
func TestSubscribersShareAChannel(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		var owner conc.WaitGroup
		defer owner.Wait()
		const shared, own = "ff:{fp:0}:bell:a", "ff:{fp:0}:bell:b"
		first := listen(t, &owner, e, shared)
		second := listen(t, &owner, e, shared, own)
		publish(t, e, shared, "1")
		first.expect(t, shared+" 1")
		second.expect(t, shared+" 1")
		second.stop(t)
		if n := listeners(t, e, own); n != 0 {
			t.Errorf("the second's own channel has %d listeners", n)
		}
		publish(t, e, shared, "2")
		first.expect(t, shared+" 2")
		first.stop(t)
		if n := listeners(t, e, shared); n != 0 {
			t.Errorf("the shared channel has %d listeners left", n)
		}
		third := listen(t, &owner, e, shared)
		publish(t, e, shared, "3")
		third.expect(t, shared+" 3")
		third.stop(t)
	})
}

// A subscriber that comes while the last one leaves must not be unsubscribed with it, and one that comes while others
// are told much does not stop the connection (it would stand still for ten seconds, and then be lost to all).
func TestSubscribeChurn(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		const channel = "ff:{fp:0}:bell:w"
		var churn conc.WaitGroup
		for worker := range 4 {
			churn.Go(func() {
				var owner conc.WaitGroup
				defer owner.Wait()
				for round := range 50 {
					x := listen(t, &owner, e, channel)
					message := fmt.Sprintf("%d-%d", worker, round)
					for range 20 {
						publish(t, e, channel, "many")
					}
					if publish(t, e, channel, message) != 1 {
						t.Errorf("nobody listens right after ready")
					}
					for heard := ""; !strings.HasSuffix(heard, " "+message); { // others' messages come as well
						select {
						case heard = <-x.heard:
						case <-testwait.End(t):
							t.Errorf("%s never came", message)
							heard = " " + message
						}
					}
					x.stop(t)
				}
			})
		}
		churn.Wait()
		if n := listeners(t, e, channel); n != 0 {
			t.Errorf("%d listeners are left", n)
		}
	})
}

func TestSubscribeManyChannels(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		var owner conc.WaitGroup
		defer owner.Wait()
		channels := make([]string, 300)
		for i := range channels {
			channels[i] = BellChannel(uint16(i%2), fmt.Sprintf("w%d", i))
		}
		x := listen(t, &owner, e, channels...)
		for _, c := range channels {
			publish(t, e, c, "w")
			x.expect(t, c+" w")
		}
		x.stop(t)
		for _, c := range channels[:10] {
			if n := listeners(t, e, c); n != 0 {
				t.Errorf("%s has %d listeners left", c, n)
			}
		}
	})
}

func TestSubscribeLosesItsServer(t *testing.T) {
	server := testserver.Start(t, testserver.ServerRedis)
	e := open(t, Config{URL: server.URL(), Partitions: 2})
	var owner conc.WaitGroup
	defer owner.Wait()
	x := listen(t, &owner, e, "ff:{fp:0}:bell:w")
	server.Restart()
	select {
	case err := <-x.ended:
		if !errors.Is(err, flowfabric.ErrTransport) {
			t.Errorf("ended with %v", err)
		}
	case <-testwait.End(t):
		t.Fatal("a lost connection was not noticed")
	}
	again := listen(t, &owner, e, "ff:{fp:0}:bell:w")
	publish(t, e, "ff:{fp:0}:bell:w", "w")
	again.expect(t, "ff:{fp:0}:bell:w w")
	again.stop(t)
}
