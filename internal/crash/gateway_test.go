//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// serveGateway serves the HTTP API until it is killed, and says where.
func serveGateway(url, _ string) error {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(context.Background(), client.Config{URL: url, Logger: quiet})
	if err != nil {
		return err
	}
	h, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Logger: quiet,
		Authorize: func(*http.Request) (httpapi.Principal, error) {
			return httpapi.Principal{Name: "w", Role: httpapi.Worker}, nil
		}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("serves", l.Addr())
	return http.Serve(l, h) //nolint:gosec // it is killed
}

func startGateway(t *testing.T, url, name string) (p *process, base string) {
	t.Helper()
	exe, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "FF_CRASH_URL="+url, "FF_CRASH_GATEWAY=1")
	p = launch(t, name, cmd)
	return p, "http://" + p.expect(t, "serves ")
}

// ask makes one call of the worker API and reads its answer into out.
func ask(t *testing.T, url string, body map[string]any, want int, out any) {
	t.Helper()
	text, err := json.Marshal(body)
	must.No(t, err)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	must.No(t, err)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	must.No(t, err)
	defer answer.Body.Close()
	var read bytes.Buffer
	_, err = read.ReadFrom(answer.Body)
	must.No(t, err)
	if answer.StatusCode != want {
		t.Fatalf("%s: %d %s", url, answer.StatusCode, read.Bytes())
	}
	if out != nil {
		must.No(t, json.Unmarshal(read.Bytes(), out))
	}
}

// What one gateway handed out before it was killed is renewed and settled at another one: the lease is the
// execution's own, and nobody else has to live for it.
func TestAnotherGatewayTakesOverAKilledOne(t *testing.T) {
	url := testserver.Redis(t)
	first, a := startGateway(t, url, "A")
	_, b := startGateway(t, url, "B")
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer c.Close()
	submitted, err := client.Submit(ctx, c, handler.Define[string, string]("remote"), "x")
	must.No(t, err)

	var opened struct {
		Session string `json:"session"`
	}
	ask(t, a+"/v1/workers", map[string]any{"name": "py", "kinds": []string{"remote"}, "lease_ms": 60_000}, 201, &opened)
	var claimed struct {
		Executions []struct {
			Lease string `json:"lease"`
		} `json:"executions"`
	}
	ask(t, a+"/v1/workers/"+opened.Session+":claim", map[string]any{"max": 1, "wait_ms": 20_000}, 200, &claimed)
	if len(claimed.Executions) != 1 {
		t.Fatalf("claimed %d executions, want 1", len(claimed.Executions))
	}
	lease := claimed.Executions[0].Lease

	first.kill()
	var renewed struct {
		Leases []struct {
			Held bool `json:"held"`
		} `json:"leases"`
	}
	ask(t, b+"/v1/workers/"+opened.Session+":renew", map[string]any{"leases": []string{lease}}, 200, &renewed)
	if len(renewed.Leases) != 1 || !renewed.Leases[0].Held {
		t.Fatalf("renewed at the other gateway: %+v", renewed)
	}
	ask(t, b+"/v1/workers/"+opened.Session+":complete", map[string]any{"lease": lease, "result": "done"}, 200, nil)
	if result, err := submitted.Result(ctx); err != nil || result != "done" {
		t.Errorf("result %q, %v", result, err)
	}
}
