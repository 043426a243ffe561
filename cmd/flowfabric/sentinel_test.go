package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// Every command finds the primary through Sentinels, serve too, which goes on with the next primary.
func TestSentinel(t *testing.T) {
	set := testserver.Sentinel(t, testserver.ServerRedis, testserver.Passwords{Data: "data-secret", Sentinel: "sentinel-secret"})
	t.Setenv("FLOWFABRIC_URL", set.URL())
	file := filepath.Join(t.TempDir(), "tokens.json")
	if code := run(t.Context(), []string{"token", "new", "me", "--role", "viewer", "--file", file}, strings.NewReader(""), io.Discard, io.Discard); code != 0 {
		t.Fatalf("token new: exit %d", code)
	}
	ctx, stop := context.WithCancel(t.Context())
	var said output
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--tokens", file}, strings.NewReader(""), io.Discard, &said)
	})
	base := said.await(t, `api=(http://[0-9.:]+)/v1`)
	look := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
			status, body := get(t, base+"/readyz", "")
			if status == 200 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("serve is not ready: %d %s", status, body)
			}
		}
		for _, command := range []string{"ls", "workers", "load", "top --once"} {
			if got := cli(t, strings.Fields(command)...); !strings.HasPrefix(got, "exit 0") || strings.Contains(got, "-secret") {
				t.Errorf("flowfabric %s: %s", command, got)
			}
		}
		if got := cli(t, "doctor"); !strings.Contains(got, set.Primary().Address()) {
			t.Errorf("doctor does not name the primary: %s", got)
		}
	}
	look()
	set.Crash()
	look()
}
