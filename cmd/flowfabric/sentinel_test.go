package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Every command finds the primary through Sentinels, serve too, which goes on with the next primary.
func TestSentinel(t *testing.T) {
	set := testserver.Sentinel(t, testserver.ServerRedis,
		testserver.Passwords{Data: "data-secret", Sentinel: "sentinel-secret"})
	t.Setenv("FLOWFABRIC_URL", set.URL())
	file := filepath.Join(t.TempDir(), "tokens.json")
	if code := run(t.Context(), []string{"token", "new", "me", "--role", "viewer", "--file", file},
		strings.NewReader(""), io.Discard, io.Discard); code != 0 {
		t.Fatalf("token new: exit %d", code)
	}
	ctx, stop := context.WithCancel(t.Context())
	var said output
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		for ctx.Err() == nil && !strings.Contains(said.String(), " api=") {
			// a call at the start may take too long on a slow machine
			run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--tokens", file}, strings.NewReader(""), io.Discard,
				&said)
		}
	})
	base := said.await(t, `api=(http://[0-9.:]+)/v1`)
	look := func() {
		t.Helper()
		testwait.Progress(t, "serve is ready", func() (bool, any) {
			status, body := get(t, base+"/readyz", "")
			return status == 200, body
		})
		for _, command := range []string{"ls", "workers", "load", "top --once"} {
			if got := cli(t, strings.Fields(command)...); !strings.HasPrefix(got, "exit 0") ||
				strings.Contains(got, "-secret") {
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
