package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A real server that died, or that stands still without a word, under a worker with a running handler: the drain ends
// all the same, with the handler told why. The budget itself is proved in virtual time.
func TestDrainWithoutAServer(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, srv *testserver.Server){
		"killed":  func(_ *testing.T, srv *testserver.Server) { srv.Kill() },
		"stopped": func(t *testing.T, srv *testserver.Server) { standStill(t, srv) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := testwait.Context(t, context.Background())
			defer cancel()
			srv := testserver.Start(t, testserver.ServerRedis, testserver.TCP())
			e, err := engine.Open(ctx, engine.Config{URL: srv.URL(), Partitions: 4, Logger: quiet})
			must.No(t, err)
			defer e.Close()
			b, started, causes := blocking()
			worker, err := runtime.New(runtime.Config{URL: srv.URL(), DrainTimeout: -1, Logger: quiet}, b)
			must.No(t, err)
			run, stop := context.WithCancel(ctx)
			defer stop()
			var running conc.WaitGroup
			running.Go(func() { err = worker.Run(run) })
			defer running.Wait()
			payload, _ := json.Marshal("x")
			x := engine.NewExecution{ID: mint.ID(1), Start: flowfabric.Start{Namespace: "default",
				Lane: "default",
				Kind: "greet"}, Payload: payload}
			if created, err := e.CreateExecutions(ctx, 1, []engine.NewExecution{x}); err != nil ||
				created[0].Err != nil {
				t.Fatal(err, created)
			}
			<-started
			remove(t, srv)
			began := time.Now()
			stop()
			running.Wait()
			t.Logf("drained in %v without a server", time.Since(began).Round(time.Millisecond))
			if cause := <-causes; !errors.Is(cause, flowfabric.ErrDraining) {
				t.Errorf("cause %v", cause)
			}
		})
	}
}

// standStill stops the server's process until the end of the test: it accepts, and never answers.
func standStill(t *testing.T, srv *testserver.Server) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "redis://"))
	must.No(t, err)
	defer conn.Close()
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			pid, err := strconv.Atoi(value)
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGSTOP)
			}
			must.No(t, err)
			return
		}
	}
	t.Fatal("the server does not tell its process id")
}
