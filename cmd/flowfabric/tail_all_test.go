package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// outputs is output that may be read while a command writes it.
type outputs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *outputs) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *outputs) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// tail --follow shows what happens to executions that match, of a store and of a process that serves it, and ends
// with an interrupt.
func TestTailOfAFilter(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(w.client), Authorize: httpapi.Open,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()
	for name, url := range map[string]string{"store": w.url, "served": server.URL} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(w.ctx)
			out, errOut, code := &outputs{}, &outputs{}, -1
			var following conc.WaitGroup
			following.Go(func() {
				code = run(ctx, []string{"tail", "-f", "--kind", "seen", "--tag", "team.region=eu", "--state",
					"cancelled", "--url", url}, strings.NewReader(""), out, errOut)
			})
			end := func(kind, region string) string {
				x, err := client.Submit(w.ctx, w.client, handler.Define[int, int](kind), 1,
					flowfabric.Tags(map[string]string{"team.region": region}))
				must.No(t, err)
				must.No(t, x.Cancel(w.ctx))
				return x.ID().String()
			}
			var first string
			testwait.Progress(t, "an end is shown", func() (bool, any) {
				end("seen", "us")
				end("unseen", "eu")
				first = end("seen", "eu")
				return strings.Contains(out.String(), "cancelled"), out.String() + errOut.String()
			})
			testwait.Progress(t, "the last end is shown", func() (bool, any) {
				return strings.Contains(out.String(), first), out.String()
			})
			interrupt()
			following.Wait()
			for line := range strings.Lines(out.String()) {
				id, err := flowfabric.ParseExecutionID(strings.Fields(line)[2])
				must.No(t, err)
				s, err := w.client.Execution(id).Get(w.ctx)
				must.No(t, err)
				if s.Kind != "seen" || s.Tags["team.region"] != "eu" || !strings.Contains(line, "cancelled") {
					t.Errorf("%s of %s %v", line, s.Kind, s.Tags)
				}
			}
			if code != exitOK || errOut.String() != "" {
				t.Errorf("exit %d: %s", code, errOut)
			}
		})
	}
	for _, line := range []string{"tail", "tail --kind seen <done>", "tail -f --state nonsense", "tail -f --raw",
		"tail -f --tag x"} {
		if code, out, errOut := w.run(line, ""); code != exitUsage {
			t.Errorf("%s: exit %d: %s%s", line, code, out, errOut)
		}
	}
}
