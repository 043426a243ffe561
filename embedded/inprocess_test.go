package embedded_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// An in-process server lives in a bubble: TIME and key TTLs follow the bubble's clock, and nothing of it remains.
func TestInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, err := embedded.Start(t.Context(),
			embedded.Config{InProcess: true, Addr: "ignored", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must.No(t, err)
		defer s.Close()
		if log.Len() > 0 {
			t.Errorf("announced: %s", &log)
		}
		c, err := client.Connect(t.Context(), client.Config{URL: s.URL(), Partitions: 64, Logger: quiet()})
		must.No(t, err)
		defer c.Close()
		for range 3 {
			begin := time.Now()
			time.Sleep(24 * time.Hour)
			if err := c.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took != 24*time.Hour {
				t.Errorf("a ping after 24 h took until %s", took)
			}
		}
	})
}

func TestInProcessAddresses(t *testing.T) {
	first := start(t, embedded.Config{InProcess: true})
	second := start(t, embedded.Config{InProcess: true})
	if first.URL() == second.URL() {
		t.Fatalf("two servers at %s", first.URL())
	}
	for _, s := range []*embedded.Server{first, second} {
		e, err := engine.Open(t.Context(), engine.Config{URL: s.URL(), Partitions: 1, Logger: quiet()})
		must.No(t, err)
		if !e.Embedded() {
			t.Errorf("%s is %s", s.URL(), e.Server())
		}
		e.Close()
	}
	first.Close()
	if _, err := engine.Open(t.Context(), engine.Config{URL: first.URL(), Logger: quiet()}); err == nil {
		t.Error("a closed server answers")
	}
}
